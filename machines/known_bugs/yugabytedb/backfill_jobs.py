"""Bugs of two jobs at once: what belongs to a table is kept for the leader, or the other way round."""

from __future__ import annotations

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.spec import ANY, Term, action, constant, one_of, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Y23",
    "design document 002, design goals",
    breaks=BackfillJobs.jobs_run_at_once,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class LeaderHasOneJob(BackfillJobs):
    """`is_backfilling` is kept for the leader, not for each table: a table waits for the scan of another one."""

    @action(by=MASTER, fair=WEAK)
    def launch(self, b: Term[BaseTable], i: Term[Index]) -> None:
        busy = some(self.jobs[c].is_backfilling for c in BaseTable)
        require(~busy, "the leader has no job")
        self.jobs[b].launch(i)


@known_bug(
    "Y24",
    "design document 002, fault tolerance using checkpointing",
    breaks=BackfillJobs.every_build_ends,
    sizes={Index: 1, Tablet: 1},
)
class NewLeaderTakesUpOneJob(BackfillJobs):
    """A new leader finds the recorded job of one table, and takes that of the other for running."""

    first = constant(one_of(BaseTable, init=ANY))  # that the new leader finds in the catalog

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        for c in BaseTable:
            self.jobs[c].step = Step.none
            self.jobs[c].requested = frozenset()
            self.jobs[c].chosen_time = None
            runs = self.jobs[c].is_backfilling & (self.first != c)
            self.jobs[c].is_backfilling = runs


@known_bug(
    "Y25",
    "design document 002, index backfill on a single tablet",
    breaks=BackfillJobs.a_job_keeps_its_read_time,
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class ReadTimeIsTheLeaders(BackfillJobs):
    """The leader remembers one read time, and forgets it when a job ends: the other one goes on without."""

    @action(by=MASTER, fair=WEAK)
    def finish(self, b: Term[BaseTable]) -> None:
        require(self.jobs[b].step == Step.finish, "the job is over")
        self.jobs[b].step = Step.none
        self.jobs[b].is_backfilling = False
        for c in BaseTable:
            self.jobs[c].chosen_time = None


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
