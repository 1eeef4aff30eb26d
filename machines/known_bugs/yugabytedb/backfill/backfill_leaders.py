"""Mistakes put back into `BackfillLeaders`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_leaders import (
    REMOVING,
    ROWS,
    TABLET,
    TERMS,
    BackfillLeaders,
    Intent,
    Thread,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import CLIENT, MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Bool, Term, action, bounded, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CREATE_TABLE = 'design document 002, "Create the index table"'
FAILS = 'design document 002: "the CREATE INDEX command should abort and result in a failure"'
LEADERS = 'design document 002, "Handling node restarts and leadership changes"'
RESTART = 'design document 002: the build "should not need to restart on a node failure"'
FINALIZE = 'design document 002, "Finalize the index"'
CHECKPOINTS = 'design document 002, "Checkpointing"'


# -- what goes wrong -------------------------------------------------------------------------------


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


@known_bug("002-390", LEADERS, breaks=BackfillLeaders.tablets_answer_new_leaders)
class TabletsAreSilentUntilTheyAnswer(BackfillLeaders):
    """A tablet that has not answered a new leader yet counts as one that does not: the index is given up as another master
    is elected.
    """

    @action(spends=BackfillLeaders.failovers)
    def fail_over(self) -> None:
        """The tablet has never answered that one."""
        bounded(self.term < TERMS, "a term is left")
        self.term = self.term + 1
        self.unanswered = self.permission == Permission.do_backfill


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


@known_bug("002-356", LEADERS, breaks=BackfillLeaders.only_the_leader_gives_up)
class TermsHaveOneBit(BackfillLeaders):
    """The third leader has the term of the second, whose threads it does not tell from its own."""

    @action(spends=BackfillLeaders.failovers)
    def fail_over(self) -> None:
        self.term = 1
        self.unanswered = False


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-4",
    "design document 002: the index build itself occurs asynchronously",
    breaks=BackfillLeaders.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheThreads(BackfillLeaders):
    """DROP INDEX is refused while a thread of a master is going to write."""

    @action(by=CLIENT, spends=BackfillLeaders.drops)
    def drop_index(self) -> None:
        """The index is on its way out, if no thread works on it."""
        super().drop_index()
        free = every(self.work[th].intent == Intent.none for th in Thread)
        require(free, "no thread is going to write")


@known_bug(
    "002-156",
    "design document 002, Finalize the index",
    breaks=BackfillLeaders.threads_of_earlier_leaders_hold_up_nobody,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class OneThreadAtATime(BackfillLeaders):
    """That a tablet was done was found when no thread was about to write: one of a leader that was gone held it up."""

    @action(by=MASTER, fair=WEAK)
    def find_done(self, th: Term[Thread]) -> None:
        """J4: the tablet is done."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().find_done(th)


@known_bug(
    "002-164",
    "design document 002, Handling node restarts and leadership changes",
    breaks=BackfillLeaders.reports_are_heard_at_any_time,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class ReportsAreHeardOneByOne(BackfillLeaders):
    """Reports were heard when no thread was about to write, nor one of a leader that was gone."""

    @action(by=MASTER, fair=WEAK)
    def hear_report(self, th: Term[Thread]) -> None:
        """A tablet reports its version of the table."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().hear_report(th)


@known_bug(
    "002-168",
    "design document 002, Handling node restarts and leadership changes",
    breaks=BackfillLeaders.answers_are_heard_at_any_time,
    budgets={BackfillLeaders.failures: 0, BackfillLeaders.drops: 0},
)
class AnswersAreHeardOneByOne(BackfillLeaders):
    """Answers were heard when no thread was about to write, nor one of a leader that was gone."""

    @action(by=MASTER, fair=WEAK)
    def hear_answer(self, th: Term[Thread]) -> None:
        """The tablet has answered a chunk."""
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "no thread is about to write")
        super().hear_answer(th)


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


def _old_threads_are_left(leaders: BackfillLeaders) -> Bool:
    return some(
        (leaders.work[o].intent != Intent.none) & (leaders.work[o].term != leaders.term)
        for o in Thread
    )


@known_bug("002-322", CREATE_TABLE, breaks=BackfillLeaders.versions_are_launched_beside_others)
class VersionsWaitForOldThreads(BackfillLeaders):
    """The next version is launched when no thread of an earlier leader is left that might write."""

    @action(by=MASTER, fair=WEAK)
    def launch_next_version(self, th: Term[Thread]) -> None:
        require(~_old_threads_are_left(self), "no thread of an earlier leader is left")
        super().launch_next_version(th)


@known_bug("002-323", FAILS, breaks=BackfillLeaders.failures_are_recorded_beside_others)
class FailuresWaitForOldThreads(BackfillLeaders):
    """The same of the failure: an earlier leader might still have had an answer."""

    @action(by=MASTER, fair=WEAK)
    def record_failure(self, th: Term[Thread]) -> None:
        require(~_old_threads_are_left(self), "no thread of an earlier leader is left")
        super().record_failure(th)


@known_bug("002-324", FAILS, breaks=BackfillLeaders.failures_are_found_beside_others)
class FailuresAreFoundWhenAllThreadsAreFree(BackfillLeaders):
    """That a tablet does not answer is noticed when no other thread has anything to write."""

    @action(by=MASTER, fair=WEAK)
    def find_failed(self, th: Term[Thread]) -> None:
        busy = some((o != th) & (self.work[o].intent != Intent.none) for o in Thread)
        require(~busy, "every other thread is free")
        super().find_failed(th)


@known_bug("002-325", CREATE_TABLE, breaks=BackfillLeaders.tablets_apply_versions_at_any_time)
class TabletsWaitForThreads(BackfillLeaders):
    """A tablet applies a version when no thread of a master is about to write one."""

    @action(by=TABLET, fair=WEAK)
    def apply_version(self) -> None:
        busy = some(self.work[o].intent != Intent.none for o in Thread)
        require(~busy, "every thread is free")
        super().apply_version()


BUGS = known_bugs_in(globals())
