"""Bugs that the real systems had, each put back into a machine; one file for each machine.

The rows follow the list of 77 historical bugs; every row is here, found or with the reason why not.
"""

from __future__ import annotations

from stagewright.machines.known_bugs import partition_data, partitions, tablets
from stagewright.spec.known_bugs import KnownBug, NotFound

KNOWN_BUGS: tuple[KnownBug, ...] = (*partition_data.BUGS, *partitions.BUGS, *tablets.BUGS)
"""What the checker must find."""

NOT_FOUND: tuple[NotFound, ...] = (
    *partition_data.NOT_FOUND,
    *partitions.NOT_FOUND,
    *tablets.NOT_FOUND,
)
"""What it cannot find, and why."""
