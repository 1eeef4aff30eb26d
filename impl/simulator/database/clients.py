"""Clients that read and write through any node that serves, one request at a time each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from stagewright.impl.cdc.metadata import NO_GENERATION
from stagewright.impl.group0.dice import Dice
from stagewright.impl.node.keys import stored_key
from stagewright.impl.node.messages import (
    ClientRead,
    ClientReply,
    ClientScan,
    ClientWrite,
    Level,
    Message,
    ScanReply,
)
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.events import Events
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.impl.simulator.database.tables import TABLE, key_in, table_of

RECENT, BEGUN = 100, 1_000  # milliseconds
MOST_SCANNED = 8  # rows
PATIENCE = 500  # milliseconds, until a client gives a request up


@dataclass(frozen=True)
class Workload:
    """How the clients behave; times in milliseconds, shares from 0 to 1."""

    clients: int = 4
    keys: int = 40
    gap: tuple[int, int] = (1, 6)
    reads: float = 0.5
    scans: float = 0.0  # of the reads: of some rows from a key on, in the order of tokens
    deletes: float = 0.1
    odd: float = 0.0  # timestamps that are seconds away from the time
    all: float = 0.0  # requests at level all, not quorum
    refused: bool = False  # by nodes, at once, if too few replicas are alive; else they time out


@dataclass
class _Waiting:
    client: int
    key: bytes
    node: str
    timestamp: int  # 0: a read


class Clients:
    """The clients of a run; `left` is how many writes they still send."""

    def __init__(
        self,
        workload: Workload,
        events: Events,
        dice: Dice,
        oracle: Oracle,
        counted: Counter[str],
        serving: Callable[[], list[str]],
        send: Callable[[str, str, Message], None],
    ) -> None:
        self.workload = workload
        self.oracle = oracle
        self.left = 0
        self.tables: dict[str, int] = {TABLE: 0}  # with their numbers of replicas
        self._events = events
        self._dice = dice
        self._counted = counted
        self._serving = serving
        self._send = send
        self._last = 0
        self._waiting: dict[int, _Waiting] = {}
        self._idle: set[int] = set(range(workload.clients))

    @property
    def finished(self) -> bool:
        """Whether all that was asked for is sent and answered, or given up."""
        return self.left == 0 and not self._waiting

    def write(self, count: int) -> None:
        """Send so many more writes, with reads between them."""
        self.left += count
        idle, self._idle = sorted(self._idle), set()
        for client in idle:
            self._pause(client)

    def _pause(self, client: int) -> None:
        wait = self._dice.between(*self.workload.gap, "gap", str(client))
        self._events.after(wait, self._next, client)

    def _next(self, client: int) -> None:
        if not self.tables:
            self.left = 0  # the last one was dropped
        if self.left == 0:
            self._idle.add(client)
            return
        nodes = self._serving()
        if not nodes:
            self._pause(client)
            return
        dice, name = self._dice, str(client)
        key = b"key%d" % dice.between(0, self.workload.keys - 1, "key", name)
        tables = [*self.tables]
        choice = dice.between(0, len(tables) - 1, "table", name) if len(tables) > 1 else 0
        key = key_in(tables[choice], key)
        node = nodes[dice.between(0, len(nodes) - 1, "through", name)]
        if dice.chance(self.workload.reads, "reads", name):
            if self.workload.scans and dice.chance(self.workload.scans, "scans", name):
                limit = dice.between(1, MOST_SCANNED, "scanned", name)
                self.scan(client, key, node, limit, self._level(name))
            else:
                self.read(client, key, node, self._level(name))
            return
        self.left -= 1
        self._last += 1
        timestamp = self._timestamp()
        value = None
        if not dice.chance(self.workload.deletes, "deletes", name):
            value = b"%d" % self._last
        self.oracle.begin_write(key, timestamp, value)
        level = self._level(name)
        message = ClientWrite(self._last, table_of(key), key, value, timestamp, level)
        self._ask(client, key, node, timestamp, message)

    def _level(self, client: str) -> Level:
        share = self.workload.all
        return Level.all if share and self._dice.chance(share, "all", client) else Level.quorum

    def now(self) -> int:
        """A timestamp of now that nothing else has."""
        return self._timestamp()

    def _timestamp(self) -> int:
        """Now by the client's clock, and by some clients' far from it; no other write has the same."""
        work, dice = self.workload, self._dice
        milliseconds = EPOCH + self._events.now
        if work.odd and dice.chance(work.odd, "odd"):
            milliseconds += dice.between(-4_000, 3_000, "how odd")
        while True:
            timestamp = milliseconds * 1000 + self._last % 1000 + 1
            if not self.oracle.has_timestamp(timestamp):
                return timestamp
            milliseconds += 1

    def read(self, client: int, key: bytes, node: str, level: Level = Level.quorum) -> None:
        """Read a key through a node."""
        self._last += 1
        self.oracle.begin_read(self._last, key)
        self._ask(client, key, node, 0, ClientRead(self._last, table_of(key), key, level))

    def probe(self, key: bytes, node: str, there: bool) -> None:
        """Read a key of a table that was dropped, through a node that knows that; a table of its name may be `there`."""
        self._last += 1
        self.oracle.begin_probe(self._last, there)
        self._ask(-1, key, node, 0, ClientRead(self._last, table_of(key), key))

    def waits_for(self, table: str) -> bool:
        """Whether a client waits for an answer about a table, by id."""
        return any(table_of(w.key) == table for w in self._waiting.values())

    def scan(
        self, client: int, key: bytes, node: str, limit: int, level: Level = Level.quorum
    ) -> None:
        """Read so many rows from a key's place on, through a node."""
        self._last += 1
        self.oracle.begin_scan(self._last, table_of(key), stored_key(key))
        message = ClientScan(self._last, table_of(key), stored_key(key), limit, level)
        self._ask(client, key, node, 0, message)

    def _ask(
        self,
        client: int,
        key: bytes,
        node: str,
        timestamp: int,
        message: ClientRead | ClientScan | ClientWrite,
    ) -> None:
        self._waiting[message.number] = _Waiting(client, key, node, timestamp)
        self._events.after(PATIENCE, self._give_up, message.number)
        self._send(f"client{client}", node, message)

    def hear(self, reply: ClientReply | ScanReply) -> None:
        """A request was answered."""
        found = self._waiting.pop(reply.number, None)
        if found is None:
            return
        if reply.unavailable is not None:
            self._counted["refused as unavailable"] += 1
            if found.timestamp:
                self.oracle.refuse(found.key, found.timestamp)
        what = "writes" if found.timestamp else "reads"
        if not reply.succeeded:
            self._counted[f"{what} failed"] += 1
            self.oracle.drop_read(reply.number)
            self._look_why(found, reply.reason)
        elif isinstance(reply, ScanReply):
            self._counted["scans returned"] += 1
            self.oracle.end_scan(reply.number, reply.cells, reply.following, found.node)
        elif found.timestamp:
            self._counted["writes acknowledged"] += 1
            self.oracle.acknowledge(found.key, found.timestamp)
        else:
            self._counted["reads returned"] += 1
            self.oracle.end_read(
                reply.number, found.key, (reply.timestamp, reply.value), found.node
            )
        if found.client >= 0:
            self._pause(found.client)

    def _look_why(self, found: _Waiting, reason: str) -> None:
        """A write of just now that finds no generation, though the cluster is not of just now, is refused wrongly."""
        now = self._events.now
        lacks = reason == NO_GENERATION and table_of(found.key) == TABLE and now > BEGUN
        if lacks and abs(found.timestamp - 1000 * (EPOCH + now)) < 1000 * RECENT:
            self.oracle.broken(f"{found.node} refused a write of now: {reason}")

    def _give_up(self, number: int) -> None:
        found = self._waiting.pop(number, None)
        if found is None:
            return
        self._counted["writes failed" if found.timestamp else "reads failed"] += 1
        self.oracle.drop_read(number)
        if found.client >= 0:
            self._pause(found.client)
