"""The backfill at the leader of a tablet of an index: one batch after the other is checked, sorted and put in at once.

A batch takes many short turns, and statements go on between them: once it is sorted, they see its entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from stagewright.impl.indexes.bulk.columns import TURN, keys_of_entries
from stagewright.impl.indexes.bulk.numbers import Entries, Numbers, entries_of
from stagewright.impl.indexes.bulk.stored_values import StoredValues
from stagewright.impl.indexes.bulk.work import Answer, DoneWork, WriteEntries
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import BackfillBatch, BatchDone, Violation
from stagewright.impl.indexes.records.notes import EntriesBackfilled, EntriesStored, ViolationFound
from stagewright.impl.indexes.schema import EntryChange, entry_key, value_of
from stagewright.impl.indexes.tablet import ROWS
from stagewright.impl.storage.port import Load, Snapshot, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.index_tablet import IndexTablet

_NO_NUMBERS: Numbers = np.empty(0, np.int64)
_AGAIN = 20
_LOOKED_UP = 16  # entries in a turn, of half a millisecond
_FEW = 100  # entries that came later: a file of their own would hold everybody up for longer


@dataclass
class _Batch:
    """The batch that is under way, in the order of its entries."""

    sender: str
    message: BackfillBatch
    entries: Entries
    values: Numbers = field(default_factory=lambda: _NO_NUMBERS)  # of all of `entries`
    rows: Numbers = field(default_factory=lambda: _NO_NUMBERS)
    # places of those whose key another one has
    second: Numbers = field(default_factory=lambda: _NO_NUMBERS)
    later: Numbers = field(default_factory=lambda: _NO_NUMBERS)  # of those that come later
    is_sorted: bool = False  # statements see what it has
    is_gone: bool = False  # whoever sent it has given it up
    has_come: bool = False  # what was to come later is there

    def sort(self) -> None:
        """By values; rows come in the order of their keys. A builder has sorted what it sends."""
        try:
            values, rows = self.entries.columns()
        except FileNotFoundError:
            self.is_gone = True
            return
        if (values[1:] < values[:-1]).any():
            order = np.argsort(values, kind="stable")
            values, rows = values[order], rows[order]
            self.entries = entries_of(self.entries.index, self.entries.unique, values, rows)
        self.values, self.rows = values, rows
        if self.entries.unique:
            self.second = np.flatnonzero(values[1:] == values[:-1]) + 1

    def those_now(self) -> tuple[Numbers, Numbers]:
        """The values and rows of those that do not come later."""
        return np.delete(self.values, self.later), np.delete(self.rows, self.later)

    def go_on(self) -> None:
        """With those that were to come later."""
        self.values, self.rows = self.values[self.later], self.rows[self.later]
        self.entries = entries_of(self.entries.index, self.entries.unique, self.values, self.rows)
        self.second = np.flatnonzero(self.values[1:] == self.values[:-1]) + 1
        self.later, self.has_come = _NO_NUMBERS, True

    def row_of(self, value: int) -> int | None:
        """The row that it has for a value in a unique index."""
        place = int(np.searchsorted(self.values, value, "right")) - 1
        there = place >= 0 and int(self.values[place]) == value
        return int(self.rows[place]) if there else None

    def places_of(self, value: int) -> Numbers:
        """Where it has entries for a value."""
        left, right = (np.searchsorted(self.values, value, side) for side in ("left", "right"))
        return np.arange(left, right, dtype=np.int64)


class EntryLoader:
    """One batch at a time; others wait for their turn."""

    def __init__(self, tablet: IndexTablet) -> None:
        self._tablet = tablet
        self._waiting: deque[tuple[str, BackfillBatch]] = deque()
        self._batch: _Batch | None = None
        self._done: dict[str, tuple[BackfillBatch, BatchDone]] = {}  # the last of each sender
        self._load: Load | None = None
        self._is_held = False  # no batch begins any more
        self._stored_values = StoredValues(tablet)  # if keys are to be unique

    @property
    def is_busy(self) -> bool:
        """Whether entries are being put in."""
        return self._batch is not None

    def ask(self, sender: str, message: BackfillBatch) -> None:
        """Put in a batch and answer; one that is here already is not taken twice."""
        batch, (last, done) = self._batch, self._done.get(sender, (None, None))
        if batch is not None and (batch.sender, batch.message) == (sender, message):
            return
        if done is not None and last == message:
            self._tablet.port.send(sender, done)  # the answer may be lost
            return
        if (sender, message) not in self._waiting:
            self._waiting.append((sender, message))
        self._begin()

    def hold(self) -> None:
        """Begin no other batch: the tablet is to split, and its children take them."""
        self._is_held = True

    def close(self) -> None:
        """Give up what is under way."""
        self._waiting.clear()
        self._done.clear()
        self._batch = None
        self._stored_values.close()
        if self._load is not None:
            self._load.abandon()

    def know(self, keys: Iterable[bytes]) -> None:
        """Entries are about to be stored."""
        self._stored_values.know(keys)

    def holder(self, value: int) -> tuple[int, int] | None:
        """The row that has a value in a unique index by the batch that is under way, and since when."""
        batch = self._batch
        if batch is None or not batch.is_sorted:
            return None
        row = batch.row_of(value)
        return None if row is None else (row, batch.message.time)

    # -- checking ----------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._batch is not None or not self._waiting or self._is_held:
            return
        sender, message = self._waiting.popleft()
        self._tablet.clock.observe(message.read_time)
        self._batch = batch = _Batch(sender, message, message.entries)
        self._tablet.port.aside(batch.sort, self._sorted, batch)

    def _sorted(self, batch: _Batch) -> None:
        if batch is not self._batch:
            return
        if batch.is_gone:
            self._batch = None
            self._begin()
            return
        batch.is_sorted = True
        if batch.message.entries.unique:
            self._check(batch)
        else:
            self._store(batch)

    def _check(self, batch: _Batch) -> None:
        """Check all but a second entry of a key, which has to see the first, and what a transaction holds.

        Whether that commits decides about the entry.
        """
        if batch is not self._batch:
            return
        ignored = Defect.intents_are_not_looked_at in self._tablet.settings.defects
        values = {value_of(k): i.transaction for k, i in self._tablet.intents.items()}
        taken = [v for v in values if batch.row_of(v) is not None and not ignored]
        later = [batch.places_of(value) for value in taken]
        if Defect.batches_are_not_checked_within not in self._tablet.settings.defects:
            later.append(batch.second)
        batch.later = np.unique(np.concatenate([_NO_NUMBERS, *later]))
        if taken:
            transactions = {values[value] for value in taken}
            self._tablet.resolve(transactions, batch.message.read_time, lambda: None)
        self._stored_values.sift(
            batch.entries,
            batch.values,
            lambda: batch is self._batch,
            lambda places: self._look_up(batch, sorted({*places} - {*batch.later.tolist()})),
        )

    def _go_on(self, batch: _Batch) -> None:
        """A part is done: take what was to come later, or answer."""
        if not len(batch.later):
            self._answer(batch, BatchDone(batch.message.job, batch.message.number))
            return
        batch.go_on()
        self._tablet.port.after(_AGAIN, self._check, batch)

    def _look_up(self, batch: _Batch, places: list[int]) -> None:
        """Entries that may have a rival: the store may have their values."""
        if batch is not self._batch:
            return
        message = batch.message
        snapshot = self._tablet.store.snapshot()
        for place in places[:_LOOKED_UP]:
            value, row = int(batch.values[place]), int(batch.rows[place])
            entry = EntryChange(message.entries.index, True, entry_key(True, value, row), row)
            rival = self._rival(snapshot, entry, message.read_time)
            if rival is not None:
                snapshot.close()
                self._violated(batch, entry, (row, rival))
                return
        snapshot.close()
        if len(places) <= _LOOKED_UP:
            self._store(batch)
        else:
            self._tablet.port.turn(self._look_up, batch, places[_LOOKED_UP:])

    def _violated(self, batch: _Batch, entry: EntryChange, rows: tuple[int, int]) -> None:
        message, port = batch.message, self._tablet.port
        port.note(ViolationFound(port.address, message.read_time, entry))
        violation = Violation(entry.index, value_of(entry.entry), rows)
        self._answer(batch, BatchDone(message.job, message.number, violation=violation))

    def _rival(self, snapshot: Snapshot, entry: EntryChange, at: int) -> int | None:
        """002, "Detecting constraint violations": the entries just before and just after the time of the scan.

        Both times of an entry count as before, and of one time the first write is the next one.
        """
        defects = self._tablet.settings.defects
        high = entry.entry + b"\0"
        versions = list(snapshot.versions(ROWS, entry.entry, high))  # newest first
        found: list[int | None] = []
        if Defect.no_check_backwards not in defects:
            found.append(next((row_in(v.value) for v in versions if v.time <= at), None))
        if Defect.no_check_forwards not in defects:
            found.append(_next_row(versions, at, Defect.last_write_of_a_time in defects))
        if Defect.row_itself_is_a_duplicate in defects:
            return next((r for r in found if r is not None), None)
        return next((r for r in found if r is not None and r != entry.row), None)

    # -- storing -----------------------------------------------------------------------------------------------

    def _store(self, batch: _Batch) -> None:
        count = len(batch.values) - len(batch.later)
        if not count:
            self._go_on(batch)
            return
        message, port = batch.message, self._tablet.port
        entries = replace(batch.entries, without=batch.later.tobytes())
        port.note(EntriesBackfilled(port.address, message.read_time, message.time, entries))
        if batch.has_come and count <= _FEW:
            few = zip(*self._stored_columns(batch, *batch.those_now()), strict=True)
            self._tablet.put(self._tablet.versions(message.time, dict(few)))
            self._stored(batch)
            return
        self._load = self._tablet.store.load(ROWS, message.time)
        if count < self._tablet.settings.bulk:
            self._add(batch, *batch.those_now(), 0)
            return
        work = WriteEntries(self._load.path, ROWS, message.time, entries)
        port.elsewhere(work, self._written, batch)

    def _written(self, batch: _Batch, answer: Answer) -> None:
        if batch is not self._batch:
            return
        if isinstance(answer, DoneWork):
            self._put_in(batch)
        else:
            self._add(batch, *batch.those_now(), 0)

    def _add(self, batch: _Batch, values: Numbers, rows: Numbers, begin: int) -> None:
        if batch is not self._batch:
            return
        assert self._load is not None
        some = slice(begin, begin + TURN)
        self._load.add(*self._stored_columns(batch, values[some], rows[some]))
        if begin + TURN < len(values):
            self._tablet.port.turn(self._add, batch, values, rows, begin + TURN)
        else:
            self._put_in(batch)

    def _stored_columns(
        self, batch: _Batch, values: Numbers, rows: Numbers
    ) -> tuple[list[bytes], list[bytes]]:
        keys = keys_of_entries(batch.message.entries.unique, values, rows)
        return keys, [b"%d" % row for row in rows.tolist()]

    def _put_in(self, batch: _Batch) -> None:
        assert self._load is not None
        self._tablet.rows += len(batch.values) - len(batch.later)
        self._tablet.know_time(batch.message.time)
        self._tablet.port.aside(self._load.finish, self._stored, batch)

    def _stored(self, batch: _Batch) -> None:
        self._load = None
        port = self._tablet.port
        entries = replace(batch.entries, without=batch.later.tobytes())
        port.note(EntriesStored(port.address, batch.message.time, entries))
        self._go_on(batch)

    def _answer(self, batch: _Batch, done: BatchDone) -> None:
        self._batch = None
        self._done[batch.sender] = batch.message, done
        self._tablet.port.send(batch.sender, done)
        self._begin()


def row_in(stored: bytes | None) -> int | None:
    """The row of a stored entry; None of a delete marker."""
    return None if stored is None else int(stored.lstrip(b"*"))


def _next_row(versions: list[Version], at: int, last: bool) -> int | None:
    """The row of the first write after a time; where a deletion comes first at its time, none (`last`: that is overlooked)."""
    following = [v.value for v in versions if v.time > at]
    if not following or following[-1] is None:
        return None
    handed_over = following[-1].startswith(b"*")
    return None if handed_over and not last else row_in(following[-1])
