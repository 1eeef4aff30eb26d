"""Mistakes by which a build waits for what does not concern it, or begins anew, or its result is never told (002)."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import (
    LAST,
    TABLET,
    BackfillSafeTime,
    Transaction,
)
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit, Piece
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import (
    BackfillThrottle,
    Request,
    Task,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Number, Term, action, between, choose, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STATUS = 'design document 002, "Handle CREATE INDEX statement"'
RESTART = 'design document 002: the build "should not need to restart on a node failure"'
INDEPENDENT = 'design document 002: "the backfill process on any tablet can proceed independent"'
FINALIZE = 'design document 002, "Finalize the index"'


# -- what clients are told -------------------------------------------------------------------------------


@known_bug("002-260", STATUS, breaks=IndexBuild.results_are_told_at_once, sizes={Index: 1})
class TheResultIsTheLeaders(IndexBuild):
    """The master leader remembers what has become of a build: who asks another one hears IN-PROGRESS, for ever."""

    elected = flag()

    @action(spends=IndexBuild.faults)
    def fail_over(self) -> None:
        self.job.fail_over()
        self.elected = True

    def _status(self) -> Term[Status]:
        unknown = self.elected & (self.answered == Status.in_progress)
        return choose(unknown, Status.in_progress, super()._status())


@known_bug("002-261", STATUS, breaks=IndexBuild.results_are_told_at_once, sizes={Index: 1})
class FailuresGoWithTheIndex(IndexBuild):
    """FAILED is said of an index that is on its way out: who asks first when it is deleted hears IN-PROGRESS."""

    def _status(self) -> Term[Status]:
        absent = Permission.absent
        gone = some(self.job.created.has(i) & (self.job.permission[i] == absent) for i in Index)
        unheard = gone & (self.answered == Status.in_progress)
        return choose(unheard, Status.in_progress, super()._status())


# -- one job waits for another ---------------------------------------------------------------------------


@known_bug(
    "002-262",
    'design document 002, "Handling node restarts and leadership changes"',
    breaks="jobs.indexes_that_wait_are_backfilled",
    sizes={Index: 1, Tablet: 1},
)
class JobsThatAreFoundComeFirst(BackfillJobs):
    """A new leader launches no job of its own until those that it has found are over, of whichever table."""

    elected = flag()

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        for b in BaseTable:
            self.jobs[b].fail_over()
        self.elected = True

    @action(by=MASTER, fair=WEAK)
    def launch(self, b: Term[BaseTable], i: Term[Index]) -> None:
        found = some(
            (b != c) & some(self.jobs[c].job[j].is_some() for j in Index) for c in BaseTable
        )
        require(~(self.elected & found), "no job that was found is left")
        self.jobs[b].launch(i)


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
    "002-264",
    FINALIZE,
    breaks="jobs.built_indexes_wait_for_no_other",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class TablesArePublishedTogether(BackfillJobs):
    """An index that is built is published when no other table is scanned any more."""

    @action(by=MASTER, fair=WEAK)
    def write_permissions(self, b: Term[BaseTable]) -> None:
        step = Step.backfill_tablets
        scans = some((c != b) & (self.jobs[c].step == step) for c in BaseTable)
        require(~scans, "no other table is scanned")
        self.jobs[b].write_permissions()


# -- tablets wait for each other, or begin anew ----------------------------------------------------------


@known_bug("002-265", INDEPENDENT, breaks=BackfillThrottle.tablets_are_asked_independently)
class ChunksAreAskedForInRounds(BackfillThrottle):
    """The next chunks are asked for when those of all tablets are answered: the slowest one holds up the others."""

    @action(by=MASTER, fair=WEAK)
    def ask(self, task: Term[Task]) -> None:
        under_way = some(
            (o != task) & self.request[o].any_of(Request.running, Request.answered) for o in Task
        )
        require(~under_way, "the round is over")
        super().ask(task)


@known_bug("002-266", INDEPENDENT, breaks=BackfillThrottle.late_requests_are_made_again)
class LateTabletsComeLast(BackfillThrottle):
    """A request that is late is made again when no other tablet has one on its way."""

    @action(by=MASTER, fair=WEAK)
    def time_out(self, task: Term[Task]) -> None:
        others = some((o != task) & (self.request[o] != Request.none) for o in Task)
        require(~others, "no other request is on its way")
        super().time_out(task)


@known_bug("002-267", RESTART, breaks=BackfillSafeTime.scans_are_kept)
class NextLeaderScansAnew(BackfillSafeTime):
    """A new leader has all tablets scanned once more, also those that are done."""

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        super().fail_over()
        self.scanned = frozenset[Tablet]()


@known_bug("002-268", RESTART, breaks=BackfillSplit.checkpoints_are_kept)
class TabletsInTheMiddleBeginAnew(BackfillSplit):
    """Of tablets that are not done a new leader takes none for begun."""

    @action(spends=BackfillSplit.failovers)
    def fail_over(self) -> None:
        super().fail_over()
        for t in Tablet:
            for piece in Piece:
                here = self.checkpoint[t][piece]
                middle = here == Checkpoint.in_the_middle
                self.checkpoint[t][piece] = choose(middle, Checkpoint.never_begun, here)


@known_bug(
    "002-269",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.clocks_wait_for_no_transaction,
    budgets={BackfillSafeTime.failovers: 0},
)
class SafeTimeStaysBeforeWhatIsPending(BackfillSafeTime):
    """The safe time of a tablet passes no pending transaction, old or new: the scan waits for a terminal left open."""

    @action(by=TABLET, fair=WEAK)
    def advance_clock(self, t: Term[Tablet], time: Annotated[Number, between(2, LAST)]) -> None:
        require(self.transaction[t] != Transaction.pending, "no transaction is pending")
        super().advance_clock(t, time)


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


BUGS = known_bugs_in(globals())
