"""Mistakes by which somebody waits who need not: documents, queries and updates, for compactions and rebalances.

Nothing goes wrong then but time, and what waits is done in the end: only a promise that nobody is refused notices.
"""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import DesignDocument, DesignDocuments
from stagewright.machines.couchbase.indexes.index_compaction import (
    CLIENT,
    WEAK,
    Compactor,
    IndexCompaction,
)
from stagewright.machines.couchbase.indexes.index_tree import UPDATER, IndexTree, Key
from stagewright.machines.couchbase.indexes.index_update import City, Document, IndexUpdate
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries, Stale
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import MANAGER, PartitionStates
from stagewright.spec import Bool, Term, action, choose, every, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
NO_CRASH = {IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0}


@known_bug(
    "K11-online",
    "design document 004: we cannot stop the view engine updates from happening",
    breaks=IndexCompaction.updates_start_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class UpdatesWaitForTheCompactor(IndexCompaction):
    """An index is not updated until its compaction is done."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """An updater starts when nothing is compacted."""
        super().start_updater()
        require(self.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "K11-documents",
    "design document 004: while doing the compaction, new changes would be happening",
    breaks=IndexCompaction.documents_change_at_any_time,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class DocumentsWaitForTheCompactor(IndexCompaction):
    """No document of an index changes while that is compacted."""

    @action(by=CLIENT, spends=IndexCompaction.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes when nothing is compacted."""
        super().write(p)
        require(self.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "K8-busy",
    "design document 004: when a query request arrives",
    breaks=PartitionQueries.queries_come_at_any_time,
    sizes={Partition: 1},
)
class QueriesAreRefusedByTheUpdater(PartitionQueries):
    """An index that is updated takes no queries."""

    @action(by=CLIENT, spends=PartitionQueries.queries)
    def ask(self, stale: Term[Stale]) -> None:
        """A query comes when nothing is updated."""
        super().ask(stale)
        require(~self.updater, "updater does not run")


@known_bug(
    "K8-stale",
    "design document 004: when stale=false, it will block",
    breaks=PartitionQueries.only_the_newest_is_waited_for,
    sizes={Partition: 1},
)
class EveryQueryWaitsForTheUpdater(PartitionQueries):
    """A query that would take what is indexed waits until the update is done, or has what was there when it came."""

    @action(fair=WEAK)
    def answer(self) -> None:
        """The query gets the group once this has caught up, or the updater has ended."""
        super().answer()
        group = self.index.group
        caught_up = every(
            group[p].abit.implies(group[p].content.seq >= self.asked[p]) for p in Partition
        )
        require(~self.updater | caught_up, "the updater has come as far")


@known_bug(
    "K9-queries",
    "design document 004: no matter when a query happens",
    breaks=PartitionRebalance.queries_come_during_a_rebalance,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class QueriesWaitForTheRebalance(PartitionRebalance):
    """No query of the cluster is taken while a partition moves."""

    @action(by=CLIENT, spends=PartitionRebalance.queries)
    def query(self, newest: Bool) -> None:
        """A query is sent on when nothing moves."""
        super().query(newest)
        require(every(self.move[p] == Move.none for p in Partition), "no partition moves")


@known_bug(
    "K9-documents",
    "design document 004: during the rebalance",
    breaks=PartitionRebalance.documents_are_written_during_a_rebalance,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class DocumentsWaitForTheRebalance(PartitionRebalance):
    """A partition that moves takes no writes."""

    @action(by=CLIENT, spends=PartitionRebalance.writes)
    def write(self, p: Term[Partition], n: Term[Node]) -> None:
        """A client changes a document of a partition that stays where it is."""
        super().write(p, n)
        require(self.move[p] == Move.none, "the partition does not move")


@known_bug(
    "004-82",
    'design document 004, active: "Partition is indexed and the result will be returned on query time"',
    breaks=PartitionRebalance.what_is_queried_is_indexed,
    sizes={Partition: 1},
    budgets={PartitionRebalance.stops: 0},
)
class UpdatesWaitForTheOldNode(PartitionRebalance):
    """The new node, which takes the writes and is queried, does not index them until the old one has let go."""

    @action(fair=WEAK)
    def index(self, p: Term[Partition], n: Term[Node]) -> None:
        """The updater leaves out what is being handed over."""
        super().index(p, n)
        require(~self.move[p].any_of(Move.activated, Move.mapped), "it is not being handed over")


@known_bug(
    "004-83",
    'design document 004: a partition in cleanup is removed "during the next cleanup cycle"',
    breaks=PartitionRebalance.partitions_are_cleaned_up_during_a_rebalance,
    sizes={Partition: 1},
)
class CleanupsWaitForTheRebalance(PartitionRebalance):
    """A node's cleaner waits until no partition moves: one that comes back waits for its own move to end."""

    @action(fair=WEAK)
    def clean(self, p: Term[Partition], n: Term[Node]) -> None:
        """The cleaner waits as long as it is indexed elsewhere."""
        super().clean(p, n)
        require(self.move[p] != Move.indexing, "the partition does not move")


@known_bug(
    "K5-documents",
    "design document 004: the updater requests all updates since it last ran",
    breaks=IndexUpdate.documents_change_at_any_time,
)
class DocumentsWaitForTheUpdater(IndexUpdate):
    """No document changes while a snapshot is loaded."""

    @action(by=CLIENT, spends=IndexUpdate.mutations)
    def change(self, d: Term[Document], city: Term[City]) -> None:
        """A document changes when no snapshot is loaded."""
        super().change(d, city)
        require(self.snapshot.is_empty(), "no snapshot is loaded")


@known_bug(
    "K10-one",
    "design document 004, the table of a failover",
    breaks=PartitionReplicas.partitions_fail_over_at_once,
    budgets={PartitionReplicas.writes: 0},
)
class PartitionsFailOverOneByOne(PartitionReplicas):
    """A replica is queried when the transfer of the last one is done: until then its rows are missing."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def fail_over(self, p: Term[Partition]) -> None:
        """The replica is queried from now on, if no other one is."""
        require(self.on_transfer.is_empty(), "nothing is on transfer")
        super().fail_over(p)


@known_bug(
    "004-35",
    REQUESTS,
    breaks=PartitionStates.requests_to_be_active_are_performed,
)
class OnePendingTransitionAtATime(PartitionStates):
    """While a partition waits for the cleaner no other one becomes active."""

    @action(by=MANAGER)
    def set_active(self, p: Term[Partition]) -> None:
        """Nothing is pending."""
        require(every(~self._is_pending(q) for q in Partition), "no partition is pending")
        super().set_active(p)


@known_bug(
    "004-36",
    REQUESTS,
    breaks=PartitionStates.requests_to_be_passive_are_performed,
    sizes={Partition: 1},
)
class PassiveOnesWaitForTheCleaner(PartitionStates):
    """A request for a passive partition is refused while its rows are cleaned up: nobody queries it anyway."""

    @action(by=MANAGER)
    def set_passive(self, p: Term[Partition]) -> None:
        """It is clean."""
        require(~self.group[p].content.cbit, "partition is clean")
        super().set_passive(p)


@known_bug(
    "004-37",
    REQUESTS,
    breaks=PartitionStates.requests_to_clean_up_are_performed,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreRemoved(PartitionStates):
    """A passive partition has to become active before it can be removed."""

    @action(by=MANAGER)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """It is not passive."""
        require(~self.group[p].pbit, "partition is not passive")
        super().set_cleanup(p)


@known_bug(
    "004-38",
    'design document 004: "independent of the state the partition is in"',
    breaks=PartitionStates.marks_are_made_in_every_state,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreMarked(PartitionStates):
    """A passive partition cannot be marked as unindexable."""

    @action(by=MANAGER)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """It is not passive."""
        require(~self.group[p].pbit, "partition is not passive")
        super().mark_unindexable(p)


@known_bug(
    "004-39",
    REQUESTS,
    breaks=IndexCompaction.partitions_are_added_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class AddedAfterTheCompaction(IndexCompaction):
    """No partition is added to an index while that is compacted."""

    @action(by=MANAGER, spends=IndexCompaction.requests)
    def set_active(self, p: Term[Partition]) -> None:
        """Nothing is compacted, or the index has the partition already."""
        compacts = self.compactor != Compactor.none
        require(self._is_indexed(p) | ~compacts, "no compactor runs without the partition")
        super().set_active(p)


@known_bug(
    "004-40",
    REQUESTS,
    breaks=IndexCompaction.partitions_are_removed_while_it_compacts,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class RemovedAfterTheCompaction(IndexCompaction):
    """No partition is removed from an index while that is compacted."""

    @action(by=MANAGER, spends=IndexCompaction.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """Nothing is compacted."""
        require(self.compactor == Compactor.none, "compactor does not run")
        super().set_cleanup(p)


@known_bug(
    "004-41",
    "design document 004: several definitions are present at a time",
    breaks=DesignDocuments.definitions_are_deleted_under_queries,
)
class DeletedWhenNobodyReads(DesignDocuments):
    """A design document cannot be deleted while a query reads its index, or another one."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def delete(self, d: Term[DesignDocument]) -> None:
        """No query goes on."""
        super().delete(d)
        require(self.reading.is_none(), "no query goes on")


@known_bug(
    "004-42",
    "design document 004, index updates",
    breaks=IndexUpdate.documents_are_deleted_at_any_time,
)
class DeletesWaitForTheUpdater(IndexUpdate):
    """A document that is on its way into the index is not deleted."""

    @action(by=CLIENT, spends=IndexUpdate.mutations)
    def delete(self, d: Term[Document]) -> None:
        """It is indexed."""
        require(~self._is_on_its_way(d), "the document is indexed")
        super().delete(d)


@known_bug(
    "K8-documents",
    "design document 004: triggering updates by number of changes",
    breaks=PartitionQueries.documents_change_at_any_time,
    sizes={Partition: 1},
)
class ChangesWaitForTheUpdater(PartitionQueries):
    """No document changes while the index is updated: so the updater comes to an end."""

    @action(by=CLIENT, spends=PartitionQueries.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes when nothing is updated."""
        super().write(p)
        require(~self.updater, "updater does not run")


@known_bug(
    "K4-inserts",
    "design document 004: the cleanup is a job that is run periodically",
    breaks=IndexTree.rows_are_inserted_during_a_cleanup,
)
class InsertsWaitForTheCleaner(IndexTree):
    """Nothing is inserted until no partition is in cleanup."""

    @action(by=UPDATER, spends=IndexTree.batches)
    def insert(self, key: Term[Key], p: Term[Partition]) -> None:
        """Nothing is to be cleaned up."""
        super().insert(key, p)
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")


@known_bug(
    "K4-removals",
    "design document 004: the cleanup is a job that is run periodically",
    breaks=IndexTree.rows_are_removed_during_a_cleanup,
)
class RemovalsWaitForTheCleaner(IndexTree):
    """Nothing is removed but by the cleaner, while there is a partition in cleanup."""

    @action(by=UPDATER, spends=IndexTree.batches)
    def remove(self, key: Term[Key], p: Term[Partition]) -> None:
        """Nothing is to be cleaned up."""
        super().remove(key, p)
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")


@known_bug(
    "004-153",
    'design document 004: "it will block until current vbuckets seq num <= indexed seqs num"',
    breaks=PartitionQueries.what_comes_later_is_not_waited_for,
    sizes={Partition: 1},
)
class QueriesWaitForWhatComesLater(PartitionQueries):
    """A query with stale=false that waited for the updater waited for each document that came meanwhile, too: for ever, if they
    came fast enough.
    """

    @action(by=CLIENT, spends=PartitionQueries.writes)
    def write(self, p: Term[Partition]) -> None:
        """The newest is newer by one."""
        newest = self.source[p] + 1
        waits = (self.query == Stale.false) & self.index.group[p].abit
        self.wanted[p] = choose(waits, newest, self.wanted[p])
        super().write(p)


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
