"""Mistakes by which what is asked of the view engine is refused, or waits for what it need not wait for.

Nothing that was promised of data breaks: a request is there to be made again, and is performed some other time.
"""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import DesignDocument, DesignDocuments
from stagewright.machines.couchbase.indexes.index_compaction import (
    COMPACTOR,
    Compactor,
    IndexCompaction,
)
from stagewright.machines.couchbase.indexes.index_tree import IndexTree
from stagewright.machines.couchbase.indexes.index_triggers import CLIENT, WEAK, IndexTriggers
from stagewright.machines.couchbase.indexes.index_update import LOADER, Document, IndexUpdate
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState, Role
from stagewright.machines.couchbase.partitions.partition_index import UPDATER, PartitionIndex
from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_rollback import (
    SOURCE,
    Item,
    PartitionRollback,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.machines.systems.view_server import ViewServer
from stagewright.spec import Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
ANYTIME = 'design document 004: "updates can happen to the index file anytime"'
MARKS = 'design document 004: "independent of the state the partition is in"'
RIGHT_AWAY = 'design document 004: "it will start indexing right away"'
NO_CRASH = {PartitionIndex.crashes: 0, PartitionIndex.interruptions: 0}


@known_bug(
    "004-86",
    REQUESTS,
    breaks=IndexTree.partitions_become_passive_while_the_tree_is_written,
)
class PassiveWhenTheTreeIsWritten(IndexTree):
    """A partition becomes passive when the root that counts its rows is in the file."""

    @action(by=MANAGER, spends=IndexTree.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is not queried any more."""
        require(self._is_written(), "the last change is written up to the root")
        super().set_passive(p)


@known_bug(
    "004-87",
    REQUESTS,
    breaks=IndexTree.partitions_are_to_be_removed_while_the_tree_is_written,
)
class RemovedOneByOne(IndexTree):
    """No partition is to be removed while the cleaner is at another one."""

    @action(by=MANAGER, spends=IndexTree.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        clean = every(self.state[o] != PartitionState.cleanup for o in Partition)
        require(clean, "nothing is to be cleaned up")
        super().set_cleanup(p)


@known_bug("004-88", ANYTIME, breaks=IndexTriggers.documents_change_while_workers_run)
class DocumentsWaitForTheUpdate(IndexTriggers):
    """No document changes while an update runs, so that it ends with all changes."""

    @action(by=CLIENT, spends=IndexTriggers.writes)
    def write(self) -> None:
        """A document changes."""
        require(~self.updater, "updater does not run")
        super().write()


@known_bug("004-89", REQUESTS, breaks=IndexTriggers.partitions_move_away_while_workers_run)
class PartitionsStayUntilTheyAreCleanedUp(IndexTriggers):
    """A partition moves away when the cleaner is done with the last one, which it would have to begin again."""

    @action(by=MANAGER, spends=IndexTriggers.moves)
    def remove_partition(self) -> None:
        """A partition has moved to another node."""
        require(~self.cleaner, "cleaner does not run")
        super().remove_partition()


@known_bug(
    "004-90",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_added_while_others_are_indexed,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class ActiveWhenNobodyIndexes(PartitionIndex):
    """A passive partition becomes active when the updater is done, though that indexes it the same way."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be active."""
        require(~self.updater, "updater does not run")
        super().set_active(p)


@known_bug(
    "004-91",
    RIGHT_AWAY,
    breaks=PartitionIndex.partitions_are_indexed_right_away,
    budgets=NO_CRASH,
)
class PassiveWhenNobodyIndexes(PartitionIndex):
    """A partition is added as passive when the updater is done with the others."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive."""
        require(~self.updater, "updater does not run")
        super().set_passive(p)


@known_bug(
    "004-92",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_removed_while_others_are_indexed,
    budgets=NO_CRASH,
)
class PendingOnesAreRemovedByTheCleaner(PartitionIndex):
    """A request to clean a partition up is refused when that is in cleanup, also if it was asked for again since."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed."""
        require(~self.index.group[p].content.cbit, "it is not being removed")
        super().set_cleanup(p)


@known_bug(
    "004-93",
    MARKS,
    breaks=PartitionIndex.indexing_is_stopped_in_every_state,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class PendingOnesAreNotMarked(PartitionIndex):
    """A partition is marked as unindexable only if it has a sequence number: one that waits for the cleaner has none."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater must not go on with the partition."""
        require(self.index.group[p].content.in_seqs, "it has a sequence number")
        super().mark_unindexable(p)


@known_bug(
    "004-94",
    MARKS,
    breaks=PartitionIndex.indexing_goes_on_in_every_state,
    budgets={**NO_CRASH, PartitionIndex.requests: 4},
)
class IndexableWhenAllIsClean(PartitionIndex):
    """A mark is taken back when no partition is in cleanup: the updater could not start before, it was said."""

    @action(by=MANAGER, spends=PartitionIndex.requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The next updater goes on with the partition."""
        clean = every(~self.index.group[q].content.cbit for q in Partition)
        require(clean, "no partition is in cleanup")
        super().mark_indexable(p)


@known_bug(
    "004-95",
    REQUESTS,
    breaks=PartitionIndex.updaters_are_stopped_for_requests,
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class UpdatersAreStoppedBetweenBatches(PartitionIndex):
    """An updater is stopped when it has something to hand over: a request waits for its first batch."""

    @action(spends=PartitionIndex.interruptions)
    def stop_updater(self) -> None:
        """The updater is stopped for a request."""
        require(some(self._has_written(p) for p in Partition), "updater has written a batch")
        super().stop_updater()


@known_bug(
    "004-96",
    REQUESTS,
    breaks=PartitionIndex.cleaners_are_stopped_for_requests,
    sizes={Partition: 1},
    budgets={PartitionIndex.crashes: 0},
)
class CleanersAreNotStopped(PartitionIndex):
    """A cleaner is stopped when nothing is left to clean up."""

    @action(spends=PartitionIndex.interruptions)
    def stop_cleaner(self) -> None:
        """The cleaner is stopped for a request or another worker."""
        left = some(self.cleaning[p].content.cbit for p in Partition)
        require(~left, "nothing is left to clean up")
        super().stop_cleaner()


@known_bug(
    "004-97",
    RIGHT_AWAY,
    breaks=PartitionIndex.updaters_learn_of_what_is_passive,
    budgets=NO_CRASH,
)
class MessagesAreReadAtTheEnd(PartitionIndex):
    """The updater reads its messages when it is through with the partitions that it began with."""

    @action(by=UPDATER)
    def learn_of_new_partition(self, p: Term[Partition]) -> None:
        """The updater gets the message that a passive partition is new."""
        behind = some(self._is_behind(self.updating[q], q) for q in Partition)
        require(~behind, "nothing else is left to index")
        super().learn_of_new_partition(p)


@known_bug(
    "004-98",
    'design document 004: "queries will see updates applied to btree at shortest intervals"',
    breaks=PartitionIndex.queries_see_updates_at_shortest_intervals,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class CheckpointsWaitForTheEnd(PartitionIndex):
    """What is written is taken over when no mutation is left: a long update is seen as a whole, or not at all."""

    @action
    def checkpoint(self) -> None:
        """The group process takes over what the updater has written so far."""
        behind = some(self._is_behind(self.updating[p], p) for p in Partition)
        require(~behind, "nothing is left to index")
        super().checkpoint()


@known_bug(
    "004-99",
    ANYTIME,
    breaks=PartitionIndex.documents_change_at_any_time,
    sizes={Partition: 1},
    budgets=NO_CRASH,
)
class DocumentsWaitForTheHeader(PartitionIndex):
    """No document changes while the group process writes a header, so that this has the latest sequence numbers."""

    @action(by=CLIENT, spends=PartitionIndex.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document of the partition changes."""
        require(~self.unwritten, "the header is written")
        super().write(p)


@known_bug(
    "004-100",
    REQUESTS,
    breaks=PartitionQueries.partitions_are_handed_over_while_queries_wait,
    sizes={Partition: 1},
)
class PassiveWhenNoQueryWaits(PartitionQueries):
    """A partition becomes passive when no query waits for its documents."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be passive."""
        require(self.wanted[p] == 0, "no query waits for it")
        super().set_passive(p)


@known_bug(
    "004-101",
    MARKS,
    breaks=PartitionQueries.partitions_are_paused_while_queries_wait,
    sizes={Partition: 1},
)
class MarkedWhenNobodyListens(PartitionQueries):
    """A partition is not marked while somebody waits until it is indexed."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """The updater does not go on with the partition."""
        require(self.listener[p] == 0, "nobody waits for it")
        super().mark_unindexable(p)


@known_bug(
    "004-102",
    MARKS,
    breaks=PartitionQueries.partitions_go_on_while_queries_wait,
    sizes={Partition: 1},
)
class IndexableWhenNoQueryWaits(PartitionQueries):
    """A mark is taken back when no query goes on, although one may wait for just that partition."""

    @action(by=MANAGER, spends=PartitionQueries.requests)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The updater may go on with the partition."""
        require(self.query.is_none(), "no query goes on")
        super().mark_indexable(p)


@known_bug(
    "004-103",
    'design document 004: the "cluster manager handles the details on which partition to move"',
    breaks=PartitionRebalance.moves_are_stopped_until_the_takeover,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.queries: 0},
)
class NoStopOfWhatIsPaused(PartitionRebalance):
    """A move whose old index is paused cannot be stopped any more."""

    @action(by=MANAGER, spends=PartitionRebalance.stops)
    def stop(self, p: Term[Partition], new: Term[Node]) -> None:
        """The rebalance is stopped: the new node drops the partition."""
        require(self.move[p] == Move.indexing, "the old index goes on")
        super().stop(p, new)


@known_bug(
    "004-104",
    REQUESTS,
    breaks=PartitionReplicas.replicas_are_given_up_at_any_time,
    sizes={Partition: 1},
)
class ReplicasAreIndexedFirst(PartitionReplicas):
    """A replica is removed when all documents are indexed that it has."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def remove_replica(self, p: Term[Partition]) -> None:
        """The replica is not needed any more."""
        require(self.replica.group[p].content.seq == self.kv[p], "it is up to date")
        super().remove_replica(p)


@known_bug(
    "004-105",
    REQUESTS,
    breaks=PartitionReplicas.partitions_on_transfer_are_handed_over,
    sizes={Partition: 1},
)
class HandedOverAfterTheTransfer(PartitionReplicas):
    """A partition on transfer becomes passive when the main index has caught up with the replica."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """A partition on transfer is to be passive."""
        caught_up = self.main.group[p].content.seq >= self.replica.group[p].content.seq
        require(caught_up, "the main index has caught up")
        super().set_passive(p)


@known_bug(
    "004-106",
    REQUESTS,
    breaks=PartitionReplicas.partitions_are_removed_during_a_transfer,
    sizes={Partition: 1},
)
class RemovedAfterTheTransfer(PartitionReplicas):
    """A partition is not removed while it is on transfer."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The main index is to remove the partition."""
        require(~self.on_transfer.has(p), "it is not on transfer")
        super().set_cleanup(p)


@known_bug(
    "004-107",
    "design document 004: the updater brings the index up to date with the KV server",
    breaks=(
        PartitionRollback.documents_change_while_the_index_is_behind,
        PartitionRollback.documents_are_deleted_while_the_index_is_behind,
    ),
    budgets={PartitionRollback.failovers: 0},
)
class DocumentsWaitForTheIndex(PartitionRollback):
    """Documents change when the index has seen the last change."""

    @action(by=CLIENT, spends=PartitionRollback.changes)
    def write(self, d: Term[Item]) -> None:
        """A client writes a document."""
        require(~self._is_behind(), "the index has caught up")
        super().write(d)

    @action(by=CLIENT, spends=PartitionRollback.changes)
    def delete(self, d: Term[Item]) -> None:
        """A client deletes a document."""
        require(~self._is_behind(), "the index has caught up")
        super().delete(d)


@known_bug(
    "004-108",
    "design document 004: the updater brings the index up to date with the KV server",
    breaks=(
        PartitionRollback.tombstones_are_forgotten_while_the_index_is_behind,
        PartitionRollback.replicas_do_not_wait_for_the_index,
    ),
    budgets={PartitionRollback.failovers: 0},
)
class TheStoreWaitsForTheIndex(PartitionRollback):
    """Tombstones are purged, and documents replicated, when they are indexed: so no deletion is ever missed."""

    @action(by=SOURCE)
    def purge(self, d: Term[Item]) -> None:
        """Compaction of the documents removes a tombstone for good."""
        require(self.changed_at[d] <= self.index.seq, "the deletion is indexed")
        super().purge(d)

    @action(by=SOURCE)
    def replicate(self) -> None:
        """The replica gets all documents."""
        require(self.high == self.index.seq, "they are indexed")
        super().replicate()


@known_bug(
    "004-109",
    MARKS,
    breaks=ViewServer.partitions_are_paused_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class PausedWhenTheFileIsCompacted(ViewServer):
    """A partition is marked as unindexable when no compactor runs, which would have to be stopped."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def pause(self, p: Term[Partition]) -> None:
        """The partition moves away, and the index of the other server catches up."""
        require(self.file.compactor == Compactor.none, "compactor does not run")
        super().pause(p)


@known_bug(
    "004-110",
    REQUESTS,
    breaks=ViewServer.what_has_no_rows_yet_is_cancelled_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class NoTransferIsCancelled(ViewServer):
    """What is on transfer is removed when it is in the main index: one that waits for the cleaner goes on waiting."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def cancel(self, p: Term[Partition]) -> None:
        """The same for what the main index does not have yet, or any more."""
        require(~self.indexes.on_transfer.has(p), "it is not on transfer")
        super().cancel(p)


@known_bug(
    "004-111",
    REQUESTS,
    breaks=ViewServer.partitions_move_out_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class RemovedWhenTheFileIsCompacted(ViewServer):
    """A partition moves out when no compactor runs, which copies its rows for nothing."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def move_out(self, p: Term[Partition]) -> None:
        """A rebalance has moved the partition away: the main index is to remove its rows."""
        require(self.file.compactor == Compactor.none, "compactor does not run")
        super().move_out(p)


@known_bug(
    "004-112",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_asks_waits_for_all_that_is_there,
    sizes={Partition: 1},
)
class TheLastDocumentIsNotWaitedFor(PartitionQueries):
    """Who waited for a partition waited until it was indexed up to a document before the last one."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until the partition is indexed."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq + 1 < self.source[p]
        self.listener[p] = choose(behind, self.source[p] - 1, 0)


@known_bug(
    "004-113",
    'design document 004: it is changed to active once "it is fully indexed"',
    breaks=PartitionQueries.who_asks_too_early_waits,
    sizes={Partition: 1},
)
class OneDocumentIsNotWaitedFor(PartitionQueries):
    """Who asked for a partition that was behind by a single document was told at once."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until the partition is indexed up to its last document."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq + 1 < self.source[p]
        self.listener[p] = choose(behind, self.source[p], 0)


@known_bug(
    "004-114",
    "design document 004: the view engine supports optional replica partitions",
    breaks=PartitionReplicas.replicas_are_added_at_any_time,
)
class ReplicasAreAddedOneByOne(PartitionReplicas):
    """No replica was added while another partition was on transfer."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def add_replica(self, p: Term[Partition]) -> None:
        """The partition is passive in the replica index."""
        require(self.on_transfer.is_empty(), "nothing is on transfer")
        super().add_replica(p)


@known_bug(
    "004-115",
    "design document 004, the table of a failover",
    breaks=PartitionReplicas.transfers_start_at_once,
)
class TransfersWaitForTheReplicaIndex(PartitionReplicas):
    """A partition was added to the main index when the replica index had cleaned up what it had of an earlier time."""

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """The partition is added to the main index as a passive one."""
        super().start_transfer(p)
        require(~self.replica.group[p].content.cbit, "the replica index is clean")


@known_bug(
    "004-116",
    'design document 004: "Once the indexing is completed it will be switched to active"',
    breaks=PartitionReplicas.transfers_end_with_what_the_replica_has,
    sizes={Partition: 1},
)
class TransfersEndWhenNothingComes(PartitionReplicas):
    """The main index was queried when it had all documents: where they change all the time, never."""

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up."""
        super().finish_transfer(p)
        require(self.main.group[p].content.seq == self.kv[p], "it has all documents")


@known_bug(
    "004-117",
    "design document 004, view query operation",
    breaks=PartitionMerge.an_error_stops_a_query_at_once,
)
class RowsOnTheWayAreMergedFirst(PartitionMerge):
    """A query that an error stops was answered when the rows that other nodes had sent were merged, for nothing."""

    @action(fair=WEAK)
    def abort(self) -> None:
        """A node has failed, and the query is one that stops then."""
        super().abort()
        require(self.queue.is_empty(), "all rows are taken")


@known_bug(
    "004-118",
    'design document 004: "Partition is indexed"',
    breaks=PartitionIndex.updates_start_during_a_cleanup,
    budgets=NO_CRASH,
)
class UpdatesWaitForTheCleaner(PartitionIndex):
    """No updater started as long as a partition was in cleanup."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The index is behind the documents."""
        super().start_updater()
        clean = every(~self.index.group[p].content.cbit for p in Partition)
        require(clean, "nothing is to be cleaned up")


@known_bug(
    "004-119",
    ANYTIME,
    breaks=PartitionIndex.updates_go_on_under_requests,
    budgets=NO_CRASH,
)
class UpdatesWaitForTheHeader(PartitionIndex):
    """The updater wrote nothing while the group process was about to write a header."""

    @action(by=UPDATER, fair=WEAK)
    def index_mutation(self, p: Term[Partition]) -> None:
        """The updater writes the rows of the next mutation."""
        super().index_mutation(p)
        require(~self.unwritten, "the header is written")


@known_bug(
    "004-120",
    'design document 004: "Partition will be removed during the next cleanup cycle"',
    breaks=PartitionIndex.cleanups_start_while_documents_change,
    budgets=NO_CRASH,
)
class CleanupsWaitForTheDocuments(PartitionIndex):
    """The cleaner started when nothing was left to index: never, where documents change all the time."""

    @action(fair=WEAK)
    def start_cleaner(self) -> None:
        """There is something to clean up."""
        super().start_cleaner()
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        require(~behind, "index is up to date")


@known_bug(
    "004-121",
    'design document 004: "When a partition is handed over to a new server"',
    breaks=PartitionRebalance.documents_move_whatever_the_index_does,
    sizes={Partition: 1},
    budgets={PartitionRebalance.queries: 0},
)
class DocumentsFollowTheIndex(PartitionRebalance):
    """The documents of a partition came to the new node when it was indexed there: not while it waited for the cleaner."""

    @action(fair=WEAK)
    def replicate(self, p: Term[Partition], n: Term[Node]) -> None:
        """The documents stream to the node to which the partition moves."""
        super().replicate(p, n)
        require(self._has(n, p), "the index of the node has the partition")


@known_bug(
    "004-122",
    'design document 004: "We cannot stop the view engine updates from happening"',
    breaks=IndexTriggers.compactions_end_while_it_is_updated,
)
class CompactionsEndBetweenUpdates(IndexTriggers):
    """The group went over to the new file when no update ran."""

    @action(fair=WEAK)
    def finish_compaction(self) -> None:
        """The index has a new file."""
        super().finish_compaction()
        require(~self.updater, "updater does not run")


@known_bug(
    "004-123",
    'design document 004: "While doing the compaction, new changes would be happening"',
    breaks=IndexCompaction.trees_are_copied_while_it_is_updated,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class CopiesWaitForABatch(IndexCompaction):
    """The trees were copied when no batch was written that the group had yet to take over."""

    @action(by=COMPACTOR, fair=WEAK)
    def copy(self) -> None:
        """Every tree is rebuilt in the new file."""
        super().copy()
        require(self.written.is_empty(), "what is written is taken over")


@known_bug(
    "004-124",
    'design document 004: "They operate in a pipeline fashion"',
    breaks=IndexUpdate.the_pipeline_is_full,
    budgets={IndexUpdate.crashes: 0, IndexUpdate.errors: 0},
)
class OneDocumentAtATime(IndexUpdate):
    """A document was loaded when the last one was mapped, and with the writer."""

    @action(by=LOADER, fair=WEAK)
    def load(self, d: Term[Document]) -> None:
        """A change goes to the queue of the mapper."""
        super().load(d)
        require(self.to_write.is_none(), "the writer has the last one")


@known_bug(
    "004-125",
    "design document 004, the table of a failover",
    breaks="indexes.transfers_start_at_once",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class TransfersWaitForTheCompaction(ViewServer):
    """A failed-over partition was added to the main index when the file of that was not being compacted."""

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """After a failover the partition is passive in the main index."""
        super().start_transfer(p)
        require(self.file.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "004-126",
    'design document 004, indexable: "That\'s the default state"',
    breaks=ViewServer.partitions_go_on_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class IndexableWhenTheFileIsCompacted(ViewServer):
    """A mark was taken back when the file was not being compacted."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition]) -> None:
        """The partition has moved, or stays: its index goes on."""
        super().resume(p)
        require(self.file.compactor == Compactor.none, "compactor does not run")


@known_bug(
    "004-128",
    'design document 004: updates are triggered "by time duration"',
    breaks=IndexTriggers.time_triggers_an_update,
)
class EveryChangeBeginsTheTimeAnew(IndexTriggers):
    """An update was triggered when there had been no change for so long: of a document that changed now and then, never."""

    @action(by=CLIENT, spends=IndexTriggers.writes)
    def write(self) -> None:
        """A document changes."""
        super().write()
        self.elapsed = 0


@known_bug(
    "004-129",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.moves_begin_while_queries_go_on,
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.queries: 0},
)
class PartitionsMoveOneByOne(PartitionRebalance):
    """A partition moved when no other one did, between whichever nodes."""

    @action(by=MANAGER, spends=PartitionRebalance.moves)
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node."""
        require(every(self.move[q] == Move.none for q in Partition), "nothing moves")
        super().start(p, old, new)


@known_bug(
    "004-130",
    'design document 004: "No matter when a query happens"',
    breaks=PartitionRebalance.queries_are_answered_during_a_rebalance,
    sizes={Partition: 1},
)
class TheNewestWaitsForTheRebalance(PartitionRebalance):
    """A query with stale=false was answered when nothing moved any more."""

    @action(fair=WEAK)
    def answer(self, n: Term[Node]) -> None:
        """A node sends the rows of the partitions that are wanted from it."""
        super().answer(n)
        moves = some(self.move[p] != Move.none for p in Partition)
        require(~self.newest | ~moves, "nothing moves, or what there is will do")


@known_bug(
    "004-131",
    'design document 004: "without affecting the running query request"',
    breaks=DesignDocuments.queries_outlast_their_definitions,
)
class DeletionEndsQueries(DesignDocuments):
    """The queries of a design document ended when that was deleted."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def delete(self, d: Term[DesignDocument]) -> None:
        """A client deletes a design document."""
        super().delete(d)
        self._forget_query()


@known_bug(
    "004-132",
    'design document 004, stale=false: it will block "by triggering an updater in the background"',
    breaks=PartitionQueries.updates_are_triggered_for_who_waits,
    budgets={PartitionQueries.monitors: 0, PartitionQueries.requests: 4},
)
class UpdatesWaitForWhatIsPending(PartitionQueries):
    """No updater started as long as a partition waited for the cleaner: it would be stopped soon."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The updater is started when somebody waits for it."""
        super().start_updater()
        require(~some(self._is_pending(p) for p in Partition), "nothing is pending")


@known_bug(
    "004-133",
    'design document 004: "Compactor repeats this process until the updater completes all batch of updates"',
    breaks=IndexCompaction.compactions_are_completed_immediately,
    sizes={Partition: 1},
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class CompletedWhenTheIndexIsUpToDate(IndexCompaction):
    """A compaction was completed when no document had changed since the last update."""

    @action(by=COMPACTOR, fair=WEAK)
    def complete(self) -> None:
        """The new file gets its header."""
        super().complete()
        behind = some(self._is_behind(p) for p in Partition)
        require(~behind, "the index is up to date")


@known_bug(
    "004-134",
    'design document 004: "compactor instructs design doc group server to switch its index file"',
    breaks="file.files_are_switched_immediately",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class NoSwitchWhileSomethingIsPaused(ViewServer):
    """The group went over to the new file when no partition was unindexable."""

    @action(fair=WEAK)
    def switch_file(self) -> None:
        """The group process goes over to the new file."""
        super().switch_file()
        paused = some(self.indexes.main.paused.has(p) for p in Partition)
        require(~paused, "no partition is unindexable")


BUGS = known_bugs_in(globals())
