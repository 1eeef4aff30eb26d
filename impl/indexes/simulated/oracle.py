"""What 002 promises, looked for in rows, entries and answers alone; no definition is asked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stagewright.impl.indexes.catalog import IndexRow
from stagewright.impl.indexes.client import Client, IndexRead
from stagewright.impl.indexes.records.notes import (
    EntriesStored,
    LockAwaited,
    Note,
    RowsScanned,
    SchemaApplied,
    SplitAwaited,
    StatusReported,
    Stored,
    TabletDivided,
)
from stagewright.impl.indexes.schema import (
    Schema,
    Values,
    entry_key,
    key_of,
    row_key,
    tablet_of,
    value_of,
)
from stagewright.impl.indexes.splits.tablet_map import TABLE, TabletMap
from stagewright.impl.indexes.times import COUNTS, shown
from stagewright.impl.storage.port import LAST_TIME
from stagewright.machines.yugabytedb.indexes.index_states import Status

APART = 50  # milliseconds that a client's clock is from others, at most
PROMPT = 120  # milliseconds for a statement that waits for no lock, and no message of which is lost
SECOND = 1000
_Pairs = frozenset[tuple[int, int]]
_NOTHING: object = object()


@dataclass(frozen=True)
class Ended:
    """When the job of an index ended, or when it was dropped, in milliseconds."""

    published: int | None = None
    failed: int | None = None
    dropped: int | None = None


class Oracle:
    """Hears what tablets store; at the end compares it with what clients were told."""

    def __init__(self) -> None:
        self.now = 0
        self.rows: dict[int, dict[int, Values | None]] = defaultdict(dict)  # time → row
        self.entries: dict[int, dict[int, dict[bytes, int | None]]] = defaultdict(dict)
        self.scanned: list[tuple[int, RowsScanned]] = []
        self.locked: dict[str, int] = defaultdict(int)
        self.told: dict[int, Status] = {}
        self.wrongly_reported: list[str] = []
        self._checked = set[int]()  # indexes
        self._schemas: dict[int, Schema] = {}  # by tablet of the table
        self._under_way: list[tuple[int, int, int]] = []  # from when to when a row is written

    def excuse(self, clients: Iterable[Client]) -> None:
        """A user-enforced write is no transaction: while it is under way, its row and its entries may differ."""
        for client in clients:
            for one in client.transactions:
                until = one.over if one.committed is not None else None
                end = LAST_TIME if until is None else (until + APART) * COUNTS
                self._under_way += [((one.began - APART) * COUNTS, end, k) for k, _ in one.changes]

    def are_excused(self, pairs: _Pairs, time: int) -> bool:
        """Whether each of these (value, row) is of a row that is being written at a time, by a user-enforced write."""
        rows = {row for _, row in pairs}
        return rows <= {row for begin, end, row in self._under_way if begin <= time <= end}

    def load(self, rows: Mapping[int, Values]) -> None:
        """The rows from before."""
        self.rows[1] = dict(rows)

    def hear(self, note: Note) -> None:
        """A process has done something."""
        match note:
            case Stored(address, time, versions) if address.startswith("table"):
                for key, value in versions.items():
                    row = None if value is None else json.loads(value)
                    self.rows[time][key_of(key)] = row
            case Stored(address, time, versions):
                number = int(address.removeprefix("index").partition("/")[0])
                at = self.entries[number].setdefault(time, {})
                for key, value in versions.items():
                    at[key] = None if value is None else int(value.lstrip(b"*"))
            case EntriesStored():
                self.hear(note.stored())
            case RowsScanned():
                self.scanned.append((self.now, note))
            case LockAwaited(transaction, milliseconds) | SplitAwaited(transaction, milliseconds):
                self.locked[transaction] += milliseconds
            case SchemaApplied(tablet, _, schema):
                self._schemas[tablet] = schema
            case TabletDivided(split) if split.table == TABLE and split.parent in self._schemas:
                schema = self._schemas.pop(split.parent)
                self._schemas |= dict.fromkeys(split.children, schema)
            case StatusReported(index, status):
                self._tell(index, status)
            case _:
                pass

    def _tell(self, index: int, status: Status) -> None:
        """SUCCESS means that every tablet of the table reads the index, and neither it nor FAILED is taken back."""
        known = self.told.setdefault(index, status)
        if known is not status:
            self.wrongly_reported.append(
                f"index{index} is {status.name}, and was {known.name} before"
            )
        elif status is Status.success and index not in self._checked:
            self._checked.add(index)
            behind = {t: s.permission(index) for t, s in self._schemas.items()}
            for tablet, permission in behind.items():
                if not permission.read:
                    self.wrongly_reported.append(
                        f"SUCCESS is reported of index{index}, which tablet {tablet} has as {permission.name}"
                    )

    # -- the table ---------------------------------------------------------------------------------------------

    def acknowledged(self, clients: Iterable[Client]) -> Iterator[str]:
        """What was committed is stored at its time, and nothing else is."""
        expected: dict[int, dict[int, Values | None]] = defaultdict(dict)
        for client in clients:
            for one in client.transactions:
                if one.committed is not None:
                    expected[one.committed] |= dict(one.changes)
        for time in sorted({*expected, *self.rows} - {1}):
            if expected.get(time, {}) != self.rows.get(time, {}):
                yield (
                    f"at {shown(time)} clients committed {expected.get(time, {})}, "
                    f"the table has {self.rows.get(time, {})}"
                )

    def kept(self, versions: Iterable[tuple[int, int, int, Values | None]]) -> Iterator[str]:
        """The tablets that serve have every row at every time, each one once: (tablet, time, key, columns)."""
        left = {(t, k): row for t, rows in self.rows.items() for k, row in rows.items()}
        for tablet, time, key, row in versions:
            known = left.pop((time, key), _NOTHING)
            if known is _NOTHING:
                yield f"tablet {tablet} has a row {key} at {shown(time)} that it is not to have"
            elif known != row:
                yield f"tablet {tablet} has {row} as row {key} at {shown(time)}, not {known}"
        for time, key in sorted(left)[:3]:
            yield f"no tablet that serves has the row {key} of {shown(time)}"

    def pairs(self, column: str, since: int, until: int) -> Iterator[tuple[int, _Pairs]]:
        """(value, row) of a column at each time at which the table changes, from one time to another."""
        held: dict[int, int | None] = {}
        begun = False
        for time in sorted(self.rows):
            if time > until:
                break
            if time > since and not begun:
                begun = True
                yield since, _pairs(held)
            held |= {k: (row or {}).get(column) for k, row in self.rows[time].items()}
            if time >= since:
                begun = True
                yield time, _pairs(held)
        if not begun:
            yield since, _pairs(held)

    # -- indexes -------------------------------------------------------------------------------------------------

    def index(self, row: IndexRow, until: int) -> Iterator[str]:
        """The index equals its table at every time from that of the scan on; an entry has the time of its row."""
        assert row.read_time is not None
        base = dict(self.pairs(row.column, row.read_time, until))
        entries = self.entries.get(row.number, {})
        times = sorted({*base, until, *(t for t in entries if row.read_time <= t <= until)})
        held: dict[bytes, int | None] = {}
        late = iter(sorted(entries))
        upcoming = next(late, None)
        expected: _Pairs = frozenset()
        for time in times:
            while upcoming is not None and upcoming <= time:
                held |= entries[upcoming]
                upcoming = next(late, None)
            expected = base.get(time, expected)
            found = frozenset((value_of(e), r) for e, r in held.items() if r is not None)
            if not self.are_excused(found ^ expected, time):
                yield (
                    f"{row.name} at {shown(time)}: (value, row) {_few(found - expected)} without a row, "
                    f"{_few(expected - found)} without an entry"
                )
                return
        yield from self._times(row, until)

    def _times(self, row: IndexRow, until: int) -> Iterator[str]:
        """The entry of a row that was written after the scan has the row's time."""
        entries = self.entries.get(row.number, {})
        for time in sorted(t for t in self.rows if (row.read_time or 0) < t <= until):
            for key, values in sorted(self.rows[time].items()):
                value = (values or {}).get(row.column)
                entry = None if value is None else entry_key(row.unique, value, key)
                found = None if entry is None else entries.get(time, {}).get(entry)
                if entry is None or found == key:
                    continue
                if not self.are_excused(frozenset({(value_of(entry), key)}), time):
                    yield f"{row.name} has no entry of row {key} with its time, {shown(time)}"
                    return

    def stored(self, row: IndexRow, found: _Pairs, end: int) -> Iterator[str]:
        """What is left of an index after compactions is what the table has at the end."""
        *_, (_, expected) = self.pairs(row.column, end - 1, end)
        if not self.are_excused(found ^ expected, end):
            yield (
                f"{row.name} as stored: (value, row) {_few(found - expected)} without a row, "
                f"{_few(expected - found)} without an entry"
            )

    def placed(
        self, row: IndexRow, tablets: TabletMap, held: Iterable[tuple[int, bytes, int]], since: int
    ) -> Iterator[str]:
        """The tablets that serve have every entry that was written since a time, each one once: (tablet, key, time).

        Of those before, compactions may have reclaimed some.
        """
        noted = {(t, k) for t, some in self.entries.get(row.number, {}).items() for k in some}
        found = set[tuple[int, bytes]]()
        for tablet, key, time in held:
            what = f"tablet {tablet} of {row.name} has an entry of {value_of(key)} at {shown(time)}"
            if (time, key) not in noted:
                yield f"{what} that nobody has written"
            elif tablets.of(key) != tablet:
                yield f"{what} that tablet {tablets.of(key)} is to have"
            found.add((time, key))
        for time, key in sorted((t, k) for t, k in noted - found if t > since)[:3]:
            yield (
                f"no tablet of {row.name} that serves has the entry of {value_of(key)} at {shown(time)}"
            )

    def shares(self, row: IndexRow, until: int) -> tuple[int, int, set[int]] | None:
        """When two rows had one value, between the scan and a time; the value and the rows."""
        assert row.read_time is not None
        for time, pairs in self.pairs(row.column, row.read_time, until):
            by_value: dict[int, set[int]] = defaultdict(set)
            for value, key in pairs:
                by_value[value].add(key)
            for value, keys in sorted(by_value.items()):
                if len(keys) > 1:
                    return time, value, keys
        return None

    def constraint(self, row: IndexRow, ended: Ended, end: int) -> Iterator[str]:
        """FAILED if and only if two rows shared a key from the time of the scan on, until it was published."""
        if row.read_time is None or not row.unique:
            if ended.failed is not None:
                yield f"{row.name} FAILED, which has no constraint, or was not scanned"
            return
        if ended.failed is not None:
            if self.shares(row, (ended.failed + APART) * COUNTS) is None:
                yield f"{row.name} FAILED ({row.error}), and no two rows ever shared a value"
        elif ended.published is not None:
            found = self.shares(row, end)
            if found is not None:
                time, value, keys = found
                yield f"{row.name} SUCCEEDED; at {shown(time)} rows {sorted(keys)} had {value}"

    def read(self, row: IndexRow, read: IndexRead) -> Iterator[str]:
        """A read through the index finds the rows that the table has at its time."""
        held: dict[int, int | None] = {}
        for time in sorted(self.rows):
            if time <= read.at:
                held |= {k: (r or {}).get(row.column) for k, r in self.rows[time].items()}
        expected = tuple(sorted(k for k, v in held.items() if v == read.value))
        wrong = frozenset((read.value, k) for k in {*expected} ^ {*read.rows})
        if not self.are_excused(wrong, read.at):
            yield (
                f"{row.name} = {read.value} read at {shown(read.at)} found rows {list(read.rows)}, "
                f"the table has {list(expected)}"
            )

    # -- the build -----------------------------------------------------------------------------------------------

    def scans(self, jobs: Mapping[int, int], chunk: int) -> Iterator[str]:
        """Rows are read once for all indexes of a job; after a fault one chunk again, and all of them.

        `jobs` has how many chunks of a tablet may be read again in each job.
        """
        read: dict[tuple[int, int], list[int]] = defaultdict(list)
        for _, note in self.scanned:
            read[note.job, note.tablet] += note.keys
        for (job, tablet), keys in sorted(read.items()):
            extra = len(keys) - len(set(keys))
            if extra > jobs.get(job, 0) * chunk:
                yield f"job {job} read {extra} rows of tablet {tablet} more than once"
        for job in sorted({j for j, _ in read}):
            times = {n.read_time for _, n in self.scanned if n.job == job}
            if len(times) > 1:
                yield f"job {job} has scanned at {len(times)} times"

    def rate(self, rows_per_second: int) -> Iterator[str]:
        """No tablet reads more rows in any second."""
        by_task: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for time, note in self.scanned:
            by_task[note.job, note.tablet].append((time, len(note.keys)))
        for (job, tablet), reads in sorted(by_task.items()):
            for i, (begin, _) in enumerate(reads):
                rows = sum(n for time, n in reads[i:] if time < begin + SECOND)
                if rows > rows_per_second:
                    yield f"job {job} read {rows} rows of tablet {tablet} in the second from {begin} ms"
                    return

    def waits(self, clients: Iterable[Client]) -> Iterator[str]:
        """Where no message is lost, a statement waits for a row's lock, and for nothing else."""
        for client in clients:
            for one in client.transactions:
                for latency in one.latencies:
                    most = PROMPT + self.locked[one.name] + 60 * one.rounds
                    if latency > most:
                        yield f"a statement of {one.name} took {latency} ms, {self.locked[one.name]} of them for locks"


def _pairs(held: Mapping[int, int | None]) -> _Pairs:
    return frozenset((value, key) for key, value in held.items() if value is not None)


def _few(pairs: _Pairs) -> str:
    return ", ".join(map(str, sorted(pairs)[:3])) or "none"


def by_tablet(rows: Mapping[int, Values], tablets: int) -> dict[int, dict[int, Values]]:
    """Rows by the tablet that has them."""
    found: dict[int, dict[int, Values]] = defaultdict(dict)
    for key, values in rows.items():
        found[tablet_of(row_key(key), tablets)][key] = values
    return found
