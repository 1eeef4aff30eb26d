"""What clients were promised, checked on what they sent and got: it reads no definition and no table.

An acknowledged write is seen by every later read at a quorum, and what such a read returned is as good as
acknowledged: reads never go back. What was never acknowledged may be seen or not.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from stagewright.impl.node.keys import stored_key
from stagewright.impl.node.messages import Cell
from stagewright.impl.simulator.database.tables import table_of

Seen = tuple[int, bytes | None]
"""A timestamp and a value; 0 and None: nothing."""


class Reader(Protocol):
    """Who hears of reads of single rows."""

    def begin_read(self, number: int, key: bytes) -> None:
        """A client asks."""
        ...

    def end_read(self, number: int, key: bytes, seen: Seen) -> None:
        """It has its answer."""
        ...


@dataclass
class Oracle:
    """The history of one run, as far as promises need it."""

    written: dict[tuple[bytes, int], bytes | None] = field(
        default_factory=dict[tuple[bytes, int], bytes | None]
    )
    newest: dict[bytes, Seen] = field(default_factory=dict[bytes, Seen])
    acknowledged: set[tuple[bytes, int]] = field(default_factory=set[tuple[bytes, int]])
    refused: set[tuple[bytes, int]] = field(default_factory=set[tuple[bytes, int]])
    breaches: list[str] = field(default_factory=list[str])
    checked: int = 0
    listeners: list[Callable[[bytes, Seen], None]] = field(
        default_factory=list[Callable[[bytes, Seen], None]]
    )  # who hears of a row that clients know now
    begins: list[Callable[[bytes, int], None]] = field(
        default_factory=list[Callable[[bytes, int], None]]
    )  # who hears of a write that begins
    readers: list[Reader] = field(default_factory=list[Reader])
    dropped: set[str] = field(default_factory=set[str])  # tables, by id
    # Until when tables are truncated, by id: what is as old may be gone from the question on, and is once that is done.
    truncations: dict[str, int] = field(default_factory=dict[str, int])
    truncated: dict[str, int] = field(default_factory=dict[str, int])
    floors: dict[tuple[bytes, int], int] = field(default_factory=dict[tuple[bytes, int], int])
    _acknowledged: dict[bytes, list[int]] = field(default_factory=dict[bytes, list[int]])
    _times: dict[bytes, list[int]] = field(default_factory=dict[bytes, list[int]])
    _timestamps: set[int] = field(default_factory=set[int])
    _floors: dict[int, Seen] = field(default_factory=dict[int, Seen])
    _truncated: dict[int, int] = field(default_factory=dict[int, int])  # before a read began
    _probes: dict[int, bool] = field(default_factory=dict[int, bool])
    _scans: dict[int, dict[bytes, Seen]] = field(default_factory=dict[int, dict[bytes, Seen]])

    def begin_write(self, key: bytes, timestamp: int, value: bytes | None) -> None:
        """A client sends a write; no other one has its timestamp."""
        self.written[key, timestamp] = value
        for listener in self.begins:
            listener(key, timestamp)
        acknowledged = self._acknowledged.get(key, [])
        place = bisect_left(acknowledged, timestamp)
        self.floors[key, timestamp] = acknowledged[place - 1] if place else 0
        insort(self._times.setdefault(key, []), timestamp)
        self._timestamps.add(timestamp)

    def has_timestamp(self, timestamp: int) -> bool:
        """Whether a write has it."""
        return timestamp in self._timestamps

    def acknowledge(self, key: bytes, timestamp: int) -> None:
        """A write was acknowledged."""
        self.acknowledged.add((key, timestamp))
        insort(self._acknowledged.setdefault(key, []), timestamp)
        self._raise(key, (timestamp, self.written[key, timestamp]))

    def refuse(self, key: bytes, timestamp: int) -> None:
        """A write was refused as too few replicas were alive: nobody ever sees it, and nobody has."""
        self.refused.add((key, timestamp))
        self._times[key].remove(timestamp)
        self._look_whether_refused(key, self.newest.get(key, (0, None)), "a read before")

    def _look_whether_refused(self, key: bytes, seen: Seen, by: str) -> None:
        if (key, seen[0]) in self.refused:
            self.broken(f"{by} returned {seen} of {key!r}: that write was refused, and never sent")

    def may_be_gone(self, table: str, timestamp: int) -> bool:
        """Whether a row of a table may have been truncated."""
        return timestamp <= self.truncations.get(table, 0)

    def truncate(self, table: str, until: int) -> None:
        """All nodes have truncated a table."""
        self.truncated[table] = until
        for key in [k for k, seen in self.newest.items() if table_of(k) == table]:
            if self.newest[key][0] <= until:
                del self.newest[key]

    def _raise(self, key: bytes, seen: Seen) -> None:
        if self.may_be_gone(table_of(key), seen[0]):
            return
        if seen[0] > self.newest.get(key, (0, None))[0]:
            self.newest[key] = seen
            for listener in self.listeners:
                listener(key, seen)

    @property
    def keys(self) -> list[bytes]:
        """Those that were written to tables that are there."""
        return sorted({k for k, _ in self.written if table_of(k) not in self.dropped})

    def create(self, table: str) -> None:
        """A table is made: what was ever written to one that was dropped, and has its id, is not in it."""
        if table in self.dropped:
            self.dropped.discard(table)
            for kept in (self.newest, self._times, self._acknowledged):
                for key in [k for k in kept if table_of(k) == table]:
                    del kept[key]
            for where in [w for w in self.written if table_of(w[0]) == table]:
                del self.written[where]
                self.acknowledged.discard(where)

    def begin_probe(self, number: int, there: bool) -> None:
        """A row of a table that was dropped is asked for, of which every node knows; a table of its name may be `there`."""
        self._probes[number] = there

    def begin_read(self, number: int, key: bytes) -> None:
        """A read begins: what it must at least return is known now."""
        self._floors[number] = self.newest.get(key, (0, None))
        self._truncated[number] = self.truncated.get(table_of(key), 0)
        for reader in self.readers:
            reader.begin_read(number, key)

    def drop_read(self, number: int) -> None:
        """It failed: it has promised nothing."""
        self._floors.pop(number, None)
        self._scans.pop(number, None)
        self._truncated.pop(number, None)
        self._probes.pop(number, None)

    def end_read(self, number: int, key: bytes, seen: Seen, by: str) -> None:
        """A read returned."""
        there = self._probes.pop(number, None)
        if there is not None:
            self.checked += 1
            if seen[0] or not there:
                self.broken(f"a read of {key!r} by {by} returned {seen}, and its table was dropped")
            return
        floor, table = self._floors.pop(number), table_of(key)
        self.checked += 1
        if 0 < seen[0] <= self._truncated.pop(number):
            self.broken(f"a read of {key!r} by {by} returned {seen}, and {table} was truncated")
        if seen[0] and self.written.get((key, seen[0]), b"?never") != seen[1]:
            self.broken(f"a read of {key!r} by {by} returned {seen}, which nobody wrote")
        if seen[0] < floor[0] and not self.may_be_gone(table, floor[0]):
            self.broken(f"a read of {key!r} by {by} returned {seen}; {floor} was known before")
        self._look_whether_refused(key, seen, f"a read by {by}")
        self._raise(key, seen)
        for reader in self.readers:
            reader.end_read(number, key, seen)

    def begin_scan(self, number: int, table: str, start: bytes) -> None:
        """A scan begins at a stored key: of each row from there on, it is known now what is at least returned."""
        self._truncated[number] = self.truncated.get(table, 0)
        self._scans[number] = {
            key: self.newest.get(key, (0, None))
            for key in self._times
            if table_of(key) == table and stored_key(key) >= start
        }

    def end_scan(
        self, number: int, cells: tuple[Cell, ...], following: bytes | None, by: str
    ) -> None:
        """A scan returned the rows before `following`, each once and in their order, without those that are deleted.

        It writes nothing back, so that what it returned is not known to later reads.
        """
        found = {stored: (time, value) for stored, time, value in cells}
        if [*found] != sorted(found) or len(found) < len(cells):
            self.broken(f"a scan by {by} returned rows twice, or not in their order")
        self.checked += 1
        truncated = self._truncated.pop(number)
        for key, known in self._scans.pop(number).items():
            stored = stored_key(key)
            floor = (0, None) if self.may_be_gone(table_of(key), known[0]) else known
            if following is not None and stored >= following:
                continue
            seen = found.get(stored)
            if seen is None:
                if not self._may_be_deleted(key, floor):
                    self.broken(f"a scan by {by} left {key!r} out; {floor} was known before")
            elif seen[0] <= truncated:
                self.broken(f"a scan by {by} returned {seen} of {key!r}, which was truncated")
            elif (key, seen[0]) in self.refused:
                self._look_whether_refused(key, seen, f"a scan by {by}")
            elif self.written.get((key, seen[0]), b"?never") != seen[1]:
                self.broken(f"a scan of {key!r} by {by} returned {seen}, which nobody wrote")
            elif seen[0] < floor[0]:
                self.broken(f"a scan of {key!r} by {by} returned {seen}; {floor} was known before")

    def _may_be_deleted(self, key: bytes, floor: Seen) -> bool:
        times = self._times[key]
        later = times[bisect_left(times, floor[0]) :]
        return floor[1] is None or any(self.written[key, time] is None for time in later)

    def may_precede(self, key: bytes, timestamp: int, value: bytes | None) -> bool:
        """Whether a read as a write began may have returned this of its row, of what is older than the write."""
        floor = self.floors[key, timestamp]
        if value is None and floor == 0:
            return True
        times = self._times.get(key, [])
        older = times[bisect_left(times, floor) : bisect_left(times, timestamp)]
        return any(self.written[key, t] == value for t in older)

    def broken(self, text: str) -> None:
        """A promise was broken."""
        self.breaches.append(text)
