"""The leader of a tablet of an index: entries of transactions and of backfills, and the check that keys are unique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from stagewright.impl.indexes.bulk.loading import EntryLoader, row_in
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    AllowGc,
    Answer,
    Apply,
    BackfillBatch,
    Divide,
    EntriesWritten,
    Fate,
    Found,
    GcAllowed,
    Message,
    Prepare,
    Prepared,
    ReadIndex,
    StoreEntries,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import (
    BackfillOver,
    Compacted,
    IndexRead,
    Stored,
)
from stagewright.impl.indexes.schema import EntryChange, row_key, value_of
from stagewright.impl.indexes.splits.divisible import DivisibleTablet
from stagewright.impl.indexes.tablet import META, ROWS, Intent
from stagewright.impl.indexes.times import COUNTS
from stagewright.impl.indexes.user_enforced import entry_versions
from stagewright.impl.storage.port import LAST_TIME, Put, RowStore, Version, live

_OVER = b"backfill is over"
_SLICE = 2_000  # versions that a compaction looks at at once
_PAUSE = 20


class IndexTablet(DivisibleTablet):
    """An entry's value is the key of its row. Delete markers stay until the backfill is over."""

    def __init__(self, index: int, port: Port, store: RowStore, settings: Settings) -> None:
        self._loader = EntryLoader(self)
        super().__init__(port, store, settings)
        self.index = index
        self._compacted = b""  # up to this key
        port.after(settings.compaction, self._compact)

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        if self.division.split is not None and self.division.answer(sender, message):
            return
        match message:
            case Prepare():
                self._prepare(sender, message)
            case Apply():
                self.on_apply(sender, message)
            case Fate():
                self.on_fate(message)
            case StoreEntries():
                self._store(sender, message)
            case BackfillBatch() if not self._is_over:  # else a former leader's, late
                self._loader.ask(sender, message)
            case Divide(split, tablets):
                self.division.begin(split, tablets)
            case AllowGc() if not self._loader.is_busy:  # else the master asks again
                self._loader.close()
                self.put([Put(META, Version(_OVER, 1, b"1"))])
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

    def close(self) -> None:
        super().close()
        self._loader.close()

    def is_at_rest(self) -> bool:
        """Entries of scans are put in beside the log: the batch that is under way ends, and others wait."""
        self._loader.hold()
        return not self._loader.is_busy

    def freeze(self) -> None:
        super().freeze()
        self._loader.close()

    def inherited(self) -> Iterator[Put]:
        over = self.store.get(META, _OVER)
        if over is not None:
            yield Put(META, over)

    def versions(self, time: int, versions: Mapping[bytes, bytes | None]) -> list[Put]:
        self._loader.know(versions)
        return super().versions(time, versions)

    # -- transactions ------------------------------------------------------------------------------------------

    def _prepare(self, sender: str, message: Prepare) -> None:
        ended = self.has_ended(message.transaction)
        answer = Answer.aborted if ended else self._hold_all(message)
        self.port.send(sender, Prepared(message.transaction, message.statement, answer))

    def _store(self, sender: str, message: StoreEntries) -> None:
        """A user-enforced write: its client tries until all of it is stored."""
        versions = entry_versions(message.changes)
        if not self._has_all(versions, message.time):
            self.put(self.versions(message.time, versions))
            self.port.note(Stored(self.port.address, message.time, versions))
        self.port.send(sender, EntriesWritten(message.transaction, message.time))

    def _has_all(self, keys: Iterable[bytes], time: int) -> bool:
        """Whether there are versions of a time: they were asked for before."""
        snapshot = self.store.snapshot()
        found = [snapshot.get(ROWS, key, time) for key in keys]
        snapshot.close()
        return all(version is not None and version.time == time for version in found)

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
        holder = None if found is None else row_in(found.value)
        backfilled = self._loader.holder(value_of(change.entry))
        if backfilled is not None and (found is None or found.time <= backfilled[1]):
            holder = backfilled[0]
        return holder is not None and holder != change.row

    # -- reads and compactions -------------------------------------------------------------------------------------

    def _read(self, sender: str, message: ReadIndex) -> None:
        low = row_key(message.value)
        high = row_key(message.value + 1)
        snapshot = self.store.snapshot()
        rows = [row_in(v.value) for v in live(snapshot, ROWS, low, high, message.at)]
        snapshot.close()
        found = tuple(sorted(r for r in rows if r is not None))
        self.port.note(IndexRead(self.port.address, message.at))
        self.port.send(sender, Found(message.request, found))

    def _compact(self) -> None:
        """Reclaim delete markers, and what they hide, unless entries may still be written in the past."""
        if self.division.split is not None:
            return
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


def _after(old: Intent | None, change: EntryChange, message: Prepare) -> Intent:
    """What a transaction holds under an entry after one more change."""
    statements = old.statements if old is not None else ()
    if message.statement not in statements:
        statements = (*statements, message.statement)
    value = None if change.row is None else str(change.row)
    if change.row is None and old is not None and old.value not in (None, str(change.left)):
        value = old.value  # another row has it by then: its entry was not there yet to be found
    marker = change.row is None or (old is not None and (old.marker or old.value is None))
    return Intent(message.transaction, statements, value, marker)
