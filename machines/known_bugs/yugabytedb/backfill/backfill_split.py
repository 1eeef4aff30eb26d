"""Mistakes put back into `BackfillSplit`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_split import (
    SPLIT_MANAGER,
    TABLET,
    BackfillSplit,
    Piece,
    Shape,
    Step,
)
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Tablet
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import FlagVar, Term, action, choose, every, flag, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

LEADERS = 'design document 002, "Handling node restarts and leadership changes"'
OUTLAST = 'design document 002: the build "should not need to restart on a node failure"'
CHECKPOINTS = "design document 002, Fault tolerance using checkpointing"
ORCHESTRATES = 'design document 002: the master "orchestrates the backfill process"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("002-31", CHECKPOINTS, breaks=BackfillSplit.checkpoints_are_kept)
class CheckpointsAreTheLeaders(BackfillSplit):
    """How far tablets are, only the leader knows: the next one scans all of them again."""

    @action(spends=BackfillSplit.failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        super().fail_over()
        for t in Tablet:
            for piece in Piece:
                self.checkpoint[t][piece] = Checkpoint.never_begun


@known_bug(
    "002-80",
    "design document 002, Backfill the data: the master waits for all the tablets",
    breaks=BackfillSplit.chunks_cover_the_table,
    sizes={Tablet: 1},
)
class BothChildrenInherit(BackfillSplit):
    """A tablet that was begun splits between two leaders. Both of its children count as done, and one was not read."""

    @action(by=TABLET, fair=WEAK)
    def finish_split(self, t: Term[Tablet]) -> None:
        """The children have the checkpoint of their parent."""
        super().finish_split(t)
        begun = self.checkpoint[t][Piece.parent] != Checkpoint.never_begun
        for child in (Piece.lower_child, Piece.upper_child):
            here = self.checkpoint[t][child]
            self.checkpoint[t][child] = choose(begun, Checkpoint.done, here)


@known_bug(
    "002-124",
    "design document 002, Backfill the data: the master waits for all the tablets",
    breaks=BackfillSplit.chunks_cover_the_table,
    sizes={Tablet: 1},
)
class ChildrenGoOnInTheMiddle(BackfillSplit):
    """A tablet splits between two leaders, and its children go on where it was: the upper one, too, of which nothing was
    read before that key.
    """

    @action(by=TABLET, fair=WEAK)
    def finish_split(self, t: Term[Tablet]) -> None:
        """The children have the checkpoint of their parent, as it is."""
        super().finish_split(t)
        for child in (Piece.lower_child, Piece.upper_child):
            self.checkpoint[t][child] = self.checkpoint[t][Piece.parent]


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
        begun = self.step != Step.none
        self._forget_memory()
        self.index = choose(begun, Status.failed, self.index)
        for t in Tablet:
            for piece in Piece:
                here = self.checkpoint[t][piece]
                self.checkpoint[t][piece] = choose(begun, Checkpoint.never_begun, here)


@known_bug(
    "002-138",
    "design document 002: the status is IN-PROGRESS, SUCCESS or FAILED",
    breaks=BackfillSplit.results_are_for_good,
    sizes={Tablet: 1},
)
class WhatHasFailedIsTakenUp(BackfillSplit):
    """A job that was given up is taken up by whoever finds its index not built, though its client has heard FAILED."""

    @BackfillSplit.step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """J0 of an index that is not built."""
        require(self.index != Status.success, "index is not built")
        self.index = Status.in_progress
        self.is_backfilling = True


@known_bug(
    "002-154",
    "design document 002, and yugabyte-db #7108: if a backfill is happening, disallow split",
    breaks=BackfillSplit.backfills_and_splits_exclude_each_other,
    budgets={BackfillSplit.failovers: 0, BackfillSplit.failures: 0},
)
class TabletsSplitUntilTheyAreListed(BackfillSplit):
    """While a job waited for the end of splits new ones began: on a table that grows it would wait for ever."""

    @action(by=SPLIT_MANAGER)
    def begin_split(self, t: Term[Tablet]) -> None:
        """A tablet has grown too large."""
        require(self.shape[t] == Shape.whole, "tablet has not split")
        require(self.step != Step.backfill_tablets, "no tablet is scanned")
        self.shape[t] = Shape.splitting


@known_bug("002-268", OUTLAST, breaks=BackfillSplit.checkpoints_are_kept)
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
    "Z42",
    "yugabyte-db #6704, #7108, #13127, #32708",
    breaks=(BackfillSplit.chunks_cover_the_table,),
    sizes={Tablet: 1},
    budgets={BackfillSplit.failovers: 0, BackfillSplit.failures: 0},
)
class SplitDuringBackfill(BackfillSplit):
    """A tablet splits while the job waits between two of its chunks. The next request for the parent is
    answered by one of its children, and nobody asks the other.
    """

    def _no_backfill_is_going_on(self) -> None:
        """Splitting does not ask."""


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-3",
    "design document 002, and yugabyte-db #7108",
    breaks=BackfillSplit.tablets_split_when_no_backfill_is_going_on,
)
class NoTabletSplitsAfterABackfill(BackfillSplit):
    """What kept tablets from splitting is not taken back when the index is there."""

    @action(by=SPLIT_MANAGER)
    def begin_split(self, t: Term[Tablet]) -> None:
        """A tablet has grown too large, before any index was backfilled."""
        super().begin_split(t)
        require(self.index == Status.in_progress, "no index was backfilled")


@known_bug(
    "002-167",
    ABORTS,
    breaks=BackfillSplit.jobs_do_not_wait_for_splits_for_ever,
    budgets={BackfillSplit.failovers: 0},
)
class OneTabletMayHangForEver(BackfillSplit):
    """A job gave up when all tablets took too long to split: one that hung held it up."""

    @action(by=MASTER, spends=BackfillSplit.failures)
    def give_up(self) -> None:
        """Splits take longer than is waited for."""
        hang = every(self.shape[t] == Shape.splitting for t in Tablet)
        require(hang, "all tablets are splitting")
        super().give_up()


@known_bug("002-292", ORCHESTRATES, breaks=BackfillSplit.jobs_begin_while_tablets_split)
class JobsBeginWhenNobodySplits(BackfillSplit):
    """A job begins when no tablet is splitting: till then others begin to, and one that hangs fails no job."""

    @action(by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """J0, when no tablet is splitting."""
        require(self._none_is_splitting(), "no tablet is splitting")
        super().launch()


@known_bug(
    "002-313",
    'design document 002: "the backfill process on any tablet can proceed independent"',
    breaks=BackfillSplit.tablets_are_backfilled_independently,
)
class ChildrenAreScannedInTurn(BackfillSplit):
    """Of the two that a tablet has split into, the upper one is scanned when the lower one is done."""

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], piece: Term[Piece]) -> None:
        first = self.checkpoint[t][Piece.lower_child] == Checkpoint.done
        require((piece == Piece.upper_child).implies(first), "the lower child is done")
        super().backfill_chunk(t, piece)


BUGS = known_bugs_in(globals())
