"""Servers, their processes and the network of one run. All that is random comes from its dice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, Protocol

from stagewright.impl.indexes.bulk.work import RefusedWork, Work
from stagewright.impl.indexes.catalog import Catalog
from stagewright.impl.indexes.index_tablet import IndexTablet
from stagewright.impl.indexes.master import Master
from stagewright.impl.indexes.messages import AskBuilds, Message
from stagewright.impl.indexes.port import NewTablet, Port, Settings
from stagewright.impl.indexes.records.notes import Note, Stored
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.tablet_map import Split, TabletMap, index_table
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.indexes.tablet import INTENTS, Intent, stored_value
from stagewright.impl.indexes.times import HybridClock
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS, RECORD, TransactionRecords
from stagewright.impl.simulator.database.events import Events
from stagewright.impl.simulator.database.weather import Faults
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.impl.storage.port import RowStore
from stagewright.machines.yugabytedb.indexes.index_states import Permission

MASTER = "master"
ONLOOKER = "onlooker"  # its line to the master is its own: what it asks shifts nothing else
SKEW = 10  # milliseconds that a server's clock is ahead or behind, at most
ELECTION = (60, 150)  # longer than two clocks are apart: the old leader's lease has run out
DISK = 2  # milliseconds
LATENCY, LATE = (1, 4), (20, 260)


class Process(Protocol):
    """Something with an address."""

    clock: HybridClock

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        ...


_Open = Callable[[Port, RowStore], Process]


def _records(settings: Settings, port: Port, store: RowStore) -> Process:
    return TransactionRecords(port, store, settings)


def _table(settings: Settings, tablet: int, port: Port, store: RowStore) -> Process:
    return TableTablet(tablet, port, store, settings)


def _index(settings: Settings, index: int, port: Port, store: RowStore) -> Process:
    return IndexTablet(index, port, store, settings)


class _Life:
    """The port of a process while it lives."""

    def __init__(self, world: World, address: str, server: str) -> None:
        self.world = world
        self.address = address
        self.server = server
        self.slots = 0
        self.process: Process | None = None
        self.store: _Rows | None = None

    @property
    def is_over(self) -> bool:
        return self.world.lives.get(self.address) is not self

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        assert self.process is not None
        if self.store is not None and not early:
            self.store.settle()
        self.world.send(self.address, to, message, self.process.clock.now())

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        self.world.events.after(milliseconds, self._act, action, arguments)

    def _act(self, action: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if not self.is_over:
            action(*arguments)

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        self.after(1, action, *arguments)

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        def done() -> None:
            work()
            then(*arguments)

        self.after(DISK, done)

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        refused = RefusedWork(f"nobody is here for a {type(work).__name__}")
        self.after(DISK, then, *arguments, refused)

    def make_tablet(self, address: str) -> NewTablet | None:
        assert self.store is not None
        there = address in self.world.disks
        return None if there else _New(self.world.disks, address, self.store)

    def is_led(self, address: str) -> bool:
        return address in self.world.disks

    def now(self) -> int:
        return max(self.world.events.now + self.world.skew.get(self.server, 0), 0)

    def note(self, note: Note) -> None:
        self.world.note(note, self.server)

    def take_slot(self) -> bool:
        others = [p for p in self.world.lives.values() if p.server == self.server]
        if sum(p.slots for p in others) >= self.world.settings.slots:
            return False
        self.slots += 1
        return True

    def free_slot(self) -> None:
        self.slots -= 1


class _Rows(MemoryRows):
    """Its syncs are done when something is sent that waits for them: what crashes before has not synced."""

    def __init__(self, disk: ModelledDisk) -> None:
        super().__init__(disk)
        self._wanted = 0

    def sync(self) -> None:
        self._wanted = len(self.disk.log)

    def settle(self) -> None:
        """All that was to be synced is on the disk."""
        self.disk.synced = max(self.disk.synced, self._wanted)


class _New:
    """A tablet that is made: its disk is one of the world's when it is there."""

    def __init__(self, disks: dict[str, ModelledDisk], address: str, parent: _Rows) -> None:
        self._parent = parent
        self._disks = disks
        self._address = address
        self._disk = ModelledDisk()
        self.store = MemoryRows(self._disk)

    def finish(self) -> None:
        self._parent.settle()
        self.store.sync()
        self._disks[self._address] = self._disk

    def close(self) -> None:
        """Its disk is known to nobody else."""


class World:
    """The servers n1, n2, …; a tablet's leader is on one of them, and elsewhere when that one dies."""

    def __init__(self, settings: Settings, servers: int, seed: int, faults: Faults) -> None:
        self.settings = settings
        self.events = Events()
        self.dice = Random(f"indexes {seed}")
        self.faults = faults
        self.calm = False
        self.counted: Counter[str] = Counter()
        self.listeners: list[Callable[[Note, str], None]] = []
        self.servers = [f"n{i + 1}" for i in range(servers)]
        self.up = set(self.servers)
        self.skew = {s: self.dice.randint(-SKEW, SKEW) for s in self.servers}
        self.lives: dict[str, _Life] = {}
        self.disks: dict[str, ModelledDisk] = {}
        self.catalog = Catalog(tablets=TabletMap(settings.tablets))
        self._kinds: dict[str, _Open] = {}
        self._add(RECORDS, partial(_records, settings))
        for t in range(settings.tablets):
            self._add(table_tablet(t), partial(_table, settings, t))

    # -- processes -----------------------------------------------------------------------------------------

    def _add(self, address: str, kind: _Open) -> None:
        self._kinds[address] = kind
        self.disks.setdefault(address, ModelledDisk())

    @property
    def tablets(self) -> TabletMap:
        """Those of the table, as the catalog has them."""
        assert self.catalog.tablets is not None
        return self.catalog.tablets

    @property
    def index_splits(self) -> list[Split]:
        """Of all indexes."""
        return [split for tablets in self.catalog.index_tablets for split in tablets.splits]

    def start(self) -> None:
        """Let all processes begin."""
        for address in list(self._kinds):
            self._open(address)
        self._open_master()

    def _open(self, address: str) -> None:
        """A leader is elected on a server that is up."""
        if address not in self._kinds or address in self.lives:
            return
        server = self.dice.choice(sorted(self.up) or self.servers)
        life = _Life(self, address, server)
        self.lives[address] = life
        life.store = _Rows(self.disks[address])
        life.process = self._kinds[address](life, life.store)

    def _open_master(self) -> None:
        if MASTER in self.lives:
            return
        life = _Life(self, MASTER, MASTER)
        self.skew[MASTER] = self.dice.randint(-SKEW, SKEW)
        self.lives[MASTER] = life
        life.process = _Unborn(life)
        life.process = Master(life, self.catalog, self.settings)

    def port(self, address: str) -> Port:
        """For a client, which lives as long as the run."""
        self.lives[address] = _Life(self, address, address)
        return self.lives[address]

    def join(self, address: str, client: Process) -> None:
        """It is there."""
        self.lives[address].process = client

    def grow(self) -> None:
        """The tables of indexes that the catalog has and that have none yet, and tablets that others have split into."""
        for tablet in self.tablets.numbers:
            if table_tablet(tablet) not in self._kinds:
                self._add(table_tablet(tablet), partial(_table, self.settings, tablet))
                self._open(table_tablet(tablet))
        for index in self.catalog.indexes:
            if index.permission is Permission.absent:
                continue
            for address in self.catalog.map_of(index_table(index.number)).places:
                if address not in self._kinds:
                    self._add(address, partial(_index, self.settings, index.number))
                    self._open(address)

    def left_to_apply(self, number: int) -> Iterator[Stored]:
        """What an index has of committed transactions that its tablets have not heard of yet."""
        records = MemoryRows(self.disks[RECORDS]).snapshot()
        times = {v.key.decode(): int(v.value or b"0") for v in records.versions(RECORD, b"", None)}
        for address in self.catalog.map_of(index_table(number)).places:
            held = MemoryRows(self.disks[address]).snapshot()
            seen = set[bytes]()
            for version in held.versions(INTENTS, b"", None):
                if version.key in seen or version.value is None:
                    seen.add(version.key)
                    continue
                seen.add(version.key)
                intent = Intent.decoded(version.value)
                if time := times.get(intent.transaction):
                    yield Stored(address, time, {version.key: stored_value(intent)})

    def delete_index(self, number: int) -> None:
        """Its table is deleted."""
        for address in self.catalog.map_of(index_table(number)).ever:
            self.lives.pop(address, None)
            self._kinds.pop(address, None)

    # -- faults --------------------------------------------------------------------------------------------

    def kill(self, server: str) -> int:
        """A server dies; its tablets get leaders elsewhere. How many it had."""
        self.up.discard(server)
        led = [a for a, life in self.lives.items() if life.server == server]
        for address in led:
            del self.lives[address]
            self.disks[address].crash()
            self.events.after(self.dice.randint(*ELECTION), self._open, address)
        self.counted["servers killed"] += 1
        return len(led)

    def restart(self, server: str) -> None:
        """A server is back."""
        self.up.add(server)

    def fail_over(self) -> None:
        """The master leader is gone; another one is elected."""
        if self.lives.pop(MASTER, None) is not None:
            self.counted["masters failed over"] += 1
            self.events.after(self.dice.randint(*ELECTION), self._open_master)

    # -- the network -----------------------------------------------------------------------------------------

    def send(self, sender: str, to: str, message: Message, time: int) -> None:
        """It may be lost, late, or arrive twice."""
        if to == ONLOOKER:
            return
        faults, dice = self.faults, self.dice
        copies = 1
        if not self.calm and faults.loss and dice.random() < faults.loss:
            self.counted["messages lost"] += 1
            return
        if not self.calm and faults.duplicate and dice.random() < faults.duplicate:
            self.counted["messages repeated"] += 1
            copies = 2
        for _ in range(copies):
            latency = dice.randint(*LATENCY)
            if not self.calm and faults.delay and dice.random() < faults.delay:
                self.counted["messages late"] += 1
                latency = dice.randint(*LATE)
            self.events.after(latency, self._deliver, sender, to, message, time)

    def _deliver(self, sender: str, to: str, message: Message, time: int) -> None:
        life = self.lives.get(to)
        if life is not None and life.process is not None:
            life.process.clock.observe(time)
            life.process.receive(sender, message)
            if to == MASTER:
                self.grow()

    def look_on(self, every: int) -> None:
        """Ask the master again and again how all builds are."""
        life = self.lives.get(MASTER)
        if life is not None and life.process is not None:
            life.process.receive(ONLOOKER, AskBuilds())
        self.events.after(every, self.look_on, every)

    def note(self, note: Note, server: str) -> None:
        """Whoever listens hears what a process of a server did."""
        for listener in self.listeners:
            listener(note, server)


class _Unborn:
    """What a port sends for while its process is being made."""

    def __init__(self, port: _Life) -> None:
        self.clock = HybridClock(port.now)

    def receive(self, sender: str, message: Message) -> None:
        """Nothing gets here."""
