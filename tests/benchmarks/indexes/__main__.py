"""Builds of an index while its table is written to, side by side: `python -m tests.benchmarks.indexes --rows 1000000`.

Each contestant in its turn: updates at a steady rate, alone and during builds. A latency counts from when an update was
due, so one that waits makes those behind it late. CPU seconds are of all processes of a database less what as many
updates cost without a build: before it, when there is no index, so that what updates do for the index counts as the
build's; and after it, when there is one. Memory is that of all processes of a database together, at its most, without what
they share or read from files. Servers are started before, with their builders (0.6 CPU seconds each) or
whatever else they have. Builders work a share of their time, or several shares in turn (`--share`). Compare ratios of one run.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.indexes.contestants import Contestant, contestants
from tests.benchmarks.indexes.memory import Memory
from tests.benchmarks.indexes.writers import Latencies, Writers

from stagewright.impl.indexes.bulk.pace import FULL
from stagewright.impl.indexes.processes.layout import REAL


@dataclass(frozen=True)
class Built:
    """One build."""

    unique: bool
    wall: float  # seconds
    cpu: float  # less what updates cost when there is no index
    alone: float  # less what they cost when there is one
    waits: Latencies
    after: Latencies  # when the index is there
    rows: int
    memory: int

    def line(self, idle: Latencies) -> str:
        """As it is printed."""
        ratio = self.waits.quantile(99) / idle.quantile(99)
        kind = "unique" if self.unique else "not unique"
        return (
            f"  {kind:<11} {self.wall:>7.1f} s  {self.rows / self.cpu:>10,.0f} rows/CPU s "
            f"({self.rows / self.alone:,.0f} without updates of the index)   "
            f"updates p50/p95/p99 {self.waits.text()} ms, p99 {ratio:.1f} x idle; "
            f"of the index that is built {self.after.text()} ms"
            + (f"   memory {self.memory:,} MiB" if self.memory else "")
        )


def measured(contestant: Contestant, wanted: argparse.Namespace) -> list[Built]:
    """Updates alone, then during a build of each kind."""
    writers = Writers(contestant.connect, wanted.rows, wanted.rate)
    writers.during(lambda: time.sleep(wanted.idle / 4))  # everybody is warm
    idle, cost = _idle(contestant, writers, wanted.idle)
    print(f"{contestant.name}\n  idle: updates p50/p95/p99 {idle.text()} ms", flush=True)
    found: list[Built] = []
    for unique in (False, True):
        built = _built(contestant, writers, unique, cost, wanted)
        print(built.line(idle), flush=True)
        found.append(built)
        time.sleep(wanted.idle / 4)
    print(
        f"  unique / not unique, rows a CPU second: {found[0].cpu / found[1].cpu:.2f}", flush=True
    )
    return found


def _idle(contestant: Contestant, writers: Writers, seconds: float) -> tuple[Latencies, float]:
    """Updates without a build, and the CPU seconds of each."""
    before = contestant.cpu()
    idle = writers.during(lambda: time.sleep(seconds))
    return idle, (contestant.cpu() - before) / max(len(idle.found), 1)


def _built(
    contestant: Contestant,
    writers: Writers,
    unique: bool,
    cost: float,
    wanted: argparse.Namespace,
) -> Built:
    walls: list[float] = []
    before, began = contestant.cpu(), time.monotonic()

    def build() -> None:
        contestant.build(unique=unique)
        walls.append(time.monotonic() - began)

    with Memory(contestant.roots) as memory:
        waits = writers.during(build)
    used = contestant.cpu() - before
    time.sleep(wanted.idle / 4)  # stores for the next index are opened
    after, indexed = _idle(contestant, writers, wanted.idle / 2)
    contestant.drop()
    cpu, alone = (max(used - one * len(waits.found), 0.01) for one in (cost, indexed))
    return Built(unique, walls[0], cpu, alone, waits, after, wanted.rows, memory.most)


def main(words: list[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=400, help="updates a second")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds without a build")
    parser.add_argument("--only", default="", help="such as stagewright,postgres")
    parser.add_argument(
        "--share",
        type=lambda text: [int(one) for one in text.split(",")],
        default=[REAL.builder_share, FULL],
        help="percent of its time that a builder works while clients write, such as 5,10,100",
    )
    wanted = parser.parse_args(words)
    print(
        f"{wanted.rows:,} rows, {wanted.rate} updates a second, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}"
    )
    found: dict[str, list[Built]] = {}
    with tempfile.TemporaryDirectory(prefix="indexes-") as scratch:
        chosen = {*filter(None, wanted.only.split(","))}
        for one in contestants(Path(scratch), wanted.rows, chosen, wanted.share):
            try:
                found[one.name] = measured(one, wanted)
            finally:
                one.close()
    ours, *others = found
    for name in others:
        theirs, own = found[name][0], found[ours][0]
        print(
            f"{ours} / {name}, rows a CPU second: {theirs.cpu / own.cpu:.2f} "
            f"({theirs.alone / own.alone:.2f} without updates of the index)"
        )
    print(f"load at the end {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
