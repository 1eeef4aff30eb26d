"""What a materialized view costs: `python -m tests.benchmarks.processes.views --rows 10000`.

Three nodes with two tables of tablets, one of which has a view. Reported are the time of its build, what a client of its base
table waits for meanwhile, and updates with and without a view, by turns: compare ratios, for the rest is the machine's.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from threading import Thread

from tests.benchmarks.processes.__main__ import Asked, Latencies, Speed, cpu_of, latencies
from tests.benchmarks.processes.three_nodes import measure_on_three_nodes

from stagewright.impl.node.messages import ClientWrite
from stagewright.impl.processes.supervisor import Supervisor

PLAIN, VIEWED, VIEW = "ks.plain", "ks.viewed", "ks.v"
TURNS = 5
AT_REST = 5.0  # seconds


async def written(address: str, secret: bytes, table: str, count: int, first: int) -> None:
    """Write so many rows, 32 at once; values are numbers, each other than the one before it."""
    client, numbers = Asked(address, secret), iter(range(count))

    async def go_on() -> None:
        for i in numbers:
            stamp = time.time_ns() // 1000
            await client.ask(ClientWrite(i, table, b"row%d" % i, b"%d" % (first + i), stamp))

    await asyncio.gather(*(go_on() for _ in range(32)))
    client.close()


def speed_of(supervisor: Supervisor, table: str, count: int, first: int) -> Speed:
    """Writes, with the CPU seconds of all nodes."""
    processes = [p for n in supervisor.layout.names() if (p := supervisor.running(n)) is not None]
    address = supervisor.layout.node_file("n1").identity.host.address
    began, used = time.monotonic(), sum(map(cpu_of, processes))
    asyncio.run(written(address, supervisor.layout.secret(), table, count, first))
    wall = time.monotonic() - began
    return Speed(count, wall, sum(map(cpu_of, processes)) - used)


def build(supervisor: Supervisor) -> tuple[float, Latencies]:
    """Seconds until the view is built, and what a client of its base table waits for meanwhile."""
    session = supervisor.session(VIEWED)
    began = time.monotonic()
    session.create_view(VIEW, VIEWED, 1000)

    def until_built() -> None:
        while not any(b.name == VIEW and b.status == "SUCCESS" for b in session.builds()):
            time.sleep(0.1)

    waits = Thread(target=until_built)
    waits.start()
    found = latencies(supervisor, lambda: not waits.is_alive(), VIEWED)
    waits.join()
    session.close()
    return time.monotonic() - began, found


def measure(supervisor: Supervisor, rows: int) -> None:
    """Fill both tables, build the view, and update both by turns."""
    session = supervisor.session()
    for table in (PLAIN, VIEWED):
        session.create(table, 3, 4)
        print(speed_of(supervisor, table, rows, 0).row(f"{rows:,} rows into {table}"), flush=True)
    session.close()
    until = time.monotonic() + AT_REST
    rest = latencies(supervisor, lambda: time.monotonic() > until, VIEWED)
    seconds, building = build(supervisor)
    print(f"{rows:,} rows are built into a view in {seconds:.1f} s: {rows / seconds:,.0f} a second")
    print(rest.row("at rest"))
    print(building.row("while the view is built", rest), flush=True)
    updates, ratios = max(1, rows // 10), list[tuple[float, float]]()
    for turn in range(TURNS):
        first = (turn + 1) * rows
        plain = speed_of(supervisor, PLAIN, updates, first)
        viewed = speed_of(supervisor, VIEWED, updates, first)
        ratios.append((viewed.wall / plain.wall, viewed.cpu / plain.cpu))
    wall, cpu = (statistics.median(r[i] for r in ratios) for i in (0, 1))
    print(
        f"an update with a view: {wall:.1f} of the time of one without, {cpu:.1f} of the CPU time"
    )


if __name__ == "__main__":
    measure_on_three_nodes(measure, 10_000)
