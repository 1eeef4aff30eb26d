"""Mistakes by which the view engine puts off what is due, begins it anew, or does not take it up again after a fault (004)."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.design_documents import (
    SERVER,
    Definition,
    DesignDocument,
    DesignDocuments,
    File,
)
from stagewright.machines.couchbase.indexes.index_compaction import (
    UPDATER,
    Batch,
    Compactor,
    IndexCompaction,
)
from stagewright.machines.couchbase.indexes.index_file import WRITER, IndexFile, Leaf
from stagewright.machines.couchbase.indexes.index_tree import CLEANER, IndexTree, KVNode
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_index import PartitionIndex
from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge, Producer
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
from stagewright.spec import FlagVar, Term, action, choose, each, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REBALANCE = 'design document 004, "Queries during rebalance"'
REQUESTS = 'design document 004: the view engine "just performs such requests"'
STRUCTURES = 'design document 004, "Details on index structures"'


# -- what has waited for the cleaner goes on waiting -----------------------------------------------------


@known_bug(
    "004-190",
    REQUESTS,
    breaks=PartitionIndex.partitions_are_added_as_soon_as_they_are_clean,
    budgets={
        PartitionIndex.requests: 4,
        PartitionIndex.crashes: 0,
        PartitionIndex.interruptions: 0,
    },
)
class AddedWhenTheIndexIsUpToDate(PartitionIndex):
    """What is pending is added when no other partition is behind: where documents always change, never."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        require(~behind, "the index is up to date")
        super().apply_pending_transition()


@known_bug("004-192", REQUESTS, breaks=PartitionQueries.what_is_clean_is_added_while_queries_wait)
class PassiveOnesAreAddedWhenNoQueryWaits(PartitionQueries):
    """A query waits with the group that it has: a passive partition, of which it wants nothing, is added when it has gone."""

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        active = some(self.index.group[p].pending_active for p in Partition)
        require(active | self.query.is_none(), "no query waits, or for what is added")
        super().apply_pending_transition()


@known_bug(
    "004-193",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_added_during_a_rebalance,
    sizes={Partition: 1},
)
class PassiveOnesAreAddedWhenNothingIsQueried(PartitionRebalance):
    """A partition comes back to a node, and is indexed there when no query of the cluster is going on, unless that waits for it."""

    @action(fair=WEAK)
    def apply_pending_transition(self, n: Term[Node]) -> None:
        active = some(self.nodes[n].group[p].pending_active for p in Partition)
        idle = ~self.querying | self.newest
        require(active | idle, "no query is going on, or waits for what is added")
        super().apply_pending_transition(n)


@known_bug(
    "004-211",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_added_during_a_rebalance,
    budgets={
        PartitionRebalance.writes: 0,
        PartitionRebalance.moves: 3,
        PartitionRebalance.queries: 0,
    },
)
class PassiveOnesAreAddedWhenNothingMovesAway(PartitionRebalance):
    """A partition comes back to a node, and is indexed there when no other one is moving away from it."""

    @action(fair=WEAK)
    def apply_pending_transition(self, n: Term[Node]) -> None:
        active = some(self.nodes[n].group[p].pending_active for p in Partition)
        leaves = some(self.origin[p] == n for p in Partition)
        require(active | ~leaves, "no other partition moves away from the node")
        super().apply_pending_transition(n)


@known_bug(
    "004-201",
    'design document 004: "replica partitions have the same semantics as the main partitions"',
    breaks=PartitionReplicas.replicas_are_added_as_soon_as_they_are_clean,
)
class ReplicasAreAddedWhenNothingIsOnTransfer(PartitionReplicas):
    """A replica that was here before is added again when the transfers of all others are done."""

    @action(fair=WEAK)
    def apply_pending_in_replica(self) -> None:
        active = some(self.replica.group[p].pending_active for p in Partition)
        require(active | self.on_transfer.is_empty(), "nothing else is on transfer")
        super().apply_pending_in_replica()


@known_bug(
    "004-210",
    'design document 004: "The partition is added to the main index as passive partition"',
    breaks=PartitionReplicas.partitions_are_added_as_soon_as_they_are_clean,
)
class AddedWhenTheReplicaIsClean(PartitionReplicas):
    """A partition that is clean in the main index is added there when the replica index has nothing to clean up, either."""

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        """The main index adds what both have cleaned up."""
        unclean = some(self.replica.group[p].content.cbit for p in Partition)
        require(~unclean, "nothing is to be cleaned up in the replica index")
        super().apply_pending_in_main()


@known_bug(
    "004-202",
    'design document 004: "The partition is added to the main index as passive partition"',
    breaks="indexes.partitions_are_added_as_soon_as_they_are_clean",
    sizes={Partition: 1},
)
class AddedWhenTheFileIsCompacted(ViewServer):
    """A transfer that has waited for the cleaner waits for the compactor then, though that would know the partition."""

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        super().apply_pending_in_main()
        require(self.file.compactor == Compactor.none, "no compactor runs")


# -- a move, and a transfer ------------------------------------------------------------------------------


@known_bug(
    "004-194",
    REBALANCE,
    breaks=PartitionRebalance.indexes_are_paused_as_soon_as_the_documents_are_there,
    sizes={Partition: 1},
)
class PausedWhenNobodyWantsTheNewest(PartitionRebalance):
    """An index is paused when no query with stale=false is going on, which would wait for the other one."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        require(~self.newest, "no query waits for the newest")
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)


@known_bug(
    "004-195",
    REBALANCE,
    breaks=PartitionRebalance.partitions_are_taken_over_one_by_one,
    budgets={
        PartitionRebalance.writes: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class TakenOverTogether(PartitionRebalance):
    """A partition is taken over when all that move have their documents: until then its index is paused."""

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        require(every(self.move[q] != Move.indexing for q in Partition), "all are moved")
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new


@known_bug(
    "004-196",
    REBALANCE,
    breaks=PartitionRebalance.old_partitions_are_cleaned_up_whatever_is_queried,
    sizes={Partition: 1},
)
class KeptForQueries(PartitionRebalance):
    """A partition that has moved is marked for cleanup on the old node when no query is going on: one always is."""

    @PartitionRebalance.move.step(Move.released, Move.none, by=MANAGER, fair=WEAK)
    def finish(self, p: Term[Partition], old: Term[Node]) -> None:
        require(~self.querying, "no query is going on")
        require(self.origin[p] == old, "partition moves from the node")
        self._leave(p)
        self.nodes[old].set_cleanup(p)


@known_bug(
    "004-197",
    REBALANCE,
    breaks=PartitionRebalance.writes_wait_for_no_index,
    budgets={
        PartitionRebalance.writes: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class OneIndexIsDueForAll(PartitionRebalance):
    """The new node says that its index has caught up, and not for which partition: another one is taken over, too."""

    def _index_has_caught_up(self, p: Term[Partition], new: Term[Node]) -> None:
        del p
        due = some(
            (self.destination[q] == new) & (self.nodes[new].group[q].content.seq >= self.due[q])
            for q in Partition
        )
        require(due, "index of the new node is due")


@known_bug(
    "004-198",
    'design document 004: "from last indexed sequence"',
    breaks=PartitionReplicas.indexes_go_on_from_where_they_are,
    sizes={Partition: 1},
)
class HandedOverAnew(PartitionReplicas):
    """A partition on transfer is to be passive, and the main index begins with it once more."""

    @action(by=MANAGER, spends=PartitionReplicas.requests)
    def set_passive(self, p: Term[Partition]) -> None:
        super().set_passive(p)
        self.main.group[p].content.seq = 0
        self.main.group[p].content.rows = 0


@known_bug(
    "004-199",
    'design document 004: "When set to unindexable, the indexing is stopped"',
    breaks=ViewServer.nothing_is_written_of_what_is_paused,
    sizes={Partition: 1},
)
class TheLastBatchIsKept(ViewServer):
    """An index is paused, and the last batch of its updater stays where it is: nobody may take it over, and no other follows."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def pause(self, p: Term[Partition]) -> None:
        require(self.indexes.main.group[p].abit, "the main index is queried")
        self.indexes.main.mark_unindexable(p)
        self.file.state[p] = PartitionState.active_unindexable
        self.file.updating = choose(self.file.written.is_empty(), None, self.file.updating)


@known_bug(
    "004-200",
    'design document 004, "Queries during failover"',
    breaks=PartitionReplicas.copies_are_cleaned_up_during_other_transfers,
)
class CopiesAreKeptForOtherTransfers(PartitionReplicas):
    """The replica index is cleaned up when nothing is on transfer: where one node after the other fails, it only grows."""

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        super().clean_up_replica(p)
        require(self.on_transfer.is_empty(), "nothing is on transfer")


# -- after a fault ---------------------------------------------------------------------------------------


@known_bug(
    "004-191",
    'design document 004: the "view engine always server requests"',
    breaks=PartitionIndex.who_dies_is_started_again,
    sizes={Partition: 1},
)
class StartedWhenThereIsWork(PartitionIndex):
    """A group process that has died is started again when there is something to index, or to clean up: until then every
    request is refused.
    """

    @action(fair=WEAK)
    def reopen(self) -> None:
        super().reopen()
        behind = some(self._is_behind(self.index.group[p], p) for p in Partition)
        to_clean = some(self.index.group[p].content.cbit for p in Partition)
        pending = some(
            self.index.group[p].pending_active | self.index.group[p].pending_passive
            for p in Partition
        )
        require(behind | to_clean | pending, "there is work")


@known_bug(
    "004-205",
    STRUCTURES,
    breaks=DesignDocuments.definitions_are_indexed,
)
class GroupsStartToBuild(DesignDocuments):
    """A group server starts where there is no index: after a restart nobody goes on with those that are built."""

    @action(by=SERVER, fair=WEAK)
    def start_group(self, d: Term[DesignDocument], definition: Term[Definition]) -> None:
        built = some(self._names(f, d, definition) & self.rows[f].is_some() for f in each(File))
        require(~built, "there is no index")
        super().start_group(d, definition)


@known_bug("004-209", STRUCTURES, breaks=IndexFile.inserts_go_on_after_a_recovery)
class ReadOnlyAfterATornBlock(IndexFile):
    """A file that does not end with a header is queried, and not written any more."""

    spoilt: FlagVar = flag()

    @action(fair=WEAK)
    def look_further(self) -> None:
        super().look_further()
        self.spoilt = True

    @action(by=WRITER, spends=IndexFile.inserts)
    def append_node(self, leaf: Term[Leaf]) -> None:
        super().append_node(leaf)
        require(~self.spoilt, "the file ended with a header")


# -- in the index, and on the way to the client ----------------------------------------------------------


@known_bug(
    "004-203",
    'design document 004: results "are streamed to query response as they arrive"',
    breaks=PartitionMerge.total_rows_comes_with_the_first_row,
)
class RowsAreCountedWhenTheyAreThrough(PartitionMerge):
    """A node says how many rows it has when it has sent all: if it fails before, its rows are in the page, and not counted."""

    @action(fair=WEAK)
    def send_row_count(self, n: Term[Node]) -> None:
        require(self.producer[n] == Producer.counting, "node has said nothing yet")
        self.producer[n] = Producer.sending

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        super().end(n)
        self.total = self.total + self._rows_of(n)


@known_bug(
    "004-204",
    'design document 004, "Index compaction in view engine"',
    breaks=IndexCompaction.updates_and_compactions_go_on_together,
)
class CompactionsAreGivenUp(IndexCompaction):
    """The compactor is given up, and begins anew, when more sort record files are there for it than it can keep."""

    @action(by=UPDATER, fair=WEAK)
    def write_batch(self, p: Term[Partition]) -> None:
        require(self.updating.is_some(), "updater runs")
        require(self.written.is_empty(), "the last batch is taken over")
        require(self._is_behind(p), "a mutation is left")
        self.written.append(Batch(partition=p, seq=self.seqs[p] + 1))

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        require(~self.sort_files.is_full(), "there is room for its sort record files")
        super().take_over(p)

    @action(fair=WEAK)
    def give_up(self) -> None:
        """It will never keep pace."""
        require(self.sort_files.is_full() & ~self.written.is_empty(), "there is no room")
        self._stop_compactor()


@known_bug("004-206", STRUCTURES, breaks=DesignDocuments.groups_outlast_other_definitions)
class GroupsEndWhenTheirIndexIsBuilt(DesignDocuments):
    """A group server builds its index, and ends."""

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        super().build(d, definition, file)
        self.groups.discard(file)


@known_bug("004-207", STRUCTURES, breaks=DesignDocuments.indexes_are_built_independently)
class IndexesAreBuiltInTheOrderOfTheirNames(DesignDocuments):
    """The index of a design document is built when those of all before it are."""

    @action(fair=WEAK)
    def build(
        self, d: Term[DesignDocument], definition: Term[Definition], file: Term[File]
    ) -> None:
        super().build(d, definition, file)
        for other in DesignDocument:
            built = self.definition[other].is_none() | some(
                self.rows[f] == self.definition[other] for f in each(File)
            )
            require((other < d).implies(built), "the earlier ones are built")


@known_bug(
    "004-208",
    'design document 004, "Partition states": cleanup',
    breaks=IndexTree.nodes_are_cleaned_up_while_the_tree_is_written,
)
class CleanersWaitForTheWriter(IndexTree):
    """The cleaner goes on when all is written up to the root: where something always is to be written, never."""

    @action(by=CLEANER, fair=WEAK)
    def clean_up_node(self, n: Term[KVNode]) -> None:
        require(self._is_written(), "nothing is to be written")
        super().clean_up_node(n)


BUGS = known_bugs_in(globals())
