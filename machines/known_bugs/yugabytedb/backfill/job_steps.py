"""Mistakes of the master with a backfill job that design document 002 rules out, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_leaders import BackfillLeaders
from stagewright.machines.yugabytedb.backfill.backfill_rpcs import BackfillRpcs, Request
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    CLIENT,
    MASTER,
    WEAK,
    Index,
    Tablet,
)
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, Term, action, choose, every, initially, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

RESTART = 'design document 002: the build "should not need to restart on a node failure"'
CALM: dict[BudgetName, int | None] = {BackfillJob.aborts: 0, BackfillJob.faults: 0}


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
    "002-140",
    'design document 002, Finalize the index: "Once the index build is successfully completed on all the tablets"',
    breaks=BackfillLeaders.completed_builds_are_published,
)
class TabletsThatAreDoneMustAnswer(BackfillLeaders):
    """A tablet is asked once more when it is done; it does not answer, and the index is given up."""

    def _may_give_up(self) -> None:
        """Whatever has been answered."""


@known_bug(
    "002-26",
    RESTART,
    breaks=BackfillLeaders.checkpoints_only_advance,
    budgets={BackfillLeaders.drops: 0, BackfillLeaders.failures: 0},
)
class TheNextLeaderAsksForAll(BackfillLeaders):
    """A new leader does not read the checkpoint, and records that of its own first chunk."""

    @action(spends=BackfillLeaders.failovers)
    def fail_over(self) -> None:
        """What the tablet has done is not known any more."""
        super().fail_over()
        builds = self.permission == Permission.do_backfill
        self.checkpoint = choose(builds, 0, self.checkpoint)


@known_bug(
    "002-27",
    'design document 002, Finalize the index: "the table state is updated to READ_WRITE_AND_DELETE"',
    breaks=BackfillRpcs.every_index_becomes_usable_or_is_deleted,
    budgets={BackfillRpcs.lost: 0, BackfillRpcs.changes: 0},
)
class JobsBeginWithAStatement(BackfillRpcs):
    """The master looks for indexes that wait as a client alters the table: the last of them waits for the next client."""

    @action(by=CLIENT)
    def record_job(self) -> None:
        """A client alters the table, or none does."""
        super().record_job()


@known_bug(
    "002-28",
    'design document 002, DB_REORG: "where the YB-TServers actually perform the backfill"',
    breaks=BackfillRpcs.chunks_run_only_at_do_backfill,
    sizes={Index: 1, Request: 1},
    budgets={BackfillRpcs.lost: 0},
)
class OneVersionBehindIsReady(BackfillRpcs):
    """A tablet leader that is at WRITE_AND_DELETE takes a request for the news that the others know, and carries it out."""

    def _is_ready(self, r: Term[Request]) -> Bool:
        maintains = (Permission.write_and_delete, Permission.do_backfill)
        return every(self.known[i].any_of(*maintains) for i in self.rpc[r].indexes)


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


BUGS = known_bugs_in(globals())
