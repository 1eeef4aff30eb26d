"""Mistakes put back into `BackfillJob`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, ReadTime, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
    next_permission,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, FlagVar, Term, action, choose, flag, initially, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

RESTART = 'design document 002: the build "should not need to restart on a node failure"'
CALM: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}
STATES = "design document 002, Intermediate states of the index table"
GO_ON = "design document 002: queries continue against the existing indexes"


@known_bug(
    "002-21",
    "design document 002, Design Goals: constraint violations",
    breaks=BackfillJob.violated_constraints_fail_the_index,
    sizes={Index: 1, Tablet: 1},
    budgets=CALM,
)
class DuplicatesAreSkipped(BackfillJob):
    """A row whose key is taken gets no entry, and the scan goes on: the index is published without it."""

    def _is_blocked(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        return super()._is_blocked(t, i) & False  # nothing stops the scan


@known_bug(
    "002-22",
    "design document 002, Design Goals: constraint violations",
    breaks=BackfillJob.only_what_failed_is_removed,
    sizes={Tablet: 1},
    budgets=CALM,
)
class AFailureEndsTheJob(BackfillJob):
    """A chunk finds a duplicate for one index, and the job ends as failed, with all indexes that it is for."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        """The job fails."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        require(self._is_blocked(t, i), "index cannot be built")
        for other in Index:
            self.job[other] = choose(self._left(other), Status.failed, self.job[other])


@known_bug(
    "002-23",
    RESTART,
    breaks=BackfillJob.checkpoints_are_kept,
    sizes={Index: 1},
    budgets={BackfillJob.aborts: 0},
)
class OnlyDoneTabletsAreRecorded(BackfillJob):
    """That a tablet is done is recorded; how far it is before, only the leader knows."""

    @action(spends=BackfillJob.faults)
    def fail_over(self) -> None:
        """The next leader begins with each tablet anew that is not done."""
        super().fail_over()
        for t in Tablet:
            for i in Index:
                here = self.checkpoint[t][i]
                done = here == Checkpoint.done
                self.checkpoint[t][i] = choose(done, here, Checkpoint.never_begun)


@known_bug(
    "002-24",
    'design document 002: the master waits "for the backfill to complete on all the tablets"',
    breaks=BackfillJob.publishing_waits_for_all_tablets,
    sizes={Index: 1},
    budgets=CALM,
)
class OnlyTabletsThatAnsweredAreCounted(BackfillJob):
    """A tablet that has not answered yet has no entry in the list of those that are not done. Permissions, and leave to
    reclaim delete markers, are one write.
    """

    @initially(assumed="the index is not unique")
    def nothing_is_violated(self) -> Bool:
        """No row violates a constraint."""
        return self.unbuildable.is_none()

    @BackfillJob.step.step(
        (Step.wait_for_splits, Step.get_safe_time, Step.backfill_tablets),
        Step.allow_gc,
        by=MASTER,
        fair=WEAK,
    )
    def find_all_done(self) -> None:
        """No tablet is in the middle."""
        in_the_middle = some(
            self._is_to_do(t, i) & (self.checkpoint[t][i] == Checkpoint.in_the_middle)
            for t in Tablet
            for i in Index
        )
        require(~in_the_middle, "every tablet that has answered is done")
        for i in Index:
            self.job[i] = choose(self._left(i), Status.success, self.job[i])

    @BackfillJob.step.step(Step.allow_gc, Step.write_permissions, by=MASTER, fair=WEAK)
    def allow_gc(self) -> None:
        """Later."""

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        """What is built becomes readable, and its delete markers may go."""
        super().write_permissions()
        for i in Index:
            retains = self.retains_delete_markers.has(i) & (self.job[i] != Status.success)
            self.retains_delete_markers.put(i, retains)


@known_bug(
    "002-25",
    'design document 002: "After the index state is updated to DB_REORG"',
    breaks=BackfillJob.backfill_begins_when_all_tablets_know,
    sizes={Index: 1},
    budgets=CALM,
)
class JobsBeginWithTheAlter(BackfillJob):
    """The job is launched as the catalog says DO_BACKFILL, whatever the tablets have heard of it."""

    def _may_begin(self) -> None:
        self._no_index_is_altered()
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-75",
    STATES,
    breaks=BackfillJob.schema_changes_converge_first,
    sizes={Index: 1, Tablet: 1},
    budgets=CALM,
)
class TwoPermissionsAtOnce(BackfillJob):
    """An index at DELETE_ONLY is altered to DO_BACKFILL, under which tablets write and delete just the same."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """An alter is spared."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            spared = self.permission[i] == Permission.delete_only
            moved = self.permission[i].column(next_permission)
            self.permission[i] = choose(spared, Permission.do_backfill, moved)
        self._bump_version()


@known_bug(
    "002-76",
    STATES,
    breaks=BackfillJob.what_one_tablet_writes_the_others_delete,
    sizes={Index: 1},
    budgets=CALM,
)
class CreatedAtWriteAndDelete(BackfillJob):
    """CREATE INDEX sets the index to WRITE_AND_DELETE: a tablet writes entries that others do not delete yet."""

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """The index is known at WRITE_AND_DELETE."""
        require(~self.created.has(i), "index is new")
        self.created.add(i)
        self.permission[i] = Permission.write_and_delete
        self.retains_delete_markers.add(i)
        self._bump_version()


@known_bug(
    "002-77",
    STATES,
    breaks=BackfillJob.what_one_tablet_reads_the_others_write,
    sizes={Index: 1},
    budgets={BackfillJob.faults: 0},
)
class DroppedIndexesAreNotWritten(BackfillJob):
    """DROP INDEX of an index that serves reads goes to DELETE_ONLY at once: who has not heard of it still reads."""

    @action(by=CLIENT, spends=BackfillJob.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """The index is on its way out."""
        require(~self._is_removed(i), "index is not being removed yet")
        readable = self.permission[i] == Permission.read_write_and_delete
        goal = choose(readable, Permission.delete_only_while_removing, self.era.removal)
        self.dropped.add(i)
        self.permission[i] = goal
        self._bump_version()


@known_bug(
    "002-78",
    "design document 002, Checkpointing",
    breaks=BackfillJob.a_chunk_is_of_one_tablet,
    sizes={Index: 1},
    budgets=CALM,
)
class AnAnswerEndsOtherTablets(BackfillJob):
    """A tablet server answers that nothing is left, and every tablet that was begun is recorded as done."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet]) -> None:
        """The checkpoints of all tablets are written."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        self._is_next(t)
        blocked = some(self._is_blocked(t, i) for i in Index)
        require(~blocked, "no two rows with one key in a unique index")
        for time in self.chosen_time:
            self.scanned_at.add(time)
        self.clock = ReadTime.later
        for other in Tablet:
            for i in Index:
                here = self.checkpoint[other][i]
                begun = here == Checkpoint.in_the_middle
                first = choose(other == t, Checkpoint.in_the_middle, here)
                now = choose(begun, Checkpoint.done, first)
                self.checkpoint[other][i] = choose(self._is_to_do(other, i), now, here)


@known_bug(
    "002-79",
    "design document 002, Waiting for pending transactions to finish",
    breaks=BackfillJob.nobody_joins_a_scan,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class WhoWaitsJoinsTheNextLeader(BackfillJob):
    """A leader that takes a job up adds the indexes that wait by now, whose read time is the one that is recorded."""

    @BackfillJob.step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """All indexes that wait are built by one job."""
        self._may_begin()
        require(self._job_exists(), "a job is recorded")
        self.is_backfilling = True
        for i in Index:
            waits = (self.permission[i] == Permission.do_backfill) & self.job[i].is_none()
            self.job[i] = choose(waits, Status.in_progress, self.job[i])


@known_bug(
    "002-121",
    'design document 002: "until the backfill process is complete" the index is not available for any reads',
    breaks=BackfillJob.only_built_indexes_are_read,
    sizes={Index: 1},
    budgets=CALM,
)
class DoneTabletsServeReads(BackfillJob):
    """A tablet whose rows were all in the index took it for built, and served reads from it while others were scanned."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet]) -> None:
        """With the last chunk the tablet goes on to the permission that will be written."""
        for i in Index:
            ends = self._is_to_do(t, i) & (self.checkpoint[t][i] == Checkpoint.in_the_middle)
            built = Term.of(Permission.read_write_and_delete)
            self.known[t][i] = choose(ends, built, self.known[t][i])
        super().backfill_chunk(t)


@known_bug(
    "002-123",
    STATES,
    breaks=BackfillJob.schema_changes_converge_first,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class TwoPermissionsLess(BackfillJob):
    """An index that is removed is altered to INDEX_UNUSED at once: of two tablets, one may go on to write to it when the
    other does not delete any more.
    """

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """An alter is spared on the way out."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            spared = self.permission[i] == Permission.write_and_delete_while_removing
            moved = self.permission[i].column(next_permission)
            self.permission[i] = choose(spared, Permission.index_unused, moved)
        self._bump_version()


def _fail_what_is_left(job: BackfillJob) -> None:
    for i in Index:
        left = job.job[i] == Status.in_progress
        job.gave_up.put(i, job.gave_up.has(i) | left)
        job.job[i] = choose(left, Status.failed, job.job[i])


@known_bug(
    "002-127",
    RESTART,
    breaks=BackfillJob.only_a_leader_that_waits_fails_an_index,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class LeadersFailTheJobThatTheyFind(BackfillJob):
    """A leader that finds a job which it has not launched gives it up: CREATE INDEX is to be executed once more."""

    @BackfillJob.step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """A job is recorded but not running: it has failed."""
        self._may_begin()
        require(self._job_exists(), "a job is recorded")
        self.is_backfilling = True
        _fail_what_is_left(self)


@known_bug(
    "002-128",
    RESTART,
    breaks=BackfillJob.only_a_leader_that_waits_fails_an_index,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class WritesThatFailAreTheEnd(BackfillJob):
    """A write to the sys catalog fails as the leader loses its lease, and the job is noted as failed."""

    @action(by=MASTER, spends=BackfillJob.faults)
    def fail_to_write(self) -> None:
        """A write fails: so does the job."""
        super().fail_to_write()
        _fail_what_is_left(self)


@known_bug(
    "002-363",
    "design document 002, Finalize the index",
    breaks=BackfillJob.completed_builds_are_published,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class WritesThatFailUndoTheScan(BackfillJob):
    """The tables of indexes that are built cannot be told to reclaim delete markers, and the job gives these up."""

    @action(by=MASTER, spends=BackfillJob.faults)
    def fail_to_write(self) -> None:
        """A write fails: J5 fails what it is for."""
        for i in Index:
            built = (self.job[i] == Status.success) & (self.step == Step.allow_gc)
            self.gave_up.put(i, self.gave_up.has(i) | built)
            self.job[i] = choose(built, Status.failed, self.job[i])
        super().fail_to_write()


@known_bug(
    "002-129",
    GO_ON,
    breaks=BackfillJob.published_indexes_go_on_serving_reads,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class ReadsWaitForTheNextIndex(BackfillJob):
    """A tablet that hears of a new index reads by none until it has all of the version, also where one serves reads."""

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        """A tablet applies what is new, and then the rest of the version."""
        require(~self._is_current(t), "tablet is behind")
        absent, published = Permission.absent, Permission.read_write_and_delete
        new = some(
            (self.known[t][i] == absent) & (self.permission[i] == Permission.delete_only)
            for i in Index
        )
        for i in Index:
            read = (self.known[t][i] == published) & (self.permission[i] == published)
            applied = choose(new & read, Permission.do_backfill, self.permission[i])
            self.known[t][i] = applied


@known_bug(
    "002-135",
    "design document 002, Create the index table: another round of schema changes",
    breaks=BackfillJob.scans_wait_for_indexes_on_their_way,
    sizes={Tablet: 1},
    budgets=CALM,
)
class TheFirstIndexIsScannedFor(BackfillJob):
    """A job begins as one index is at DO_BACKFILL, though another, which was created with it, is a round behind."""

    @BackfillJob.step.step(Step.none, Step.launch, by=MASTER, fair=WEAK)
    def launch(self, i: Term[Index]) -> None:
        """An index is at DO_BACKFILL, whatever becomes of the others: a job is launched for it."""
        self._all_tablets_are_current()
        require(~self.is_backfilling, "no job is running")
        require(~self._job_exists(), "no job is recorded")
        require(self.permission[i] == Permission.do_backfill, "index waits for a backfill")
        self.is_backfilling = True
        for other in Index:
            self.requested.put(other, self._shares_the_scan(other, i))


@known_bug(
    "002-137",
    "design document 002, Design Goals: CREATE INDEX aborts for a problem that arises while the table is scanned",
    breaks=BackfillJob.only_a_leader_that_waits_fails_an_index,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 1, BackfillJob.faults: 0},
)
class DropIndexEndsTheJob(BackfillJob):
    """DROP INDEX of an index that is scanned for ends its job, and with it the build of every other index."""

    @action(by=CLIENT, spends=BackfillJob.aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """An index is dropped: the job that it is in has failed."""
        super().drop_index(i)
        ends = self.job[i].is_some()
        for each in Index:
            left = ends & (self.job[each] == Status.in_progress)
            self.gave_up.put(each, self.gave_up.has(each) | left)
            self.job[each] = choose(left, Status.failed, self.job[each])


@known_bug(
    "002-139",
    'design document 002, Finalize the index: "Once the index build is successfully completed on all the tablets"',
    breaks=BackfillJob.completed_builds_are_published,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class TheLastAnswerIsTooLate(BackfillJob):
    """The job runs out of time as its last tablet answers: the checkpoint says that all is done, and the index fails."""

    def _is_unfinished(self, i: Term[Index]) -> Bool:
        return self.job[i] == Status.in_progress


@known_bug(
    "002-350",
    RESTART,
    breaks=BackfillJob.checkpoints_are_kept,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 2},
)
class TheThirdLeaderScansAnew(BackfillJob):
    """A job that has changed hands twice is taken for one that does not get on: its checkpoints go."""

    elected: FlagVar = flag()

    @action(spends=BackfillJob.faults)
    def fail_over(self) -> None:
        again = self.elected
        for t in Tablet:
            for i in Index:
                here = self.checkpoint[t][i]
                self.checkpoint[t][i] = choose(again, Checkpoint.never_begun, here)
        super().fail_over()
        self.elected = True


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


BUGS = known_bugs_in(globals())
