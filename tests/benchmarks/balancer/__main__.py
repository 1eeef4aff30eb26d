"""Plan time and number of migrations: `python -m tests.benchmarks.balancer [HOSTS TABLETS SHARDS REPLICAS]`.

A cluster in balance grows by a tenth and loses a host; beside it, the placement is any. CPU seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from time import process_time

from tests.benchmarks.balancer.plain import Move, plain_plan

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import (
    Host,
    HostState,
    Limits,
    LoadSketch,
    TabletName,
    plan,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

LIMITS = Limits(reads=4, writes=2)
Planner = Callable[[LoadSketch, Limits], list[Move]]


@dataclass
class Run:
    """What one balancer needed until it found nothing more, or until the time was up."""

    made: float = 0.0  # the sketch, from nothing
    times: list[float] = field(default_factory=list[float])  # of plans
    moves: int = 0
    spread: int = 0

    def row(self, name: str, least: int) -> str:
        finished = "" if self.spread <= 1 else " (stopped)"
        return (
            f"{name:<10} first {self.times[0]:.3f} s, slowest {max(self.times):.3f} s, "
            f"{len(self.times)} plans in {sum(self.times):.1f} s, {self.moves} migrations "
            f"(least {least}), max - min {self.spread}{finished}; sketch {self.made:.2f} s"
        )


def clusters(
    hosts: int, tablets: int, shards: int, replicas: int
) -> dict[str, Callable[[], LoadSketch]]:
    """Where the balancer has to begin."""

    def placed(old: int) -> LoadSketch:
        sketch = LoadSketch(Host(f"n{i}", shards) for i in range(hosts))
        chance = Random(1)
        for number in range(tablets):
            chosen = chance.sample(range(old), replicas)
            sketch.add_tablet(
                TabletName("t", number),
                [TabletReplica(f"n{i}", chance.randrange(shards)) for i in chosen],
            )
        return sketch

    def grown() -> LoadSketch:
        sketch = placed(hosts * 9 // 10)
        sketch.set_state("n0", HostState.leaving)
        return sketch

    return {"grows by a tenth, one leaves": grown, "any placement": lambda: placed(hosts)}


def ours(sketch: LoadSketch, limits: Limits) -> list[Move]:
    """The balancer of this repository."""
    number = sketch.number_of
    return [
        (m.tablet, number(m.leaving), number(m.pending)) for m in plan(sketch, limits).migrations
    ]


def least(sketch: LoadSketch) -> int:
    """No balancer needs fewer: all that is above an even share, and all on hosts that go."""
    stays = [sketch.hosts[h].state is HostState.normal for h in sketch.host_of]
    ceiling = -(-sum(sketch.load) // sum(stays))
    return sum(max(0, n - ceiling) if s else n for n, s in zip(sketch.load, stays, strict=True))


def measured(make: Callable[[], LoadSketch], planner: Planner, seconds: float) -> Run:
    """Plan, let all of it happen, plan again."""
    run, begun = Run(), process_time()
    sketch = make()
    run.made = process_time() - begun
    while sum(run.times) < seconds:
        begun = process_time()
        moves = planner(sketch, LIMITS)
        run.times.append(process_time() - begun)
        if not moves:
            break
        for tablet, source, target in moves:
            sketch.start(tablet, sketch.shards[source], sketch.shards[target])
        for tablet, _, _ in moves:
            sketch.enter(tablet, Stage.write_both_read_new)
            sketch.end(tablet)
        run.moves += len(moves)
    run.spread = sketch.spread()
    return run


def main(words: list[str]) -> None:
    """Measure both balancers."""
    hosts, tablets, shards, replicas = map(int, words or ["1000", "100000", "1", "3"])
    print(f"{hosts} hosts of {shards} shards, {tablets} tablets of {replicas} replicas, {LIMITS}")
    for name, make in clusters(hosts, tablets, shards, replicas).items():
        print(f"{name}:")
        fewest = least(make())
        print("  " + measured(make, ours, 300.0).row("balancer", fewest), flush=True)
        print("  " + measured(make, plain_plan, 60.0).row("plain", fewest), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
