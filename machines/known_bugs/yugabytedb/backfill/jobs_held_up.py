"""Mistakes by which a step of a job waits for another index, or table (002), each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import BudgetName, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_FAULT: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}
CREATE_TABLE = 'design document 002, "Create the index table"'


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
    "002-330",
    CREATE_TABLE,
    breaks="jobs.tables_are_altered_for_no_other",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class TablesAreAlteredTogether(BackfillJobs):
    """A table stays ALTERING as long as another one has a job."""

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self, b: Term[BaseTable]) -> None:
        busy = some((c != b) & (self.jobs[c].step != Step.none) for c in BaseTable)
        require(~busy, "no other table has a job")
        self.jobs[b].finish_alter()


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


BUGS = known_bugs_in(globals())
