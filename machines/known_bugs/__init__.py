"""Bugs that the real systems had, and mistakes that a document rules out, each put back into a machine.

The folders are those of `machines/`, with a file for each machine; a machine of which there are many has a folder, with a
file for what goes wrong, one for what is never done, and one for whoever is refused, or waits.
Every row of the list of 77 historical bugs is here.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import cast

from stagewright.spec.known_bugs import KnownBug, NotFound


def _all() -> Iterator[KnownBug]:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        if not module.ispkg:
            yield from cast("tuple[KnownBug, ...]", import_module(module.name).BUGS)


KNOWN_BUGS: tuple[KnownBug, ...] = tuple(_all())
"""What the checker must find."""

NOT_FOUND: tuple[NotFound, ...] = ()
"""What it cannot find, and why."""
