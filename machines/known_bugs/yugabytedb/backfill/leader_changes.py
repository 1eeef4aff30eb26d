"""Mistakes by which a build does not outlast its leader, or what is there already does not outlast a build (002)."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    REMOVING,
    ROWS,
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs
from stagewright.machines.yugabytedb.backfill.backfill_split import (
    BackfillSplit,
    Piece,
    Step as StepOfSplit,
)
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
)
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_postgres import OTHER_VERSIONS, PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Term, action, bounded, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

OUTLAST = 'design document 002: the build "should not need to restart on a node failure"'
GO_ON = "design document 002: queries continue against the existing indexes"


def _fail_what_is_left(job: BackfillJob) -> None:
    for i in Index:
        left = job.job[i] == Status.in_progress
        job.gave_up.put(i, job.gave_up.has(i) | left)
        job.job[i] = choose(left, Status.failed, job.job[i])


@known_bug(
    "002-127",
    OUTLAST,
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
    OUTLAST,
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
    "002-130",
    OUTLAST,
    breaks=BackfillSplit.only_splits_that_last_fail_the_job,
    sizes={Tablet: 1},
)
class JobsEndWithTheirLeader(BackfillSplit):
    """The list of a job's tablets is the leader's, so that with another one the job is over."""

    @action(spends=BackfillSplit.failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader: a job that was scanning has failed."""
        begun = self.step != StepOfSplit.none
        self._forget_memory()
        self.index = choose(begun, Status.failed, self.index)
        for t in Tablet:
            for piece in Piece:
                here = self.checkpoint[t][piece]
                self.checkpoint[t][piece] = choose(begun, Checkpoint.never_begun, here)


@known_bug(
    "002-131",
    OUTLAST,
    breaks=BackfillRpcs.jobs_outlast_their_leaders,
    sizes={Index: 1},
    budgets={BackfillRpcs.aborts: 0, BackfillRpcs.lost: 0},
)
class RequestsThatNobodyHearsAreGivenUp(BackfillRpcs):
    """The requests of the old leader have no answer, and count as tried too often: the index is given up."""

    @action(spends=BackfillRpcs.changes)
    def fail_over(self) -> None:
        """Another master becomes the leader: what was asked for has failed."""
        super().fail_over()
        for i in Index:
            left = self.job[i] == Status.in_progress
            self.gave_up.put(i, self.gave_up.has(i) | left)
            self.job[i] = choose(left, Status.failed, self.job[i])


@known_bug(
    "002-141",
    "design document 002: the job need not be restarted if there is a leadership change",
    breaks=BackfillLeaders.only_the_leader_gives_up,
)
class FailuresAreForwarded(BackfillLeaders):
    """A master that is not the leader any more sends its failure to the one that is, whom the tablet has answered."""

    @action(by=MASTER, fair=WEAK)
    def record_failure(self, th: Term[Thread]) -> None:
        """J6: the index has failed, whoever found that, if the tablet is not done."""
        require(self.work[th].intent == Intent.failure, "thread has given up")
        require(self.checkpoint < ROWS, "tablet is not done")
        self._has_seen_the_version(th)
        self.permission = REMOVING
        self.version = self.version + 1
        self.failed = True
        self._end(th)


@known_bug(
    "002-132",
    GO_ON,
    breaks=PostgresIndex.published_indexes_go_on_serving_reads,
)
class EveryVersionIsOfEveryIndex(PostgresIndex):
    """While another index is altered, what clients are served is as if this one, which they read, were altered, too."""

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Another index of the table moves on; until every server knows, this one is taken for one step back."""
        bounded(self.others < OTHER_VERSIONS, "other indexes have had their versions")
        require(self.permission != Permission.absent, "the index is there")
        require(self.job == Job.none, "no job is running")
        self._all_reported()
        published = self.permission == Permission.read_write_and_delete
        self.version = self.version + 1
        self.fully_applied = choose(published, self.backfilled_at(), self.permission)
        self.reported = frozenset()
        self.others = self.others + 1


BUGS = known_bugs_in(globals())
