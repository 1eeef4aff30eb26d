"""Lines of the loggers that are read, in no known form: a release whose wording has changed shows here.

Lines that differ in ids and numbers alone are of one shape.
"""

from __future__ import annotations

import re

from stagewright.traces.databases.scylladb.log.patterns import UUID
from stagewright.traces.databases.scylladb.log.prefix import take_apart

WATCHED = ("raft_topology", "view_building_coordinator", "view_building_worker")
PATTERN = rf"\b(?:{'|'.join(WATCHED)}) - "
_VARYING = re.compile(rf"{UUID}|0x[0-9a-f]+|\d+(?:\.\d+)*")
_LISTED = re.compile(r"[\[{(](?:…(?:[,:; ]+)?)+[\])}]")
_LONGEST = 120  # characters


def shape_of(text: str, file: str) -> str | None:
    """The logger and the words of a line; None if it is not such a line."""
    found = take_apart(text, file)
    if found is None or found.logger not in WATCHED:
        return None
    words = _LISTED.sub("…", _VARYING.sub("…", found.message))
    return f"{found.logger} - {words[:_LONGEST]}"
