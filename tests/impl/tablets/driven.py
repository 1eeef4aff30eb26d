"""A cluster under the balancer's plans: migrations start, stream, fail and end in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import (
    Host,
    Limits,
    LoadSketch,
    Migration,
    Plan,
    TabletName,
    Verdict,
    plan,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage


class Driven:
    """What was committed, counted beside the sketch from the migrations alone."""

    def __init__(
        self, hosts: list[Host], placed: Sequence[tuple[TabletReplica, ...]], limits: Limits
    ) -> None:
        self.sketch = LoadSketch(hosts)
        self.limits = limits
        self.replicas = {TabletName("t", i): set(r) for i, r in enumerate(placed)}
        for tablet, replicas in self.replicas.items():
            self.sketch.add_tablet(tablet, sorted(replicas))
        self.streaming: list[Migration] = []
        self.streamed: list[Migration] = []
        self.undone: list[Migration] = []
        self.done: list[Migration] = []

    def planned(self) -> Plan:
        """A plan, whose migrations start."""
        made = plan(self.sketch, self.limits)
        for migration in made.migrations:
            self.sketch.start(migration.tablet, migration.leaving, migration.pending)
            self.streaming.append(migration)
        return made

    def advance(self, chance: Random, failing: float = 0.0) -> None:
        """Some migration goes on by a stage."""
        active = [*self.streaming, *self.streamed, *self.undone]
        one = active[chance.randrange(len(active))]
        if one in self.streaming:
            self.streaming.remove(one)
            fails = chance.random() < failing
            self.sketch.enter(
                one.tablet, Stage.cleanup_target if fails else Stage.write_both_read_new
            )
            (self.undone if fails else self.streamed).append(one)
        elif one in self.undone:
            self.undone.remove(one)
            self.sketch.end(one.tablet, undone=True)
        else:
            self.streamed.remove(one)
            self.sketch.end(one.tablet)
            self.replicas[one.tablet] ^= {one.leaving, one.pending}
            self.done.append(one)

    def active(self) -> bool:
        return bool(self.streaming or self.streamed or self.undone)

    def settle(self, chance: Random, failures: int = 0) -> Plan:
        """Plan and go on until nothing is left to do."""
        while True:
            made = self.planned()
            self.keeps_to_limits()
            if not self.active():
                assert made.verdict is Verdict.balanced
                return made
            self.advance(chance, failing=0.3 if len(self.undone) < failures else 0.0)

    def keeps_to_limits(self) -> None:
        """No shard streams more than it may; no two replicas share a host, now or then."""
        reads = Counter(m.leaving for m in self.streaming)
        writes = Counter(m.pending for m in self.streaming)
        assert max(reads.values(), default=0) <= self.limits.reads
        assert max(writes.values(), default=0) <= self.limits.writes
        moving = [*self.streaming, *self.streamed, *self.undone]
        assert len({m.tablet for m in moving}) == len(moving)
        for one in moving:
            stay = {r.host for r in self.replicas[one.tablet] - {one.leaving}}
            assert one.leaving in self.replicas[one.tablet]
            assert one.pending.host not in stay

    def loads(self) -> Counter[TabletReplica]:
        """The replicas of each shard, from what was committed."""
        found = Counter(dict.fromkeys(self.sketch.shards, 0))
        for replicas in self.replicas.values():
            found.update(replicas)
        return found
