"""Bugs of YugabyteDB's backfill job."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks, Row, Until
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import At, BackfillRpcs, Request as Rpc
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    TABLET,
    BackfillSafeTime,
    Transaction,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import SPLIT_MANAGER, BackfillSplit
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    Index,
    Tablet,
)
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet, Begin, Scan
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    RATE,
    SLOTS,
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.machines.yugabytedb.backfill.backfill_versions import BackfillVersions
from stagewright.machines.yugabytedb.indexes.index_rows import HybridTime, Row as TableRow, Stored
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    Bool,
    SetOf,
    Term,
    action,
    choose,
    count,
    every,
    only_when,
    require,
    some,
)
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Z13",
    "yugabyte-db #5031",
    breaks=(
        BackfillChunks.built_indexes_are_complete,
        BackfillChunks.checkpoints_tell_what_is_built,
    ),
    sizes={Index: 1},
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OnePageIsTheWholeTablet(BackfillChunks):
    """The tablet server reads the first page of 1,024 rows, finds it consumed, and answers that all is done."""

    def _answered_until(self, stop: Term[Until]) -> Term[Until]:  # noqa: ARG002
        return Term.of(Until.end)


@known_bug(
    "Z15",
    "yugabyte-db #33207",
    breaks=(BackfillJob.every_index_can_be_usable_or_gone, BackfillJob.unfinished_work_is_recorded),
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class ReportsEndTheAlter(BackfillJob):
    """A tablet reports its version while the job runs. The master finds nothing to launch, for the job is
    running already, and takes the table for altered: RUNNING. The next leader does not look for a job there.
    """

    def _nothing_to_backfill(self) -> Bool:
        return super()._nothing_to_backfill() | self.is_backfilling


@known_bug(
    "Z17",
    "yugabyte-db #32976, #33009",
    breaks=(
        BackfillJob.every_index_can_be_usable_or_gone,
        BackfillJob.splitting_is_off_only_during_a_job,
    ),
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class BackfillingStaysLatched(BackfillJob):
    """A write to the sys catalog fails at the end of the job. The error path returns before `is_backfilling`
    is cleared, and no leader but another one ever takes the job up again.
    """

    def _leave_job(self) -> None:
        self._forget_memory()


@known_bug(
    "Z34",
    "yugabyte-db #3627",
    breaks=(
        BackfillChunks.every_index_can_have_a_result,
        BackfillChunks.every_index_is_built_or_fails,
    ),
    sizes={Index: 1},
    budgets={BackfillChunks.lost: 1, BackfillChunks.failovers: 0},
)
class FailedRequestsAreForgotten(BackfillChunks):
    """The RPC of a chunk fails. It is neither tried again nor told to the job, which waits for ever."""

    @action(by=MASTER)
    def retry(self) -> None:
        """Nobody does."""
        only_when(False)


@known_bug(
    "Z36",
    "yugabyte-db tablet_service.cc, all_past_backfill: read, not reported",
    profile="yugabyte-2.x",
    breaks=(BackfillRpcs.every_index_can_be_usable_or_gone, BackfillRpcs.every_job_ends),
    sizes={Index: 1, Rpc: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0},
)
class PastWithoutAPosition(BackfillRpcs):
    """The leader changes after the permissions are written and before the job is erased. The next one asks
    the tablet again, which answers OK, for its indexes have moved past DO_BACKFILL, but not how far it is
    done: so it is asked again, for ever.
    """

    def _tells_the_end(self, r: Term[Rpc]) -> Bool:
        return self.rpc[r].at == At.backfilled


@known_bug(
    "Z38",
    "yugabyte-db backfill_index.cc, BackfillTablet: read, not reported",
    breaks=(BackfillChunks.built_indexes_are_complete,),
    budgets={BackfillChunks.lost: 0},
)
class TheEmptyKeySortsFirst(BackfillChunks):
    """A tablet goes on from the least checkpoint of its indexes, compared as strings. "Done" is the empty
    string, which is the least of all: one index that is done ends the tablet for the others.
    """

    def _tablet_is_done(self) -> None:
        done = some(
            (self.job[i] == Status.in_progress) & (self.reached[i] == Until.end) for i in Index
        )
        require(done, "the least checkpoint is empty")


@known_bug(
    "Z40",
    "yugabyte-db #20510",
    breaks=(BackfillRpcs.published_indexes_are_complete,),
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class AnswersToAnotherJob(BackfillRpcs):
    """A job is given up while a request of it is on its way, and the next job starts. The late answer is taken
    for one to the new job: its indexes get a checkpoint, and no row of theirs was read.
    """

    def _is_for_this_job(self, r: Term[Rpc]) -> None:
        """Any job."""


@known_bug(
    "Z42",
    "yugabyte-db #6704, #7108, #13127, #32708",
    breaks=(BackfillSplit.chunks_cover_the_table,),
    sizes={Tablet: 1},
    budgets={BackfillSplit.failovers: 0, BackfillSplit.failures: 0},
)
class SplitDuringBackfill(BackfillSplit):
    """A tablet splits while the job waits between two of its chunks. The next request for the parent is
    answered by one of its children, and nobody asks the other.
    """

    def _no_backfill_is_going_on(self) -> None:
        """Splitting does not ask."""


@known_bug(
    "Z43",
    "yugabyte-db #6290",
    breaks=(BackfillChunks.failure_is_per_index,),
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OneFailureFailsAll(BackfillChunks):
    """A chunk answers that one index failed, and all indexes of the job are marked as failed."""

    def _fail(self, i: Term[Index]) -> None:  # noqa: ARG002
        for other in Index:
            in_progress = self.job[other] == Status.in_progress
            self.job[other] = choose(in_progress, Status.failed, self.job[other])


@known_bug(
    "Z47",
    "yugabyte-db #33123, #20041, #20178",
    breaks=(BackfillRpcs.chunks_run_only_at_do_backfill,),
    sizes={Index: 1, Rpc: 1},
    budgets={BackfillRpcs.lost: 0},
)
class ChunksRunAnyTime(BackfillRpcs):
    """The tablet server does not look at its index permissions: a request that overtakes the alter, or comes
    when the index is being dropped, is carried out.
    """

    def _is_ready(self, r: Term[Rpc]) -> Bool:
        return self.rpc[r].at == At.sent


@known_bug(
    "Y03",
    "design document 002",
    breaks=BackfillJob.tablets_are_independent,
    sizes={Index: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class OneTabletAtATime(BackfillJob):
    """The master waits until a tablet is done before it asks another one."""

    def _is_next(self, t: Term[Tablet]) -> None:
        super()._is_next(t)
        others = some((o != t) & self._is_begun(o) for o in Tablet)
        require(~others, "no other tablet is being backfilled")

    def _is_begun(self, t: Term[Tablet]) -> Bool:
        return some(
            self._is_to_do(t, i) & (self.checkpoint[t][i] == Checkpoint.in_the_middle)
            for i in Index
        )


@known_bug(
    "Y04",
    "design document 002",
    breaks=BackfillJob.one_scan_is_for_all_indexes,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class EachIndexHasItsOwnScan(BackfillJob):
    """Two indexes wait, and the job is for one of them: the table is scanned twice."""

    def _shares_the_scan(self, other: Term[Index], i: Term[Index]) -> Bool:
        return other == i


@known_bug(
    "Y17",
    "design document 002",
    breaks=BackfillChunks.a_page_is_read_once_for_all_indexes,
    budgets={BackfillChunks.lost: 0, BackfillChunks.failovers: 0},
)
class OneRowAWrite(BackfillChunks):
    """Each row has a request and a write of its own: nothing is batched."""

    def _is_page(self, page: SetOf[Row]) -> Bool:
        return super()._is_page(page) & (page.size() == 1)


@known_bug("Y05", "design document 002", breaks=BackfillThrottle.rate_is_bounded)
class WaitingIsCredit(BackfillThrottle):
    """A request that has waited for its slot reads faster than it may: the average since it was sent is kept."""

    def _is_below_rate(self, task: Term[Task]) -> Bool:
        waited = (self.elapsed[task] >= 1) & (self.this_second[task] <= RATE)
        return super()._is_below_rate(task) | (waited & (self.read[task] <= RATE))


@known_bug("Y06", "design document 002", breaks=BackfillThrottle.each_task_has_its_own_rate)
class OneCounterForAllTasks(BackfillThrottle):
    """All tasks share one counter: the more tablets there are, the slower is each."""

    def _is_below_rate(self, task: Term[Task]) -> Bool:
        first = every(self.this_second[o] == 0 for o in Task)
        return first | ((self.this_second[task] > 0) & super()._is_below_rate(task))


@known_bug("Y07", "design document 002", breaks=BackfillThrottle.free_slots_are_given)
class OneLimitForTheCluster(BackfillThrottle):
    """The slots of one server are taken for those of all."""

    def _has_free_slot(self, task: Term[Task]) -> Bool:
        return super()._has_free_slot(task) & (
            count(self.request[o] == Request.running for o in Task) < SLOTS
        )


@known_bug(
    "Y10",
    "yugabyte-db #32570",
    breaks=BackfillVersions.reads_through_the_index_find_the_rows,
    budgets={BackfillVersions.writes: 1},
)
class OldReadersUseTheIndex(BackfillVersions):
    """A repeatable read had its read point from before `t_read`. It used the index that was published meanwhile, and
    found nothing: the entries that are backfilled are newer.
    """

    def _may_use_the_index(self, time: Term[HybridTime]) -> None:
        """Whatever the read point is."""


@known_bug(
    "Y11",
    "yugabyte-db #32522, #32560",
    breaks=(BackfillVersions.no_missing_entry, BackfillVersions.the_scan_sees_t_read),
    budgets={BackfillVersions.writes: 1},
)
class HistoryIsCollectedUnderTheScan(BackfillVersions):
    """A row was updated in another column, and a compaction collected the version that the scan was to see: the row
    was not found, and got no entry.
    """

    def _is_not_scanned(self, time: Term[HybridTime]) -> None:
        """Nobody asks for the scan."""


@known_bug(
    "Y12",
    "design document 002",
    profile="seed-own-time",
    breaks=BackfillVersions.no_missing_entry,
    budgets={BackfillVersions.writes: 1},
)
class MarkersWinTheTie(BackfillVersions):
    """A row got the value that it had while the index was at DELETE_ONLY, so that a delete marker has the time of the
    row. Entries are written with "the update time of the row being read", and the marker hides that of this one.
    """

    def _instead_of(self, stored: Term[Stored]) -> Term[Stored]:
        return choose(stored == Stored.delete_marker, stored, Stored.live)


@known_bug("Y13", "design document 002", breaks=BackfillSafeTime.rows_have_entries)
class BoundBelowTheTimeout(BackfillSafeTime):
    """The upper bound for user-enforced transactions is less than the RPC timeout: a write that began before the index
    was known is applied after the time that the tablet answered with.
    """

    def _upper_bound(self) -> int:
        return 0


@known_bug("Y28", "design document 002", breaks=BackfillSafeTime.every_scan_is_made)
class OpenTransactionsAreWaitedFor(BackfillSafeTime):
    """A terminal was left open in a transaction, and nobody aborted it: the read time was never chosen."""

    @action(by=TABLET)
    def abort(self, t: Term[Tablet]) -> None:
        """Its client aborts it, or does not."""
        require(self.transaction[t] == Transaction.pending, "transaction is pending")
        self.transaction[t] = Transaction.aborted


@known_bug("Y29", "design document 002", breaks=BackfillVersions.builds_end)
class LostChunksAreNotAskedAgain(BackfillVersions):
    """A chunk was asked for once: when its answer was lost the index was never published."""

    @action
    def backfill(self, r: Term[TableRow]) -> None:
        """The row is read, or the request was lost."""
        super().backfill(r)


@known_bug(
    "Y30",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillChunks.checkpoints_only_advance,
)
class TheLastAnswerIsTheCheckpoint(BackfillChunks):
    """An answer is recorded for all indexes of the job: also for one that has come further, as another has been late."""

    def _came_further(self, i: Term[Index]) -> Bool:
        return (self.job[i] == Status.in_progress) & (self.late != i)


@known_bug(
    "Y31",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillTablet.checkpoints_only_advance,
)
class TheNextLeaderBeginsAnew(BackfillTablet):
    """A new leader does not know the checkpoint, and asks for the tablet from its start."""

    @action
    def begin_anew(self) -> None:
        """It begins at the start of the tablet."""
        require(self.scan == Scan.taken_over, "another master is the leader")
        self.scan = Scan.chunk
        self.begin = Begin.at_the_start


@known_bug(
    "Y32",
    "design document 002, Fault tolerance using checkpointing",
    breaks=BackfillThrottle.checkpoints_only_advance,
)
class CheckpointsGoWithTheLeader(BackfillThrottle):
    """A tablet whose leader goes away is scanned from its start: its checkpoint went with it."""

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        """The tablet's leader goes away, and what it knew."""
        super().lose_leader(task)
        self.recorded[task] = 0


@known_bug(
    "002-1",
    "design document 002: CREATE INDEX does not wait for the index backfill",
    breaks=BackfillJob.indexes_are_created_at_any_time,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class CreateIndexWaitsForTheJob(BackfillJob):
    """CREATE INDEX is refused while another index of the table is backfilled."""

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """The index is known at DELETE_ONLY, if no job is running."""
        super().create_index(i)
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-2",
    "design document 002: the index build itself occurs asynchronously",
    breaks=BackfillJob.indexes_are_dropped_at_any_time,
    sizes={Tablet: 1, Index: 1},
)
class DropIndexWaitsForTheJob(BackfillJob):
    """DROP INDEX is refused while an index of the table is backfilled."""

    @action(by=CLIENT, spends=BackfillJob.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """The index is on its way out, if no job is running."""
        super().drop_index(i)
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-3",
    "design document 002, and yugabyte-db #7108",
    breaks=BackfillSplit.tablets_split_when_no_backfill_is_going_on,
)
class NoTabletSplitsAfterABackfill(BackfillSplit):
    """What kept tablets from splitting is not taken back when the index is there."""

    @action(by=SPLIT_MANAGER)
    def begin_split(self, t: Term[Tablet]) -> None:
        """A tablet has grown too large, before any index was backfilled."""
        super().begin_split(t)
        require(self.index == Status.in_progress, "no index was backfilled")


@known_bug(
    "002-4",
    "design document 002: the index build itself occurs asynchronously",
    breaks=BackfillLeaders.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheThreads(BackfillLeaders):
    """DROP INDEX is refused while a thread of a master is going to write."""

    @action(by=CLIENT, spends=BackfillLeaders.drops)
    def drop_index(self) -> None:
        """The index is on its way out, if no thread works on it."""
        super().drop_index()
        free = every(self.work[th].intent == Intent.none for th in Thread)
        require(free, "no thread is going to write")


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
