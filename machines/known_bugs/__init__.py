"""Bugs that the real systems had, each put back into a machine; one file for each machine.

The rows follow the list of 77 historical bugs; every row is here, found or with the reason why not.
"""

from __future__ import annotations

from stagewright.machines.known_bugs import index_rows, index_unique, tablets
from stagewright.spec.known_bugs import KnownBug, NotFound

KNOWN_BUGS: tuple[KnownBug, ...] = (*tablets.BUGS, *index_rows.BUGS, *index_unique.BUGS)
"""What the checker must find."""

NOT_FOUND: tuple[NotFound, ...] = (
    *tablets.NOT_FOUND,
    *index_rows.NOT_FOUND,
    *index_unique.NOT_FOUND,
)
"""What it cannot find, and why."""
