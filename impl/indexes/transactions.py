"""The records of transactions: whether and when each has committed, decided once, in one place."""

from __future__ import annotations

from stagewright.impl.indexes.messages import Applied, Apply, AskFate, End, Ended, Fate, Message
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import Decided
from stagewright.impl.indexes.times import HybridClock
from stagewright.impl.storage.port import Put, RowStore, Version

ADDRESS = "transactions"
TRIES = 10
RECORD, _ABORTED = "records", b"0"


class TransactionRecords:
    """The status tablet. A transaction of which there is no record is undecided."""

    def __init__(self, port: Port, store: RowStore, settings: Settings) -> None:
        self.port = port
        self.clock = HybridClock(port.now)
        self._store = store
        self._settings = settings
        self._waiting: dict[tuple[str, str], int | None] = {}  # to be applied: where
        snapshot = store.snapshot()
        for version in snapshot.versions(RECORD, b"", None):
            self.clock.observe(int(version.value or _ABORTED))
        snapshot.close()

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        match message:
            case End(transaction, commit, participants):
                time = self._decide(transaction, commit=commit)
                self.port.send(sender, Ended(transaction, time))
                for place in participants:
                    self._waiting[transaction, place] = time
                    self._apply(transaction, place, TRIES)
            case AskFate(transaction, at, abort):
                self.clock.observe(at)
                known = self._record(transaction)
                if known is None and abort:
                    self._decide(transaction, commit=False)
                    known = self._record(transaction)
                time = known or None
                self.port.send(sender, Fate(transaction, at, known is not None, time))
            case Applied(transaction, instead) if (transaction, sender) in self._waiting:
                time = self._waiting.pop((transaction, sender))
                for place in instead:
                    self._waiting[transaction, place] = time
                    self._apply(transaction, place, TRIES)
            case _:
                pass

    def _record(self, transaction: str) -> int | None:
        """When it has committed; 0: it was aborted; None: undecided."""
        found = self._store.value_at(RECORD, transaction.encode(), 1)
        return None if found is None else int(found)

    def _decide(self, transaction: str, *, commit: bool) -> int | None:
        known = self._record(transaction)
        if known is None:
            known = self.clock.now() if commit else 0
            version = Version(transaction.encode(), 1, str(known).encode())
            self._store.write([Put(RECORD, version)])
            self._store.sync()
            self.port.note(Decided(transaction, known or None))
        return known or None

    def _apply(self, transaction: str, place: str, tries: int) -> None:
        """Until it is done, or the tablet is gone: one that is there asks by itself."""
        if (transaction, place) not in self._waiting:
            return
        if not tries:
            del self._waiting[transaction, place]
            return
        self.port.send(place, Apply(transaction, self._waiting[transaction, place]))
        self.port.after(self._settings.retry, self._apply, transaction, place, tries - 1)
