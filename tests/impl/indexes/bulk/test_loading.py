"""A batch that is put in at once leaves what a batch leaves that is put in entry by entry, or fails for the same reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from stagewright.impl.indexes.bulk import loading
from stagewright.impl.indexes.bulk.columns import changes_of
from stagewright.impl.indexes.bulk.doing import Builder
from stagewright.impl.indexes.bulk.numbers import Entries
from stagewright.impl.indexes.bulk.sorting import in_order
from stagewright.impl.indexes.bulk.work import GetReady, RefusedWork, Work, WriteEntries
from stagewright.impl.indexes.index_tablet import IndexTablet
from stagewright.impl.indexes.messages import (
    AllowGc,
    AlterTable,
    Answer,
    Apply,
    BackfillBatch,
    BackfillChunk,
    BatchDone,
    ChunkDone,
    GcAllowed,
    Message,
    Prepare,
    Prepared,
)
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.schema import (
    EntryChange,
    IndexInfo,
    Schema,
    entry_key,
    row_key,
    value_of,
)
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.memory import MemoryLoad, MemoryRows, ModelledDisk
from stagewright.impl.storage.port import Put, Version
from stagewright.machines.yugabytedb.indexes.index_states import Permission

READ_TIME = 50
Stored = dict[tuple[bytes, int], bytes | None]


class Turns:
    """The port of a tablet whose turns come one after the other, as a test says."""

    address = "index0/0"

    def __init__(self) -> None:
        self.turns: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.sent: list[Message] = []
        self.builder = Builder()
        self.works: list[Work] = []

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        self.sent.append(message)

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        if milliseconds <= 20:  # others are of compactions, and of transactions that are slow
            self.turns.append((action, arguments))

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        self.turns.append((action, arguments))

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        def done() -> None:
            work()
            then(*arguments)

        self.turns.append((done, ()))

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        self.works.append(work)
        refused = RefusedWork("rows are in memory")
        answer = refused if isinstance(work, WriteEntries) else self.builder.do(work)
        self.turns.append((then, (*arguments, answer)))

    def make_tablet(self, address: str) -> None:
        """No tablet splits."""

    def is_led(self, address: str) -> bool:
        return True

    def now(self) -> int:
        return 1_000_000

    def note(self, note: Note) -> None:
        """Nobody hears."""

    def take_slot(self) -> bool:
        return True

    def free_slot(self) -> None:
        """It has none."""

    def step(self) -> bool:
        """Let the next one have its turn, if there is one."""
        if not self.turns:
            return False
        action, arguments = self.turns.popleft()
        action(*arguments)
        return True

    def run(self) -> None:
        """Until nothing is to be done."""
        for _ in range(10_000):
            if not self.step():
                return
        raise AssertionError("it goes on for ever")


def _tablet(stored: Stored, bulk: int = 10_000) -> tuple[IndexTablet, Turns, MemoryRows]:
    rows, port = MemoryRows(ModelledDisk()), Turns()
    rows.write(Put(ROWS, Version(key, time, value)) for (key, time), value in stored.items())
    return IndexTablet(0, port, rows, Settings(compaction=1_000, bulk=bulk)), port, rows


def _batch(entries: list[tuple[int, int]], unique: bool, number: int = 1) -> BackfillBatch:
    values = np.array([value for value, _ in entries], np.int64).tobytes()
    rows = np.array([row for _, row in entries], np.int64).tobytes()
    return BackfillBatch(0, number, READ_TIME, READ_TIME, Entries(0, unique, values, rows))


def _in(rows: MemoryRows) -> Stored:
    snapshot = rows.snapshot()
    found = {(v.key, v.time): v.value for v in snapshot.versions(ROWS, b"", None)}
    snapshot.close()
    return found


def _row(stored: bytes | None) -> int | None:
    return None if stored is None else int(stored.lstrip(b"*"))


def _rivals(stored: Stored, earlier: Stored, key: bytes, row: int) -> set[int]:
    """Whoever has the key just before or just after the time of the scan, by the rule alone."""
    times = {time: value for (k, time), value in (stored | earlier).items() if k == key}
    before = [time for time in times if time <= READ_TIME]
    after = [time for time in times if time > READ_TIME]
    found = {_row(times[max(before)])} if before else set[int | None]()
    if after and not (times[min(after)] or b"").startswith(b"*"):
        found.add(_row(times[min(after)]))
    return {r for r in found if r is not None} - {row}


def _one_by_one(stored: Stored, batch: BackfillBatch) -> tuple[Stored, dict[int, set[int]]]:
    """What the store has after each entry was put in; the rows that share a value."""
    written, shared = Stored(), dict[int, set[int]]()
    for change in changes_of(batch.entries):
        assert change.row is not None
        rivals = _rivals(stored, written, change.entry, change.row) if change.unique else set()
        if rivals:
            shared.setdefault(value_of(change.entry), set()).update({change.row, *rivals})
        written[change.entry, READ_TIME] = b"%d" % change.row
    return stored | written, shared


values = st.integers(0, 12)
versions = st.dictionaries(
    st.tuples(values, st.integers(READ_TIME - 2, READ_TIME + 2)),
    st.none() | st.tuples(st.booleans(), st.integers(0, 30)),
)
entries = st.lists(st.tuples(values, st.integers(0, 30)), max_size=14, unique_by=lambda e: e[1])


def _stored(drawn: dict[tuple[int, int], tuple[bool, int] | None], unique: bool) -> Stored:
    found = Stored()
    for (value, time), content in drawn.items():
        row = content[1] if content is not None else 7
        text = None if content is None else (b"*" if content[0] else b"") + b"%d" % row
        found[entry_key(unique, value, row), time] = text
    return found


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "TURN", 3)


@given(drawn=versions, entries=entries, unique=st.booleans(), bulk=st.sampled_from([1, 8, 100]))
def test_a_batch_at_once_is_a_batch_one_by_one(
    drawn: dict[tuple[int, int], tuple[bool, int] | None],
    entries: list[tuple[int, int]],
    unique: bool,
    bulk: int,
) -> None:
    stored, batch = _stored(drawn, unique), _batch(sorted(entries, key=lambda e: e[1]), unique)
    tablet, port, rows = _tablet(stored, bulk)
    tablet.receive("table/0", batch)
    port.run()
    expected, shared = _one_by_one(stored, batch)
    (done,) = port.sent
    assert isinstance(done, BatchDone)
    if not shared:
        assert done.violation is None
        assert _in(rows) == expected
    else:
        assert done.violation is not None
        assert {*done.violation.rows} <= shared[done.violation.value]
        assert {*stored} <= {*_in(rows)} <= {*expected}


@given(
    entries=entries,
    held=values,
    commits=st.booleans(),
    row=st.integers(0, 40),
    turn=st.integers(1, 6),
)
def test_entries_that_a_transaction_holds_wait_for_its_end(
    entries: list[tuple[int, int]], held: int, commits: bool, row: int, turn: int
) -> None:
    batch = _batch(sorted({v: (v, r) for v, r in entries}.values(), key=lambda e: e[1]), True)
    tablet, port, rows = _tablet({})
    change = EntryChange(0, True, entry_key(True, held, row), row)
    tablet.receive("table/1", Prepare("t", 0, (change,)))
    tablet.receive("table/0", batch)
    for _ in range(turn):
        port.step()
    assert (change.entry, READ_TIME) not in _in(rows)  # whatever became of the others
    time = tablet.clock.now() if commits else None
    tablet.receive("transactions", Apply("t", time))
    port.run()
    end = _in(rows)
    done = next(m for m in port.sent if isinstance(m, BatchDone))
    there = dict(entries_of(batch))
    if commits and there.get(held, row) != row:
        assert done.violation is not None
        assert {*done.violation.rows} == {there[held], row}
    else:
        assert done.violation is None
        assert {k: v for k, v in end.items() if k[1] == READ_TIME} == {
            (entry_key(True, v, r), READ_TIME): b"%d" % r for v, r in there.items()
        }


def test_few_entries_that_come_later_need_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store takes a file in while it serves nobody: it is one for each batch."""
    tablet, port, rows = _tablet({})
    load, loads = rows.load, list[int]()

    def counted(family: str, time: int) -> MemoryLoad:
        loads.append(time)
        return load(family, time)

    monkeypatch.setattr(rows, "load", counted)
    tablet.receive("table/1", Prepare("t", 0, (EntryChange(0, True, entry_key(True, 7, 3), 3),)))
    tablet.receive("table/0", _batch([(value, value + 100) for value in range(10)], True))
    for _ in range(3):
        port.step()
    tablet.receive("transactions", Apply("t", None))
    port.run()
    assert loads == [READ_TIME]
    assert rows.disk.synced == len(rows.disk.log)
    assert {value_of(key): int(row or b"0") for (key, _), row in _in(rows).items()} == {
        value: value + 100 for value in range(10)
    }


def entries_of(batch: BackfillBatch) -> list[tuple[int, int]]:
    """Values and rows."""
    found = [(value_of(c.entry), c.row) for c in changes_of(batch.entries)]
    return [(value, row) for value, row in found if row is not None]


@pytest.mark.parametrize("turns", range(12))
def test_a_statement_sees_the_batch_that_is_under_way(turns: int) -> None:
    """Between its turns another row gets one of its keys: one of the two is refused."""
    batch = _batch([(value, value + 100) for value in range(10)], True)
    tablet, port, _ = _tablet({})
    tablet.receive("table/0", batch)
    for _ in range(turns):
        port.step()
    change = EntryChange(0, True, entry_key(True, 7, 3), 3)
    tablet.receive("table/1", Prepare("t", 0, (change,)))
    (prepared,) = (m for m in port.sent if isinstance(m, Prepared))
    if prepared.answer is Answer.done:
        tablet.receive("transactions", Apply("t", tablet.clock.now()))
    port.run()
    (done,) = (m for m in port.sent if isinstance(m, BatchDone))
    refused = prepared.answer is Answer.duplicate
    assert refused is (done.violation is None)
    assert refused is (turns >= 1)


def _in_file(batch: BackfillBatch, path: Path) -> BackfillBatch:
    """The same as a builder sends it."""
    values, rows = in_order(*batch.entries.columns())
    path.write_bytes(values.tobytes() + rows.tobytes())
    return replace(batch, entries=Entries(0, batch.entries.unique, b"", b"", str(path)))


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("turns", range(8))
def test_a_batch_in_a_file_that_goes_is_put_in_if_it_has_begun(
    turns: int, unique: bool, tmp_path: Path
) -> None:
    """Whoever sent it has given it up, or its next leader has come: it is not answered if it has not begun."""
    plain = _batch([(value, 100 - value) for value in (5, 3, 9, 4, 7, 1)], unique)
    batch, other = _in_file(plain, tmp_path / "file"), _batch([(2, 2)], unique, number=2)
    stored = Stored({(entry_key(unique, 3, 97), READ_TIME + 1): None})
    tablet, port, rows = _tablet(stored, bulk=4)
    tablet.receive("table/0", batch)
    tablet.receive("table/1", other)
    for _ in range(turns):
        port.step()
    (tmp_path / "file").unlink()
    port.run()
    done = [m.number for m in port.sent if isinstance(m, BatchDone)]
    assert done == ([1, 2] if turns else [2])
    expected, _ = _one_by_one(stored, plain) if turns else (stored, {})
    assert _in(rows) == {**expected, (entry_key(unique, 2, 2), READ_TIME): b"2"}


def test_a_copy_is_answered_and_not_put_in_again() -> None:
    batch, other = _batch([(1, 1), (2, 2)], True), _batch([(3, 3)], True)
    tablet, port, rows = _tablet({})
    tablet.receive("table/0", batch)
    tablet.receive("table/0", batch)
    tablet.receive("table/1", other)
    tablet.receive("table/1", other)
    port.run()
    assert port.sent == [BatchDone(0, 1)] * 2
    log = len(rows.disk.log)
    tablet.receive("table/0", batch)
    assert not port.turns
    assert port.sent[2:] == [BatchDone(0, 1)]
    assert len(rows.disk.log) == log


def test_markers_may_be_reclaimed_when_nothing_is_put_in_any_more() -> None:
    tablet, port, rows = _tablet({})
    tablet.receive("table/0", _batch([(1, 1)], False))
    tablet.receive("master", AllowGc(0))
    assert port.sent == []  # the master asks again
    port.run()
    tablet.receive("master", AllowGc(0))
    assert [type(m) for m in port.sent] == [BatchDone, GcAllowed]
    tablet.receive("table/0", _batch([(2, 2)], False, 2))  # a former leader's
    assert not port.turns
    assert [time for _, time in _in(rows)] == [READ_TIME]


@pytest.mark.parametrize(("rows", "wants"), [(3, False), (4, True)])
def test_a_server_with_a_large_table_has_a_builder_that_is_ready(rows: int, wants: bool) -> None:
    store, port = MemoryRows(ModelledDisk()), Turns()
    store.write(Put(ROWS, Version(row_key(k), 1, b"{}")) for k in range(rows))
    TableTablet(0, port, store, Settings(bulk=4))
    assert [type(work) for work in port.works] == [GetReady] * wants


def test_what_is_in_memory_is_put_into_files_once_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever syncs waits for that, too; nothing commits at the time of the scan any more."""
    store, port, spilled = MemoryRows(ModelledDisk()), Turns(), list[int]()
    store.write(Put(ROWS, Version(row_key(k), 1, b"{}")) for k in range(8))
    monkeypatch.setattr(store, "spill", lambda: spilled.append(1))
    tablet = TableTablet(0, port, store, Settings(bulk=4))
    index = IndexInfo(0, "i", "v", False, Permission.do_backfill)
    tablet.receive("master", AlterTable(Schema(1, (index,))))
    for ask, start, time, expected in ((1, b"", 50, 1), (2, row_key(4), 50, 1), (3, b"", 60, 2)):
        chunk = BackfillChunk(time, (1, ask), start, (0,), time)
        tablet.receive("master", chunk)
        port.run()
        assert len(spilled) == expected
    assert [type(m) for m in port.sent].count(ChunkDone) == 3
