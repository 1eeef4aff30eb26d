"""Tablet splitting and the backfill job: neither begins while the other is going on.

A tablet that splits is replaced by two, each with half of its keys. A job knows the tablets that were there
when it asked for their first chunks.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_states import SEED, YUGABYTE_2026, Checkpoint
from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Tablet
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    one_of,
    only_when,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    step_property,
    violated,
)

SPLIT_MANAGER = Actor("tablet split manager")
TABLET = Actor("tablet leader")


class Half(Enum):
    """The keys of a tablet, below and above its middle key."""

    lower = auto()
    upper = auto()


class Piece(Enum):
    """What has an id of its own: the tablet, and, once it has split, its children."""

    parent = auto()
    lower_child = auto()
    upper_child = auto()


class Shape(Enum):
    """How far a tablet is with splitting."""

    whole = auto()
    splitting = auto()  # the children are registered; the parent still serves
    split = auto()  # the children serve, the parent does not


class Step(Enum):
    """Where the job is, as the master leader knows."""

    none = auto()
    wait_for_splits = auto()  # J1
    backfill_tablets = auto()  # J3


def _pieces(shape: Shape) -> frozenset[Piece]:
    """The tablets that have rows."""
    if shape is Shape.split:
        return frozenset({Piece.lower_child, Piece.upper_child})
    return frozenset({Piece.parent})


class BackfillSplit(Machine):
    """One index is backfilled while tablets of its table may split."""

    era = profiles(SEED, YUGABYTE_2026)
    failovers = fault_budget(1, doc="changes of the master leader")
    failures = budget(1, doc="jobs that wait too long for a split")
    exercised_at = scopes({}, {Tablet: 1, failovers: 2, failures: 2})

    # in the sys catalog
    index: OneVar[Status] = one_of(Status, init=Status.in_progress)
    shape = per(Tablet, one_of(Shape, init=Shape.whole))
    checkpoint = per(Tablet, per(Piece, one_of(Checkpoint, init=Checkpoint.never_begun)))
    # the leader's memory
    is_backfilling: FlagVar = flag()
    step: OneVar[Step] = one_of(Step, init=Step.none)
    tasks = per(Tablet, set_of(Piece))  # the tablets that the job knows (`BackfillTablet`)
    # the index table
    scanned = per(Tablet, set_of(Half))  # rows with these keys have their entries

    # -- splitting -----------------------------------------------------------------------------------------------

    @action(by=SPLIT_MANAGER)
    def begin_split(self, t: Term[Tablet]) -> None:
        """A tablet has grown too large: its children are registered, and its leader is asked to split it."""
        require(self.shape[t] == Shape.whole, "tablet has not split")
        if self.era.splits_excluded:
            self._no_backfill_is_going_on()
        self.shape[t] = Shape.splitting

    @action(by=TABLET, fair=WEAK)
    def finish_split(self, t: Term[Tablet]) -> None:
        """The split is applied: requests for the parent find it gone."""
        require(self.shape[t] == Shape.splitting, "tablet is splitting")
        self.shape[t] = Shape.split

    # -- the job -------------------------------------------------------------------------------------------------

    @step.step(Step.none, Step.wait_for_splits, by=MASTER, fair=WEAK)
    def launch(self) -> None:
        """J0, and J1 of a new leader: no split begins any more."""
        require(self.index == Status.in_progress, "index is to be backfilled")
        self.is_backfilling = True

    @step.step(Step.wait_for_splits, Step.backfill_tablets, by=MASTER, fair=WEAK)
    def list_tablets(self) -> None:
        """J1 is over: the tablets that are there now are the job's."""
        if self.era.splits_excluded:
            self._no_split_is_going_on()
        for t in Tablet:
            self.tasks[t] = self.shape[t].column(_pieces)

    @action(by=MASTER, fair=WEAK)
    def backfill_chunk(self, t: Term[Tablet], piece: Term[Piece]) -> None:
        """A chunk of a tablet. A request for a parent that has split is answered by its first child alone."""
        require(self.tasks[t].has(piece), "tablet is one of the job's")
        here = self.checkpoint[t][piece]
        require(here != Checkpoint.done, "tablet is not done")
        more = (piece == Piece.parent) & (here == Checkpoint.never_begun)
        more = more & (self.shape[t] != Shape.split)
        reads_lower = self._reads_lower_half(t, piece)
        self.checkpoint[t][piece] = choose(more, Checkpoint.in_the_middle, Checkpoint.done)
        lower, upper = self.scanned[t].has(Half.lower), self.scanned[t].has(Half.upper)
        from_its_start = (piece == Piece.parent) | (here == Checkpoint.never_begun)
        self.scanned[t].put(Half.lower, lower | (reads_lower & from_its_start))
        self.scanned[t].put(Half.upper, upper | (~reads_lower & from_its_start))

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """J4 to J8: all tablets of the job are done; splitting is on again."""
        require(self.step == Step.backfill_tablets, "tablets are being backfilled")
        done = every(
            self.checkpoint[t][piece] == Checkpoint.done for t in Tablet for piece in self.tasks[t]
        )
        require(done, "all tablets of the job are done")
        self._end(Status.success)

    @action(by=MASTER, spends=failures)
    def give_up(self) -> None:
        """Splits take longer than `index_backfill_tablet_split_completion_timeout_sec`: the index fails."""
        require(self.step == Step.wait_for_splits, "job waits for splits")
        require(~self._none_is_splitting(), "a tablet is splitting")
        self._end(Status.failed)

    @action(spends=failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader; until it takes up the job, tablets may split."""
        self._forget_memory()

    # -- helpers ---------------------------------------------------------------------------------------------------

    def _no_backfill_is_going_on(self) -> None:
        require(~self.is_backfilling, "no backfill is going on (SPLIT_OR_BACKFILL_IN_PROGRESS)")

    def _no_split_is_going_on(self) -> None:
        require(self._none_is_splitting(), "no tablet is splitting")

    def _none_is_splitting(self) -> Bool:
        return ~some(self.shape[t] == Shape.splitting for t in Tablet)

    def _reads_lower_half(self, t: Term[Tablet], piece: Term[Piece]) -> Bool:
        """A parent's first chunk, or the lower child's: the others read the upper half."""
        begins = self.checkpoint[t][piece] == Checkpoint.never_begun
        by_child = (piece == Piece.parent) & (self.shape[t] == Shape.split)
        return (begins & (piece != Piece.upper_child)) | by_child

    def _end(self, outcome: Status) -> None:
        self.index = outcome
        self._forget_memory()
        for t in Tablet:
            for piece in Piece:
                self.checkpoint[t][piece] = Checkpoint.never_begun

    def _forget_memory(self) -> None:
        self.is_backfilling = False
        self.step = Step.none
        for t in Tablet:
            self.tasks[t] = frozenset()

    # -- promises ----------------------------------------------------------------------------------------------------

    @accepts(begin_split)
    def tablets_split_when_no_backfill_is_going_on(self, t: Term[Tablet]) -> Bool:
        """yugabyte-db #7108 keeps a split waiting for a backfill, and for nothing else: not before it, nor after it.
        One that another leader has begun, and nobody has taken up, may count as going on.
        """
        begun = some(
            self.checkpoint[o][piece] != Checkpoint.never_begun for o in Tablet for piece in Piece
        )
        return (self.shape[t] == Shape.whole) & ~self.is_backfilling & ~begun

    @accepts(launch)
    def jobs_begin_while_tablets_split(self) -> Bool:
        """002, "Backfill the data": "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill
        process": a job that waits for splits is one that keeps new ones from beginning, and that can be given up.
        """
        return (self.index == Status.in_progress) & (self.step == Step.none)

    @accepts(give_up)
    def jobs_do_not_wait_for_splits_for_ever(self, t: Term[Tablet]) -> Bool:
        """002, Design Goals: "If a problem arises [...] the CREATE INDEX command should abort and result in a failure": a single
        tablet that does not come to the end of its split is one.
        """
        return (self.step == Step.wait_for_splits) & (self.shape[t] == Shape.splitting)

    @accepts(backfill_chunk)
    def tablets_are_backfilled_independently(self, t: Term[Tablet], piece: Term[Piece]) -> Bool:
        """002, "The index backfill process": "the backfill process on any tablet can proceed independent of the others": also on
        those that are there since one has split.
        """
        only_when(self.era.splits_excluded)
        scans = self.step == Step.backfill_tablets
        serves = self.shape[t].column(_pieces).has(piece)
        return scans & serves & (self.checkpoint[t][piece] != Checkpoint.done)

    @invariant
    def chunks_cover_the_table(self, t: Term[Tablet], half: Term[Half]) -> Bool:
        """002: "the YB-Master needs to wait for the backfill to complete on all the tablets": the chunks of all
        tablets together are all keys (yugabyte-db #6704).
        """
        return (self.index == Status.success).implies(self.scanned[t].has(half))

    @lemma
    def jobs_know_the_tablets_that_serve(self, t: Term[Tablet]) -> Bool:
        """The leader's list of tablets has just those that have rows."""
        running = self.step == Step.backfill_tablets
        parent = self.tasks[t].has(Piece.parent)
        serves = parent == (self.shape[t] == Shape.whole)
        children = self.tasks[t].has(Piece.lower_child) & self.tasks[t].has(Piece.upper_child)
        return running.implies(serves & (parent | children))

    @step_property
    def chunks_are_asked_of_tablets_that_serve(
        self, after: Self, t: Term[Tablet], piece: Term[Piece]
    ) -> Bool:
        """002: "issuing BackfillIndex() RPC calls to each tablet": not to one that is gone, or not there yet. (As a tablet
        splits, its children may inherit its checkpoint.)
        """
        asked = self.checkpoint[t][piece] != after.checkpoint[t][piece]
        asked = asked & (after.index == Status.in_progress) & (after.shape[t] == self.shape[t])
        return asked.implies(self.shape[t].column(_pieces).has(piece))

    @step_property
    def splits_are_for_good(self, after: Self, t: Term[Tablet]) -> Bool:
        """A tablet splits once; its children have the rows."""
        return (self.shape[t] == Shape.split).implies(after.shape[t] == Shape.split)

    @step_property
    def results_are_for_good(self, after: Self) -> Bool:
        """002: the status of the job is "IN-PROGRESS, SUCCESS, FAILED"; the last two are its end."""
        return self._over().implies(after.index == self.index)

    @step_property
    def only_splits_that_last_fail_the_job(self, after: Self) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster": here a job fails
        for the splits that it waits for, and not as another leader takes it up, or when its tablets are scanned.
        """
        fails = (self.index == Status.in_progress) & (after.index == Status.failed)
        return fails.implies(self.step == Step.wait_for_splits)

    @step_property
    def backfills_and_splits_exclude_each_other(self, after: Self, t: Term[Tablet]) -> Bool:
        """yugabyte-db #7108: "if a split is happening, disallow backfill; if a backfill is happening, disallow split"."""
        splits = (self.shape[t] != after.shape[t]) | (self.shape[t] == Shape.splitting)
        begins = (self.shape[t] == Shape.whole) & (after.shape[t] != Shape.whole)
        waits = (self.step == Step.wait_for_splits).implies(~begins)
        return waits & (self.step == Step.backfill_tablets).implies(~splits)

    @step_property
    def checkpoints_are_kept(self, after: Self, t: Term[Tablet], piece: Term[Piece]) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster."""
        order = self.checkpoint[t][piece].number_column(list(Checkpoint).index)
        new = after.checkpoint[t][piece].number_column(list(Checkpoint).index)
        return (new >= order) | after.index.any_of(Status.success, Status.failed)

    @invariant
    def nothing_is_left_of_a_job(self, t: Term[Tablet], piece: Term[Piece]) -> Bool:
        """After the job no checkpoint is left, and tablets may split again."""
        over = ~self.is_backfilling & (self.checkpoint[t][piece] == Checkpoint.never_begun)
        return self.index.any_of(Status.success, Status.failed).implies(over)

    @final
    def all_is_done(self) -> Bool:
        """The index is there, or has failed, and no tablet is splitting."""
        return self._over() & self._none_is_splitting()

    @always_reachable
    def the_job_can_end(self) -> Bool:
        """Whatever happened, the index can be built or fail."""
        return self._over()

    @liveness
    def every_job_ends(self) -> LeadsTo:
        """Splits do not keep a job waiting for ever, for no new ones begin."""
        return leads_to(self.index == Status.in_progress, self._over())

    def _over(self) -> Bool:
        return self.index.any_of(Status.success, Status.failed)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            chunks_cover_the_table,
            jobs_know_the_tablets_that_serve,
            backfills_and_splits_exclude_each_other,
            chunks_are_asked_of_tablets_that_serve,
            under=SEED,
            because="the document does not speak of splitting: nothing keeps a tablet from it, nor a job from tablets "
            "that split (yugabyte-db #6704)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(begin_split, shape, because="a tablet need not split"),
        equivalent_drop(backfill_chunk, "tablet is not done", because="nothing is left to read"),
        equivalent_drop(
            give_up, "a tablet is splitting", because="a timeout: it may strike at any time"
        ),
        equivalent_loss(
            _forget_memory,
            is_backfilling,
            because="until the job is resumed it only keeps tablets from splitting",
        ),
        equivalent_loss(_forget_memory, tasks, because="the next job lists its tablets anew"),
        equivalent_replacement(
            begin_split,
            "split for splitting",
            because="a split that takes no time is one that no job has to wait for",
        ),
        equivalent_replacement(
            finish_split,
            "whole for split",
            because="a split may be given up, which leaves the tablet whole",
        ),
        equivalent_replacement(
            backfill_chunk,
            "scanned[t][upper] becomes: in_the_middle for never_begun",
            because="a parent's first chunk may as well have the upper half, and the next one the lower",
        ),
    )
