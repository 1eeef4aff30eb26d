"""Mistakes in helpers that several steps of the view engine share, such as where a partition is, or which row comes first.

A promise that calls the same helper errs with it. Those that catch these say it in words of their own.
"""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_file import (
    WRITER,
    Block,
    IndexFile,
    Kind,
    Writer,
)
from stagewright.machines.couchbase.indexes.index_tree import IndexTree
from stagewright.machines.couchbase.indexes.index_triggers import CHANGES, IndexTriggers
from stagewright.machines.couchbase.partitions.group_states import (
    COUCHBASE,
    Partition,
    PartitionState,
)
from stagewright.machines.couchbase.partitions.partition_merge import PartitionMerge, Row
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    choose,
    greatest,
    least,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
LATEST = 'design document 004: "between last indexed sequence and latest mutation sequence"'
LAST_INDEXED = 'design document 004: "from last indexed sequence"'


# -- the updater -----------------------------------------------------------------------------------------


@known_bug(
    "004-55",
    "design document 004: all the updates that happened since the last time the updater ran",
    breaks=IndexTriggers.an_update_loads_all_that_waits,
)
class UpdatesLoadWhatTriggersThem(IndexTriggers):
    """An update loads as many changes as trigger one; what else had been there waits for the next."""

    @action(by=MANAGER, fair=WEAK)
    def trigger_update(self) -> None:
        """The threshold is a limit, too."""
        require(~self.updater, "updater does not run")
        require(self._has_many_changes() | self._has_old_changes(), "an update is due")
        self.updater = True
        self.cleaner = False
        self.loaded = least(self.waiting, CHANGES)
        self.came = 0
        self.elapsed = 0
        self.since_start = 0


@known_bug(
    "004-56",
    LATEST,
    breaks=PartitionQueries.an_updater_ends_with_all_that_was_there,
    sizes={Partition: 1},
)
class UpdatesEndWithWhatIsWaitedFor(PartitionQueries):
    """The updater goes on until nobody waits: started by update_after, for which nobody does, it ends at once."""

    @action(fair=WEAK)
    def start_updater(self) -> None:
        """Its target is the largest sequence number for which somebody waits."""
        behind = some(self._is_behind(p, self.source[p]) for p in Partition)
        require(~self.updater, "updater does not run")
        require(self._somebody_waits(), "somebody waits for it")
        require(behind, "the index is behind")
        self.updater = True
        self.triggered = False
        for p in Partition:
            self.target[p] = greatest(self.wanted[p], self.listener[p])
            self.there[p] = self.source[p]


# -- the index -------------------------------------------------------------------------------------------


@known_bug(
    "004-57",
    'design document 004, passive: "Partition is indexed"',
    breaks=IndexTree.rows_are_inserted_during_a_cleanup,
)
class PassivePartitionsGetNoRows(IndexTree):
    """What is not queried is not indexed either: a partition that becomes active has old rows, or none."""

    def _is_indexed(self, p: Term[Partition]) -> Bool:
        return self.state[p] == PartitionState.active


@known_bug(
    "004-58",
    "design document 004: the latest snapshot is the last valid header",
    breaks=IndexFile.what_is_acknowledged_is_found,
)
class HeadersAreReadBeforeTheyAreSynced(IndexFile):
    """Queries get a header as soon as it is appended: after a crash the rows that they have returned are gone."""

    @action(by=WRITER, fair=WEAK)
    def append_header(self) -> None:
        """It is the last one, and so the one that is in use."""
        require(self._may_append_header(), "the nodes are on disk")
        at = self._next()
        self.writer = Writer.header_appended
        self.header = at
        self.end = at
        self.block[at] = Block(kind=Kind.header, root=self.root)

    @action(by=WRITER, fair=WEAK)
    def acknowledge(self) -> None:
        """Now it is on disk, too."""
        require(self.writer == Writer.header_appended, "the header is appended")
        self._sync_header()
        self.writer = Writer.idle
        self.known[self.changing] = self.block[self.node].rows
        self._forget_insert()


# -- rollback --------------------------------------------------------------------------------------------


@known_bug("004-59", LAST_INDEXED, breaks=PartitionRollback.one_rollback_is_enough)
class TheBranchPointIsTooNew(PartitionRollback):
    """A header with just the documents that both branches have is passed over: the index is built again from nothing."""

    def _earlier_header_will_do(self) -> Bool:
        return self._is_common(self.earlier.seq + 1, self.earlier.branch)


@known_bug("004-60", LAST_INDEXED, breaks=PartitionRollback.the_index_goes_back_only_if_it_has_to)
class TheLastPurgedDeletionCountsAsMissed(PartitionRollback):
    """An index that has the deletion up to which deletions are purged is built again from nothing."""

    def _has_missed_deletions(self) -> Bool:
        return (self.index.seq > 0) & (self.index.seq <= self.purged)


# -- several indexes -------------------------------------------------------------------------------------


@known_bug(
    "004-61",
    'design document 004, "Replica partitions"',
    breaks=PartitionReplicas.replicas_are_indexed_before_they_are_queried,
    sizes={Partition: 1},
)
class ReplicasAreIndexedWhenTheyAreQueried(PartitionReplicas):
    """The replica index is updated for a partition on transfer alone: as a node fails, queries find nothing of it."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        """Before, nobody would read it."""
        require(self.on_transfer.has(p), "it is on transfer")
        super().index_replica(p)


@known_bug(
    "004-85",
    'design document 004: "dynamically query those now active replica partitions in addition"',
    breaks=PartitionReplicas.the_index_in_which_a_partition_is_active_is_queried,
    sizes={Partition: 1},
)
class TheMainIndexAloneIsQueried(PartitionReplicas):
    """After a failover queries went to the main index alone: they found nothing of a partition until its transfer ended."""

    def _rows_found(self, p: Term[Partition]) -> Number:
        """What the main index has of an active partition."""
        return choose(self.main.group[p].abit, self.main.group[p].content.rows, 0)


@known_bug(
    "004-62",
    'design document 004: "after the migration from the new node"',
    breaks=PartitionRebalance.queries_are_sent_where_they_are_answered,
    profile=COUCHBASE.name,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class QueriesFollowTheDocuments(PartitionRebalance):
    """The map names the new node as it takes over the documents: queries are sent there again and again until the
    partition is active.
    """

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """Clients, too, go to the new node."""
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new
        self.master[p] = new


@known_bug(
    "004-63",
    "design document 004, view query operation: the results are sort ordered",
    breaks=PartitionMerge.rows_come_in_order,
    budgets={PartitionMerge.failures: 0},
)
class DescendingTurnsTheRangeAlone(PartitionMerge):
    """Of a query downwards nodes take the rows below the start key, and send and merge them upwards all the same."""

    def _comes_before(self, other: Row, row: Term[Row]) -> Bool:
        return row.column(lambda member: other.place < member.place)


@known_bug(
    "004-65",
    "design document 004, view query operation: each process enqueues one row, and waits",
    breaks=PartitionMerge.a_node_sends_no_more_than_may_be_needed,
    budgets={PartitionMerge.failures: 0},
)
class TheRowAtHandIsNotCounted(PartitionMerge):
    """A node counts what it had sent before the row at hand, so that it sends one more than may be needed."""

    def _sent_by(self, n: Term[Node]) -> Number:
        return greatest(self.sent[n].size() - 1, 0)


BUGS = known_bugs_in(globals())
