"""The steps of the backfill job: what the master leader does, what it writes, and what a change of it loses.

What is written to the sys catalog survives, what is in the leader's memory does not. `backfill_job.py` adds
the promises.
"""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_states import (
    Checkpoint,
    HybridTime,
    InJob,
    Step,
    TableState,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    MASTER,
    WEAK,
    Index,
    IndexedTable,
    Tablet,
    progress_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    flag,
    history,
    observed,
    one_of,
    only_when,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    volatile,
)

CLOCK = Actor("clock")
AT_A_STEP = "a leader is at a step exactly while it is backfilling"


def _after(checkpoint: Checkpoint) -> Checkpoint:
    return Checkpoint.in_the_middle if checkpoint is Checkpoint.never_begun else Checkpoint.done


class BackfillSteps(IndexedTable):
    """One job at a time backfills the indexes that wait for it."""

    faults = budget(1, doc="changes of the master leader, and writes to the sys catalog that fail")
    exercised_at = scopes({Index: 1}, {IndexedTable.aborts: 0}, {Tablet: 1})

    # in the sys catalog
    job = per(Index, one_of(InJob, init=InJob.absent))
    read_time: OptionalVar[HybridTime] = optional(HybridTime)  # `backfilling_timestamp`
    checkpoint = per(Tablet, per(Index, one_of(Checkpoint, init=Checkpoint.never_begun)))
    # the leader's memory
    is_backfilling: FlagVar = volatile(flag(), of=MASTER)
    step: OneVar[Step] = volatile(one_of(Step, init=Step.none), of=MASTER)
    requested: SetVar[Index] = volatile(set_of(Index), of=MASTER)  # of the job that it launches
    chosen_time: OptionalVar[HybridTime] = volatile(optional(HybridTime), of=MASTER)
    # the clock of the masters: it goes on while rows are read
    clock: OneVar[HybridTime] = observed(one_of(HybridTime, init=HybridTime.first), of=CLOCK)
    # what befalls the job
    scanned_at: SetVar[HybridTime] = history(set_of(HybridTime))  # when it has read rows
    gave_up: SetVar[Index] = set_of(Index)

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self) -> None:
        """Nothing is left to do: the table is running again."""
        self._all_tablets_are_current()
        self._no_index_is_altered()
        require(self._nothing_to_backfill(), "no index waits for a backfill, and no job is left")
        self.table = TableState.running

    # -- the job -------------------------------------------------------------------------------------------

    @step.step(Step.none, Step.launch, by=MASTER, fair=WEAK)
    def launch(self, i: Term[Index]) -> None:
        """Every tablet knows that an index is at DO_BACKFILL, and no job is there: launch one."""
        self._may_begin()
        require(~self._job_exists(), "no job is recorded")
        require(self.permission[i] == Permission.do_backfill, "index waits for a backfill")
        self.is_backfilling = True
        for other in Index:
            waits = self.permission[other] == Permission.do_backfill
            self.requested.put(other, waits if self.era.batching else other == i)

    @step.step(Step.launch, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def record_job(self) -> None:
        """J0: the job is written, with the indexes that it is for."""
        for i in Index:
            requested = self.requested.has(i)
            self.job[i] = choose(requested, InJob.in_progress, InJob.absent)
        self.requested = frozenset()

    @step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def resume(self) -> None:
        """A job is recorded but not running: this leader takes it up, without any other index."""
        self._may_begin()
        require(self._job_exists(), "a job is recorded")
        self.is_backfilling = True

    @step.step(Step.wait_for_splits, Step.get_safe_time, by=MASTER, fair=WEAK)
    def find_no_splits(self) -> None:
        """J1: no tablet is splitting any more, but no read time is recorded."""
        require(self.read_time.is_none(), "no read time is recorded")

    @step.step(Step.wait_for_splits, Step.backfill_tablets, by=MASTER, fair=WEAK)
    def take_recorded_time(self) -> None:
        """J1 of a job that was begun: its read time stays what it is."""
        require(self.read_time.is_some(), "a read time is recorded")
        self.chosen_time = self.read_time

    @step.step(Step.get_safe_time, Step.backfill_tablets, by=MASTER, fair=WEAK)
    def choose_read_time(self) -> None:
        """J2: every tablet has answered; the largest safe time is written before any row is read."""
        self.chosen_time = self.clock
        if self.era.read_time_recorded:
            self.read_time = self.clock

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet]) -> None:
        """J3: a tablet has backfilled a chunk, for all indexes of the job; the checkpoint is written."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        require(some(self._is_to_do(t, i) for i in Index), "tablet is not done")
        blocked = some(self._is_blocked(t, i) for i in Index)
        require(~blocked, "no two rows with one key in a unique index")
        for time in self.chosen_time:
            self.scanned_at.add(time)
        self.clock = HybridTime.later
        for i in Index:
            here = self.checkpoint[t][i]
            self.checkpoint[t][i] = choose(self._is_to_do(t, i), here.column(_after), here)

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        """A chunk finds a constraint violated, or the index gone: that index fails, others go on."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        gone = self._left(i) & self._is_removed(i)
        require(self._is_blocked(t, i) | gone, "index cannot be built, or is dropped")
        self.job[i] = InJob.failed

    @action(by=MASTER, spends=IndexedTable.aborts)
    def give_up(self) -> None:
        """Splits, safe time or a chunk take longer than is waited for: every index of the job fails."""
        waits = self.step.any_of(Step.wait_for_splits, Step.get_safe_time, Step.backfill_tablets)
        require(waits, "job waits for tablets")
        require(some(self.job[i] == InJob.in_progress for i in Index), "an index is left")
        for i in Index:
            unfinished = self.job[i] == InJob.in_progress
            self.gave_up.put(i, self.gave_up.has(i) | unfinished)
            self.job[i] = choose(unfinished, InJob.failed, self.job[i])

    @step.step(
        (Step.wait_for_splits, Step.get_safe_time, Step.backfill_tablets),
        Step.allow_gc,
        by=MASTER,
        fair=WEAK,
    )
    def find_all_done(self) -> None:
        """J4: every tablet is done for every index that has not failed."""
        undone = some(self._is_to_do(t, i) for t in Tablet for i in Index)
        require(~undone, "every tablet is done")
        for i in Index:
            self.job[i] = choose(self._left(i), InJob.success, self.job[i])

    @step.step(Step.allow_gc, Step.write_permissions, by=MASTER, fair=WEAK)
    def allow_gc(self) -> None:
        """J5: the tables of the indexes that are built may reclaim delete markers."""
        for i in Index:
            retains = self.retains_delete_markers.has(i) & (self.job[i] != InJob.success)
            self.retains_delete_markers.put(i, retains)

    @step.step(Step.write_permissions, Step.clear_checkpoints, by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        """J6: what is built becomes readable, what failed is to be removed; no index ever goes back."""
        for i in Index:
            built, old = self.job[i] == InJob.success, self.permission[i]
            goal = choose(built, Permission.read_write_and_delete, self.era.removal)
            asked = (self.job[i] != InJob.absent) & (old != Permission.absent)
            is_past = progress_of(old) >= progress_of(goal)
            self.permission[i] = choose(asked & ~is_past, goal, old)
        self._bump_version()

    @action(by=MASTER, fair=WEAK)
    def clear_checkpoints(self) -> None:
        """J7a: the checkpoints are erased; the job with them, where one write does both."""
        require(self.step == Step.clear_checkpoints, "permissions are written")
        for t in Tablet:
            for i in Index:
                self.checkpoint[t][i] = Checkpoint.never_begun
        if self.era.cleared_at_once:
            self._forget_job()
            self.step = Step.finish
        else:
            self.step = Step.clear_job

    @step.step(Step.clear_job, Step.finish, by=MASTER, fair=WEAK)
    def clear_job(self) -> None:
        """J7b: the job is erased."""
        only_when(not self.era.cleared_at_once)
        self._forget_job()

    @step.step(Step.finish, Step.none, by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """J8: the leader is free for another job."""
        self.is_backfilling = False
        self._forget_time()

    # -- faults --------------------------------------------------------------------------------------------

    @action(spends=faults)
    def fail_over(self) -> None:
        """Another master becomes the leader: what only the old one knew is lost."""
        self._forget_memory()
        self.is_backfilling = False

    @action(by=MASTER, spends=faults)
    def fail_to_write(self) -> None:
        """A write to the sys catalog fails: the leader leaves the job, to be resumed from what is written."""
        waits = self.step.any_of(Step.wait_for_splits, Step.finish)
        require((self.step != Step.none) & ~waits, "the step ends with a write")
        self._leave_job()

    # -- what recurs ---------------------------------------------------------------------------------------

    def _forget_memory(self) -> None:
        self.step = Step.none
        self.requested = frozenset()
        self._forget_time()

    def _forget_time(self) -> None:
        self.chosen_time = None

    def _leave_job(self) -> None:
        self._forget_memory()
        self.is_backfilling = False

    def _forget_job(self) -> None:
        for i in Index:
            self.job[i] = InJob.absent
        self._forget_read_time()
        self.scanned_at = frozenset()
        self.clock = HybridTime.first

    def _may_begin(self) -> None:
        self._all_tablets_are_current()
        self._no_index_is_altered()
        require(~self.is_backfilling, "no job is running")

    def _nothing_to_backfill(self) -> Bool:
        waits = some(self.permission[i] == Permission.do_backfill for i in Index)
        return ~waits & ~self._job_exists() & ~self.is_backfilling

    def _forget_read_time(self) -> None:
        self.read_time = None

    def _job_exists(self) -> Bool:
        return some(self.job[i] != InJob.absent for i in Index)

    def _left(self, i: Term[Index]) -> Bool:
        """An index of the job that has not failed; one whose tablets are done is looked at again on resuming."""
        return self.job[i].any_of(InJob.in_progress, InJob.success)

    def _is_to_do(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        return self._left(i) & (self.checkpoint[t][i] != Checkpoint.done)

    def _is_blocked(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """The rest of the tablet has a row that violates a constraint of the index."""
        rest = self.checkpoint[t][i] == Checkpoint.in_the_middle
        return (self.job[i] == InJob.in_progress) & (self.unbuildable == i) & rest

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(launch, "step is none", because=AT_A_STEP),
        equivalent_loss(launch, step, because=AT_A_STEP),
        equivalent_drop(resume, "step is none", because=AT_A_STEP),
        equivalent_loss(resume, step, because=AT_A_STEP),
        equivalent_loss(
            choose_read_time,
            chosen_time,
            read_time,
            because="only under seed does a job choose its time again",
        ),
        equivalent_drop(backfill_chunk, "tablet is not done", because="there is nothing to scan"),
        equivalent_loss(
            backfill_chunk, scanned_at, because="what a promise looks at, and nobody else"
        ),
        equivalent_drop(
            fail_index,
            "tablets are being backfilled",
            "index cannot be built, or is dropped",
            because="the job is recorded: its index fails sooner or later",
        ),
        equivalent_drop(
            give_up,
            "job waits for tablets",
            "an index is left",
            because="the job is recorded, and only what is in progress fails",
        ),
        equivalent_drop(
            find_all_done,
            "every tablet is done",
            because="only under yugabyte-2.x has a job that succeeded lost its checkpoints",
        ),
        equivalent_drop(
            fail_to_write,
            "the step ends with a write",
            because="a fault: it may strike at any step",
        ),
        equivalent_loss(
            _forget_time,
            chosen_time,
            because="whoever goes on takes the recorded time, or chooses one",
        ),
        equivalent_drop(
            _may_begin,
            "no index is to move on or to be deleted first",
            because="a job that begins while other indexes are altered only shares its scan with fewer",
        ),
        equivalent_drop(_may_begin, "no job is running", because=AT_A_STEP),
    )
