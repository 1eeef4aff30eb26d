"""Reads ScyllaDB logs: the stages of tablets, as the topology coordinator tells them.

At DEBUG the coordinator tells each stage it will set, but neither the first nor the last step of a
transition. At INFO it tells streaming and cleanup only. What is not told is a hidden step.

Lines are found and taken apart in parallel (`extract`); what they mean together is decided afterwards, in
the order of time (`interpret`): a commit that lost a race did not happen, a node that is not the
coordinator any more is not believed, and after a resize the same tablet id is another tablet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.traces.readers.lines import line_parts, lines_of
from stagewright.traces.readers.parts import Interpreted, Part, Tally
from stagewright.traces.readers.scylla_line import (
    RELEVANT,
    LogRecord,
    Said,
    has_prefix,
    parse_log_line,
)
from stagewright.traces.recording import ALL_HIDDEN, Recording, hidden_but

MACHINE = "TabletMigration"
_PROBE_BYTES = 1 << 20

# A transition is made and deleted without a line, so its first stage and `none` are not among these.
_TOLD = frozenset(
    {
        "write_both_read_old",
        "rebuild_repair",
        "streaming",
        "write_both_read_new",
        "write_both_read_old_fallback_cleanup",
        "use_new",
        "cleanup",
        "end_migration",
        "cleanup_target",
        "revert_migration",
        "end_repair",
    }
)

# At DEBUG every step to a told stage leaves a line; at INFO any step may leave none.
DEBUG_RECORDING = Recording(hidden_but({"stage": _TOLD}), from_start=False, end_marked=False)
INFO_RECORDING = Recording(ALL_HIDDEN, from_start=False, end_marked=False)


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
    """The lines of a part that say something of tablets; the others count as `other`."""
    found: list[LogRecord] = []
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, "the line is too long")
            continue
        blank, relevant = _sorted_out(lines.data, lines.bounds.tolist())
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


def _sorted_out(data: bytes, bounds: list[int]) -> tuple[int, list[int]]:
    """How many lines are blank, and which may be relevant."""
    import re

    import numpy as np
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported
    offsets = pa.array(bounds, pa.int32()).buffers()[1]
    texts = pa.BinaryArray.from_buffers(
        pa.binary(), len(bounds) - 1, [None, offsets, pa.py_buffer(data)]
    )
    blank = int(compute.sum(compute.match_substring_regex(texts, r"^\s*$")).as_py() or 0)
    pattern = "|".join(re.escape(word).replace(r"\ ", " ") for word in RELEVANT)
    relevant = compute.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return blank, np.flatnonzero(relevant).tolist()


@dataclass
class _Found:
    """The events of all logs together, each with the part its line is in, and what was noticed."""

    events: list[tuple[int, Event]] = field(default_factory=list)
    raced: int = 0  # stage changes cancelled by a race
    not_believed: int = 0  # lines of a node that was not the coordinator
    uncertain: int = 0  # stage changes whose commit a change of the coordinator left open


def interpret(files: Sequence[Sequence[tuple[int, LogRecord]]], profile: str = "") -> Interpreted:
    """What the records of all files, each a list of (part, record) in order, mean together."""
    told = any(r.said is Said.WILL_SET for records in files for _, r in records)
    reading = _Reading(_Found(), profile)
    for part, record in _in_time(files):
        reading.take(part, record)
    reading.finish()
    found = reading.result
    counts = (
        (found.raced, "stage changes were cancelled by a race"),
        (found.not_believed, "lines are of a node that was not the coordinator then"),
        (found.uncertain, "stage changes were left open by a change of coordinator"),
    )
    return Interpreted(
        found.events,
        {MACHINE: DEBUG_RECORDING if told else INFO_RECORDING},
        [f"{count} {what}" for count, what in counts if count],
    )


def _in_time(files: Iterable[Sequence[tuple[int, LogRecord]]]) -> list[tuple[int, LogRecord]]:
    """All records by time; those of one file keep their order, whatever their clocks say."""
    keyed = []
    for number, records in enumerate(files):
        latest = ""
        for position, (part, record) in enumerate(records):
            latest = max(latest, record.time)
            keyed.append(((latest, number, position), part, record))
    keyed.sort(key=lambda k: k[0])
    return [(part, record) for _, part, record in keyed]


class _Reading:
    """Follows the coordinator through its lines."""

    def __init__(self, result: _Found, profile: str) -> None:
        self.result = result
        self._profile = profile
        self._leader = ""
        self._replaced: set[str] = set()  # nodes that were the coordinator before
        self._intended: list[tuple[int, LogRecord]] = []  # not yet attempted
        self._attempted: list[
            tuple[int, LogRecord]
        ] = []  # attempted: it counts unless a race follows
        self._resizes: dict[str, int] = {}
        self._restarts: dict[tuple[str, str], int] = {}
        self._sequences: dict[str, int] = {}

    def take(self, part: int, record: LogRecord) -> None:
        if record.said is Said.LEADER:
            self._new_leader(record)
            return
        if record.said is Said.RESIZE:
            self._settle()
            self._resizes[record.table] = self._resizes.get(record.table, 0) + 1
            return
        if record.node in self._replaced:
            self.result.not_believed += 1
            return
        if record.node != self._leader:  # only a coordinator writes such lines
            self._new_leader(record)
        match record.said:
            case Said.WILL_SET:
                self._settle()
                self._intended.append((part, record))
            case Said.IS_IN:
                self._settle()
                self._event(part, record)
            case Said.COMMIT:
                self._settle()
                self._attempted, self._intended = self._intended, []
            case Said.RACE:
                self.result.raced += len(self._attempted) + len(self._intended)
                self._attempted, self._intended = [], []

    def finish(self) -> None:
        """What is still open at the end was at least intended: it must be legal."""
        self._settle()
        for part, record in self._intended:
            self._event(part, record)
        self._intended = []

    def _settle(self) -> None:
        for part, record in self._attempted:
            self._event(part, record)
        self._attempted = []

    def _new_leader(self, record: LogRecord) -> None:
        """What the old one had under way may have been committed or not: follow these tablets anew."""
        for _, open_ in (*self._attempted, *self._intended):
            tablet = (open_.table, open_.tablet)
            self._restarts[tablet] = self._restarts.get(tablet, 0) + 1
            self.result.uncertain += 1
        self._attempted, self._intended = [], []
        self._replaced.add(self._leader)
        self._leader = record.node
        self._replaced.discard(self._leader)

    def _event(self, part: int, record: LogRecord) -> None:
        entity = f"{record.table}:{record.tablet}"
        if resize := self._resizes.get(record.table, 0):
            entity += f"@{resize}"
        if restart := self._restarts.get((record.table, record.tablet), 0):
            entity += f"#{restart}"
        sequence = self._sequences.get(entity, 0)
        self._sequences[entity] = sequence + 1
        event = Event(
            trace="",
            machine=MACHINE,
            profile=self._profile,
            definition="",
            entity=entity,
            sequence=sequence,
            node=record.node,
            observed={"stage": record.stage},
            line=record.line,
        )
        self.result.events.append((part, event))
