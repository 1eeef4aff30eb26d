"""Reads Couchbase's logs (couchdb.log, views.log): the states of the partitions of each index.

Each partition of each index on each node is evaluated against `PartitionStates`. A record has the states before
and after: the one before has to be what the last record left, but for what the cleaner, updater or compactor has
cleaned up meanwhile, and what is after has to be one step from it. No step is hidden. What is a replica is evaluated
against `PartitionReplicas`, too: from the replica index of a node, through a failover, to its main index.

Records of many lines are put together in parallel, file by file (`extract`); `couchbase_groups.py` follows the
indexes in the order of time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.spec.errors import InputError
from stagewright.spec.values import FrozenMap
from stagewright.traces.databases.couchbase.couchbase_groups import MACHINE as STATES, GroupsReading
from stagewright.traces.databases.couchbase.couchbase_record import (
    PREFIX,
    RELEVANT,
    Record,
    parse_record,
)
from stagewright.traces.databases.couchbase.couchbase_replicas import (
    MACHINE as REPLICAS,
    RECORDING as REPLICAS_RECORDING,
    ReplicasReading,
)
from stagewright.traces.databases.names import sizes
from stagewright.traces.events.observability import NOTHING_HIDDEN, Recording
from stagewright.traces.readers.prefilter import begins_with, sorted_out
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import Lines, last_line_end, lines_of

_LINES_MAX = 60  # of one record; what is longer is a list of something else
_NEXT = re.compile(PREFIX.encode())
_FIRST = re.compile(PREFIX.encode(), re.MULTILINE)
STATES_RECORDING = Recording(
    NOTHING_HIDDEN,
    False,
    False,
    FrozenMap(sizes({Partition: 1})),
    numbered=frozenset(sizes({Partition: 1})),
)


def check(path: Path) -> None:
    """Raise an `InputError` if no line in the first megabyte is one of a Couchbase log."""
    if not begins_with(path, "couchbase-log", PREFIX):
        raise InputError(
            f"{path} does not look like a Couchbase log",
            help="its lines have `[couchdb:info,2012-08-20T15:21:13.150,…]`; is the --format right?",
        )


def parts(path: Path) -> list[tuple[int, int]]:
    """A file is not cut, so that no record is; the server's own are of 40 MB at most."""
    return [(0, path.stat().st_size)]


def ends(path: Path) -> tuple[int, int]:
    """How far a file that may grow can be read: its last record may go on, so it is not read for good."""
    end = last_line_end(path)
    return _last_record(path, end), end


def _last_record(path: Path, end: int) -> int:
    """Where the last record begins among the whole lines before `end`; 0 where no line begins one."""
    begin, step = end, 1 << 16
    with path.open("rb") as file:
        while begin > 0:
            begin, step = max(0, end - step), 4 * step
            file.seek(begin)
            found = [match.start() for match in _FIRST.finditer(file.read(end - begin))]
            if found and (found[-1] or begin == 0):  # else it may be the middle of a line
                return begin + found[-1]
    return 0


def extract(part: Part, tally: Tally) -> list[Record]:
    """The records of a file that say something of partitions; all other lines count as `other`."""
    collecting = _Collecting(tally)
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            collecting.end()
            tally.refuse(lines.first, "the line is too long")
            continue
        collecting.add(lines)
    collecting.end()
    return collecting.records


class _Collecting:
    """Puts the lines of records together, also where a record goes on in the next piece of the file."""

    def __init__(self, tally: Tally) -> None:
        self.records: list[Record] = []
        self._tally = tally
        self._open: list[bytes] = []
        self._first = 0

    def add(self, lines: Lines) -> None:
        blank, heads = sorted_out(lines, RELEVANT)
        self._tally.blank += blank
        self._tally.other += len(lines) - blank - len(heads)
        if self._open:
            self._go_on(lines, 0)
        for head in heads:
            self.end()
            self._open, self._first = [lines.text(head)], lines.first + head
            self._go_on(lines, head + 1)

    def _go_on(self, lines: Lines, index: int) -> None:
        while index < len(lines):
            text = lines.text(index)
            if _NEXT.match(text) or len(self._open) >= _LINES_MAX:
                self.end()
                return
            self._open.append(text)
            index += 1

    def end(self) -> None:
        """The record has no more lines."""
        if not self._open:
            return
        try:
            record = parse_record([text.decode() for text in self._open], self._first)
        except UnicodeDecodeError as error:
            record = f"not UTF-8 text at byte {error.start + 1} of a line of the record"
        self._open = []
        if isinstance(record, str):
            self._tally.refuse(self._first, record)
            return
        self._tally.other += 1  # until it is known to be an event
        if record is not None:
            self.records.append(record)


def interpret(files: Sequence[Sequence[tuple[int, Record]]], profile: str = "") -> Interpreted:
    """What the records of all files, each a list of (part, record) in order, mean together."""
    keyed = []
    for number, records in enumerate(files):
        latest = ""
        for position, (part, record) in enumerate(records):
            latest = max(latest, record.time)
            keyed.append(((latest, number, position), part, record))
    keyed.sort(key=lambda k: k[0])
    groups, replicas = GroupsReading(profile), ReplicasReading(profile)
    for _, part, record in keyed:
        groups.take(part, record)
        replicas.take(part, record)
    recordings = {STATES: STATES_RECORDING, REPLICAS: REPLICAS_RECORDING}
    return Interpreted([*groups.events, *replicas.events], recordings, groups.notes())
