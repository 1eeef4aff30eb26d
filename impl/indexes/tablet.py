"""What all tablets do: hold what a transaction has written, ask for its fate, turn it into versions or drop it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stagewright.impl.indexes.messages import Applied, Apply, AskFate, Fate
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import IntentsEnded, IntentsHeld, Opened, Stored
from stagewright.impl.indexes.times import HybridClock
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS
from stagewright.impl.storage.port import Put, RowStore, Version

ROWS, INTENTS, ENDED, META = "rows", "intents", "ended", "meta"
NEWEST = b"newest"  # the time of the newest version
SWEEP = 400


@dataclass(frozen=True)
class Intent:
    """What a transaction that is undecided has written under a key; it locks the key.

    `marker` is a deletion before the value, at the same time. `before` is what the statement found there, and `planned` the
    numbers of the permissions that it was planned by, of each index; a statement is there once for each plan.
    """

    transaction: str
    statements: tuple[int, ...]
    value: str | None
    marker: bool = False
    before: str = ""
    planned: tuple[tuple[int, int], ...] = ()

    def encoded(self) -> bytes:
        """As the store has it."""
        fields = [self.transaction, self.statements, self.value, self.marker, self.before]
        return json.dumps([*fields, self.planned]).encode()

    @classmethod
    def decoded(cls, stored: bytes) -> Intent:
        """The inverse of `encoded`."""
        transaction, statements, value, marker, before, planned = json.loads(stored)
        pairs = tuple((int(i), int(p)) for i, p in planned)
        return cls(transaction, tuple(statements), value, marker, before, pairs)


class Tablet:
    """The leader of a tablet. What it knows beside its store is lost with it."""

    def __init__(self, port: Port, store: RowStore, settings: Settings) -> None:
        self.port = port
        self.clock = HybridClock(port.now)
        self.store = store
        self.settings = settings
        self.intents: dict[bytes, Intent] = {}
        self.began: dict[str, int] = {}  # when a transaction's first intent was seen here
        self._questions: dict[str, list[tuple[int, Callable[[], None]]]] = {}
        self._load()
        port.note(Opened(port.address, {k: i.transaction for k, i in self.intents.items()}))
        port.after(SWEEP, self.sweep)

    def _load(self) -> None:
        newest = self.store.get(META, NEWEST)
        self._newest = 0 if newest is None else int(newest.value or b"0")
        self.clock.observe(self._newest)
        snapshot = self.store.snapshot()
        for version in snapshot.versions(INTENTS, b"", None):
            if version.key not in self.intents and version.value:
                self.intents[version.key] = Intent.decoded(version.value)
        snapshot.close()
        self.began = {i.transaction: self.port.now() for i in self.intents.values()}

    # -- intents -----------------------------------------------------------------------------------------

    def hold(self, intents: dict[bytes, Intent]) -> None:
        """Write intents, all or none."""
        puts = [Put(INTENTS, Version(k, 1, i.encoded())) for k, i in intents.items()]
        self.put(puts)
        self.intents |= intents
        for intent in intents.values():
            self.began.setdefault(intent.transaction, self.port.now())
        for transaction in sorted({i.transaction for i in intents.values()}):
            keys = tuple(k for k, i in intents.items() if i.transaction == transaction)
            self.port.note(IntentsHeld(self.port.address, transaction, keys))

    def has_ended(self, transaction: str) -> bool:
        """Whether its intents here were applied or dropped already."""
        return (
            transaction not in self.began
            and self.store.value_at(ENDED, transaction.encode(), 1) is not None
        )

    def apply(self, transaction: str, time: int | None) -> None:
        """Turn the intents of a transaction into versions of a time; or, aborted, drop them.

        Nobody waits for the disk: who opens the tablet after a crash finds the intents, and asks for their fate again.
        """
        if self.has_ended(transaction):
            return
        held = {k: i for k, i in self.intents.items() if i.transaction == transaction}
        puts = [Put(ENDED, Version(transaction.encode(), 1, b"1"))]
        puts += [Put(INTENTS, Version(key, 1, None)) for key in held]
        versions: dict[bytes, bytes | None] = {}
        if time is not None:
            self.clock.observe(time)
            versions = {k: stored_value(i) for k, i in held.items()}
            puts += self.versions(time, versions)
        self.write(puts)
        for key in held:
            del self.intents[key]
        self.began.pop(transaction, None)
        self.port.note(IntentsEnded(self.port.address, transaction, time))
        if time is not None and versions:
            self.port.note(Stored(self.port.address, time, versions))
        self.released(held)

    def released(self, keys: Iterable[bytes]) -> None:
        """These keys are not locked any more."""

    def versions(self, time: int, versions: Mapping[bytes, bytes | None]) -> list[Put]:
        """Versions of a time, to be written, and what the tablet has to know of them when it is opened again."""
        puts = [Put(ROWS, Version(k, time, v)) for k, v in versions.items()]
        if time > self._newest:
            self._newest = time
            puts.append(Put(META, Version(NEWEST, 1, str(time).encode())))
        return puts

    def know_time(self, time: int) -> None:
        """There will be versions of that time: whoever opens the tablet again is past it."""
        puts = self.versions(time, {})
        if puts:
            self.put(puts)

    def close(self) -> None:
        """The process ends in an orderly way: nothing of the store is held any more."""

    def forget(self) -> None:
        """Others have what is held here: nobody is asked for its fate any more."""
        self.began.clear()
        self._questions.clear()

    def put(self, puts: list[Put]) -> None:
        """Write all of it, or none; it is on the disk before anything else is said."""
        self.write(puts)
        self.store.sync()

    def write(self, puts: list[Put]) -> None:
        """Write all of it, or none; after a crash what was written last may be lost."""
        self.store.write(puts)

    # -- fates -----------------------------------------------------------------------------------------------

    def resolve(self, transactions: Iterable[str], at: int, then: Callable[[], None]) -> None:
        """Go on when each of these is decided here, or will not commit at or before a time."""
        waiting = {t for t in transactions if t in self.began}
        if not waiting:
            then()
            return
        left = set(waiting)

        def heard(transaction: str) -> None:
            left.discard(transaction)
            if not left:
                then()

        for transaction in sorted(waiting):
            question = (at, lambda t=transaction: heard(t))
            self._questions.setdefault(transaction, []).append(question)
            self._ask(transaction)

    def _ask(self, transaction: str) -> None:
        asked = self._questions.get(transaction)
        if asked:
            at = max(time for time, _ in asked)
            self.port.send(RECORDS, AskFate(transaction, at))
            self.port.after(self.settings.retry, self._ask, transaction)

    def on_fate(self, fate: Fate) -> None:
        """A fate is known, or that it is later than some time."""
        if fate.decided:
            self.apply(fate.transaction, fate.time)
        asked = self._questions.get(fate.transaction, [])
        answered = [then for at, then in asked if fate.decided or at <= fate.at]
        left = [(at, t) for at, t in asked if not fate.decided and at > fate.at]
        if left:
            self._questions[fate.transaction] = left
        else:
            self._questions.pop(fate.transaction, None)
        for then in answered:
            then()

    def on_apply(self, sender: str, message: Apply) -> None:
        """The record of a transaction has its end."""
        self.on_fate(Fate(message.transaction, 0, decided=True, time=message.time))
        self.port.send(sender, Applied(message.transaction))

    def sweep(self) -> None:
        """What is done again and again: transactions of clients that are gone are aborted."""
        now = self.port.now()
        for transaction, since in sorted(self.began.items()):
            if now - since > self.settings.retry:
                late = now - since > self.settings.transaction_timeout
                self.port.send(RECORDS, AskFate(transaction, 0, abort=late))
        self.port.after(SWEEP, self.sweep)


def stored_value(intent: Intent) -> bytes | None:
    """What becomes of an intent: a value, with a star if a deletion comes before it at the same time."""
    if intent.value is None:
        return None
    return (b"*" if intent.marker else b"") + intent.value.encode()
