"""Mistakes by which queries, replicas, rollbacks and rebalances wait for what they need not wait for.

Nothing that was promised of data breaks: a request is there to be made again, and is performed some other time.
"""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_triggers import CLIENT, WEAK
from stagewright.machines.couchbase.partitions.group_states import Partition, Role
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
from stagewright.spec import Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
MARKS = 'design document 004: "independent of the state the partition is in"'


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
    "004-132",
    'design document 004, stale=false: it will block "by triggering an updater in the background"',
    breaks=PartitionQueries.updates_are_triggered_for_those_who_wait,
    budgets={PartitionQueries.monitors: 0, PartitionQueries.requests: 4},
)
class UpdatesWaitForWhatIsPending(PartitionQueries):
    """No updater started as long as a partition waited for the cleaner: it would be stopped soon."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """The updater is started when somebody waits for it."""
        super().start_updater()
        require(~some(self._is_pending(p) for p in Partition), "nothing is pending")


BUGS = known_bugs_in(globals())
