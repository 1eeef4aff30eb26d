"""Reads ScyllaDB logs: tablets, nodes and the topology as a whole, CDC generations, view building tasks.

Lines are found and taken apart in parallel (`extract`); what they mean together is decided afterwards, in
the order of time (`interpret`). Each subsystem has a file with its forms of lines; `scylla_prefix` knows
what a line begins with, `scylla_order` which lines are believed, `scylla_reading` what they come to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.readers.lines import line_parts, lines_of
from stagewright.traces.readers.parts import Interpreted, Part, Tally
from stagewright.traces.readers.relevant import sorted_out
from stagewright.traces.readers.scylla_line import RELEVANT, LogRecord, parse_log_line
from stagewright.traces.readers.scylla_order import in_order
from stagewright.traces.readers.scylla_prefix import has_prefix
from stagewright.traces.readers.scylla_reading import Reading

_PROBE_BYTES = 1 << 20


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
    found: list[LogRecord] = []
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, "the line is too long")
            continue
        blank, relevant = sorted_out(lines, RELEVANT)
        tally.blank += blank
        tally.other += len(lines) - blank - len(relevant)
        for index in relevant:
            number = lines.first + index
            try:
                record = parse_log_line(lines.text(index).decode(), number, part.path)
            except UnicodeDecodeError as error:
                record = f"not UTF-8 text at byte {error.start + 1}"
            if isinstance(record, str):
                tally.refuse(number, record)
                continue
            tally.other += 1  # until it is known to be an event
            if record is not None:
                found.append(record)
    return found


def interpret(files: Sequence[Sequence[tuple[int, LogRecord]]], profile: str = "") -> Interpreted:
    """What the records of all files, each a list of (part, record) in order, mean together."""
    placed, notes = in_order(files)
    reading = Reading(placed, profile)
    reading.read()
    return Interpreted(reading.book.events, reading.recordings(), [*notes, *reading.notes()])
