"""Mistakes by which the next step of a build, or its result, waits for what does not concern it (002)."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.systems.backfill_jobs import BackfillJobs, BaseTable
from stagewright.machines.systems.index_build import IndexBuild
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import At, BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_safe_time import LAST, BackfillSafeTime
from stagewright.machines.yugabytedb.backfill.backfill_split import BackfillSplit
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
)
from stagewright.machines.yugabytedb.indexes.index_actors import POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_postgres import PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows, Row as RowOfTable
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.machines.yugabytedb.indexes.unique_index import Row
from stagewright.spec import Number, Term, action, between, choose, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ORCHESTRATES = 'design document 002: the master "orchestrates the backfill process"'
LEADERSHIP = 'design document 002, "Handling node restarts and leadership changes"'
FINALIZE = 'design document 002, "Finalize the index"'
CHECKPOINTS = 'design document 002, "Checkpointing"'
ABORTS = 'design document 002: "If a problem arises while scanning the table"'
CALM: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}


# -- the steps of a job ----------------------------------------------------------------------------------


@known_bug(
    "002-280",
    ORCHESTRATES,
    breaks=BackfillJob.scans_are_prepared_while_others_are_altered,
    sizes={Tablet: 1},
    budgets=CALM,
)
class SafeTimesWaitForAlters(BackfillJob):
    """Tablets are asked for their safe times when no other index is being altered."""

    @action(by=MASTER, fair=WEAK)
    def find_no_splits(self) -> None:
        """J1, when nobody alters the table."""
        require(~some(self._moves(i) for i in Index), "no other index is altered")
        super().find_no_splits()


@known_bug(
    "002-281",
    LEADERSHIP,
    breaks="jobs.scans_that_are_found_go_on",
    sizes={Index: 1, Tablet: 1},
)
class ScansAreTakenUpInTurn(BackfillJobs):
    """A new leader takes up all jobs, and goes on with the scan of one table when that of another is over."""

    @action(by=MASTER, fair=WEAK)
    def take_recorded_time(self, b: Term[BaseTable]) -> None:
        """J1 of a job that was begun, when no other table is scanned."""
        step = Step.backfill_tablets
        require(~some((c != b) & (self.jobs[c].step == step) for c in BaseTable), "none is scanned")
        self.jobs[b].take_recorded_time()


@known_bug(
    "002-282",
    FINALIZE,
    breaks=BackfillJob.completed_scans_wait_for_no_other,
    sizes={Tablet: 1},
    budgets=CALM,
)
class TheEndWaitsForAlters(BackfillJob):
    """That every tablet is done is found when no other index is being altered."""

    @action(by=MASTER, fair=WEAK)
    def find_all_done(self) -> None:
        """J4, when nobody alters the table."""
        require(~some(self._moves(i) for i in Index), "no other index is altered")
        super().find_all_done()


@known_bug(
    "002-283",
    'design document 002, "Create the index table": the master "performs checks"',
    breaks="jobs.leaders_are_free_when_the_job_is_erased",
    sizes={Index: 1, Tablet: 1},
    budgets={BackfillJobs.faults: 0},
)
class JobsFinishTogether(BackfillJobs):
    """The leader is busy, and tablets do not split, until no table is scanned any more."""

    @action(by=MASTER, fair=WEAK)
    def finish(self, b: Term[BaseTable]) -> None:
        """J8, when no other table is scanned."""
        step = Step.backfill_tablets
        require(~some((c != b) & (self.jobs[c].step == step) for c in BaseTable), "none is scanned")
        self.jobs[b].finish()


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
    budgets=CALM,
)
class LeadersAreBusyUntilTabletsKnow(BackfillJob):
    """The leader is busy with a job that is erased until every tablet has learned how it has ended."""

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """J8, when every tablet knows what the index may be used for."""
        known = every(self.known[t][i] == self.permission[i] for t in Tablet for i in Index)
        require(known, "every tablet knows")
        super().finish()


@known_bug("002-292", ORCHESTRATES, breaks=BackfillSplit.jobs_begin_while_tablets_split)
class JobsBeginWhenNobodySplits(BackfillSplit):
    """A job begins when no tablet is splitting: till then others begin to, and one that hangs fails no job."""

    @action(by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """J0, when no tablet is splitting."""
        require(self._none_is_splitting(), "no tablet is splitting")
        super().launch()


@known_bug(
    "002-291",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=BackfillSafeTime.read_times_wait_for_answers_alone,
    budgets={BackfillSafeTime.failovers: 0},
)
class ReadTimesAreReachedFirst(BackfillSafeTime):
    """The time of the scan is chosen when the clocks of all tablets are there: the slowest one holds up the others."""

    @action(by=MASTER, fair=WEAK)
    def choose_read_time(self, time: Annotated[Number, between(1, LAST)]) -> None:
        """J2, when every tablet can be scanned."""
        require(every(self.clock[t] >= time for t in Tablet), "every tablet has reached it")
        super().choose_read_time(time)


# -- requests, and the threads that hear their answers ---------------------------------------------------


@known_bug("002-284", ORCHESTRATES, breaks=BackfillRpcs.jobs_wait_for_no_request)
class JobsWaitForOldRequests(BackfillRpcs):
    """A job begins when no request of an earlier one is on its way: one that hangs holds up the table."""

    @action(by=MASTER, fair=WEAK)
    def record_job(self) -> None:
        """J0, when no request is on its way."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().record_job()


@known_bug("002-285", LEADERSHIP, breaks=BackfillRpcs.new_leaders_wait_for_no_request)
class NewLeadersWaitForOldRequests(BackfillRpcs):
    """A new leader takes the job up when what the old one had asked for has come to an end."""

    @action(by=MASTER, fair=WEAK)
    def take_up(self) -> None:
        """The leader finds a job, when no request is on its way."""
        require(every(self.rpc[r].at == At.nowhere for r in Request), "no request is on its way")
        super().take_up()


@known_bug("002-286", CHECKPOINTS, breaks=BackfillRpcs.answers_are_recorded_as_they_come)
class AnswersAreRecordedTogether(BackfillRpcs):
    """An answer is recorded when no tablet is at work any more."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, r: Term[Request]) -> None:
        """The answer is OK, and no other one is waited for."""
        require(every(self.rpc[o].at != At.sent for o in Request), "no tablet is at work")
        super().record_checkpoint(r)


@known_bug("002-287", FINALIZE, breaks=BackfillRpcs.the_first_answer_is_enough)
class EveryRequestIsAnswered(BackfillRpcs):
    """A tablet that was asked twice has answered, and its job waits for the other answer."""

    @action(by=MASTER, fair=WEAK)
    def finish_tablets(self) -> None:
        """J4, when no request of the job is on its way."""
        others = some(
            (self.rpc[r].at != At.nowhere) & (self.rpc[r].job == self.job_id) for r in Request
        )
        require(~others, "every request is answered")
        super().finish_tablets()


@known_bug("002-288", FINALIZE, breaks=BackfillLeaders.threads_publish_beside_others)
class OneThreadPublishes(BackfillLeaders):
    """A thread publishes the index when no other one is about to write anything."""

    @action(by=MASTER, fair=WEAK)
    def publish(self, th: Term[Thread]) -> None:
        """J6, when others are idle, or about the same."""
        idle = (Intent.none, Intent.publish)
        require(every(self.work[o].intent.any_of(*idle) for o in Thread), "nobody else writes")
        super().publish(th)


@known_bug("002-289", CHECKPOINTS, breaks=BackfillLeaders.checkpoints_are_recorded_beside_others)
class OldThreadsComeFirst(BackfillLeaders):
    """A checkpoint is recorded when the threads of the leader before have come to their end."""

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self, th: Term[Thread]) -> None:
        """J3, when no thread of another leader is about to write."""
        old = some(
            (self.work[o].intent != Intent.none) & (self.work[o].term != self.term) for o in Thread
        )
        require(~old, "no thread of another leader is left")
        super().record_checkpoint(th)


# -- results ---------------------------------------------------------------------------------------------


@known_bug(
    "002-293",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks=IndexRows.indexes_are_created_while_rows_are_written,
    budgets={IndexRows.writes: 1, IndexRows.drops: 0},
)
class CreatingWaitsForRows(IndexRows):
    """CREATE INDEX waits until no transaction has written a row."""

    @action(by=CLIENT)
    def create_index(self) -> None:
        """A client creates the index of a table at rest."""
        require(~some(self._is_pending(s) for s in Server), "no transaction is pending")
        super().create_index()


@known_bug(
    "002-290",
    'design document 002, "Waiting for pending transactions to finish"',
    breaks=IndexRows.transactions_end_as_a_whole,
    sizes={RowOfTable: 2, Server: 1},
    budgets={IndexRows.drops: 0},
)
class OnlyOldRowsAreAborted(IndexRows):
    """A transaction from before WRITE_AND_DELETE loses the rows that it wrote then, and commits what it has written since."""

    @action(fair=WEAK)
    def abort_old_transaction(self, s: Term[Server]) -> None:
        """GetSafeTime has waited long enough for what will not be written to the index."""
        require(self.index.job == Job.running, "the job is running")
        require(self._is_old(s), "a transaction from before WRITE_AND_DELETE is pending")
        self.wrong_abort = self.wrong_abort | self._writes_every_entry(s) | ~self._waits()
        for r in RowOfTable:
            write = self.transaction[s][r]
            keeps = write.under.column(lambda p: p.write)
            write.pending = write.pending & keeps
            write.old = choose(keeps, write.old, None)
            write.new = choose(keeps, write.new, None)
            write.under = choose(keeps, write.under, Permission.absent)


@known_bug(
    "002-294",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=IndexPermissions.failed_indexes_are_removed_unasked,
)
class TheClientHearsFirst(IndexPermissions):
    """An index that has failed is removed when its client has heard so: of one who does not ask, it stays."""

    def _status(self) -> Term[Status]:
        failed = (self.job == Job.failed) & ~self._removed()
        return choose(failed, Status.failed, super()._status())

    @action(by=MASTER, fair=WEAK)
    def give_up(self) -> None:
        """The job writes that the index is to be removed, if its client knows."""
        super().give_up()
        require((self.told == Status.failed) | self.drop_requested, "its client has heard so")


@known_bug("002-295", FINALIZE, breaks=IndexPermissions.built_indexes_are_published_unasked)
class PublishedWhenAskedFor(IndexPermissions):
    """An index that is built is published when its client has asked for the status."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The job writes READ_WRITE_AND_DELETE, if somebody has asked for it."""
        require(self.told.is_some(), "a client has asked")
        super().publish()


@known_bug(
    "002-296",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=IndexPermissions.unused_indexes_are_deleted,
)
class DeletedWhenTheJobIsOver(IndexPermissions):
    """The table of an index that nobody uses is deleted when its job has come to the end of its scan."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self) -> None:
        """No server uses the index, and no job builds it."""
        require(self.job == Job.none, "no job is left")
        super().delete_index()


@known_bug(
    "002-297",
    ABORTS,
    breaks=IndexBuild.builds_fail_as_soon_as_they_must,
    sizes={Index: 1},
    budgets={IndexBuild.faults: 0, IndexBuild.writes: 0},
)
class FailuresAreHeldBack(IndexBuild):
    """Two rows with one key fail the build when the other tablets are scanned to their end."""

    @action(by=MASTER, fair=WEAK)
    def find_duplicate(self, i: Term[Index], r: Term[Row]) -> None:
        """J3, at the end: no other tablet is left."""
        super().find_duplicate(i, r)
        over = every(
            (self.tablet[r] == t)
            | (self.job.checkpoint[t][i] == Checkpoint.done)
            | some((self.tablet[q] == t) & self.rows.is_duplicate(q) for q in Row)
            for t in Tablet
        )
        require(over, "no other tablet can be scanned further")


@known_bug(
    "002-298",
    'design document 002, "Handle CREATE INDEX statement"',
    breaks=IndexPermissions.results_are_told_at_once,
)
class TheFirstAnswerIsInProgress(IndexPermissions):
    """A client that asks is told what was known when somebody asked before: the first hears IN-PROGRESS."""

    def _status(self) -> Term[Status]:
        return choose(self.told.is_none(), Status.in_progress, super()._status())


@known_bug("002-299", FINALIZE, breaks=PostgresIndex.published_indexes_become_valid_at_once)
class ValidWhenNothingIsAltered(PostgresIndex):
    """An index that is published becomes valid when every server has reported the last version, of whichever index."""

    @action(by=POSTGRES, fair=WEAK)
    def make_valid(self) -> None:
        """The master says that the index is built, and that no index of the table is altered."""
        require(every(self.reported.has(s) for s in Server), "every server has the version")
        super().make_valid()


BUGS = known_bugs_in(globals())
