"""Watches migrations: which of them the balancer has planned, and what streams from and to each shard as they begin."""

from __future__ import annotations

from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry
from stagewright.impl.recording.recording import Take
from stagewright.impl.simulator.database.checks.work.balance_check import Move, is_whole, planned_in
from stagewright.impl.tablets.balancer import HostState
from stagewright.impl.tablets.balancer.sketch import Phase
from stagewright.impl.tablets.loads import moved_replica, sketch_of

KIND = "shards"


class ShardWatcher:
    """`take` records an action of an entity: reads from a shard, or writes to it."""

    def __init__(self, take: Take) -> None:
        self._take = take

    def committed(self, entry: Entry, before: View, after: View) -> None:
        """Migrations may have begun, or have streamed."""
        if before.tablets == after.tablets:
            return
        were, are = _streams(before), _streams(after)
        for name in sorted(were.keys() - are.keys()):
            self._record("end", were[name])
        begun = are.keys() - were.keys()
        planned = planned_in(entry) if begun else {}
        helps = _that_help(entry, before) if planned else frozenset[str]()
        for name in [n for n in planned if n in begun]:
            self._record("plan", are[name], helps=name in helps)
        for name in sorted(begun - planned.keys()):
            self._record("ask", are[name])

    def _record(self, action: str, move: Move, **arguments: bool) -> None:
        for what, shard in zip(("reads from", "writes to"), move, strict=True):
            self._take(KIND, f"{what} {shard.host}:{shard.shard}", "", action, **arguments)


def _streams(view: View) -> dict[str, Move]:
    """What streams, or is about to, by tablet."""
    moved = ((row, moved_replica(row)) for row in view.moving)
    return {row.name: m for row, m in moved if m and Phase.of(row.tablet.stage) is Phase.streams}


def _that_help(entry: Entry, before: View) -> frozenset[str]:
    """Those that bring loads closer, one after the other, or empty a node; of a plan that is not whole nothing is known."""
    planned = planned_in(entry)
    if not is_whole(entry, before):
        return frozenset(planned)
    sketch, found = sketch_of(before), set[str]()
    for name, (leaving, pending) in planned.items():
        source, target = sketch.number_of(leaving), sketch.number_of(pending)
        drains = sketch.hosts[leaving.host].state is not HostState.normal
        if drains or sketch.load[target] + 1 < sketch.load[source]:
            found.add(name)
        sketch.load[source] -= 1
        sketch.load[target] += 1
    return frozenset(found)
