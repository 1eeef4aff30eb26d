"""Mistakes that are made at the second failure (002): the first one is what everybody has tried."""

from __future__ import annotations

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_chunks import BackfillChunks, Until
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import NETWORK, BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import BackfillSafeTime
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_throttle import BackfillThrottle, Task
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.machines.yugabytedb.indexes.unique_index import Key
from stagewright.spec import FlagVar, Term, action, choose, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

RESTART = 'design document 002: the build "should not need to restart on a node failure"'
LEADERS = 'design document 002, "Handling node restarts and leadership changes"'


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
    "002-351",
    'design document 002, "Checkpointing": the master "issues futher RPCs as necessary"',
    breaks=BackfillRpcs.only_what_failed_is_removed,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 2},
)
class TheSecondLossFailsTheJob(BackfillRpcs):
    """A job fails with the second request that is lost, however long ago the first one was."""

    lost_one: FlagVar = flag()

    @action(by=NETWORK, spends=BackfillRpcs.lost)
    def lose(self, r: Term[Request]) -> None:
        again = self.lost_one
        for i in Index:
            fails = again & (self.job[i] == Status.in_progress)
            self.job[i] = choose(fails, Status.failed, self.job[i])
        super().lose(r)
        self.lost_one = True


@known_bug(
    "002-352",
    RESTART,
    breaks=BackfillThrottle.checkpoints_only_advance,
    sizes={Task: 1, Server: 1},
    budgets={BackfillThrottle.crashes: 2},
)
class TheSecondCrashBeginsTheTabletAnew(BackfillThrottle):
    """A tablet whose leader goes away once more is scanned from its start."""

    crashed: FlagVar = flag()

    @action(spends=BackfillThrottle.crashes)
    def lose_leader(self, task: Term[Task]) -> None:
        again = self.crashed
        self.recorded[task] = choose(again, 0, self.recorded[task])
        super().lose_leader(task)
        self.crashed = True


@known_bug(
    "002-353",
    RESTART,
    breaks=BackfillSafeTime.scans_are_kept,
    sizes={Tablet: 1},
    budgets={BackfillSafeTime.failovers: 2},
)
class TheThirdLeaderTrustsNoScan(BackfillSafeTime):
    """Of what was scanned under two leaders before it, the third one takes nothing for done."""

    elected: FlagVar = flag()

    @action(spends=BackfillSafeTime.failovers)
    def fail_over(self) -> None:
        again = self.elected
        for t in Tablet:
            self.scanned.put(t, self.scanned.has(t) & ~again)
        super().fail_over()
        self.elected = True


@known_bug(
    "002-354",
    LEADERS,
    breaks=BackfillSplit.only_splits_that_last_fail_the_job,
    sizes={Tablet: 1},
    budgets={BackfillSplit.failovers: 2},
)
class TheThirdLeaderGivesUp(BackfillSplit):
    """A job that two leaders have not brought to an end fails."""

    elected: FlagVar = flag()

    @action(spends=BackfillSplit.failovers)
    def fail_over(self) -> None:
        fails = self.elected & (self.index == Status.in_progress)
        self.index = choose(fails, Status.failed, self.index)
        super().fail_over()
        self.elected = True


@known_bug(
    "002-355",
    'design document 002, "Checkpointing"',
    breaks=BackfillChunks.only_the_last_chunk_is_repeated,
    sizes={Index: 1},
    budgets={BackfillChunks.failovers: 2},
)
class TheThirdLeaderReadsNoCheckpoint(BackfillChunks):
    """The checkpoints are read as a leader comes for the first time; the next one begins at the start of the tablet."""

    elected: FlagVar = flag()

    @action(spends=BackfillChunks.failovers)
    def fail_over(self) -> None:
        again = self.elected
        for i in Index:
            self.reached[i] = choose(again, Until.never_begun, self.until[i])
        self._end_chunk()
        self.elected = True


@known_bug("002-356", LEADERS, breaks=BackfillLeaders.only_the_leader_gives_up)
class TermsHaveOneBit(BackfillLeaders):
    """The third leader has the term of the second, whose threads it does not tell from its own."""

    @action(spends=BackfillLeaders.failovers)
    def fail_over(self) -> None:
        self.term = 1
        self.unanswered = False


@known_bug(
    "002-357",
    LEADERS,
    breaks="jobs.recorded_jobs_are_taken_up",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 2},
)
class TheThirdLeaderTakesUpOneJobATime(BackfillJobs):
    """After two changes of the leader jobs are taken up one after the other, the second when the first is over."""

    elected: FlagVar = flag()
    again: FlagVar = flag()

    @action(spends=BackfillJobs.faults)
    def fail_over(self) -> None:
        self.again = self.elected
        self.elected = True
        for b in BaseTable:
            self.jobs[b].fail_over()

    @action(by=MASTER, fair=WEAK)
    def resume(self, b: Term[BaseTable]) -> None:
        busy = some((c != b) & (self.jobs[c].step != Step.none) for c in BaseTable)
        require(~(self.again & busy), "no other job is running")
        self.jobs[b].resume()


@known_bug(
    "002-358",
    'design document 002, "Handle CREATE INDEX statement"',
    breaks=IndexBuild.results_are_told_at_once,
    sizes={Index: 1, Tablet: 1, Key: 1},
    budgets={IndexBuild.writes: 0, IndexBuild.faults: 2},
)
class TheThirdLeaderKnowsNoResult(IndexBuild):
    """The result of a build goes from a leader to the next one; who asks the third hears IN-PROGRESS."""

    elected: FlagVar = flag()
    again: FlagVar = flag()

    @action(spends=IndexBuild.faults)
    def fail_over(self) -> None:
        self.again = self.elected
        self.elected = True
        self.job.fail_over()

    def _status(self) -> Term[Status]:
        unknown = self.again & (self.answered == Status.in_progress)
        return choose(unknown, Status.in_progress, super()._status())


BUGS = known_bugs_in(globals())
