"""Writes of tables whose transactions are user-enforced (002, "Waiting for pending transactions to finish").

They have no intents and no record. A tablet plans a write by the permissions of that moment and forgets it; the
client brings the plan back, and within the RPC timeout entries and row are stored with one time. Until then no tablet
knows that something is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewright.impl.indexes.messages import (
    Answer,
    Ended,
    EntriesWritten,
    Finish,
    Plan,
    StoreEntries,
    Write,
    Written,
)
from stagewright.impl.indexes.records.notes import Decided, IntentsEnded, Stored
from stagewright.impl.indexes.schema import (
    EntryChange,
    Values,
    changes,
    row_key,
    stored_row,
)
from stagewright.impl.indexes.tablet import ENDED, ROWS
from stagewright.impl.indexes.times import COUNTS
from stagewright.impl.storage.port import Put, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.table_tablet import TableTablet


@dataclass
class _Write:
    """One that is being stored: first by tablets of indexes, then here."""

    sender: str
    asked: Finish
    time: int
    missing: dict[str, tuple[EntryChange, ...]]


class UserEnforced:
    """Of one tablet of the table. A change of the leader forgets what is being stored; the client asks again."""

    def __init__(self, tablet: TableTablet) -> None:
        self._tablet = tablet
        self._writes: dict[bytes, _Write] = {}
        self._waiting: list[tuple[int, Callable[[], None]]] = []

    def forget(self) -> None:
        """The tablet has split: clients ask its children."""
        self._writes.clear()
        self._waiting.clear()

    def plan(self, sender: str, write: Write, old: Values) -> int:
        """Tell a client what its write does to indexes; until when it may be stored."""
        tablet = self._tablet
        found = tablet.store.get(ROWS, row_key(write.key))
        began = tablet.clock.now()
        asked = tuple(changes(write.schema, write.key, old, write.values or {}))
        plan = Plan(began, 0 if found is None else found.time, asked)
        answer = Written(write.transaction, write.statement, Answer.done, plan=plan)
        tablet.port.send(sender, answer)
        return began + tablet.settings.rpc_timeout * COUNTS

    def answer_again(self, sender: str, transaction: str) -> bool:
        """Say when a write was stored, if it was."""
        known = self._tablet.store.get(ENDED, transaction.encode())
        if known is not None:
            self._tablet.port.send(sender, Ended(transaction, int(known.value or b"0")))
        return known is not None

    def finish(self, sender: str, asked: Finish) -> None:
        """Store a write as it was planned, unless that was long ago, or the row has changed."""
        if self.answer_again(sender, asked.transaction):
            return
        tablet, key = self._tablet, row_key(asked.key)
        other = self._writes.get(key)
        if other is not None and other.asked == asked:
            other.sender = sender
            return
        found = tablet.store.get(ROWS, key)
        now = tablet.clock.now()
        if now - asked.plan.began > tablet.settings.rpc_timeout * COUNTS:
            answer = Answer.timed_out
        elif other is not None or (0 if found is None else found.time) != asked.plan.found:
            answer = Answer.changed
        else:
            missing = tablet.by_tablet(asked.plan.changes)
            self._writes[key] = _Write(sender, asked, now, missing)
            self._go_on(key, self._writes[key])
            return
        tablet.port.send(sender, Written(asked.transaction, asked.statement, answer))

    def _go_on(self, key: bytes, write: _Write) -> None:
        """Entries come first: of a write that is not stored here, the client knows that it is not."""
        if self._writes.get(key) is not write:
            return
        for place, asked in list(write.missing.items()):
            if self._tablet.are_gone(asked):
                del write.missing[place]
        if not write.missing:
            self._store(key, write)
            return
        for place, asked in write.missing.items():
            message = StoreEntries(write.asked.transaction, write.time, asked)
            self._tablet.port.send(place, message)
        self._tablet.port.after(self._tablet.settings.retry, self._go_on, key, write)

    def on_entries_written(self, sender: str, message: EntriesWritten) -> None:
        """A tablet of an index has stored its part."""
        for key, write in self._writes.items():
            if (write.asked.transaction, write.time) == (message.transaction, message.time):
                write.missing.pop(sender, None)
                if not write.missing:
                    self._store(key, write)
                return

    def send_elsewhere(self) -> None:
        """Tablets of indexes have split: what is to be stored there goes to those that serve now."""
        for key, write in list(self._writes.items()):
            missing = self._tablet.by_tablet(c for asked in write.missing.values() for c in asked)
            if missing.keys() != write.missing.keys():
                write.missing = missing
                self._go_on(key, write)

    def _store(self, key: bytes, write: _Write) -> None:
        tablet, time, name = self._tablet, write.time, write.asked.transaction
        versions = {key: stored_row(write.asked.values)}
        ended = Put(ENDED, Version(name.encode(), 1, str(time).encode()))
        tablet.put([ended, *tablet.versions(time, versions)])
        del self._writes[key]
        tablet.port.note(Decided(name, time))
        tablet.port.note(IntentsEnded(tablet.port.address, name, time))
        tablet.port.note(Stored(tablet.port.address, time, versions))
        tablet.port.send(write.sender, Ended(name, time))
        waiting, self._waiting = self._waiting, []
        for at, then in waiting:
            self.when_stored(at, then)

    def when_stored(self, at: int, then: Callable[[], None]) -> None:
        """Go on when no write with that time, or an earlier one, is being stored any more."""
        if any(write.time <= at for write in self._writes.values()):
            self._waiting.append((at, then))
        else:
            then()


def entry_versions(asked: Iterable[EntryChange]) -> dict[bytes, bytes | None]:
    """What a write leaves in a tablet of an index."""
    return {c.entry: None if c.row is None else str(c.row).encode() for c in asked}
