"""What a shard may be asked to stream at once, on the rows of tablets: it reads no definition.

What the balancer begins leaves no shard with more streams from it, or to it, than the limits allow. Operators, merges and
other numbers of replicas may ask for more, which then counts.
"""

from __future__ import annotations

from collections import Counter

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.tablets.balancer import Limits
from stagewright.impl.tablets.balancer.sketch import Phase
from stagewright.impl.tablets.loads import moved_replica
from stagewright.impl.tablets.resizing import decided

Move = tuple[TabletReplica, TabletReplica]


class ShardOracle:
    """The migrations of a run."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle

    def committed(self, before: View, after: View) -> None:
        """Something was committed: migrations may have begun."""
        if before.tablets == after.tablets or decided(before, Resize.merge):
            return
        begun: list[Move] = []
        streams: list[Move] = []
        for row in after.moving:
            then, now = before.tablet(row.table, row.number), moved_replica(row)
            if now is None or then is None:
                continue
            if then.tablet.moves and _streams(row):
                streams.append(now)
            elif not then.tablet.moves and then.wish is None:
                begun.append(now)
        if begun:
            self._check(begun, streams)

    def _check(self, begun: list[Move], streams: list[Move]) -> None:
        limits = Limits()
        for place, side, most in ((0, "from", limits.reads), (1, "to", limits.writes)):
            begins = Counter(move[place] for move in begun)
            goes_on = Counter(move[place] for move in streams)
            for shard, number in begins.items():
                if number + goes_on[shard] > most:
                    text = f"{number + goes_on[shard]} tablets stream {side} {shard.host}:{shard.shard}"
                    self._oracle.broken(f"{text} at once, and the balancer began {number} of these")
                    return


def _streams(row: TabletRow) -> bool:
    return Phase.of(row.tablet.stage) is Phase.streams
