"""Mistakes put back into `BackfillJob`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, BudgetName, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_FAULT: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}
CREATE_TABLE = 'design document 002, "Create the index table"'
FINALIZE = 'design document 002, "Finalize the index"'
ORCHESTRATES = 'design document 002: the master "orchestrates the backfill process"'
LEADERSHIP = 'design document 002, "Handling node restarts and leadership changes"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'
CONVERGE = 'design document 002: "Once all the schema changes are propagated to all the nodes"'
ON_ALL_NODES = (
    'design document 002: HandleAlterTable() "initiates a schema change on all the nodes"'
)


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
    "002-145",
    ABORTS,
    breaks=BackfillJob.builds_are_given_up_at_any_time,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class ScansAreNotGivenUp(BackfillJob):
    """A job gave up while it waited for splits or for the safe time: a chunk that failed was tried for ever."""

    @action(by=MASTER, spends=BackfillJob.aborts)
    def give_up(self) -> None:
        """Splits or safe time take longer than is waited for."""
        require(self.step != Step.backfill_tablets, "no row is read yet")
        super().give_up()


@known_bug(
    "002-150",
    CONVERGE,
    breaks=BackfillJob.indexes_move_on_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class AltersWaitForTheJob(BackfillJob):
    """An index that was created while another was backfilled stayed at DELETE_ONLY until that was done, for hours."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        """Every tablet has the version."""
        super().launch_next_version()
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-151",
    ON_ALL_NODES,
    breaks=BackfillJob.tablets_apply_versions_at_any_time,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class ScannedTabletsApplyNothing(BackfillJob):
    """A tablet applied no version while it was being scanned."""

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        """A tablet applies the version of the table and reports it."""
        super().apply_version(t)
        require(self.step != Step.backfill_tablets, "it is not being scanned")


@known_bug(
    "002-162",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=BackfillJob.unused_indexes_are_deleted_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class DeletedWhenNoJobRuns(BackfillJob):
    """The table of an index that nobody used was deleted when no other one was being backfilled."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        """Nobody uses the index any more."""
        super().delete_index(i)
        require(~self.is_backfilling, "no job is running")


@known_bug(
    "002-263",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillJob.read_times_wait_for_nothing_else,
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class ReadTimesWaitForAlters(BackfillJob):
    """The time of the scan is chosen when every tablet knows of all indexes, also of those that come after the job."""

    @BackfillJob.step.step(Step.get_safe_time, Step.backfill_tablets, by=MASTER, fair=WEAK)
    def choose_read_time(self) -> None:
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")
        self.chosen_time = self.clock
        if self.era.read_time_recorded:
            self.read_time = self.clock


@known_bug(
    "002-270",
    FINALIZE,
    breaks=BackfillJob.built_indexes_wait_for_no_other,
    budgets={BackfillJob.aborts: 0, BackfillJob.faults: 0},
)
class PublishingWaitsForAlters(BackfillJob):
    """An index that is built is published when no other one is on its way in."""

    @BackfillJob.step.step(Step.write_permissions, Step.clear_checkpoints, by=MASTER, fair=WEAK)
    def write_permissions(self) -> None:
        require(~some(self._moves(i) for i in Index), "no other index is altered")
        for i in Index:
            built = self.job[i] == Status.success
            goal = choose(built, Permission.read_write_and_delete, self.era.removal)
            waits = self.job[i].is_some() & (self.permission[i] == Permission.do_backfill)
            self.permission[i] = choose(waits, goal, self.permission[i])
        self._bump_version()


@known_bug(
    "002-280",
    ORCHESTRATES,
    breaks=BackfillJob.scans_are_prepared_while_others_are_altered,
    sizes={Tablet: 1},
    budgets=NO_FAULT,
)
class SafeTimesWaitForAlters(BackfillJob):
    """Tablets are asked for their safe times when no other index is being altered."""

    @action(by=MASTER, fair=WEAK)
    def find_no_splits(self) -> None:
        """J1, when nobody alters the table."""
        require(~some(self._moves(i) for i in Index), "no other index is altered")
        super().find_no_splits()


@known_bug(
    "002-282",
    FINALIZE,
    breaks=BackfillJob.completed_scans_wait_for_no_other,
    sizes={Tablet: 1},
    budgets=NO_FAULT,
)
class TheEndWaitsForAlters(BackfillJob):
    """That every tablet is done is found when no other index is being altered."""

    @action(by=MASTER, fair=WEAK)
    def find_all_done(self) -> None:
        """J4, when nobody alters the table."""
        require(~some(self._moves(i) for i in Index), "no other index is altered")
        super().find_all_done()


@known_bug(
    "002-300",
    LEADERSHIP,
    breaks=BackfillJob.scans_that_are_found_go_on,
    sizes={Tablet: 1},
    budgets={BackfillJob.aborts: 0},
)
class ScansThatAreFoundWaitForAlters(BackfillJob):
    """A new leader goes on with a scan that it has found when no other index is to move on first."""

    @action(by=MASTER, fair=WEAK)
    def take_recorded_time(self) -> None:
        """J1 of a job that was begun, when nothing is altered."""
        self._no_index_is_altered()
        super().take_recorded_time()


@known_bug(
    "002-301",
    'design document 002, "Create the index table": the master "performs checks"',
    breaks=BackfillJob.leaders_are_free_when_the_job_is_erased,
    sizes={Tablet: 1},
    budgets=NO_FAULT,
)
class LeadersAreBusyUntilTabletsKnow(BackfillJob):
    """The leader is busy with a job that is erased until every tablet has learned how it has ended."""

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """J8, when every tablet knows what the index may be used for."""
        known = every(self.known[t][i] == self.permission[i] for t in Tablet for i in Index)
        require(known, "every tablet knows")
        super().finish()


@known_bug(
    "002-327",
    'design document 002, "Backfill the data"',
    breaks=BackfillJob.jobs_are_recorded_while_others_are_altered,
    budgets=NO_FAULT,
)
class JobsAreRecordedAfterAlters(BackfillJob):
    """A job that was launched is written when every tablet knows all indexes, also one that came just then."""

    @BackfillJob.step.step(Step.launch, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def record_job(self) -> None:
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")
        for i in Index:
            requested = self.requested.has(i)
            self.job[i] = choose(requested, Term.of(Status.in_progress), None)
        self.requested = frozenset()


@known_bug(
    "002-328",
    'design document 002, "Index backfill on a single tablet": delete markers',
    breaks=BackfillJob.delete_markers_may_go_while_others_are_altered,
    budgets=NO_FAULT,
)
class MarkersGoAfterAlters(BackfillJob):
    """Index tables are told that they may reclaim delete markers when no other index is being altered."""

    @BackfillJob.step.step(Step.allow_gc, Step.write_permissions, by=MASTER, fair=WEAK)
    def allow_gc(self) -> None:
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")
        for i in Index:
            retains = self.retains_delete_markers.has(i) & (self.job[i] != Status.success)
            self.retains_delete_markers.put(i, retains)


@known_bug(
    "002-329",
    CREATE_TABLE,
    breaks=BackfillJob.jobs_are_erased_while_others_are_altered,
    budgets=NO_FAULT,
)
class JobsAreErasedAfterAlters(BackfillJob):
    """A job is erased when every tablet serves what it has built: one that is down holds up the next job, and all splits."""

    @action(by=MASTER, fair=WEAK)
    def clear_checkpoints(self) -> None:
        require(every(self._is_current(t) for t in Tablet), "every tablet has the version")
        super().clear_checkpoints()


@known_bug(
    "002-331",
    'design document 002: "such as a unique constraint violation in a unique index"',
    breaks=BackfillJob.violations_fail_the_index_at_once,
    sizes={Index: 1},
    budgets=NO_FAULT,
)
class ViolationsAreToldWhenAllHaveBegun(BackfillJob):
    """A tablet that finds two rows with one key waits until every other one has answered a chunk."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        never = some(self.checkpoint[u][i] == Checkpoint.never_begun for u in Tablet)
        require(~never | self._is_removed(i), "every tablet has begun")
        super().fail_index(t, i)


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
    "002-377",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=BackfillJob.alters_wait_for_no_job,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class RemovalsWaitForTheJob(BackfillJob):
    """An index on its way out stays where it is until no other one is being backfilled, and is maintained for nobody meanwhile."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        comes = some(
            self.permission[i].any_of(Permission.delete_only, Permission.write_and_delete)
            for i in Index
        )
        require(comes | ~self.is_backfilling, "no job is running")
        super().launch_next_version()


@known_bug(
    "002-378",
    'design document 002: "the backfill process on any tablet can proceed independent of the others"',
    breaks=BackfillJob.chunks_wait_for_no_other_tablet,
    sizes={Index: 1},
    budgets={BackfillJob.faults: 0},
)
class DroppedIndexesFailWhenAllHaveBegun(BackfillJob):
    """A tablet that finds an index gone waits until every other one has answered a chunk, of an index that nobody wants."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        never = some(self.checkpoint[u][i] == Checkpoint.never_begun for u in Tablet)
        require(~never | (self.unbuildable == i), "every tablet has begun")
        super().fail_index(t, i)


@known_bug(
    "002-396",
    CONVERGE,
    breaks=BackfillJob.indexes_move_on_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class DeletionsComeFirst(BackfillJob):
    """No index moves on as long as the table of another one is to be deleted, which may take long."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self) -> None:
        unused = some(self.permission[i] == Permission.index_unused for i in Index)
        require(~unused, "no index is to be deleted")
        super().launch_next_version()


@known_bug(
    "002-397",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=BackfillJob.unused_indexes_are_deleted_while_others_are_built,
    sizes={Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class DeletionsComeLast(BackfillJob):
    """The table of an index that nobody uses is deleted when no other one is on its way in or out."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self, i: Term[Index]) -> None:
        require(~some(self._moves(o) for o in Index), "no index is to move on")
        super().delete_index(i)


@known_bug(
    "002-398",
    ON_ALL_NODES,
    breaks=BackfillJob.tablets_apply_versions_at_any_time,
    budgets={BackfillJob.faults: 0},
)
class TabletsApplyVersionsInTurn(BackfillJob):
    """A tablet that has heard of an index applies nothing more until every other one has heard of it, which may be down."""

    @action(fair=WEAK)
    def apply_version(self, t: Term[Tablet]) -> None:
        absent = Permission.absent
        ahead = some(
            (self.permission[i] != absent)
            & (self.known[t][i] != absent)
            & (self.known[o][i] == absent)
            for o in Tablet
            for i in Index
        )
        require(~ahead, "every other tablet has heard of its indexes")
        super().apply_version(t)


@known_bug(
    "002-399",
    'design document 002: "such as a unique constraint violation in a unique index"',
    breaks=BackfillJob.violations_fail_the_index_at_once,
    sizes={Tablet: 1},
    budgets=NO_FAULT,
)
class ViolationsAreToldAfterAlters(BackfillJob):
    """A tablet that finds two rows with one key applies first what is altered of its table, for whichever index."""

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, t: Term[Tablet], i: Term[Index]) -> None:
        require(self._is_current(t), "the tablet has the version")
        super().fail_index(t, i)


@known_bug(
    "002-400",
    'design document 002: "the backfill process on any tablet can proceed independent of the others"',
    breaks=BackfillJob.tablets_are_independent,
    sizes={Tablet: 1},
    budgets=NO_FAULT,
)
class ChunksWaitForAlters(BackfillJob):
    """A tablet is asked for its next chunk when it has applied what is altered of its table, for whichever index."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet]) -> None:
        require(self._is_current(t), "the tablet has the version")
        super().backfill_chunk(t)


@known_bug(
    "002-407",
    ABORTS,
    breaks=BackfillJob.jobs_that_are_given_up_end_at_once,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJob.faults: 0},
)
class WhatIsGivenUpIsWaitedFor(BackfillJob):
    """A job that has given up goes through its steps all the same: it waits for the splits, and the safe times, that took too
    long.
    """

    @BackfillJob.step.step(Step.backfill_tablets, Step.allow_gc, by=MASTER, fair=WEAK)
    def find_all_done(self) -> None:
        """J4, after J1 to J3."""
        undone = some(self._is_to_do(t, i) for t in Tablet for i in Index)
        require(~undone, "every tablet is done")
        for i in Index:
            self.job[i] = choose(self._left(i), Status.success, self.job[i])


BUGS = known_bugs_in(globals())
