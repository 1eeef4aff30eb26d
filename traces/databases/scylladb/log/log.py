"""Reads ScyllaDB logs: tablets, nodes and the topology as a whole, CDC generations, view building tasks.

Lines are found and taken apart in parallel (`extract`); what they mean together is decided afterwards, in
the order of time (`interpret`). Each subsystem has a file with its forms of lines; `scylla_prefix` knows
what a line begins with, `scylla_order` which lines are believed, `scylla_reading` what they come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.databases.scylladb.log.interpreter import Reading
from stagewright.traces.databases.scylladb.log.line import RELEVANT, LogRecord, parse_log_line
from stagewright.traces.databases.scylladb.log.mixed import lines_of_several_nodes, unsure
from stagewright.traces.databases.scylladb.log.order import in_order
from stagewright.traces.databases.scylladb.log.passed_over import PATTERN, shape_of
from stagewright.traces.databases.scylladb.log.prefix import has_prefix
from stagewright.traces.readers.prefilter import Watch, records_in
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import line_parts, lines_of

_PROBE_BYTES = 1 << 20
_WATCH = Watch(PATTERN, shape_of)


def check(path: Path) -> None:
    """Raise an `InputError` if no line in the first megabyte is one of a ScyllaDB log."""
    part = Part(0, str(path), "scylla-log", 0, min(path.stat().st_size, _PROBE_BYTES))
    for lines in lines_of(part):
        texts = (lines.text(i).decode(errors="replace") for i in range(min(len(lines), 10_000)))
        if any(has_prefix(text) for text in texts):
            return
        break
    raise InputError(
        f"{path} does not look like a ScyllaDB log",
        help="its lines have `[shard 0: gms] raft_topology - …`; is the --format right?",
    )


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines."""
    return line_parts(path)


def extract(part: Part, tally: Tally) -> list[LogRecord]:
    """The lines of a part that say something of a machine; the others count as `other`."""
    return records_in(part, tally, RELEVANT, parse_log_line, _WATCH)


def interpret(files: Sequence[Sequence[tuple[int, LogRecord]]], profile: str = "") -> Interpreted:
    """What the records of all files, each a list of (part, record) in order, mean together."""
    placed, notes = in_order(files)
    reading = Reading(placed, profile)
    reading.read()
    doubtful, mixed = lines_of_several_nodes(placed)
    notes += [
        f"{name} has lines of several nodes, and they do not say of which: what seems wrong is undecided"
        for name in mixed
    ]
    return Interpreted(
        reading.book.events,
        reading.recordings(),
        [*notes, *reading.notes()],
        reading.of_version(),
        reading.releases(),
        unsure(reading.book.events, doubtful),
    )
