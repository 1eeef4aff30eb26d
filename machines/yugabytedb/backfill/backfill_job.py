"""The backfill job of one table, and what it promises while the master leader changes and writes fail.

002: after the index is at DB_REORG, here DO_BACKFILL as in the code, "the YB-Master orchestrates the backfill process".
Its `t_read`, "picked by the YB-Master and sent to all the tablets", is the read time of the job: `read_time` in the sys
catalog, `chosen_time` in the leader's memory; what "the YB-Master persists" of a tablet is its checkpoint.

Each permission of an index is a version of the table; the master starts the next one when every tablet has applied,
and reported, the last. What is written to the sys catalog survives, what is in the leader's memory does not.
`backfill_chunks.py` and `backfill_rpcs.py` put keys and messages around the one step that takes long;
`backfill_safe_time.py`, `backfill_split.py`, `backfill_leaders.py` and `backfill_throttle.py` look more closely at
others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_states import (
    SEED,
    YUGABYTE_2,
    YUGABYTE_2026,
    Checkpoint,
    ReadTime,
    Step,
    TableState,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    MOVED_BY_ALTER,
    WEAK,
    Index,
    Tablet,
    next_permission,
    progress_of,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    observed,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
    volatile,
    wording,
)

CLOCK = Actor("clock")
AT_A_STEP = "a leader is at a step exactly while it is backfilling"


def _after(checkpoint: Checkpoint) -> Checkpoint:
    return Checkpoint.in_the_middle if checkpoint is Checkpoint.never_begun else Checkpoint.done


class BackfillJob(Machine):
    """Indexes are created and dropped, and one job at a time backfills those that wait for it."""

    era = profiles(SEED, YUGABYTE_2, YUGABYTE_2026)
    aborts = budget(1, doc="DROP INDEX, and jobs that give up on splits, safe time or a chunk")
    faults = fault_budget(
        1, doc="changes of the master leader, and writes to the sys catalog that fail"
    )

    exercised_at = scopes({Index: 1}, {aborts: 0}, {Tablet: 1}, {Index: 1, Tablet: 1, faults: 2})

    # in the sys catalog
    permission = per(Index, one_of(Permission, init=Permission.absent))
    retains_delete_markers = set_of(Index)
    table: OneVar[TableState] = one_of(TableState, init=TableState.running)
    job = per(Index, optional(Status))  # `BackfillJobPB.backfill_state`
    read_time: OptionalVar[ReadTime] = optional(ReadTime)  # `backfilling_timestamp`
    checkpoint = per(Tablet, per(Index, one_of(Checkpoint, init=Checkpoint.never_begun)))
    # the tablets: what they have applied, and reported, of the table's version
    known = per(Tablet, per(Index, one_of(Permission, init=Permission.absent)))
    # what befalls the indexes
    unbuildable = constant(optional(Index, init=ANY))  # it is unique, and two rows have one key
    created: SetVar[Index] = set_of(Index)
    dropped: SetVar[Index] = set_of(Index)
    # the leader's memory
    is_backfilling: FlagVar = volatile(flag(), of=MASTER)
    step: OneVar[Step] = volatile(one_of(Step, init=Step.none), of=MASTER)
    requested: SetVar[Index] = volatile(set_of(Index), of=MASTER)  # of the job that it launches
    chosen_time: OptionalVar[ReadTime] = volatile(optional(ReadTime), of=MASTER)
    # the clock of the masters: it goes on while rows are read
    clock: OneVar[ReadTime] = observed(one_of(ReadTime, init=ReadTime.first), of=CLOCK)
    # what befalls the job
    scanned_at: SetVar[ReadTime] = history(set_of(ReadTime))  # when it has read rows
    gave_up: SetVar[Index] = set_of(Index)

    # == the table =======================================================================================

    @action(by=CLIENT)
    def create_index(self, i: Term[Index]) -> None:
        """CREATE INDEX: the index table is there, and the index is known at DELETE_ONLY."""
        require(~self.created.has(i), "index is new")
        self.created.add(i)
        self.permission[i] = Permission.delete_only
        self.retains_delete_markers.add(i)
        self._bump_version()

    @action(by=CLIENT, spends=aborts)
    def drop_index(self, i: Term[Index]) -> None:
        """DROP INDEX, at any time: the index is on its way out."""
        require(~self._is_removed(i), "index is not being removed yet")
        self.dropped.add(i)
        self.permission[i] = self.era.removal
        self._bump_version()

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        """A tablet applies the version of the table and reports it."""
        require(~self._is_current(t), "tablet is behind")
        for i in Index:
            self.known[t][i] = self.permission[i]

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """Every tablet has the version: indexes that only need that move on by one permission."""
        self._all_tablets_are_current()
        require(some(self._moves(i) for i in Index), "an index moves on")
        for i in Index:
            self.permission[i] = self.permission[i].column(next_permission)
        self._bump_version()

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """Nobody uses the index any more: its table is deleted."""
        self._all_tablets_are_current()
        require(self.permission[i] == Permission.index_unused, "index is unused")
        self.permission[i] = Permission.absent
        self._bump_version()

    # -- helpers -------------------------------------------------------------------------------------------

    def _bump_version(self) -> None:
        self.table = TableState.altering

    def _is_current(self, t: Term[Tablet]) -> Bool:
        return every(self.known[t][i] == self.permission[i] for i in Index)

    def _all_tablets_are_current(self) -> None:
        require(self.table == TableState.altering, "table is altering")
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")

    def _no_index_is_altered(self) -> None:
        altered = some(self._moves(i) for i in Index)
        unused = some(self.permission[i] == Permission.index_unused for i in Index)
        require(~altered & ~unused, "no index is to move on or to be deleted first")

    def _moves(self, i: Term[Index]) -> Bool:
        return self.permission[i].any_of(*MOVED_BY_ALTER)

    def _is_removed(self, i: Term[Index]) -> Bool:
        """On its way out, or gone."""
        return self.permission[i].any_of(
            Permission.write_and_delete_while_removing,
            Permission.delete_only_while_removing,
            Permission.index_unused,
            Permission.absent,
        )

    def _is_settled(self, i: Term[Index]) -> Bool:
        """Usable, or not there."""
        return self.permission[i].any_of(Permission.absent, Permission.read_write_and_delete)

    # == the steps of a job ==============================================================================

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
            self.requested.put(other, self._shares_the_scan(other, i))

    @step.step(Step.launch, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def record_job(self) -> None:
        """J0: the job is written, with the indexes that it is for."""
        for i in Index:
            requested = self.requested.has(i)
            self.job[i] = choose(requested, Term.of(Status.in_progress), None)
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
        self._is_next(t)
        blocked = some(self._is_blocked(t, i) for i in Index)
        require(~blocked, "no two rows with one key in a unique index")
        for time in self.chosen_time:
            self.scanned_at.add(time)
        self.clock = ReadTime.later
        for i in Index:
            here = self.checkpoint[t][i]
            self.checkpoint[t][i] = choose(self._is_to_do(t, i), here.column(_after), here)

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        """A chunk finds a constraint violated, or the index gone: that index fails, others go on."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        gone = self._left(i) & self._is_removed(i)
        require(self._is_blocked(t, i) | gone, "index cannot be built, or is dropped")
        self.job[i] = Status.failed

    @action(by=MASTER, spends=aborts)
    def give_up(self) -> None:
        """Splits, safe time or a chunk take longer than is waited for: every index fails that is not in all tablets."""
        waits = self.step.any_of(Step.wait_for_splits, Step.get_safe_time, Step.backfill_tablets)
        require(waits, "job waits for tablets")
        require(some(self._is_unfinished(i) for i in Index), "an index is left")
        for i in Index:
            unfinished = self._is_unfinished(i)
            self.gave_up.put(i, self.gave_up.has(i) | unfinished)
            self.job[i] = choose(unfinished, Status.failed, self.job[i])

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
            self.job[i] = choose(self._left(i), Status.success, self.job[i])

    @step.step(Step.allow_gc, Step.write_permissions, by=MASTER, fair=WEAK)
    def allow_gc(self) -> None:
        """J5: the tables of the indexes that are built may reclaim delete markers."""
        for i in Index:
            retains = self.retains_delete_markers.has(i) & (self.job[i] != Status.success)
            self.retains_delete_markers.put(i, retains)

    @step.step(Step.write_permissions, Step.clear_checkpoints, by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        """J6: what is built becomes readable, what failed is to be removed; no index ever goes back."""
        for i in Index:
            built, old = self.job[i] == Status.success, self.permission[i]
            goal = choose(built, Permission.read_write_and_delete, self.era.removal)
            asked = (self.job[i].is_some()) & (old != Permission.absent)
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

    # -- helpers -------------------------------------------------------------------------------------------

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
            self.job[i] = None
        self._forget_read_time()
        self.scanned_at = frozenset()
        self.clock = ReadTime.first

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
        return some(self.job[i].is_some() for i in Index)

    def _left(self, i: Term[Index]) -> Bool:
        """An index of the job that has not failed; one whose tablets are done is looked at again on resuming."""
        return self.job[i].any_of(Status.in_progress, Status.success)

    def _is_to_do(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        return self._left(i) & (self.checkpoint[t][i] != Checkpoint.done)

    def _is_unfinished(self, i: Term[Index]) -> Bool:
        undone = some(self.checkpoint[t][i] != Checkpoint.done for t in Tablet)
        return (self.job[i] == Status.in_progress) & undone

    def _is_next(self, t: Term[Tablet]) -> None:
        require(some(self._is_to_do(t, i) for i in Index), "tablet is not done")

    def _shares_the_scan(self, other: Term[Index], i: Term[Index]) -> Bool:
        """Of the indexes that wait, those that the job of one is for, too."""
        if self.era.batching:
            return self.permission[other] == Permission.do_backfill
        return other == i

    def _is_blocked(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """The rest of the tablet has a row that violates a constraint of the index."""
        rest = self.checkpoint[t][i] == Checkpoint.in_the_middle
        return (self.job[i] == Status.in_progress) & (self.unbuildable == i) & rest

    # -- promises ------------------------------------------------------------------------------------------

    @accepts(create_index)
    def indexes_are_created_at_any_time(self, i: Term[Index]) -> Bool:
        """002: "The CREATE INDEX command is asynchronous, it does not wait for the index backfill to complete"."""
        return ~self.created.has(i)

    @accepts(drop_index)
    def indexes_are_dropped_at_any_time(self, i: Term[Index]) -> Bool:
        """DROP INDEX does not wait for the job that builds the index."""
        return self.permission[i].any_of(
            Permission.delete_only,
            Permission.write_and_delete,
            Permission.do_backfill,
            Permission.read_write_and_delete,
        )

    @accepts(launch_next_version)
    def indexes_move_on_while_others_are_built(self) -> Bool:
        """002, "Create the index table": "Once all the schema changes are propagated to all the nodes, the index state
        is updated", of an index on its way in: no matter which other one, of this table or another, is being backfilled,
        or is to be deleted.
        """
        known = every(self.known[t][i] == self.permission[i] for t in Tablet for i in Index)
        moves = some(
            self.permission[i].any_of(Permission.delete_only, Permission.write_and_delete)
            for i in Index
        )
        return known & moves

    @accepts(delete_index)
    def unused_indexes_are_deleted_while_others_are_built(self, i: Term[Index]) -> Bool:
        """002, Design Goals: "An aborted index will be cleaned up and deleted", whichever other one, of this table or another,
        is being backfilled, or is on its way.
        """
        known = every(self.known[t][o] == self.permission[o] for t in Tablet for o in Index)
        return known & (self.permission[i] == Permission.index_unused)

    @lemma
    @accepts(resume)
    def recorded_jobs_are_taken_up(self) -> Bool:
        """002, "Handling node restarts and leadership changes": a job need not "be restarted if there is a leadership change": it
        is taken up by the new leader when every tablet knows of its indexes, and none is on its way, whatever else that
        leader has to do. A lemma where there is one job, as that one ends.
        """
        recorded = some(self.job[i].is_some() for i in Index) & ~self.is_backfilling
        known = every(self.known[t][i] == self.permission[i] for t in Tablet for i in Index)
        on_its_way = some(
            self.permission[i].any_of(*MOVED_BY_ALTER, Permission.index_unused) for i in Index
        )
        return recorded & known & ~on_its_way

    @lemma
    @accepts(launch)
    def indexes_that_wait_are_backfilled(self, i: Term[Index]) -> Bool:
        """002, "Backfill the data": "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill
        process": whatever else the leader has to do, or has found as it came. A lemma where there is one job, as that one ends.
        """
        idle = (self.step == Step.none) & ~self.is_backfilling
        waits = (self.permission[i] == Permission.do_backfill) & idle
        free = ~some(self.job[o].is_some() for o in Index)
        known = every(self.known[t][o] == self.permission[o] for t in Tablet for o in Index)
        on_its_way = some(
            self.permission[o].any_of(*MOVED_BY_ALTER, Permission.index_unused) for o in Index
        )
        return waits & free & known & ~on_its_way

    @accepts(choose_read_time)
    def read_times_wait_for_nothing_else(self) -> Bool:
        """002, "Waiting for pending transactions": GetSafeTime waits for those, and for nothing else: not for other indexes
        that are added meanwhile, nor for other tables that are scanned.
        """
        return self.step == Step.get_safe_time

    @accepts(write_permissions)
    def built_indexes_wait_for_no_other(self) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed on all the tablets of the table, the table
        state is updated to READ_WRITE_AND_DELETE": whichever other index is being altered, or built, of this table or another.
        """
        return self.step == Step.write_permissions

    @accepts(find_no_splits)
    def scans_are_prepared_while_others_are_altered(self) -> Bool:
        """002, "Backfill the data": "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill
        process": an index that comes later is not waited for before tablets are asked for their safe times, either.
        """
        return (self.step == Step.wait_for_splits) & self.read_time.is_none()

    @accepts(record_job)
    def jobs_are_recorded_while_others_are_altered(self) -> Bool:
        """002, "Backfill the data": the same of the job itself: it is in the catalog before an index that comes later is known."""
        return self.step == Step.launch

    @accepts(allow_gc)
    def delete_markers_may_go_while_others_are_altered(self) -> Bool:
        """002, "Index backfill on a single tablet": delete markers are kept "until the backfill process is complete", that of the
        index itself, whichever other one is being altered, or built, of this table or another.
        """
        return self.step == Step.allow_gc

    @accepts(clear_checkpoints)
    def jobs_are_erased_while_others_are_altered(self) -> Bool:
        """002, "Create the index table": the master "performs checks to see if another schema change is required" when the job is
        erased, which is so as soon as permissions are written: no tablet need know of them.
        """
        return self.step == Step.clear_checkpoints

    @lemma
    @accepts(finish_alter)
    def tables_are_altered_for_no_other(self) -> Bool:
        """002, "Create the index table": "Once all the schema changes are propagated to all the nodes", and none is left to make, the
        table is not ALTERING any more, whichever other table is. A lemma: of a table by itself `every_alter_ends` says as much.
        """
        known = every(self.known[t][i] == self.permission[i] for t in Tablet for i in Index)
        settled = every(
            self.permission[i].any_of(Permission.absent, Permission.read_write_and_delete)
            for i in Index
        )
        idle = every(self.job[i].is_none() for i in Index) & ~self.is_backfilling
        return (self.table == TableState.altering) & known & settled & idle

    @accepts(fail_index)
    def violations_fail_the_index_at_once(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table, such as a unique constraint violation in a
        unique index, the CREATE INDEX command should abort": the first tablet that finds one is enough, whatever it has
        yet to apply.
        """
        scans = (self.step == Step.backfill_tablets) & (self.job[i] == Status.in_progress)
        meets = self.checkpoint[t][i] == Checkpoint.in_the_middle
        return scans & meets & (self.unbuildable == i)

    @accepts(take_recorded_time)
    def scans_that_are_found_go_on(self) -> Bool:
        """002, "Handling node restarts and leadership changes": the job need not "be restarted if there is a leadership change":
        it goes on at the time that is recorded, whichever index is being altered, or table scanned.
        """
        return (self.step == Step.wait_for_splits) & self.read_time.is_some()

    @accepts(find_all_done)
    def completed_scans_wait_for_no_other(self) -> Bool:
        """002, "Finalize the index": "Once the index build is successfully completed on all the tablets of the table", delete
        markers may go, and the index is published: whatever is still to do for another index, or table.
        """
        undone = some(
            self.job[i].any_of(Status.in_progress, Status.success)
            & (self.checkpoint[t][i] != Checkpoint.done)
            for t in Tablet
            for i in Index
        )
        return (self.step == Step.backfill_tablets) & ~undone

    @accepts(find_all_done)
    def jobs_that_are_given_up_end_at_once(self) -> Bool:
        """002, Design Goals: "the CREATE INDEX command should abort": for what a job has given up, splits or safe times, it does
        not wait any longer, nor for what its failed indexes would have needed next.
        """
        waits = self.step.any_of(Step.wait_for_splits, Step.get_safe_time)
        left = some(self.job[i].any_of(Status.in_progress, Status.success) for i in Index)
        return waits & ~left

    @accepts(finish)
    def leaders_are_free_when_the_job_is_erased(self) -> Bool:
        """002, "Create the index table": the master "performs checks to see if another schema change is required", and launches
        the next job, when this one is erased: till then tablets do not split, either.
        """
        return self.step == Step.finish

    @accepts(apply_version)
    def tablets_apply_versions_at_any_time(self, t: Term[Tablet]) -> Bool:
        """002: "The HandleAlterTable() RPC call initiates a schema change on all the nodes", also on one that is
        backfilled, for this table or another, and whichever others have applied it.
        """
        return some(self.known[t][i] != self.permission[i] for i in Index)

    @accepts(give_up)
    def builds_are_given_up_at_any_time(self) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table", the command "should abort and result in a
        failure": whatever the job waits for, and however far it is, as long as an index is not in all tablets.
        """
        unfinished = some(
            (self.job[i] == Status.in_progress)
            & some(self.checkpoint[t][i] != Checkpoint.done for t in Tablet)
            for i in Index
        )
        return self.is_backfilling & unfinished

    @accepts(backfill_chunk)
    def tablets_are_independent(self, t: Term[Tablet]) -> Bool:
        """002, "The index backfill process": "the backfill process on any tablet can proceed independent of the
        others", wherever those are with it, whichever table they are of; nor does it wait for versions of its table.
        """
        asked = self.step == Step.backfill_tablets
        needed = some(
            (self.job[i] == Status.in_progress) & (self.checkpoint[t][i] != Checkpoint.done)
            for i in Index
        )
        duplicate = some(
            (self.unbuildable == i) & (self.job[i] == Status.in_progress) for i in Index
        )
        return asked & needed & ~duplicate

    @lemma
    @sometimes(at={aborts: 0, faults: 0})
    def tablets_are_backfilled_in_parallel(self) -> Bool:
        """002, Design Goals: an index is built "in a distributed manner (utilizing multiple/all nodes in the
        cluster)": all tablets are in the middle of it at once. A lemma: `tablets_are_independent` lets each begin.
        """
        return every(
            some(self.checkpoint[t][i] == Checkpoint.in_the_middle for i in Index) for t in Tablet
        )

    @sometimes(at={Tablet: 1, aborts: 0, faults: 0})
    def one_scan_is_for_all_indexes(self, after: Self) -> Bool:
        """002, "Future Work": "the backfill for the different indices should be batched together so that only one
        scan is done": a chunk is read once, for all of them.
        """
        only_when(self.era.batching)
        return every(
            (self.checkpoint[t][i] == Checkpoint.never_begun)
            & (after.checkpoint[t][i] == Checkpoint.in_the_middle)
            for t in Tablet
            for i in Index
        )

    @sometimes(at={Tablet: 1, aborts: 0, faults: 0})
    def a_second_job_follows(self) -> Bool:
        """An index that comes when a job is under way waits for the next one, whose read time is its own."""
        published = some(self.permission[i] == Permission.read_write_and_delete for i in Index)
        return published & some(self.job[i] == Status.in_progress for i in Index)

    @step_property
    def publishing_waits_for_all_tablets(
        self, after: Self, i: Term[Index], t: Term[Tablet]
    ) -> Bool:
        """002: "the YB-Master needs to wait for the backfill to complete on all the tablets before updating
        the table to the READ_WRITE_AND_DELETE state".
        """
        readable = Permission.read_write_and_delete
        published = (self.permission[i] != readable) & (after.permission[i] == readable)
        return published.implies(self.checkpoint[t][i] == Checkpoint.done)

    @step_property
    def schema_changes_converge_first(self, after: Self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated from
        DELETE_ONLY to WRITE_AND_DELETE. Once all the schema changes converge, the index state finally gets
        set to DB_REORG." The same holds on the way out.
        """
        drops = after.permission[i] == self.era.removal  # at any time
        drops = drops | (~self.dropped.has(i) & after.dropped.has(i))
        moved = self._moves(i) & (after.permission[i] != self.permission[i]) & ~drops
        next_one = after.permission[i] == self.permission[i].column(next_permission)
        return moved.implies(next_one & (self.known[t][i] == self.permission[i]))

    @invariant
    def what_one_tablet_writes_the_others_delete(
        self, i: Term[Index], a: Term[Tablet], b: Term[Tablet]
    ) -> Bool:
        """002, "Intermediate states": in DELETE_ONLY "the delete operation on the index" is applied, before any tablet
        adds entries: none writes one that another would leave behind. Just after DROP INDEX nobody will read it.
        """
        dropped = self.permission[i].any_of(self.era.removal, Permission.absent)
        writes = self.known[a][i].column(lambda p: p.write)
        return (~dropped & writes).implies(self.known[b][i].column(lambda p: p.delete))

    @invariant
    def what_one_tablet_reads_the_others_write(
        self, i: Term[Index], a: Term[Tablet], b: Term[Tablet]
    ) -> Bool:
        """002, READ_WRITE_AND_DELETE: what serves reads gets all writes, also while it is being removed."""
        only_when(self.era.removal_states)
        reads = self.known[a][i].column(lambda p: p.read)
        return reads.implies(self.known[b][i].column(lambda p: p.write))

    @invariant
    def only_built_indexes_are_read(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002, "Intermediate states": "until the backfill process is complete, the newly created index will not be available
        for any reads". Who has not heard of a removal still reads what was built.
        """
        reads = self.known[t][i].column(lambda p: p.read)
        published = self.permission[i] == Permission.read_write_and_delete
        return reads.implies(published | self._is_removed(i))

    @invariant
    def published_indexes_serve_reads(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002, READ_WRITE_AND_DELETE: "the final state, where the MyIndex index can be used to serve reads", on every tablet
        when the table is altered.
        """
        published = self.permission[i] == Permission.read_write_and_delete
        altered = self.table == TableState.running
        return (published & altered).implies(self.known[t][i].column(lambda p: p.read))

    @invariant
    def tablets_write_before_the_backfill(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002, WRITE_AND_DELETE: "update the new value", so that only the rows of before are left for DB_REORG."""
        begun = self.permission[i] == Permission.do_backfill
        return begun.implies(self.known[t][i].column(lambda p: p.write))

    @step_property
    def permissions_never_go_back(self, after: Self, i: Term[Index]) -> Bool:
        """An index at a permission "already past" another is not moved back to it; it goes on, or is gone."""
        gone = after.permission[i] == Permission.absent
        deleted = gone & (self.permission[i] == Permission.index_unused)
        forward = progress_of(after.permission[i]) >= progress_of(self.permission[i])
        return forward | deleted

    @invariant
    def backfill_begins_when_all_tablets_know(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill process";
        an index that is added later may not join it, for the read time is not valid for that one.
        """
        builds = self._left(i) & (self.permission[i] == Permission.do_backfill)
        return builds.implies(self.known[t][i] == Permission.do_backfill)

    @invariant
    def violated_constraints_fail_the_index(self, i: Term[Index]) -> Bool:
        """002: "If a problem arises while scanning the table, such as a unique constraint violation in a unique
        index, the CREATE INDEX command should abort and result in a failure."
        """
        return (self.unbuildable == i).implies(
            self.permission[i] != Permission.read_write_and_delete
        )

    @invariant
    def abandoned_indexes_are_not_published(self, i: Term[Index]) -> Bool:
        """002: "the CREATE INDEX command should abort and result in a failure", also when the job gives up."""
        published = self.permission[i] == Permission.read_write_and_delete
        return self.gave_up.has(i).implies(~published)

    @invariant
    def deleted_indexes_are_used_nowhere(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """An index table is deleted when no tablet reads it, or writes to it, any more."""
        deleted = self.permission[i] == Permission.absent
        used = self.known[t][i].column(lambda p: p.read | p.write | p.delete)
        return deleted.implies(~used)

    @invariant
    def running_tables_are_altered_everywhere(self, t: Term[Tablet]) -> Bool:
        """An alter is completed when every tablet has the table's version."""
        return (self.table == TableState.running).implies(self._is_current(t))

    @invariant
    def only_what_failed_is_removed(self, i: Term[Index]) -> Bool:
        """Failure is per index (yugabyte-db #6290): the others of the job are built."""
        reason = (self.unbuildable == i) | self.dropped.has(i) | self.gave_up.has(i)
        removed = self.created.has(i) & self._is_removed(i)
        return removed.implies(reason)

    @step_property
    def checkpoints_are_kept(self, after: Self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster."""
        order = self.checkpoint[t][i].number_column(list(Checkpoint).index)
        new = after.checkpoint[t][i].number_column(list(Checkpoint).index)
        builds = Permission.do_backfill
        building = (self.permission[i] == builds) & (after.permission[i] == builds)
        return building.implies(new >= order)

    @step_property
    def a_chunk_is_of_one_tablet(self, after: Self, a: Term[Tablet], b: Term[Tablet]) -> Bool:
        """002, "Checkpointing": the answer tells "how far it managed to successfully build" that tablet: it says nothing
        of another one's rows.
        """
        return (self._advances(after, a) & self._advances(after, b)).implies(a == b)

    def _advances(self, after: Self, t: Term[Tablet]) -> Bool:
        return some(
            (after.checkpoint[t][i] != self.checkpoint[t][i])
            & (after.checkpoint[t][i] != Checkpoint.never_begun)
            for i in Index
        )

    @step_property
    def scans_wait_for_indexes_on_their_way(self, after: Self, i: Term[Index]) -> Bool:
        """002, "Create the index table": when all tablets have a version, the master "performs checks to see if another schema
        change is required (for example, in the case of adding multiple indexes to a table and building all of them at the
        same time)": a scan that begins before leaves those to one of their own.
        """
        begins = (self.step == Step.none) & (after.step == Step.launch)
        on_its_way = self.permission[i].any_of(Permission.delete_only, Permission.write_and_delete)
        return begins.implies(~on_its_way)

    @step_property
    def nobody_joins_a_scan(self, after: Self, i: Term[Index]) -> Bool:
        """002, "Waiting for pending transactions": the time of the scan is determined when nothing is pending that leaves
        the index out: it is not valid for an index that comes to the job later.
        """
        chosen = self.read_time.is_some() | ~self.scanned_at.is_empty()
        return (chosen & self.job[i].is_none()).implies(after.job[i].is_none())

    @step_property
    def published_indexes_are_left_alone(
        self, after: Self, t: Term[Tablet], i: Term[Index]
    ) -> Bool:
        """A leader that takes up a finished job does not scan the table again (yugabyte-db #33133)."""
        published = self.permission[i] == Permission.read_write_and_delete
        begun = after.checkpoint[t][i] == Checkpoint.in_the_middle
        return published.implies(~begun)

    @step_property
    def only_a_leader_that_waits_fails_an_index(self, after: Self, i: Term[Index]) -> Bool:
        """002: "The entire build process should not need to restart on a node failure", nor "if there is a leadership
        change": an index that is to be built fails while tablets are waited for, and not as a leader goes, comes, or
        cannot write; nor as another one is dropped.
        """
        fails = (self.job[i] == Status.in_progress) & (after.job[i] == Status.failed)
        waits = (Step.wait_for_splits, Step.get_safe_time, Step.backfill_tablets)
        other = some((o != i) & ~self.dropped.has(o) & after.dropped.has(o) for o in Index)
        waited = self.step.any_of(*waits) & (after.step != Step.none) & ~other
        return (fails & ~after._is_removed(i)).implies(waited)

    @step_property
    def completed_builds_are_published(self, after: Self, i: Term[Index]) -> Bool:
        """002, Finalize the index: "Once the index build is successfully completed on all the tablets of the table, the table
        state is updated to READ_WRITE_AND_DELETE": who gives up then comes too late, whether or not SUCCESS is noted yet.
        """
        completed = every(self.checkpoint[t][i] == Checkpoint.done for t in Tablet)
        sound = self.job[i].any_of(Status.in_progress, Status.success)
        completed = completed & sound & ~after._is_removed(i)
        return completed.implies(after.job[i] != Status.failed)

    @step_property
    def published_indexes_go_on_serving_reads(
        self, after: Self, i: Term[Index], t: Term[Tablet]
    ) -> Bool:
        """002: "All the queries/updates continue against MyTable (and the existing indexes if any)": a tablet that serves
        reads of an index goes on with it while another one is added, as long as that is there.
        """
        stays = after.permission[i] == Permission.read_write_and_delete
        reads = self.known[t][i].column(lambda p: p.read)
        return (stays & reads).implies(after.known[t][i].column(lambda p: p.read))

    @wording('002, "Index backfill on a single tablet": a fixed timestamp, picked by the YB-Master')
    @invariant
    def rows_are_scanned_at_one_time(self) -> Bool:
        """002: "the scan is performed at a fixed timestamp", "picked by the YB-Master and sent to all the
        tablets"; a new leader keeps it (yugabyte-db #3611).
        """
        return self.scanned_at.size() <= 1

    @step_property
    def rows_are_read_at_the_recorded_time(
        self, after: Self, t: Term[Tablet], i: Term[Index]
    ) -> Bool:
        """The read time is in the sys catalog before any row is read at it (yugabyte-db #3611)."""
        only_when(self.era.read_time_recorded)
        scanned = self.checkpoint[t][i] != after.checkpoint[t][i]
        scanned = scanned & (after.checkpoint[t][i] != Checkpoint.never_begun)
        return scanned.implies(self.read_time.is_some() & (self.chosen_time == self.read_time))

    @invariant
    def read_time_is_of_the_job(self) -> Bool:
        """The read time of one job is not valid for the indexes of the next."""
        return self.read_time.is_some().implies(self._job_exists())

    @invariant
    def delete_markers_are_retained(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """002: "compactions for the Index table would not reclaim the delete markers until the backfill process
        is complete"; of an index that has failed nobody will read.
        """
        before = self.permission[i].any_of(
            Permission.delete_only, Permission.write_and_delete, Permission.do_backfill
        )
        incomplete = before & (self.checkpoint[t][i] != Checkpoint.done)
        incomplete = incomplete & (self.job[i] != Status.failed)
        return incomplete.implies(self.retains_delete_markers.has(i))

    @liveness
    def published_indexes_are_compacted(self, i: Term[Index]) -> LeadsTo:
        """Delete markers of an index that serves reads can be reclaimed: before that, as here, or a write later."""
        published = self.permission[i] == Permission.read_write_and_delete
        return leads_to(published, ~published | ~self.retains_delete_markers.has(i))

    @invariant
    def unfinished_work_is_recorded(self) -> Bool:
        """The table stays ALTERING as long as a new leader has something to resume (yugabyte-db #33207)."""
        settled = every(self._is_settled(i) for i in Index)
        idle = settled & ~self._job_exists() & ~self.is_backfilling
        return (self.table == TableState.running).implies(idle)

    @invariant
    def splitting_is_off_only_during_a_job(self) -> Bool:
        """`is_backfilling` keeps tablets from splitting; it never outlives the job's steps (yugabyte-db #33009), of which
        the last one comes when the job is erased.
        """
        under_way = ~self.step.any_of(Step.none, Step.finish)
        off = self.is_backfilling
        return under_way.implies(off) & off.implies(self.step != Step.none)

    @lemma
    def tablets_are_one_permission_behind(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """A tablet knows an index as it is, or as it was before; as it was at any time when that is dropped, which may be at
        once where nothing has been written to it.
        """
        only_when(self.era.removal_states)
        known, now = self.known[t][i], self.permission[i]
        unheard = (~self.created.has(i)).implies(known == Permission.absent)
        beyond = known.any_of(Permission.delete_only_while_removing, Permission.index_unused)
        dropped = (now == self.era.removal).implies(~beyond)
        unwritten = self.dropped.has(i) & (now == Permission.index_unused)
        unwritten = unwritten & known.any_of(Permission.absent, Permission.delete_only)
        return (
            unheard
            & dropped
            & every(
                (now == following).implies(known.any_of(before, following) | unwritten)
                for before, following in pairwise(Permission)
                if following is not self.era.removal
            )
        )

    @lemma
    def jobs_are_for_indexes_that_wait(self, i: Term[Index]) -> Bool:
        """An index of a job was at DO_BACKFILL, and its permission has not gone back since."""
        known = (self.permission[i] != Permission.absent).implies(self.created.has(i))
        past = self.created.has(i) & self._is_removed(i)
        waits_or_past = past | self.permission[i].any_of(
            Permission.do_backfill, Permission.read_write_and_delete
        )
        asked = (self.job[i].is_some()) | self.requested.has(i)
        published = self.permission[i] == Permission.read_write_and_delete
        return known & asked.implies(waits_or_past) & ~(self.requested.has(i) & published)

    @lemma
    def checkpoints_are_of_the_job(self, t: Term[Tablet], i: Term[Index]) -> Bool:
        """There are no checkpoints without a job, nor past a row that no index may have."""
        begun = self.checkpoint[t][i] != Checkpoint.never_begun
        done = self.checkpoint[t][i] == Checkpoint.done
        of_job = begun.implies((self.job[i].is_some()) & (self.step != Step.clear_job))
        return of_job & done.implies(self.unbuildable != i)

    @lemma
    def launched_indexes_are_ready(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """A job that is being launched is the only one, and for indexes that every tablet knows."""
        unrecorded = self.step.any_of(Step.launch, Step.finish)
        only = unrecorded.implies(~self._job_exists())
        launching = (self.step == Step.launch).implies(~self.requested.is_empty())
        only = (
            only & launching & (~unrecorded & (self.step != Step.none)).implies(self._job_exists())
        )
        ready = (self.permission[i] == Permission.do_backfill).implies(
            self.known[t][i] == Permission.do_backfill
        )
        launched = self.requested.has(i).implies((self.step == Step.launch) & ready)
        return only & launched

    @lemma
    def indexes_are_decided_before_the_end(self, i: Term[Index], t: Term[Tablet]) -> Bool:
        """Past the tablets no index is in progress; success means that all tablets are done."""
        past = self.step.any_of(Step.allow_gc, Step.write_permissions, Step.clear_checkpoints)
        decided = past.implies(self.job[i] != Status.in_progress)
        waits = self.permission[i] == Permission.do_backfill
        built = waits & (self.job[i] == Status.success)
        published = self.permission[i] == Permission.read_write_and_delete
        published = published & (self.job[i].is_some())
        if self.era.cleared_at_once:
            built = built | published
        done = built.implies(self.checkpoint[t][i] == Checkpoint.done)
        return decided & done & published.implies(self.job[i] == Status.success)

    @lemma
    def failures_have_reasons(self, i: Term[Index]) -> Bool:
        """An index of a job fails for a reason, and only one that can be built succeeds."""
        reason = (self.unbuildable == i) | self.dropped.has(i) | self.gave_up.has(i)
        failed = (self.job[i] == Status.failed).implies(reason)
        given_up = (self.job[i] == Status.failed) | self._is_removed(i)
        given_up = given_up & self.created.has(i)
        failed = failed & self.gave_up.has(i).implies(given_up)
        return failed & (self.job[i] == Status.success).implies(self.unbuildable != i)

    @lemma
    def permissions_are_written_before_the_end(self, i: Term[Index]) -> Bool:
        """At J7 no index of the job waits any more."""
        cleared = self.step.any_of(Step.clear_checkpoints, Step.clear_job)
        waits = self.permission[i] == Permission.do_backfill
        return cleared.implies(~(waits & (self.job[i].is_some())))

    @lemma
    def the_clock_goes_on_while_rows_are_read(self) -> Bool:
        """A time that is chosen after rows were read is another one."""
        return (self.clock == ReadTime.first) == self.scanned_at.is_empty()

    @lemma
    def the_chosen_time_is_the_recorded_one(self) -> Bool:
        """Rows are read at the time that is recorded."""
        only_when(self.era.read_time_recorded)
        same = self.chosen_time == self.read_time
        scans = (self.step == Step.backfill_tablets).implies(same & self.read_time.is_some())
        read = every(self.read_time == time for time in self.scanned_at)
        chooses = (self.step == Step.get_safe_time).implies(self.read_time.is_none())
        return scans & read & chooses

    @lemma
    def delete_markers_go_when_built(self, i: Term[Index]) -> Bool:
        """Until an index is built, or has failed, its delete markers are retained."""
        before = self.permission[i].any_of(
            Permission.delete_only, Permission.write_and_delete, Permission.do_backfill
        )
        over = self.job[i].any_of(Status.success, Status.failed)
        return (before & ~over).implies(self.retains_delete_markers.has(i))

    @final
    def nothing_is_going_on(self) -> Bool:
        """A table whose indexes are usable or gone may stay as it is."""
        return self._is_clean()

    @lemma
    @always_reachable
    def every_index_can_be_usable_or_gone(self) -> Bool:
        """002: indexes are consistent "after the index builds are completed", and "an aborted index will be
        cleaned up and deleted": whatever happened, nothing of a job need be left. A lemma: no run comes to a state
        again, and none ends but in `nothing_is_going_on`, which says the same.
        """
        return self._is_clean()

    @lemma
    @liveness
    def every_index_becomes_usable_or_is_deleted(self, i: Term[Index]) -> LeadsTo:
        """002: "An aborted index will be cleaned up and deleted"; all others are built. A lemma: till then the table is
        ALTERING (`unfinished_work_is_recorded`), and `every_alter_ends`.
        """
        return leads_to(self.created.has(i), self._is_settled(i))

    @liveness
    def dropped_indexes_are_deleted(self, i: Term[Index]) -> LeadsTo:
        """DROP INDEX takes effect, whether a job is running or not (yugabyte-db #20041)."""
        return leads_to(self.dropped.has(i), self.permission[i] == Permission.absent)

    @lemma
    @liveness
    def every_job_ends(self) -> LeadsTo:
        """002: it is possible "to query and determine the status (IN-PROGRESS, SUCCESS, FAILED)": the first of
        them does not last. A lemma: till then the table is ALTERING (`unfinished_work_is_recorded`), and
        `every_alter_ends`.
        """
        return leads_to(self._job_exists(), ~self._job_exists())

    @liveness
    def every_alter_ends(self) -> LeadsTo:
        """The table does not stay ALTERING (yugabyte-db #4930)."""
        return leads_to(self.table == TableState.altering, self.table == TableState.running)

    @independent(
        apply_version,
        launch_next_version,
        delete_index,
        of=(
            job,
            is_backfilling,
            step,
            requested,
            read_time,
            chosen_time,
            checkpoint,
            clock,
            scanned_at,
            gave_up,
        ),
    )
    def alters_wait_for_no_job(self) -> None:
        """002, "Create the index table": "Once all the schema changes are propagated to all the nodes, the index state is updated":
        whatever is being backfilled, and how far; also of an aborted index, which "will be cleaned up and deleted".
        """

    @independent(backfill_chunk, fail_index, of=(Tablet, clock, scanned_at, created, dropped))
    def chunks_wait_for_no_other_tablet(self) -> None:
        """002, "The index backfill process": a tablet "can proceed independent of the others": it tells, too, what it has found to
        be wrong with an index, or that one is gone.
        """

    def _is_clean(self) -> Bool:
        settled = every(self._is_settled(i) for i in Index)
        erased = every(
            self.checkpoint[t][i] == Checkpoint.never_begun for t in Tablet for i in Index
        )
        running = self.table == TableState.running
        return settled & erased & running & ~self._job_exists() & ~self.is_backfilling

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            rows_are_scanned_at_one_time,
            under=SEED,
            because="the master keeps the read time to itself, so after a change of the leader the rest of the rows is "
            "scanned at another time. That breaks the words of the text, and not its data: each row is scanned once, at "
            "a safe time",
        ),
        violated(
            published_indexes_are_left_alone,
            under=YUGABYTE_2,
            because="checkpoints and job are erased in two writes, and a leader that comes in between begins the whole "
            "backfill anew (yugabyte-db #33133)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            drop_index, "index is not being removed yet", because="dropping twice is dropping once"
        ),
        equivalent_helper(
            _left,
            "does not mention: job[i] is success",
            because="the rows of an index that succeeded need no second look, as long as its checkpoints are there",
        ),
        equivalent_drop(apply_version, "tablet is behind", because="there is nothing to apply"),
        equivalent_drop(launch_next_version, "an index moves on", because="nothing moves"),
        equivalent_loss(
            _bump_version,
            table,
            because="in the middle of an alter or a job the table is altering already",
        ),
        equivalent_drop(
            _all_tablets_are_current,
            "table is altering",
            because="as long as something is left to do the table is altering",
        ),
        equivalent_drop(
            resume,
            "every tablet has the version",
            because="a job that was launched may go on while another index is altered",
        ),
        equivalent_drop(launch, "step is none", because=AT_A_STEP),
        equivalent_drop(resume, "step is none", because=AT_A_STEP),
        equivalent_drop(_is_next, "tablet is not done", because="there is nothing to scan"),
        equivalent_weakening(
            fail_index,
            "index cannot be built, or is dropped",
            because="an index that is dropped, or cannot be built, fails sooner or later",
        ),
        equivalent_drop(
            give_up,
            "an index is left",
            because="only what is not in all tablets fails",
        ),
        equivalent_weakening(
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
        equivalent_weakening(
            launch,
            "no index is to move on or to be deleted first",
            because="an index on its way out has no part in the scan, and may go meanwhile; of those on their way in none may",
        ),
        equivalent_drop(
            resume,
            "no index is to move on or to be deleted first",
            because="the job that is recorded has its indexes: what is altered meanwhile waits for the next one",
        ),
        equivalent_drop(_may_begin, "no job is running", because=AT_A_STEP),
        equivalent_step(
            step,
            Step.clear_job,
            tuple(Step),
            because="only yugabyte-2.x clears the job in a write of its own",
        ),
        equivalent_replacement(
            drop_index,
            "index is not being removed yet",
            because="dropping twice is dropping once",
        ),
        equivalent_replacement(
            launch,
            "i for i2 (2)",
            "delete_only_while_removing for write_and_delete_while_removing",
            "index_unused for delete_only_while_removing",
            "deleted first: every i2 in Index: permission[i2] is index_unused",
            because="an index on its way out has no part in the scan, and may go meanwhile",
        ),
        equivalent_replacement(
            delete_index,
            "every tablet has the version: i for i2",
            because="an index that every tablet knows to be unused may go, whatever they know of others",
        ),
        equivalent_replacement(
            record_job,
            "step becomes",
            because="what a job does about splits, `backfill-split` has; one that is new has no read time either way",
        ),
        equivalent_replacement(
            resume,
            "every tablet has the version",
            because="a job that was launched may go on while another index is altered",
        ),
        equivalent_replacement(
            resume,
            "no index is to move on or to be deleted first",
            because="the job that is recorded has its indexes: what is altered meanwhile waits for the next one",
        ),
        equivalent_replacement(
            backfill_chunk, "tablet is not done", because="there is nothing to scan"
        ),
        equivalent_replacement(
            fail_index,
            "is dropped: success for in_progress (2)",
            "is dropped: failed for success",
            "is dropped: delete_only_while_removing for",
            "is dropped: index_unused for",
            "is dropped: absent for",
            "is dropped: delete_only for",
            because="an index that is dropped goes, whether its job fails or not",
        ),
        equivalent_replacement(
            find_all_done,
            "step is",
            because="a job with nothing left to do finds that in the end, at a later step",
        ),
    )
