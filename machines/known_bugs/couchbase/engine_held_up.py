"""Mistakes by which the view engine waits for what does not concern it, does a thing again, or never comes to it (004)."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import (
    CLIENT,
    Definition,
    DesignDocument,
    DesignDocuments,
    File,
)
from stagewright.machines.couchbase.indexes.index_compaction import (
    Compactor,
    FileNumber,
    IndexCompaction,
)
from stagewright.machines.couchbase.indexes.index_tree import IndexTree
from stagewright.machines.couchbase.indexes.index_update import (
    MAPPER,
    City,
    Document,
    IndexUpdate,
    View,
)
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState, Role
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_merge import (
    OnError,
    PartitionMerge,
    Producer,
)
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    WEAK,
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.machines.systems.view_server import ViewServer
from stagewright.spec import Bool, FlagVar, Term, action, choose, each, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

UNINDEXABLE = (
    'design document 004: "A view query will return the results that are currently indexed"'
)
COMPACTION = 'design document 004, "Index compaction in view engine"'


# -- what is never come to -------------------------------------------------------------------------------


@known_bug(
    "004-170",
    'design document 004: it "just follows the instructions"',
    breaks=PartitionReplicas.copies_are_cleaned_up,
    sizes={Partition: 1},
    budgets={PartitionReplicas.requests: 2, PartitionReplicas.writes: 0},
)
class OnlyWhatWasQueriedIsCleanedUp(PartitionReplicas):
    """A copy that was queried is removed from the replica index; a replica that the manager has given up stays for ever."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        require(self.replica.requested[p] == Role.active, "it was queried")
        super().clean_up_replica(p)


@known_bug(
    "004-171",
    'design document 004: "one item per updated document (if there were no errors)"',
    breaks=IndexUpdate.a_map_error_is_forgotten_with_the_next_change,
    budgets={IndexUpdate.crashes: 0},
)
class FailedDocumentsAreLeftOut(IndexUpdate):
    """A document for which a map function has failed is not mapped any more, whatever a client makes of it."""

    @action(by=MAPPER, fair=WEAK)
    def map_document(self, d: Term[Document]) -> None:
        self._dequeue_to_map(d)
        city, failed = self.in_snapshot[d], self.failed.has(d)
        self.results[View.view0] = choose(failed, None, city)
        self.results[View.view1] = choose(failed | (city != City.hyderabad), None, city)


@known_bug(
    "004-172",
    "design document 004, view query operation: results of all nodes",
    breaks=PartitionMerge.an_error_is_told,
    budgets={PartitionMerge.failures: 2},
)
class OneErrorIsListed(PartitionMerge):
    """The first error is listed with the rows; the other nodes that fail are taken for through."""

    @action(fair=WEAK)
    def list_error(self, n: Term[Node]) -> None:
        require(self.producer[n] == Producer.failed, "node has failed")
        require(self.errors.is_empty(), "no error is listed")
        self.errors.add(n)

    def _is_through(self, n: Term[Node]) -> Bool:
        listed = self._has_failed(n) & ~self.errors.is_empty() & (self.on_error == OnError.go_on)
        return (self.producer[n] == Producer.through) | listed


@known_bug(
    "004-173",
    "design document 004, index updater operation",
    breaks=PartitionQueries.update_after_starts_the_updater,
    budgets={
        PartitionQueries.requests: 4,
        PartitionQueries.writes: 1,
    },
)
class TriggersGoWithThePendingTransition(PartitionQueries):
    """A query has asked for an update, and the group has another partition then: it forgets that."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        super().apply_pending_transition()
        self.triggered = False


@known_bug(
    "004-174",
    'design document 004, "Replica partitions"',
    breaks="indexes.replicas_are_indexed_before_they_are_queried",
    sizes={Partition: 1},
    budgets={ViewServer.requests: 2},
)
class ReplicasAreNotIndexedAfterACrash(ViewServer):
    """The group process of the main index dies, and the updater of the replica index, which nobody starts again."""

    crashed: FlagVar = flag()

    @action(spends=ViewServer.crashes)
    def crash(self, f: Term[FileNumber]) -> None:
        self.file.crash(f)
        self.crashed = True

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        self.indexes.index_replica(p)
        require(~self.crashed, "the updater runs")


# -- who asks is told too early, or too late -------------------------------------------------------------


@known_bug(
    "004-175",
    UNINDEXABLE,
    breaks=PartitionQueries.who_asks_waits_for_what_is_paused,
    sizes={Partition: 1},
)
class NothingMoreWillCome(PartitionQueries):
    """Who waits for a partition that is paused is told at once that it is indexed: nothing more of it will be."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        self.listener[p] = choose(behind & ~self.index.paused.has(p), self.source[p], 0)


@known_bug(
    "004-176",
    'design document 004: "once the migration of the partition is complete and it is fully indexed"',
    breaks=PartitionQueries.who_asks_waits_for_what_is_pending,
    sizes={Partition: 1},
)
class OnlyWhatIsInTheIndexIsWaitedFor(PartitionQueries):
    """A partition that waits for the cleaner is in no bitmask: who asks for it is told that nothing is left to index."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")
        behind = self.index.group[p].content.seq < self.source[p]
        self.listener[p] = choose(behind & ~self._is_pending(p), self.source[p], 0)


@known_bug(
    "004-177",
    UNINDEXABLE,
    breaks=PartitionRebalance.what_is_indexed_is_returned_at_once,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class PausedIndexesAreNotReturned(PartitionRebalance):
    """A query, even one that takes what there is, waits while the index of a partition that moves is paused and behind."""

    def _may_be_read(self, n: Term[Node], p: Term[Partition]) -> Bool:
        wanted = self.nodes[n].group[p].abit & (self.wanted_from[p] == n)
        paused = self.nodes[n].paused.has(p) & wanted
        caught_up = self.nodes[n].group[p].content.seq >= self.kv[n][p]
        return super()._may_be_read(n, p) & paused.implies(caught_up)


@known_bug(
    "004-178",
    'design document 004, "Queries during rebalance"',
    breaks=PartitionRebalance.an_answer_is_complete,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 2, PartitionRebalance.stops: 0},
)
class DueIsWhatWasDueBefore(PartitionRebalance):
    """How far the new index has to come is noted once: when a partition moves again, what was due then is enough."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = choose(self.due[p] > 0, self.due[p], self.kv[old][p])
        self.nodes[old].mark_unindexable(p)


@known_bug(
    "004-179",
    'design document 004, "Details on index structures"',
    breaks=DesignDocuments.groups_outlast_other_definitions,
    budgets={DesignDocuments.crashes: 0},
)
class GroupsEndWithADefinition(DesignDocuments):
    """A design document is changed, and the group server of its old definition ends, though a query reads, or another has it."""

    @action(by=CLIENT, spends=DesignDocuments.changes)
    def define(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        for file in each(File):
            old = some(self._names(file, d, before) for before in self.definition[d])
            self.groups.put(file, self.groups.has(file) & ~old)
        self.definition[d] = definition


# -- housekeeping ----------------------------------------------------------------------------------------


@known_bug(
    "004-180",
    COMPACTION,
    breaks=IndexCompaction.trees_are_copied_once,
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class TreesAreCopiedAgain(IndexCompaction):
    """An updater ends while the compactor catches up: it copies the trees again, and never comes to an end under updates."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        super().finish_updater()
        again = self.compactor == Compactor.catching_up
        self.compactor = choose(again, Compactor.copying, self.compactor)
        for p in Partition:
            rows = self.rows[self.roots][p]
            self.snapshot[p] = choose(again, rows, self.snapshot[p])


@known_bug(
    "004-181",
    COMPACTION,
    breaks=IndexCompaction.previous_files_are_removed_at_once,
    budgets={IndexCompaction.crashes: 0, IndexCompaction.lost_headers: 0},
)
class PreviousFilesWaitForTheUpdater(IndexCompaction):
    """The previous file is removed when the index is up to date: where documents always change it stays, and no other follows."""

    @action(fair=WEAK)
    def remove_previous(self, f: Term[FileNumber]) -> None:
        super().remove_previous(f)
        require(~some(self._is_behind(p) for p in Partition), "nothing is left to index")


@known_bug(
    "004-182",
    'design document 004, "Partition states": cleanup',
    breaks=IndexTree.partitions_are_gone_when_their_rows_are,
)
class PartitionsGoTogether(IndexTree):
    """A partition whose rows are removed stays in cleanup until those of all others are, too."""

    @action(fair=WEAK)
    def finish_cleanup(self, p: Term[Partition]) -> None:
        super().finish_cleanup(p)
        clean = every(
            (self.state[q] == PartitionState.cleanup).implies(self._is_clean(q)) for q in Partition
        )
        require(clean, "no row is left of any partition in cleanup")


@known_bug(
    "004-183",
    "design document 004, details on index structures: vbucket sequence numbers",
    breaks=PartitionIndex.a_rollback_goes_to_a_header,
    budgets={
        PartitionIndex.requests: 2,
        PartitionIndex.crashes: 0,
        PartitionIndex.interruptions: 0,
        PartitionIndex.kept: 1,
        PartitionIndex.rollbacks: 1,
    },
)
class RollbacksBeginAnew(PartitionIndex):
    """Documents of one partition are lost, and the whole index is built again, though there is a header from before."""

    @action(spends=PartitionIndex.rollbacks)
    def roll_back(self, p: Term[Partition]) -> None:
        self._group_process_is_free()
        require(~self.updater & ~self.cleaner, "workers are stopped")
        require(self.index.group[p].content.seq > self._left_of(p), "what is lost was indexed")
        self.source[p] = self._left_of(p)
        for q in Partition:
            for entry in (self.header[q], self.index.group[q]):
                entry.content.seq = 0
                entry.content.rows = 0


BUGS = known_bugs_in(globals())
