"""Mistakes about the states of partitions that design document 004 rules out, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import Node, PartitionRebalance
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import (
    MANAGER,
    Entry,
    PartitionStates,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
STATES = "design document 004, partition states"
LAST = 'design document 004: "from last indexed sequence"'
EMPTY = "design document 004, partition states: not present"
UNINDEXABLE = 'design document 004: "When set to unindexable, the indexing is stopped"'
FAILOVER = "design document 004, the table of a failover"


# -- one index -------------------------------------------------------------------------------------------


@known_bug("004-22", LAST, breaks=PartitionStates.the_index_of_a_partition_only_grows)
class PassiveIsIndexedAnew(PartitionStates):
    """An active partition that becomes passive is removed and added: it is indexed from the beginning."""

    @action(by=MANAGER)
    def set_passive(self, p: Term[Partition]) -> None:
        """Nothing of it is kept."""
        active, content = self.group[p].abit, self.group[p].content
        super().set_passive(p)
        content.seq = choose(active, 0, content.seq)
        content.rows = choose(active, 0, content.rows)


@known_bug("004-23", EMPTY, breaks=PartitionStates.a_partition_starts_empty)
class RowsAreTakenBack(PartitionStates):
    """A partition that is wanted again before it was cleaned up goes on with the rows that are left of it."""

    @action(by=MANAGER)
    def take_back(self, p: Term[Partition]) -> None:
        """They count as indexed."""
        require(self.group[p].content.cbit & ~self._is_pending(p), "partition is in cleanup")
        _take_back(self.group[p])
        self.requested[p] = Role.active


@known_bug("004-24", STATES, breaks=PartitionStates.rows_belong_to_partitions_of_the_index)
class RowsGoWhenTheyAreInTheWay(PartitionStates):
    """The cleaner removes rows of partitions that are wanted again; of others they stay, and nobody reads them."""

    @action(fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The partition is not in cleanup any more."""
        content = self.group[p].content
        require(content.cbit, "partition is in cleanup")
        content.cbit = False
        content.rows = choose(self._is_pending(p), 0, content.rows)

    def _add(self, p: Term[Partition], now: Bool) -> None:
        super()._add(p, now)
        content = self.group[p].content
        content.rows = choose(now & ~self._has(p), 0, content.rows)


@known_bug("004-25", STATES, breaks=PartitionStates.partitions_are_cleaned_up)
class CleanupWaitsForARequest(PartitionStates):
    """The cleaner runs if a partition is to be added that is in cleanup; else nobody starts it."""

    @action
    def clean(self, p: Term[Partition]) -> None:
        """Somebody starts it, or nobody does."""
        super().clean(p)

    @action(fair=WEAK)
    def clean_what_is_wanted(self, p: Term[Partition]) -> None:
        """The partition is to be added."""
        require(self._is_pending(p), "partition is pending")
        super().clean(p)


@known_bug("004-26", UNINDEXABLE, breaks=PartitionStates.an_unindexable_partition_stays_as_it_is)
class UnindexableOnesAreIndexed(PartitionStates):
    """The updater takes what is active or passive, and does not ask which list has the sequence number."""

    @action
    def index(self, p: Term[Partition]) -> None:
        """The next mutation is indexed."""
        content = self.group[p].content
        require(self._has(p), "partition is active or passive")
        content.rows = content.seq + 1
        content.seq = content.seq + 1


@known_bug("004-27", UNINDEXABLE, breaks=PartitionStates.unindexable_is_what_was_marked)
class TheHeaderKeepsTheMark(PartitionStates):
    """A partition is indexable again, and the header goes on to say that it is not: it is never indexed."""

    @action(by=MANAGER)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The cluster manager hears that it is done."""
        require(self.paused.has(p), "partition is unindexable")
        self.paused.discard(p)

    def _forget_sequence_number(self, p: Term[Partition]) -> None:
        super()._forget_sequence_number(p)
        self.group[p].content.in_unindexable_seqs = False

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        entry = self.group[p]
        super()._merge_into_pending_transition(p, active=active, passive=passive)
        entry.pending_unindexable = entry.pending_unindexable & (active | passive)


# -- with its updater and its cleaner --------------------------------------------------------------------


@known_bug("004-28", LAST, breaks=PartitionIndex.the_index_of_a_partition_only_grows)
class PassiveIsIndexedAnewByTheUpdater(PartitionIndex):
    """The updater is stopped, as for a removal, and begins with the partition that is passive now from the start."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """Nothing of it is kept."""
        active, content = self.index.group[p].abit, self.index.group[p].content
        super().set_passive(p)
        content.seq = choose(active, 0, content.seq)
        content.rows = choose(active, 0, content.rows)


@known_bug("004-29", EMPTY, breaks=PartitionIndex.a_partition_starts_empty)
class RowsAreTakenBackFromTheCleaner(PartitionIndex):
    """The cleaner is stopped for a partition that is wanted again, and what it has not removed counts as indexed."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def take_back(self, p: Term[Partition]) -> None:
        """They count as indexed."""
        entry = self.index.group[p]
        require(~self.updater, "updater is stopped")
        pending = entry.pending_active | entry.pending_passive
        require(entry.content.cbit & ~pending, "partition is in cleanup")
        self._change_states()
        _take_back(entry)
        self.index.requested[p] = Role.active


@known_bug("004-30", UNINDEXABLE, breaks=PartitionIndex.an_unindexable_partition_stays_as_it_is)
class TheUpdaterLoopsThroughAllPartitions(PartitionIndex):
    """The updater goes on with what the header lists: in one of its lists, or in the other."""

    def _is_behind(self, entry: Entry, p: Term[Partition]) -> Bool:
        listed = entry.content.in_seqs | entry.content.in_unindexable_seqs
        return listed & (entry.content.seq < self.source[p])


# -- queries of an index, and of a cluster ---------------------------------------------------------------


@known_bug(
    "004-31",
    "design document 004, queries during rebalance: unindexable",
    breaks=PartitionQueries.an_answer_has_what_is_indexed,
    sizes={Partition: 1},
)
class OutdatedRowsAreLeftOut(PartitionQueries):
    """A query leaves out what is unindexable and behind the documents, as if it were better to find nothing."""

    def _is_returned(self, p: Term[Partition]) -> Bool:
        newest = self.index.group[p].content.seq >= self.asked[p]
        return super()._is_returned(p) & (newest | ~self.index.paused.has(p))


@known_bug(
    "004-32",
    'design document 004, cleanup: "won\'t be returned on query time"',
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class RowsAreReturnedWhileTheyAreThere(PartitionRebalance):
    """A query that takes what is indexed, sent to the old node, gets the rows that this is about to clean up."""

    def _is_outdated(self, n: Term[Node]) -> Bool:
        return some(
            (self.wanted_from[p] == n) & ~self.nodes[n].group[p].abit & ~self._is_left(n, p)
            for p in Partition
        )

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | ((self.wanted_from[p] == n) & self._is_left(n, p))

    def _is_left(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].content.cbit & ~self.newest


# -- failover --------------------------------------------------------------------------------------------


@known_bug("004-33", FAILOVER, breaks=PartitionReplicas.a_failover_is_initiated)
class TheReplicaIsIndexedOn(PartitionReplicas):
    """A replica that is queried becomes unindexable only when the main index has begun with the partition."""

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """The main index has it as passive."""
        super().pause_replica(p)
        require(self.main.group[p].pbit, "the main index has it")


@known_bug(
    "004-34",
    FAILOVER,
    breaks=PartitionReplicas.copies_are_cleaned_up,
    sizes={Partition: 1},
    budgets={PartitionReplicas.requests: 2},
)
class TheCopyIsKept(PartitionReplicas):
    """What was transferred stays in the replica index, as passive: it might be of use for the next failover."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        """Only what the main index does not have is removed."""
        super().clean_up_replica(p)
        require(self.main.requested[p] == Role.none, "the main index does not have it")

    @action(fair=WEAK)
    def keep_copy(self, p: Term[Partition]) -> None:
        """The main index has it, and the copy stays."""
        require(self.replica.requested[p] == Role.active, "the copy was queried")
        kept = ~self.replicas.has(p) & (self.main.requested[p] != Role.none)
        require(kept, "the main index has it")
        self.replica.set_passive(p)


def _take_back(entry: Entry) -> None:
    entry.abit = True
    entry.content.cbit = False
    entry.content.in_seqs = True
    entry.content.has_version = True
    entry.content.seq = entry.content.rows


BUGS = known_bugs_in(globals())
