"""Mistakes put back into `PartitionRebalance`: what is never done."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    WEAK,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "004-71",
    "design document 004: the default state of a partition is indexable",
    breaks=PartitionRebalance.indexes_go_on_when_nothing_moves,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class AStopLeavesItPaused(PartitionRebalance):
    """Where a rebalance was stopped, the index of the node that kept the partition stayed paused until the next query."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """A query finds the partition unindexable."""
        super().resume(p, n)
        require(self.querying, "a query asks for it")


BUGS = known_bugs_in(globals())
