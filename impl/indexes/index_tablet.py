"""The leader of a tablet of an index: entries of transactions and of backfills, and the check that keys are unique."""

from __future__ import annotations

from itertools import islice

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    AllowGc,
    Answer,
    Apply,
    BackfillBatch,
    BatchDone,
    Fate,
    Found,
    GcAllowed,
    Message,
    Prepare,
    Prepared,
    ReadIndex,
    Violation,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import (
    BackfillOver,
    Compacted,
    EntriesBackfilled,
    IndexRead,
    Stored,
    ViolationFound,
)
from stagewright.impl.indexes.schema import EntryChange, row_key, value_of
from stagewright.impl.indexes.tablet import META, ROWS, Intent, Tablet
from stagewright.impl.indexes.times import COUNTS
from stagewright.impl.storage.port import LAST_TIME, Put, RowStore, Snapshot, Version, live

_OVER = b"backfill is over"
_SLICE = 2_000  # versions that a compaction looks at at once
_PAUSE = 20


class IndexTablet(Tablet):
    """An entry's value is the key of its row. Delete markers stay until the backfill is over."""

    def __init__(self, index: int, port: Port, store: RowStore, settings: Settings) -> None:
        super().__init__(port, store, settings)
        self.index = index
        self._compacted = b""  # up to this key
        port.after(settings.compaction, self._compact)

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        match message:
            case Prepare():
                self._prepare(sender, message)
            case Apply():
                self.on_apply(sender, message)
            case Fate():
                self.on_fate(message)
            case BackfillBatch():
                self._backfill(sender, message)
            case AllowGc():
                self._write([Put(META, Version(_OVER, 1, b"1"))])
                self.port.note(BackfillOver(self.port.address))
                self.port.send(sender, GcAllowed(self.port.address))
            case ReadIndex(_, _, at):
                self.clock.observe(at)
                self.resolve(
                    {i.transaction for i in self.intents.values()},
                    at,
                    lambda: self._read(sender, message),
                )
            case _:
                pass

    @property
    def _is_over(self) -> bool:
        return self.store.get(META, _OVER) is not None

    # -- transactions ------------------------------------------------------------------------------------------

    def _prepare(self, sender: str, message: Prepare) -> None:
        if self.has_ended(message.transaction):
            return
        answer = self._hold_all(message)
        self.port.send(sender, Prepared(message.transaction, message.statement, answer))

    def _hold_all(self, message: Prepare) -> Answer:
        held: dict[bytes, Intent] = {}
        for change in message.changes:
            old = self.intents.get(change.entry)
            if old is not None and old.transaction != message.transaction:
                self.resolve({old.transaction}, 0, lambda: None)
                return Answer.conflict
            if old is not None and message.statement in old.statements:
                continue  # asked again
            if change.row is not None and change.unique and self._is_taken(change, old):
                return Answer.duplicate
            held[change.entry] = _after(old, change, message)
        self.hold(held)
        return Answer.done

    def _is_taken(self, change: EntryChange, held: Intent | None) -> bool:
        """Another row has the key, as far as the index knows, and as the transaction leaves it."""
        if held is not None:
            return held.value is not None and int(held.value) != change.row
        found = self.store.get(ROWS, change.entry)
        holder = None if found is None else _row_in(found.value)
        return holder is not None and holder != change.row

    # -- the backfill --------------------------------------------------------------------------------------------

    def _backfill(self, sender: str, message: BackfillBatch) -> None:
        if self._is_over:
            return  # a former leader's: nothing is written in the past any more
        self.clock.observe(message.read_time)
        checked = [e for e in message.entries if e.unique]
        ignored = Defect.intents_are_not_looked_at in self.settings.defects
        held = {e.entry for e in checked if e.entry in self.intents}
        if held and not ignored:
            # A transaction has the key and is undecided: whether it commits decides about the entry.
            self.resolve(
                {self.intents[k].transaction for k in held}, message.read_time, lambda: None
            )
            self.port.send(sender, BatchDone(message.job, message.number, again=True))
            return
        written: dict[bytes, int] = {}
        done = BatchDone(message.job, message.number)
        snapshot = self.store.snapshot()
        for entry in message.entries:
            assert entry.row is not None
            if entry.unique:
                rival = self._rival(snapshot, entry, message.read_time, written)
                if rival is not None:
                    self.port.note(ViolationFound(self.port.address, message.read_time, entry))
                    rows = (entry.row, rival)
                    violation = Violation(entry.index, value_of(entry.entry), rows)
                    done = BatchDone(message.job, message.number, violation=violation)
                    break
            written[entry.entry] = entry.row
        snapshot.close()
        if done.violation is not None:
            self.port.send(sender, done)
            return
        versions: dict[bytes, bytes | None] = {k: str(r).encode() for k, r in written.items()}
        self._write(self.versions(message.time, versions))
        note = EntriesBackfilled(
            self.port.address, self.index, message.read_time, message.time, message.entries
        )
        self.port.note(note)
        self.port.note(Stored(self.port.address, message.time, versions))
        self.port.send(sender, done)

    def _rival(
        self, snapshot: Snapshot, entry: EntryChange, at: int, batch: dict[bytes, int]
    ) -> int | None:
        """002, "Detecting constraint violations": the entries just before and just after the time of the scan.

        Both times of an entry count as before, and of one time the first write is the next one.
        """
        defects = self.settings.defects
        high = entry.entry + b"\0"
        versions = list(snapshot.versions(ROWS, entry.entry, high))  # newest first
        previous = next((_row_in(v.value) for v in versions if v.time <= at), None)
        following = [v for v in versions if v.time > at]
        next_one: int | None = None
        if following:
            stored = following[-1].value
            first_deletes = stored is not None and stored.startswith(b"*")
            if Defect.last_write_of_a_time in defects:
                first_deletes = False
            next_one = None if first_deletes else _row_in(stored)
        found: list[int | None] = [batch.get(entry.entry)]
        if Defect.no_check_backwards not in defects:
            found.append(previous)
        else:
            found = []
        if Defect.no_check_forwards not in defects:
            found.append(next_one)
        if Defect.row_itself_is_a_duplicate in defects:
            return next((r for r in found if r is not None), None)
        return next((r for r in found if r is not None and r != entry.row), None)

    # -- reads and compactions -------------------------------------------------------------------------------------

    def _read(self, sender: str, message: ReadIndex) -> None:
        low = row_key(message.value)
        high = row_key(message.value + 1)
        snapshot = self.store.snapshot()
        rows = [_row_in(v.value) for v in live(snapshot, ROWS, low, high, message.at)]
        snapshot.close()
        found = tuple(sorted(r for r in rows if r is not None))
        self.port.note(IndexRead(self.port.address, message.at))
        self.port.send(sender, Found(message.request, found))

    def _compact(self) -> None:
        """Reclaim delete markers, and what they hide, unless entries may still be written in the past."""
        early = Defect.markers_are_reclaimed_early in self.settings.defects
        high: bytes | None = None
        if early or self._is_over:
            history = self.clock.now() - self.settings.history * COUNTS
            high = self._end_of_slice()
            before = LAST_TIME if early else max(history, 0)
            gone = self.store.forget(ROWS, before, self._compacted, high)
            if gone:
                self.port.note(Compacted(self.port.address, gone))
        self._compacted = high or b""
        self.port.after(_PAUSE if high else self.settings.compaction, self._compact)

    def _end_of_slice(self) -> bytes | None:
        """The key up to which versions are looked at now, that others need not wait; None: to the last one."""
        snapshot = self.store.snapshot()
        versions = snapshot.versions(ROWS, self._compacted, None)
        end = next((v.key for v in islice(versions, _SLICE, None)), None)
        snapshot.close()
        return self._compacted + b"\0" if end == self._compacted else end


def _row_in(stored: bytes | None) -> int | None:
    """The row of a stored entry; None of a delete marker."""
    return None if stored is None else int(stored.lstrip(b"*"))


def _after(old: Intent | None, change: EntryChange, message: Prepare) -> Intent:
    """What a transaction holds under an entry after one more change."""
    statements = old.statements if old is not None else ()
    if message.statement not in statements:
        statements = (*statements, message.statement)
    value = None if change.row is None else str(change.row)
    marker = change.row is None or (old is not None and (old.marker or old.value is None))
    return Intent(message.transaction, statements, value, marker)
