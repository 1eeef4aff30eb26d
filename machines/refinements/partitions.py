"""Whatever else changes a partition of an index: its states are those that the cluster manager asks for."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import IndexCompaction
from stagewright.machines.couchbase.partitions.group_states import (
    Partition,
    PartitionState,
    Role,
    Seqs,
)
from stagewright.machines.couchbase.partitions.partition_states import PartitionStates
from stagewright.spec import alike, refinement


@refinement(
    from_start=False,  # its partitions were added before
    at=({IndexCompaction.lost_headers: 0, Partition: 1, IndexCompaction.requests: 3},),
    seen_at={Partition: 1},
)
def a_partition_under_compaction(it: IndexCompaction, seen: PartitionStates) -> None:
    """A switch of the file changes no partition, but those that it cleans up. Lost headers are no request."""
    for p in Partition:
        state, entry = it.state[p], seen.group[p]
        entry.abit = state.column(lambda state: state.abit)
        entry.pbit = state.column(lambda state: state.pbit)
        entry.content.cbit = state.column(lambda state: state.cbit)
        entry.content.in_seqs = state.column(lambda state: state.seq is Seqs.seqs)
        entry.content.seq = it.seqs[p]
        alike(
            seen.requested[p] == Role.active,
            state == PartitionState.active,
        )
