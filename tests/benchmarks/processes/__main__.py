"""Durable writes and reads of one node beside its stores, called directly: `python -m tests.benchmarks.processes`.

Each row: operations a second, and a CPU second of the process that stores them (a client's own is not counted).
Then the latency of clients of three nodes at rest, while a fourth one joins, and while tablets migrate to it.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from tests.impl.processes.clusters import cluster

from stagewright.impl.node.messages import ClientRead, ClientWrite, Level
from stagewright.impl.processes.codec import codec
from stagewright.impl.processes.handshake import Calling
from stagewright.impl.processes.links import Link
from stagewright.impl.processes.supervisor import TABLE, Supervisor
from stagewright.impl.storage.group_sync import GroupSync
from stagewright.impl.storage.port import Put, RowStore, Version
from stagewright.impl.storage.rocks import RocksRows

SECONDS = 3.0
VALUE = b"v" * 100
OF_TABLETS = "ks.t"
ROWS = 30_000
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Speed:
    """Operations, in so many seconds and CPU seconds."""

    count: int
    wall: float
    cpu: float

    def row(self, name: str) -> str:
        return f"{name:<42} {self.count / self.wall:>9,.0f}/s {self.count / self.cpu:>10,.0f}/CPU s"


def cpu_of(process: int) -> float:
    """CPU seconds of another process so far."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def cpu_of_tree(process: int) -> float:
    """CPU seconds so far of a process and of all that descend from it, also of those that it has waited for."""
    return sum(tree_of(process).values())


def tree_of(process: int) -> dict[int, float]:
    """A process and all that descend from it, with the CPU seconds of each."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("ascii", "replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        number = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(number)
        used[number] = sum(map(int, fields[11:15])) / TICKS
    found, left = dict[int, float](), [process]
    while left:
        one = left.pop()
        found[one] = used.get(one, 0.0)
        left += children.get(one, [])
    return found


def cpu_here() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


async def in_flight(
    count: int, operation: Callable[[int], Awaitable[None]], cpu: Callable[[], float]
) -> Speed:
    """So many at once, each followed by the next one."""
    done, began, used = 0, time.monotonic(), cpu()
    number = iter(range(1 << 60))

    async def go_on() -> None:
        nonlocal done
        while time.monotonic() - began < SECONDS:
            await operation(next(number))
            done += 1

    await asyncio.gather(*(go_on() for _ in range(count)))
    return Speed(done, time.monotonic() - began, cpu() - used)


class Asked:
    """A client that has any number of questions under way."""

    def __init__(self, address: str, secret: bytes) -> None:
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._link = Link(
            codec(), "n1", address, lambda: Calling(secret, ""), self._heard, lambda *_: None
        )

    def _heard(self, _: str, message: Any) -> None:
        self._waiting.pop(message.number).set_result(message)

    async def ask(self, message: ClientWrite | ClientRead) -> None:
        future = self._waiting[message.number] = asyncio.get_running_loop().create_future()
        self._link.send(message)
        reply = await future
        if not reply.succeeded:
            raise RuntimeError(reply.reason)

    def close(self) -> None:
        self._link.close()


async def of_node(supervisor: Supervisor) -> None:
    """One node, asked over a socket."""
    process = supervisor.running("n1")
    assert process is not None
    address = supervisor.layout.node_file("n1").identity.host.address
    client, base = Asked(address, supervisor.layout.secret()), time.time_ns() // 1000

    async def write(i: int) -> None:
        await client.ask(ClientWrite(i, TABLE, b"%d" % (i % 10_000), VALUE, base + i))

    async def read(i: int) -> None:
        await client.ask(ClientRead(i, TABLE, b"%d" % (i % 10_000), Level.one))

    for name, operation in (("writes", write), ("reads", read)):
        for count in (1, 64):
            speed = await in_flight(count, operation, lambda: cpu_of(process))
            print(speed.row(f"a node, {name}, {count} in flight"), flush=True)
    client.close()


async def of_rocksdb(rows: RowStore) -> None:
    """The port, with its shared sync."""
    sync = GroupSync(rows)

    async def write(i: int) -> None:
        rows.write((Put("t", Version(b"%d" % (i % 10_000), i + 1, VALUE)),))
        await sync()

    async def read(i: int) -> None:
        snapshot = rows.snapshot()
        snapshot.get("t", b"%d" % (i % 10_000))
        snapshot.close()

    for count in (1, 64):
        print((await in_flight(count, write, cpu_here)).row(f"RocksDB, writes, {count} in flight"))
    print((await in_flight(1, read, cpu_here)).row("RocksDB, reads"), flush=True)


async def of_sqlite(path: Path) -> None:
    """A table with a primary key, WAL, a synced commit a write."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE t (key BLOB PRIMARY KEY, time INTEGER, value BLOB)")

    async def write(i: int) -> None:
        row = (b"%d" % (i % 10_000), i, VALUE)
        database.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", row)

    async def read(i: int) -> None:
        database.execute("SELECT value FROM t WHERE key = ?", (b"%d" % (i % 10_000),)).fetchone()

    print((await in_flight(1, write, cpu_here)).row("SQLite, writes"))
    print((await in_flight(1, read, cpu_here)).row("SQLite, reads"), flush=True)
    database.close()


@dataclass(frozen=True)
class Latencies:
    """Seconds of each write, and of each read, of one client."""

    writes: list[float]
    reads: list[float]

    def row(self, name: str, beside: Latencies | None = None) -> str:
        said = [_quantiles("writes", self.writes), _quantiles("reads", self.reads)]
        if beside is not None:
            ratios = (
                _p99(self.writes) / _p99(beside.writes),
                _p99(self.reads) / _p99(beside.reads),
            )
            said.append(f"p99 ratio {ratios[0]:.1f} and {ratios[1]:.1f}")
        return f"one client, three nodes, {name}: {'; '.join(said)}"


def _p99(found: list[float]) -> float:
    return statistics.quantiles(found, n=100)[98]


def _quantiles(name: str, found: list[float]) -> str:
    p50 = statistics.median(found)
    return f"{len(found)} {name}, p50 {p50 * 1000:.1f} ms, p99 {_p99(found) * 1000:.1f} ms"


def latencies(supervisor: Supervisor, over: Callable[[], bool], table: str = TABLE) -> Latencies:
    """What one client waits for, until it is over."""
    session, found = supervisor.session(table, waits=True), Latencies([], [])
    while not over():
        key = b"%d" % (len(found.writes) % 1000)
        for kind, do in (
            (found.writes, lambda k=key: session.put(k, VALUE)),
            (found.reads, lambda k=key: session.get(k)),
        ):
            began = time.monotonic()
            do()
            kind.append(time.monotonic() - began)
    session.close()
    return found


def during_a_join(supervisor: Supervisor) -> None:
    """What clients notice of a node that joins."""
    until = time.monotonic() + 2 * SECONDS
    rest = latencies(supervisor, lambda: time.monotonic() > until)
    join = Thread(target=supervisor.add)
    join.start()
    joining = latencies(supervisor, lambda: not join.is_alive())
    print(rest.row("at rest"))
    print(joining.row("while a node joins", rest), flush=True)


def during_a_migration(supervisor: Supervisor) -> None:
    """What clients notice of tablets that migrate to a node that has just joined."""
    session = supervisor.session(OF_TABLETS)
    session.create(OF_TABLETS, 3, 8)
    session.close()
    address = supervisor.layout.node_file("n1").identity.host.address
    asyncio.run(fill(address, supervisor.layout.secret()))
    until = time.monotonic() + 2 * SECONDS
    rest = latencies(supervisor, lambda: time.monotonic() > until, OF_TABLETS)
    supervisor.add()

    def settled() -> bool:
        said = supervisor.tablets()
        return said is not None and bool(said.moves) and not any(t.stage for t in said.tablets)

    over = Thread(target=lambda: _wait(settled))
    over.start()
    moving = latencies(supervisor, lambda: not over.is_alive(), OF_TABLETS)
    said = supervisor.tablets()
    print(rest.row(f"{ROWS:,} rows in tablets at rest"))
    print(moving.row(f"while {len(said.moves) if said else 0} tablets migrate", rest), flush=True)


def _wait(done: Callable[[], bool]) -> None:
    while not done():
        time.sleep(0.1)


async def fill(address: str, secret: bytes) -> None:
    """Rows that a migration has to stream."""
    client, numbers = Asked(address, secret), iter(range(ROWS))

    async def go_on() -> None:
        for i in numbers:
            await client.ask(ClientWrite(i, OF_TABLETS, b"row%d" % i, VALUE, 1 + i))

    await asyncio.gather(*(go_on() for _ in range(64)))
    client.close()


MEASURES: tuple[tuple[int, Callable[[Supervisor], None]], ...] = (
    (1, lambda s: asyncio.run(of_node(s))),
    (3, during_a_join),
    (3, during_a_migration),
)


def main() -> None:
    """Measure all of it."""
    with tempfile.TemporaryDirectory(prefix="processes-") as scratch:
        root = Path(scratch)
        asyncio.run(of_sqlite(root / "sqlite"))
        rows = RocksRows(root / "rows")
        asyncio.run(of_rocksdb(rows))
        rows.close()
        for number, (count, measure) in enumerate(MEASURES):
            with cluster(root / f"c{number}", count) as supervisor:
                measure(supervisor)


if __name__ == "__main__":
    main()
