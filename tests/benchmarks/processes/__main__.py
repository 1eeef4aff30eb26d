"""Durable writes and reads of one node beside its stores, called directly: `python -m tests.benchmarks.processes`.

Each row: operations a second, and a CPU second of the process that stores them (a client's own is not counted).
Then the latency of clients of three nodes at rest, and while a fourth one joins.
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

from stagewright.impl.node.messages import ClientRead, ClientWrite, Level
from stagewright.impl.processes.codec import codec
from stagewright.impl.processes.handshake import Calling
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.links import Link
from stagewright.impl.processes.supervisor import TABLE, Supervisor
from stagewright.impl.storage.group_sync import GroupSync
from stagewright.impl.storage.port import Put, RowStore, Version
from stagewright.impl.storage.rocks import RocksRows

SECONDS = 3.0
VALUE = b"v" * 100
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


def latencies(supervisor: Supervisor, over: Callable[[], bool]) -> list[float]:
    """Seconds of each write of one client, until it is over."""
    session, found = supervisor.session(), list[float]()
    while not over():
        began = time.monotonic()
        session.put(b"%d" % (len(found) % 1000), VALUE)
        found.append(time.monotonic() - began)
    session.close()
    return found


def during_a_join(supervisor: Supervisor) -> None:
    """What clients notice of a node that joins."""
    until = time.monotonic() + 2 * SECONDS
    rest = latencies(supervisor, lambda: time.monotonic() > until)
    join = Thread(target=supervisor.add)
    join.start()
    joining = latencies(supervisor, lambda: not join.is_alive())
    for name, found in (("at rest", rest), ("while a node joins", joining)):
        cuts = statistics.quantiles(found, n=100)
        print(
            f"writes of one client, three nodes, {name}: {len(found)} writes, "
            f"p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms"
        )


def main() -> None:
    """Measure all of it."""
    with tempfile.TemporaryDirectory(prefix="processes-") as scratch:
        root = Path(scratch)
        asyncio.run(of_sqlite(root / "sqlite"))
        rows = RocksRows(root / "rows")
        asyncio.run(of_rocksdb(rows))
        rows.close()
        for count, measure in ((1, lambda s: asyncio.run(of_node(s))), (3, during_a_join)):
            supervisor = Supervisor(Layout(root / f"c{count}"))
            supervisor.create(count)
            try:
                supervisor.start()
                measure(supervisor)
            finally:
                supervisor.stop()


if __name__ == "__main__":
    main()
