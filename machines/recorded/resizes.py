"""Resizes as they are recorded: one tablet that is to be split, or two that are to be merged, since that was decided.

What `tablet-resize` promises, as far as a run records it: what a split or merge waits for, and where the new tablets lie.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    Machine,
    NumberVar,
    action,
    bounded,
    constant,
    final,
    flag,
    invariant,
    number,
    one_of,
    require,
)

REPLICAS_MAX = 8


class Way(Enum):
    """How the number of tablets changes."""

    split = auto()
    merge = auto()


class RecordedResize(Machine):
    """One decision about one tablet, or about the two of a pair; the parameters say what was so as it happened."""

    way = constant(one_of(Way, init=ANY))
    awaited: NumberVar = number(0, REPLICAS_MAX, init=ANY)  # replicas that hold it up
    moving: FlagVar = flag(init=ANY)  # a replica, or something is asked for of a tablet
    done: FlagVar = flag()
    early: FlagVar = flag()  # it was done before all was prepared
    astray: FlagVar = flag()  # the new tablets lie where rows of the old ones do not
    withdrawn: FlagVar = flag()

    @action
    def prepare(self, true: Bool) -> None:
        """A replica says that it is ready for the split, or comes to lie beside one of the other tablet.

        `true`: it knows of the split, or it does.
        """
        require(self.awaited > 0, "a replica holds it up")
        require(true, "the replica is ready")
        self.awaited = self.awaited - 1
        self.early = self.early | ~true

    @action
    def release(self) -> None:
        """A replica that held it up is one no more."""
        require(self.awaited > 0, "a replica holds it up")
        self.awaited = self.awaited - 1

    @action
    def hold_up(self) -> None:
        """There is a new replica, for which it is to be prepared, too."""
        bounded(self.awaited < REPLICAS_MAX, "the replicas are those of one tablet, or of two")
        self.awaited = self.awaited + 1

    @action
    def start_move(self) -> None:
        """A tablet is in transition, or a repair or a move of it is asked for."""
        self.moving = True

    @action
    def end_move(self) -> None:
        """It is at rest again."""
        self.moving = False

    @action
    def finish(self, drained: Bool, kept: Bool) -> None:
        """There are new tablets instead; `drained`: what began under the old ones is over; `kept`: their rows are there."""
        require(self.awaited == 0, "no replica holds it up")
        require(~self.moving, "no tablet of it moves, nor is to be repaired or moved")
        require(drained, "the barrier of the finalization has passed")
        require(kept, "the new tablets lie where the old ones do")
        self.early = self.early | (self.awaited > 0) | self.moving | ~drained
        self.astray = self.astray | ~kept
        self.done = True

    @action
    def withdraw(self) -> None:
        """It was decided otherwise, or the table is gone."""
        require(~self.done, "it is not done")
        self.withdrawn = True

    @invariant
    def resizes_wait_until_all_is_prepared(self) -> Bool:
        """Every replica was ready for the split, or the pair was colocated, and nothing moved meanwhile."""
        return self.done.implies(~self.early)

    @invariant
    def rows_are_where_the_new_tablets_are(self) -> Bool:
        """A split or merge moves nothing."""
        return self.done.implies(~self.astray)

    @final
    def over(self) -> Bool:
        """A decision is carried out once, or not at all."""
        return self.done | self.withdrawn
