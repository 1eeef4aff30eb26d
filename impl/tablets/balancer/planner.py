"""Plans: as many migrations as help and have room, from the most loaded shards to the least loaded ones.

A migration helps if its host is to be empty, or if the shard that it goes to has fewer replicas even
afterwards. It has room if neither shard streams as much as it may. A replica never comes to a host that has
another one of its tablet, nor to a rack that has one, other than its own: the racks never become fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.impl.tablets.balancer.hosts import HostState, Limits, TabletName
from stagewright.impl.tablets.balancer.levels import Levels
from stagewright.impl.tablets.balancer.reasons import (
    Blocked,
    Drain,
    Even,
    Migration,
    NoPlace,
    NoSource,
)
from stagewright.impl.tablets.balancer.sketch import LoadSketch

_ANY = 1 << 60  # more than any load


class Verdict(Enum):
    """How things stand for the balancer."""

    work = auto()  # there is something in the plan
    saturated = auto()  # what would help has to wait until something has streamed
    balanced = auto()  # nothing would help


@dataclass(frozen=True)
class Plan:
    """What to start now, in one command; and the replicas that ought to leave a host and cannot."""

    migrations: tuple[Migration, ...]
    blocked: tuple[Blocked, ...]
    verdict: Verdict

    def sentences(self) -> Iterator[str]:
        """What it does and why, and what it cannot do."""
        yield from map(str, self.migrations)
        yield from map(str, self.blocked)
        if self.verdict is Verdict.saturated:
            yield "nothing starts: every shard that a migration would help streams as much as it may"
        elif self.verdict is Verdict.balanced and not self.blocked:
            yield "nothing moves: no migration would bring two shards closer to each other"


def plan(sketch: LoadSketch, limits: Limits = Limits(), *, most: int | None = None) -> Plan:  # noqa: B008
    """What helps and has room now, at most so many migrations. The sketch stays as it is."""
    made = _Planner(sketch, limits, _ANY if most is None else most)
    made.drain()
    made.even()
    if made.migrations:
        verdict = Verdict.work
    else:
        unlimited = _Planner(sketch, Limits(_ANY, _ANY), 1)
        unlimited.drain()
        unlimited.even()
        verdict = Verdict.saturated if unlimited.migrations else Verdict.balanced
    return Plan(tuple(made.migrations), tuple(made.blocked), verdict)


class _Planner:
    """One plan being made, on loads of its own."""

    def __init__(self, sketch: LoadSketch, limits: Limits, most: int) -> None:
        self.migrations: list[Migration] = []
        self.blocked: list[Blocked] = []
        self._sketch = sketch
        self._limits = limits
        self._most = most
        self._load = list(sketch.load)
        self._reads = list(sketch.reads)
        self._writes = list(sketch.writes)
        self._planned: set[TabletName] = set()
        self._rack_of = [sketch.hosts[name].rack for name in sketch.host_of]
        self._stays = [sketch.hosts[n].state is HostState.normal for n in sketch.host_of]
        self._targets = {rack: Levels() for rack in dict.fromkeys(self._rack_of)}
        self._sources = Levels()
        for shard, stays in enumerate(self._stays):
            if stays:
                self._list(shard)

    # -- which shards may stream ---------------------------------------------------------------------

    def _list(self, shard: int) -> None:
        if self._writes[shard] < self._limits.writes:
            self._targets[self._rack_of[shard]].put(shard, self._load[shard])
        if self._reads[shard] < self._limits.reads:
            self._sources.put(shard, self._load[shard])

    def _unlist(self, shard: int) -> None:
        if self._writes[shard] < self._limits.writes:
            self._targets[self._rack_of[shard]].drop(shard, self._load[shard])
        if self._reads[shard] < self._limits.reads:
            self._sources.drop(shard, self._load[shard])

    # -- hosts that are to be empty ------------------------------------------------------------------

    def drain(self) -> None:
        """Plan what leaves hosts that are to be empty."""
        for shard, stays in enumerate(self._stays):
            if not stays:
                self._drain(shard)

    def _drain(self, shard: int) -> None:
        name = self._sketch.host_of[shard]
        state = self._sketch.hosts[name].state
        for tablet in self._sketch.resting[shard]:
            if len(self.migrations) >= self._most or self._reads[shard] >= self._limits.reads:
                return
            if tablet in self._planned:
                continue
            if state is HostState.excluded and not self._has_source(tablet):
                self.blocked.append(NoSource(tablet, self._sketch.shards[shard]))
                continue
            target = self._place(tablet, shard, _ANY)
            if target is not None:
                self._plan(tablet, shard, target, Drain(name, state))
            elif not self._has_place(tablet, shard):
                self.blocked.append(NoPlace(tablet, self._sketch.shards[shard]))

    def _has_source(self, tablet: TabletName) -> bool:
        hosts = (self._sketch.host_of[p] for p in self._sketch.places[tablet])
        return any(self._sketch.hosts[h].state is not HostState.excluded for h in hosts)

    def _has_place(self, tablet: TabletName, leaving: int) -> bool:
        """Whether there is a host for it, whatever is streamed to that now."""
        others, racks = self._others(tablet, leaving)
        return any(
            host.state is HostState.normal
            and name not in others
            and (host.rack == self._rack_of[leaving] or host.rack not in racks)
            for name, host in self._sketch.hosts.items()
        )

    # -- hosts that stay -----------------------------------------------------------------------------

    def even(self) -> None:
        """Plan what brings shards closer to each other, until nothing does that has room."""
        passed_by: list[int] = []  # could give nothing away: another shard may get low enough yet
        moved = True
        while moved:
            moved = False
            while (shard := self._next_source()) is not None:
                if self._give(shard):
                    moved = True
                else:
                    self._sources.drop(shard, self._load[shard])
                    passed_by.append(shard)
            for shard in passed_by:
                self._sources.put(shard, self._load[shard])
            passed_by.clear()

    def _next_source(self) -> int | None:
        """The most loaded shard, if any other one is low enough for it."""
        shard = self._sources.highest()
        if shard is None or len(self.migrations) >= self._most:
            return None
        lowest = [low for t in self._targets.values() if (low := t.lowest()) is not None]
        return shard if lowest and min(lowest) + 1 < self._load[shard] else None

    def _give(self, shard: int) -> bool:
        """Plan the best migration from a shard: to the lowest other one."""
        best: tuple[int, TabletName, int] | None = None
        least = min(low for t in self._targets.values() if (low := t.lowest()) is not None)
        enough = self._load[shard] - 1
        for tablet in self._sketch.resting[shard]:
            if tablet in self._planned:
                continue
            target = self._place(tablet, shard, enough)
            if target is not None:
                enough = self._load[target]  # only a lower one is better
                best = (enough, tablet, target)
                if enough == least:
                    break
        if best is None:
            return False
        load, tablet, target = best
        self._plan(tablet, shard, target, Even(self._load[shard], load))
        return True

    # -- where a replica may go ----------------------------------------------------------------------

    def _place(self, tablet: TabletName, leaving: int, below: int) -> int | None:
        """The least loaded shard that has room and may have the replica."""
        others, racks = self._others(tablet, leaving)
        host_of, own = self._sketch.host_of, self._rack_of[leaving]
        found: int | None = None
        for rack, shards in self._targets.items():
            if rack != own and rack in racks:
                continue
            for shard in shards.below(below):
                if host_of[shard] not in others:
                    found, below = shard, self._load[shard]
                    break
        return found

    def _others(self, tablet: TabletName, leaving: int) -> tuple[set[str], set[str]]:
        """The hosts and the racks of the tablet's other replicas."""
        others = [p for p in self._sketch.places[tablet] if p != leaving]
        return {self._sketch.host_of[p] for p in others}, {self._rack_of[p] for p in others}

    def _plan(self, tablet: TabletName, leaving: int, pending: int, why: Drain | Even) -> None:
        shards = self._sketch.shards
        self.migrations.append(Migration(tablet, shards[leaving], shards[pending], why))
        self._planned.add(tablet)
        self._add(leaving, load=-1, reads=1)
        self._add(pending, load=1, writes=1)

    def _add(self, shard: int, *, load: int, reads: int = 0, writes: int = 0) -> None:
        stays = self._stays[shard]
        if stays:
            self._unlist(shard)
        self._load[shard] += load
        self._reads[shard] += reads
        self._writes[shard] += writes
        if stays:
            self._list(shard)
