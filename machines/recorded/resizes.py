"""Resizes and plans of the load balancer as they are recorded: tablets that are to be split or merged, and what streams.

What `tablet-resize` promises, as far as a run records it: what a split or merge waits for, and where the new tablets lie.
And what `load-balancer` does: a plan begins no migration that its shards have no room for.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.tablets.load_balancer import MOST_READS, MOST_WRITES
from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    Machine,
    NumberVar,
    action,
    bounded,
    constant,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    final,
    flag,
    invariant,
    number,
    one_of,
    require,
    sometimes,
    step_property,
)

REPLICAS_MAX = 8
STREAMS_MAX = 64
MOST = max(MOST_READS, MOST_WRITES)


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
        require(~self.withdrawn, "it was not decided otherwise")
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

    @step_property
    def resizes_wait_until_all_is_prepared(self, after: Self) -> Bool:
        """Every replica was ready for the split, or the pair was colocated, and nothing moved meanwhile."""
        done = ~self.done & after.done
        return done.implies((self.awaited == 0) & ~self.moving) & after.done.implies(~after.early)

    @invariant
    def rows_are_where_the_new_tablets_are(self) -> Bool:
        """A split or merge moves nothing."""
        return self.done.implies(~self.astray)

    @step_property
    def only_what_is_still_decided_is_done(self, after: Self) -> Bool:
        """A finalization carries out the decision that is in force, and none that was revoked."""
        return (~self.done & after.done).implies(~self.withdrawn)

    @sometimes
    def a_resize_is_done(self) -> Bool:
        """What no replica holds up, and what has not been withdrawn, is carried out."""
        return self.done & ~self.withdrawn

    @final
    def over(self) -> Bool:
        """A decision is carried out once, or not at all."""
        return self.done | self.withdrawn

    harmless = equivalents(
        equivalent_disabled(
            because="what is recorded here `tablet-resize` does, whose steps would be none without it"
        ),
        equivalent_disabled(
            withdraw, because="it may stay undone; that it can be revoked, `tablet-resize` promises"
        ),
        equivalent_loss(
            prepare, awaited, early, because="it is done when nobody is awaited, however that came"
        ),
        equivalent_loss(
            release, awaited, because="a replica that is awaited for ever lets nothing be done"
        ),
        equivalent_loss(hold_up, awaited, because="who is to be awaited is for the trace to say"),
        equivalent_loss(
            start_move, moving, because="whether a tablet moves is for the trace to say"
        ),
        equivalent_loss(end_move, moving, because="what moves for ever lets nothing be done"),
        equivalent_loss(finish, early, astray, because="nothing is let through that is either"),
        equivalent_loss(withdraw, withdrawn, because="it may stay undone"),
        equivalent_replacement(
            prepare,
            "0 for 1",
            because="it is done when nobody is awaited, however that came",
        ),
        equivalent_replacement(
            release,
            "0 for 1",
            because="a replica that is awaited for ever lets nothing be done",
        ),
        equivalent_replacement(
            hold_up, "0 for 1", because="who is to be awaited is for the trace to say"
        ),
        equivalent_replacement(
            start_move,
            "no for yes",
            because="whether a tablet moves is for the trace to say",
        ),
        equivalent_replacement(
            end_move, "yes for no", because="what moves for ever lets nothing be done"
        ),
        equivalent_replacement(withdraw, "no for yes", because="it may stay undone"),
        equivalent_drop(withdraw, "it is not done", because="what is done stays so"),
    )


class RecordedShard(Machine):
    """The migrations that stream from one shard, or those that stream to one; a parameter says what was so as one began.

    Operators and merges may ask for more than the balancer would plan: that counts, too.
    """

    streams: NumberVar = number(0, STREAMS_MAX)
    crowded: FlagVar = flag()  # a plan began more than there was room for
    pointless: FlagVar = flag()  # it moved what it should have left

    @action
    def plan(self, helps: Bool) -> None:
        """A migration of this shard begins that the balancer planned; `helps`: loads come closer, or a node empties."""
        require(helps, "the migration improves the balance")
        require(self.streams < MOST, "the shard streams less than it may")
        self.crowded = self.crowded | (self.streams >= MOST)
        self.pointless = self.pointless | ~helps
        self._begin()

    @action
    def ask(self) -> None:
        """One begins that an operator asked for, or that two tablets which are to be merged need."""
        self._begin()

    def _begin(self) -> None:
        bounded(self.streams < STREAMS_MAX, "so many are not asked for at once")
        self.streams = self.streams + 1

    @action
    def end(self) -> None:
        """One of them has streamed, or is undone."""
        require(self.streams > 0, "one streams")
        self.streams = self.streams - 1

    @invariant
    def plans_leave_shards_room(self) -> Bool:
        """The balancer "takes concurrency limit into account when producing new migrations"."""
        return ~self.crowded

    @invariant
    def plans_improve_the_balance(self) -> Bool:
        """A plan is made of what is committed, of active migrations as if they were done."""
        return ~self.pointless

    @final
    def over(self) -> Bool:
        """A run may end at any time."""
        return self.streams >= 0

    harmless = equivalents(
        equivalent_disabled(
            because="what is recorded here `load-balancer` does, whose steps would be none without it"
        ),
        equivalent_disabled(ask, because="operators need not ask, nor tables be merged"),
        equivalent_loss(plan, crowded, pointless, because="no plan is let through that is either"),
        equivalent_loss(
            _begin,
            streams,
            because="if nothing streams, there is room, and the guard lets all through",
        ),
        equivalent_loss(end, streams, because="what streams for ever leaves less room"),
        equivalent_replacement(
            _begin,
            "streams becomes: 0 for 1",
            because="if nothing streams, there is room, and the guard lets all through",
        ),
        equivalent_replacement(
            plan, "streams becomes: 2 for 1", because="what counts twice leaves less room"
        ),
        equivalent_replacement(end, "0 for 1", because="what streams for ever leaves less room"),
    )
