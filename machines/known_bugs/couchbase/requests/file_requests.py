"""Mistakes by which what is asked of an index's trees, files, triggers and updater waits for what it need not wait for.

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
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.machines.systems.view_server import ViewServer
from stagewright.spec import Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
ANYTIME = 'design document 004: "updates can happen to the index file anytime"'
MARKS = 'design document 004: "independent of the state the partition is in"'


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
