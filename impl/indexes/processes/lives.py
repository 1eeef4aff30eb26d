"""What lives in a process: a master, leaders of tablets, sessions of clients, each with a port of its own."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from stagewright.impl.indexes.bulk.work import Work
from stagewright.impl.indexes.index_tablet import IndexTablet
from stagewright.impl.indexes.messages import Apply, Message
from stagewright.impl.indexes.port import NewTablet, Port, Settings
from stagewright.impl.indexes.processes.builder import BuilderProcess
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.turns import Turns
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.times import HybridClock
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS, TransactionRecords
from stagewright.impl.storage.port import Load, RowStore
from stagewright.impl.storage.rocks import RocksRows
from stagewright.impl.storage.spares import MEMTABLE
from stagewright.impl.storage.syncs import Syncs


class Process(Protocol):
    """Something with an address."""

    @property
    def clock(self) -> HybridClock:
        """Past all that it has heard of."""
        ...

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        ...


class Surroundings(Protocol):
    """What a life wants of the process that hosts it."""

    slots: int  # for backfills, of those that are free
    turns: Turns
    syncs: Syncs
    builder: BuilderProcess

    def is_led(self, address: str) -> bool:
        """Whether a tablet has had a leader, here or elsewhere."""
        ...

    def make_tablet(self, life: Life, address: str) -> NewTablet | None:
        """Begin to make a tablet of what a life has written; None: it is there. May be called from any thread."""
        ...

    def deliver(self, life: Life, to: str, at: int, message: Message, *, early: bool) -> None:
        """Send what a life says at a hybrid time: when all that it has synced before is on the disk, or `early`."""
        ...

    def fail(self, error: BaseException) -> None:
        """End: a disk has failed, or something is wrong."""
        ...

    def act(self, life: Life, action: Callable[..., None], *arguments: Any) -> None:
        """Call something of a life, unless it is over."""
        ...


class Life:
    """The port of a master, a tablet or a session, as long as it lives here."""

    def __init__(
        self,
        host: Surroundings,
        address: str,
        listener: Callable[[Note, int], None] | None = None,
    ) -> None:
        self.address = address
        self.process: Process | None = None
        self.is_over = False
        self.host = host
        self.asides: set[asyncio.Task[None]] = set()  # what threads do for it
        self._listener = listener
        self._slots = 0

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        assert self.process is not None, "it sends while it is being made"
        self.host.deliver(self, to, self.process.clock.now(), message, early=early)

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(milliseconds / 1000, self.host.act, self, action, *arguments)

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        self.host.turns.add(partial(self.host.act, self, action, *arguments))

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        async def do() -> None:
            try:
                await asyncio.to_thread(work)
            except Exception as error:  # noqa: BLE001 - a disk has failed
                self.host.fail(error)
            else:
                self.host.act(self, then, *arguments)
            finally:
                self.asides.discard(task)
                self.go_on()

        task = asyncio.get_running_loop().create_task(do())
        self.asides.add(task)

    def go_on(self) -> None:
        """Something aside is over."""

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        self.host.builder.do(work, partial(self.host.act, self, then, *arguments))

    def make_tablet(self, address: str) -> NewTablet | None:
        return self.host.make_tablet(self, address)

    def is_led(self, address: str) -> bool:
        return self.host.is_led(address)

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def note(self, note: Note) -> None:
        if self._listener is not None:
            self._listener(note, self.now())

    def take_slot(self) -> bool:
        if self.host.slots <= 0:
            return False
        self.host.slots -= 1
        self._slots += 1
        return True

    def free_slot(self) -> None:
        self.host.slots += 1
        self._slots -= 1

    def end(self) -> None:
        """It is over here; its slots are free."""
        self.is_over = True
        self.host.slots += self._slots
        self._slots = 0


class Led(Life):
    """The life of a tablet that this process leads, with its rows and the handle that says so."""

    def __init__(
        self,
        host: Surroundings,
        address: str,
        store: SyncedStore,
        handle: int,
        listener: Callable[[Note, int], None],
    ) -> None:
        super().__init__(host, address, listener)
        self.store = store
        self._syncing: asyncio.Future[None] | None = None
        self._handle = handle
        self._outbox: list[Callable[[], None]] = []
        self._put_off: list[Callable[[], None]] = []

    def puts_off(self, message: Message, again: Callable[[], None]) -> bool:
        """Whether what a message asks for is to be done `again`, later.

        Versions that were written while a file is taken in would have to be put into a file of their own first, by a call that
        holds the interpreter's lock for three syncs more. No client waits for what it has committed to be applied.
        """
        if not (self.store.is_loading and isinstance(message, Apply)):
            return False
        self._put_off.append(again)
        return True

    def go_on(self) -> None:
        if not self.store.is_loading:
            put_off, self._put_off = self._put_off, []
            for again in put_off:
                asyncio.get_running_loop().call_soon(again)

    def open(self, settings: Settings) -> None:
        """Let the tablet begin with what is stored."""
        port: Port = self
        kind, _, number = self.address.partition("/")
        if kind == RECORDS:
            self.process = TransactionRecords(port, self.store, settings)
        elif kind == "table":
            self.process = TableTablet(int(number), port, self.store, settings)
        else:
            index = int(kind.removeprefix("index"))
            self.process = IndexTablet(index, port, self.store, settings)

    def sync(self) -> None:
        """All that was written is on the disk when this returns. May be called from any thread."""
        self.store.rows.sync()

    def busy(self) -> list[asyncio.Future[None]]:
        """What threads do with its store."""
        return [*self.asides, *([self._syncing] if self._syncing is not None else [])]

    @property
    def has_unsynced(self) -> bool:
        """Whether it has written what may not be on the disk yet, or sent what waits for that."""
        return bool(self._outbox) or self.store.wanted > self.store.done

    def post_when_synced(self, post: Callable[[], None]) -> None:
        """Send when what was written is on the disk; one sync serves all that was written before it began."""
        self._outbox.append(post)
        if self._syncing is None:
            loop = asyncio.get_running_loop()
            self._syncing = loop.create_future()
            loop.call_soon(self._sync)  # with what else this loop has to write

    def _sync(self) -> None:
        outbox, self._outbox = self._outbox, []
        wanted = self.store.wanted
        if wanted > self.store.done:
            self.host.syncs.do(self.store.rows.sync, partial(self._synced, outbox, wanted))
        else:
            self._synced(outbox, wanted, None)

    def _synced(
        self, outbox: list[Callable[[], None]], wanted: int, failed: Exception | None
    ) -> None:
        assert self._syncing is not None
        if failed is not None:
            self.host.fail(failed)  # nothing is acknowledged that may not be there
        else:
            self.store.done = wanted
            self._post_all(outbox)
        if self._outbox and failed is None:
            self._sync()
        else:
            self._syncing.set_result(None)
            self._syncing = None

    def _post_all(self, outbox: list[Callable[[], None]]) -> None:
        try:
            for post in outbox:
                post()
        except Exception as error:  # noqa: BLE001 - half of it must not be lived with
            self.host.fail(error)

    def close(self) -> None:
        """Give the rows back; the tablet may be led elsewhere after `release`."""
        if isinstance(self.process, TableTablet | IndexTablet):
            self.process.close()
        self.store.close()

    def release(self) -> None:
        """Another process may lead it."""
        os.close(self._handle)


class MadeTablet:
    """A tablet that a life makes of what it has written."""

    def __init__(self, life: Led, layout: IndexLayout, place: str) -> None:
        self._life = life
        self._layout = layout
        self._place = place
        self.store = RocksRows(layout.begin_tablet(place), memtable=MEMTABLE)
        self._is_open = True

    def finish(self) -> None:
        """That the other has split is known before anybody leads what it has split into."""
        self._life.sync()
        self.store.sync()
        self.store.close()
        self._is_open = False
        self._layout.finish_tablet(self._place)

    def close(self) -> None:
        """Give it up, unless it is finished."""
        if self._is_open:
            self.store.close()
            self._is_open = False
            self._layout.leave_tablet(self._place)


class SyncedStore:
    """Rows whose `sync` is done later, once for all that was written, before anything is sent."""

    def __init__(self, rows: RowStore) -> None:
        self.rows = rows
        self.write = rows.write
        self.page = rows.page
        self.spill = rows.spill
        self.files = rows.files
        self.beside = rows.beside
        self.snapshot = rows.snapshot
        self.get = rows.get
        self.value_at = rows.value_at
        self.drop = rows.drop
        self.supersede = rows.supersede
        self.forget = rows.forget
        self.truncate = rows.truncate
        self.wanted = self.done = 0  # syncs
        self.is_loading = False  # something is being put in beside the log

    def load(self, family: str, time: int) -> Load:
        """Begin to put in many versions of one time."""
        return _StoredLoad(self, self.rows.load(family, time))

    def sync(self) -> None:
        """Have it done."""
        self.wanted += 1

    def close(self) -> None:
        """Give the directory back, with everything on the disk."""
        self.rows.sync()
        self.rows.close()


class _StoredLoad:
    """It lets its store be known to be loading, as long as it is."""

    def __init__(self, store: SyncedStore, load: Load) -> None:
        self._store = store
        self._load = load
        self.path = load.path
        self.add = load.add
        self.abandon = load.abandon

    def finish(self) -> None:
        """They are there, on the disk, when this returns. May be called from any thread."""
        self._store.is_loading = True
        try:
            self._load.finish()
        finally:
            self._store.is_loading = False
