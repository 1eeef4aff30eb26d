"""Mistakes put back into `ViewServer`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.indexes.index_compaction import (
    COMPACTOR,
    Compactor,
    FileNumber,
    IndexCompaction,
)
from stagewright.machines.couchbase.partitions.group_states import Partition, PartitionState
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.machines.systems.view_server import CLIENT, WEAK, FileOfMainIndex, ViewServer
from stagewright.spec import Bool, FlagVar, Term, action, choose, flag, part, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

MARKS = 'design document 004: "independent of the state the partition is in"'
REQUESTS = 'design document 004: the view engine "just performs such requests"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "004-8",
    "design document 004: the updater stores the highest sequence number that it has indexed",
    breaks=ViewServer.the_file_has_the_rows_of_the_index,
    sizes={Partition: 1},
    budgets={ViewServer.requests: 4, ViewServer.writes: 1, ViewServer.crashes: 0},
)
class TheNumberComesLater(ViewServer):
    """The group process took a batch over, and learned its sequence number from a message of its own."""

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The rows are in the file."""
        self.file.take_over(p)

    @action(fair=WEAK)
    def learn_the_number(self, p: Term[Partition]) -> None:
        """The updater says up to where they are."""
        behind = self.file.rows_of(p) > self.indexes.main.group[p].content.seq
        require(self._has(p) & behind, "it is not said yet")
        self.indexes.index_main(p)


@known_bug(
    "004-9",
    "design document 004, index compaction",
    breaks=ViewServer.transfers_end_while_the_file_is_copied,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class TransfersWaitForTheCompactor(ViewServer):
    """A transfer ends when no compactor runs."""

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up, and its file stays what it is."""
        require(self.file.compactor == Compactor.none, "no compactor runs")
        super().finish_transfer(p)


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
    "K11-activated",
    "design document 004, replica indexes",
    breaks=ViewServer.workers_know_the_partitions,
    sizes={Partition: 1},
    budgets={ViewServer.requests: 6, ViewServer.writes: 1, ViewServer.crashes: 0},
)
class ActivatesWhatIsStillPending(ViewServer):
    """A transfer waits until older rows are removed. They are, and the partition is activated before the main index has
    added it: the workers take for active what the index does not have.
    """

    def _is_there(self, p: Term[Partition]) -> None:
        self._is_clean(p)


class CopiesWhatIsIndexed(FileOfMainIndex):
    """The compactor copies the partitions that have a sequence number in `seqs`."""

    def _is_copied(self, p: Term[Partition]) -> Bool:
        return self._is_indexed(p)


@known_bug(
    "K11-paused",
    "design document 004, index compaction",
    breaks=ViewServer.queries_lose_no_rows,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class PausedPartitionsAreNotCopied(ViewServer):
    """A partition that moves away is unindexable, and not in the list by which the compactor copies: after a switch
    of the file its rows are gone, while it is still queried here.
    """

    file = part(
        CopiesWhatIsIndexed,
        without=(
            IndexCompaction.set_active,
            IndexCompaction.set_passive,
            IndexCompaction.set_cleanup,
            IndexCompaction.lose_headers,
            IndexCompaction.updates_are_seen_while_it_compacts,
        ),
    )


@known_bug(
    "K11-pending",
    "design document 004, index compaction",
    breaks=ViewServer.the_file_has_the_rows_of_the_index,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class PartitionsAreCleanWhenTheyAreCopied(ViewServer):
    """The compactor says what it has not copied, and those partitions are no longer in cleanup.

    One that is wanted again is added at once, and indexed in the old file among rows of an earlier time.
    """

    @action(fair=WEAK)
    def copy(self) -> None:
        self.file.copy()
        for p in Partition:
            self._find_clean(p)


@known_bug(
    "K11-transfer",
    "design document 004, replica indexes",
    breaks=ViewServer.queries_lose_no_rows,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 1},
)
class TransferEndsWithWhatIsWritten(ViewServer):
    """A transfer ends when the updater of the main index has written the rows that the replica has.

    The group process has no header of that batch yet: a query that comes now does not find it.
    """

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        require(self.indexes.on_transfer.has(p), "it is on transfer")
        require(self.indexes.main.group[p].pbit, "the main index has it")
        require(self.indexes.replica.paused.has(p), "the replica is unindexable")
        written = choose(self.file.has_written(p), 1, 0)
        caught_up = self.file.seqs[p] + written >= self.indexes.target[p]
        require(caught_up, "the updater has written what the replica has")
        self.indexes.on_transfer.discard(p)
        self.indexes.replicas.discard(p)
        self.indexes.main.set_active(p)
        self.file.state[p] = PartitionState.active


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "004-54",
    "design document 004, Queries during rebalance: indexable is the default state",
    breaks=ViewServer.pauses_end,
    sizes={Partition: 1},
)
class StoppedMovesLeaveAPause(ViewServer):
    """A partition is indexable again on the server that keeps it when the next rebalance begins, if one does."""

    @action(by=MANAGER)
    def resume(self, p: Term[Partition]) -> None:
        """Another rebalance begins."""
        super().resume(p)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-45",
    "design document 004, index compaction",
    breaks="file.documents_change_at_any_time",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class MutationsWaitForTheCompactor(ViewServer):
    """Documents of the partitions that the index has do not change while its file is rewritten."""

    @action(by=CLIENT, spends=ViewServer.writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes, and no compactor runs."""
        super().write(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-46",
    "design document 004, index compaction",
    breaks=ViewServer.partitions_move_in_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class MovesWaitForTheCompactor(ViewServer):
    """A rebalance brings no partition while the index file is rewritten."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def move_in(self, p: Term[Partition]) -> None:
        """A partition moves here, and no compactor runs."""
        super().move_in(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-47",
    "design document 004, index compaction",
    breaks=ViewServer.partitions_are_activated_at_any_time,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class ActivationsWaitForTheCompactor(ViewServer):
    """A partition that has moved here is not queried until the index file is rewritten."""

    @action(by=MANAGER, spends=ViewServer.requests)
    def activate(self, p: Term[Partition]) -> None:
        """The move is done, and no compactor runs."""
        super().activate(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


@known_bug(
    "004-48",
    "design document 004, index compaction",
    breaks="indexes.replicas_are_indexed_before_they_are_queried",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class ReplicasRestWhileTheFileIsCopied(ViewServer):
    """The replica index is not updated while the main index is compacted: a failover then finds old rows."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        """The updater of the replica index runs alone."""
        self.indexes.index_replica(p)
        require(self.file.compactor == Compactor.none, "no compactor runs")


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


@known_bug(
    "004-225",
    'design document 004: "If the fragmentation ratio exceeds the threshold value, view engine performs compaction"',
    breaks="file.compactions_start_while_it_is_updated",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class NoCompactionOfWhatIsPaused(ViewServer):
    """A file was not compacted while a partition was unindexable: through a rebalance of many, that is always so."""

    @action(by=COMPACTOR, fair=WEAK)
    def start_compactor(self) -> None:
        """The compactor starts when no partition is unindexable."""
        self.file.start_compactor()
        paused = some(self.indexes.main.paused.has(p) for p in Partition)
        require(~paused, "no partition is unindexable")


@known_bug(
    "K5-two",
    "design document 004, index updater operation",
    breaks="indexes.replicas_are_indexed_before_they_are_queried",
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class OneUpdaterForBothIndexes(ViewServer):
    """The replica index is updated when the updater of the main index has come to its end: they never run at once."""

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        require(self.file.updating.is_none(), "the updater of the main index does not run")
        self.indexes.index_replica(p)


@known_bug(
    "004-256",
    'design document 004: "queries will see updates applied to btree at shortest intervals"',
    breaks=ViewServer.updates_are_seen_whatever_moves,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class BatchesWaitForTheReplicaIndex(ViewServer):
    """No batch was taken over while the replica index had a copy to clean up: both have their headers in one step."""

    @action(fair=WEAK)
    def take_over(self, p: Term[Partition]) -> None:
        """The replica index is clean."""
        require(~self.indexes.replica.group[p].content.cbit, "no copy is left to clean up")
        super().take_over(p)


@known_bug(
    "004-240",
    "design document 004, index compaction",
    breaks=ViewServer.compactions_wait_for_no_partition,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class NothingIsCopiedOfWhatIsPaused(ViewServer):
    """The compactor copies the trees when no partition is unindexable, so that it copies none that moves away."""

    @action(fair=WEAK)
    def copy(self) -> None:
        """Nothing is paused."""
        require(self.indexes.main.paused.is_empty(), "nothing is unindexable")
        super().copy()


@known_bug(
    "004-267",
    "design document 004, index compaction",
    breaks=ViewServer.compactions_wait_for_no_partition,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class NothingIsAppliedDuringATransfer(ViewServer):
    """The compactor applied no sort record file while a partition was on transfer, of which more were going to come."""

    @action(fair=WEAK)
    def apply_sort_files(self, p: Term[Partition]) -> None:
        """Nothing is on transfer."""
        super().apply_sort_files(p)
        require(self.indexes.on_transfer.is_empty(), "nothing is on transfer")


@known_bug(
    "004-268",
    'design document 004: "While doing the compaction, new changes would be happening"',
    breaks=ViewServer.the_file_is_copied_while_it_is_updated,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class CopiedWhenTheUpdaterIsDone(ViewServer):
    """The compactor copied the trees when the updater had come to its end: of an index that is always behind, never."""

    @action(fair=WEAK)
    def copy(self) -> None:
        """The updater does not run."""
        super().copy()
        require(self.file.updating.is_none(), "updater does not run")


@known_bug(
    "004-269",
    "design document 004, index updater operation",
    breaks=ViewServer.updaters_end_whatever_moves,
    sizes={Partition: 1},
    budgets={ViewServer.crashes: 0},
)
class UpdatersStayForTheTransfer(ViewServer):
    """The updater of the main index stayed until nothing was on transfer, for which more was to be indexed, it was thought."""

    @action(fair=WEAK)
    def finish_updater(self) -> None:
        """Nothing is on transfer."""
        super().finish_updater()
        require(self.indexes.on_transfer.is_empty(), "nothing is on transfer")


BUGS = known_bugs_in(globals())
