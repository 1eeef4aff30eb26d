"""Bugs of Couchbase's view engine: partition states, the workers of an index, its queries, and rebalance."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries, Stale
from stagewright.machines.couchbase.partitions.partition_rebalance import Node, PartitionRebalance
from stagewright.machines.couchbase.partitions.partition_replicas import WEAK, PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import (
    PartitionGroup,
    PartitionStates,
)
from stagewright.spec import Bool, Term, action, choose, constant, one_of, part, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Z21",
    "MB-6799",
    breaks=PartitionStates.content_is_that_of_the_sequence_number,
    sizes={Partition: 1},
)
class PendingIsAppliedDuringCleanup(PartitionStates):
    """The pending transition was applied while its partitions were still in cleanup.

    The partition is indexed from the beginning among rows of an earlier time, which the cleaner then takes
    away with the new ones.
    """

    def _is_ready(self, p: Term[Partition]) -> Bool:
        return self._is_pending(p)


@known_bug(
    "Z22",
    "couchdb merge_into_pending_transition",
    breaks=PartitionStates.a_pending_partition_will_be_one_thing,
    sizes={Partition: 1},
)
class PendingOnlyGrows(PartitionStates):
    """A new request was added to the pending transition without being taken out of the other list."""

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        entry = self.group[p]
        entry.pending_active = entry.pending_active | active
        entry.pending_passive = entry.pending_passive | passive


@known_bug(
    "Z51",
    "couchdb merge_into_pending_transition builds a record without `unindexable`",
    breaks=PartitionStates.unindexable_is_what_was_marked,
)
class MergeForgetsUnindexable(PartitionStates):
    """Any change of states built the pending transition anew, without which of it is unindexable."""

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        super()._merge_into_pending_transition(p, active=active, passive=passive)
        for other in Partition:
            self.group[other].pending_unindexable = False


@known_bug(
    "Z53",
    "couchdb set_cleanup_partitions",
    breaks=PartitionStates.a_partition_is_in_one_of_the_states,
    sizes={Partition: 1},
)
class CleanupKeepsTheSequenceNumber(PartitionStates):
    """A partition that was set to cleanup kept its sequence number and its version."""

    def _forget_sequence_number(self, p: Term[Partition]) -> None:
        pass


@known_bug(
    "Z25",
    "MB-6689",
    breaks="index.unindexable_is_what_was_marked",
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class MarksDoNotStopWorkers(PartitionIndex):
    """A partition was marked while a worker ran, whose group then replaced the one with the mark."""

    def _change_marks(self) -> None:
        self._group_process_is_free()


@known_bug(
    "K2-rollback",
    "couchdb couch_set_view_group, rollback",
    breaks="index.content_is_that_of_the_sequence_number",
    sizes={Partition: 1},
    budgets={PartitionIndex.kept: 1, PartitionIndex.rollbacks: 1, PartitionIndex.crashes: 0},
)
class OldCleanupIsForgotten(PartitionIndex):
    """A rollback did not look at what was in cleanup in the old header: rows of an earlier time counted as new."""

    def _goes_back_to_cleanup(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].pending_active  # never


@known_bug(
    "Z30",
    "couchdb maybe_reply_with_group (3161a55b)",
    breaks=PartitionQueries.an_answer_covers_what_was_acknowledged,
    budgets={PartitionQueries.monitors: 0},
)
class SequenceNumbersAreComparedAsLists(PartitionQueries):
    """The lists of sequence numbers were compared, not the numbers of each partition.

    A list is the greater one if its first number that differs is. One more write to the first partition
    hides that a paused one is behind.
    """

    first = constant(one_of(Partition))  # the one with the lowest id, which comes first in a list

    def _has_caught_up(self) -> Bool:
        ahead = some(
            (p == self.first) & (self.index.group[p].content.seq > self.wanted[p])
            for p in Partition
        )
        return ahead | super()._has_caught_up()


@known_bug(
    "Z55",
    "MB-6158, MB-6537, MB-6541",
    breaks=PartitionQueries.listeners_are_told,
    sizes={Partition: 1},
    budgets={PartitionQueries.queries: 0},
)
class ListenersDoNotStartTheUpdater(PartitionQueries):
    """The updater ended, or was stopped, and was not started again for the listeners that were left."""

    def _somebody_waits(self) -> Bool:
        return self.triggered | (self.query == Stale.false)


@known_bug(
    "Z32",
    "MB-7082",
    breaks=PartitionRebalance.each_partition_is_served_once,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.moves: 1},
)
class WantedPartitionsAreIgnored(PartitionRebalance):
    """Each node sent what was active there, whatever was wanted from it.

    Between the takeover and the cleanup a partition is active on two nodes: its rows came twice.
    """

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].abit


@known_bug(
    "K9-passive",
    "design document 004, partition states: passive",
    breaks=PartitionQueries.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class PassiveRowsAreReturned(PartitionQueries):
    """A query returned the rows of all partitions that are indexed."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return self.index.group[p].abit | self.index.group[p].pbit


@known_bug(
    "K9-cleanup",
    "design document 004, partition states: cleanup",
    breaks=PartitionQueries.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class RowsToCleanUpAreReturned(PartitionQueries):
    """A query did not filter: it returned what the B-trees have, also of partitions in cleanup."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return super()._is_returned(p) | self.index.group[p].content.cbit


@known_bug(
    "K9-unindexable",
    "design document 004, queries during rebalance: unindexable",
    breaks=PartitionQueries.an_answer_has_what_is_indexed,
    sizes={Partition: 1},
    budgets={PartitionQueries.monitors: 0},
)
class UnindexableIsNotReturned(PartitionQueries):
    """A query left out what is unindexable, as if it were passive."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        return super()._is_returned(p) & ~self.index.paused.has(p)


@known_bug(
    "K9-cluster",
    "design document 004, queries during rebalance: a query won't take it into account",
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class NewNodesReturnPassiveRows(PartitionRebalance):
    """The node to which a partition moves returned what it had of it so far."""

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | self.nodes[n].group[p].pbit


@known_bug(
    "K9-pause",
    "design document 004, the table of a migration, as it stands",
    breaks=PartitionRebalance.an_index_is_paused_only_while_another_catches_up,
    sizes={Partition: 1},
    budgets={PartitionRebalance.queries: 0, PartitionRebalance.moves: 1},
)
class PausedBeforeTheBackfill(PartitionRebalance):
    """The old index was paused when the move began: stale=false waited until all documents were moved."""

    def _backfill_is_done(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        pass


@known_bug(
    "K10-unindexable",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.no_row_is_lost,
    sizes={Partition: 1},
)
class ReplicasOnTransferAreIndexed(PartitionReplicas):
    """The server activates a replica that is queried, and does not mark it as unindexable.

    It goes on, the main index catches up with where it was: a query finds less after the transfer than before.
    """

    def _mark_unindexable(self, p: Term[Partition]) -> None:
        pass

    def _is_frozen(self, p: Term[Partition]) -> Bool:
        return self.replica.requested[p] == Role.active


@known_bug(
    "K10-early",
    "design document 004: once the indexing is completed it will be switched to active",
    breaks=PartitionReplicas.no_row_is_lost,
    sizes={Partition: 1},
)
class ActiveBeforeItIsIndexed(PartitionReplicas):
    """The main index took over when it had the partition, not when it had indexed it."""

    def _has_caught_up(self, p: Term[Partition]) -> Bool:
        return self.main.group[p].pbit


@known_bug(
    "K9-pending",
    "design document 004, partition states",
    breaks=PartitionStates.pending_transitions_end,
)
class PendingTransitionsWaitForARequest(PartitionStates):
    """What had to wait for the cleaner was added with the next request of the manager, if one came."""

    @action
    def apply_pending_transition(self) -> None:
        """A request takes the pending ones along."""
        super().apply_pending_transition()


class UnstoppedGroup(PartitionGroup):
    """An index of which the updater does not look at what is unindexable."""

    @action
    def index(self, p: Term[Partition]) -> None:
        """The updater indexes the next mutation, whatever the partition is."""
        content = self.group[p].content
        require(content.in_seqs | content.in_unindexable_seqs, "it is in the index")
        newer = content.rows <= content.seq
        content.rows = choose(newer, content.seq + 1, content.rows)
        content.seq = content.seq + 1


@known_bug(
    "K10-stopped",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.a_replica_that_is_queried_is_not_indexed,
    sizes={Partition: 1},
)
class UnindexableIsNotStopped(PartitionReplicas):
    """A replica went on being indexed when it was marked as unindexable, and the main index ran after it."""

    replica = part(UnstoppedGroup)

    def _has_caught_up(self, p: Term[Partition]) -> Bool:
        return self.main.group[p].content.seq >= self.replica.group[p].content.seq


@known_bug(
    "K10-resumed",
    "design document 004, the table of a failover: replica index: active, unindexable",
    breaks=PartitionReplicas.a_transfer_is_started,
    sizes={Partition: 1},
)
class IndexedAgainWhenTheTransferStarts(PartitionReplicas):
    """A replica was unindexable only until the main index had it: both were indexed, at twice the cost."""

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """The replica is unindexable as long as the main index does not have it."""
        require(self.main.requested[p] == Role.none, "the main index does not have it")
        super().pause_replica(p)

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """The partition is added to the main index, and the replica goes on as well."""
        super().start_transfer(p)
        self.replica.mark_indexable(p)

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has come as far as the replica index."""
        content = self.replica.group[p].content
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.group[p].pbit, "the main index has it")
        require(self.main.group[p].content.seq >= content.seq, "the main index has caught up")
        self.on_transfer.discard(p)
        self.replicas.discard(p)
        self.main.set_active(p)


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
