"""A write as the node records it that coordinates it: whom it sends it to, and when it tells the client."""

from __future__ import annotations

from typing import cast

from stagewright.machines.scylladb.tablets.tablet_stages import Replicas, Stage
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    FlagVar,
    Machine,
    Number,
    NumberVar,
    OneVar,
    accepts,
    action,
    choose,
    constant,
    equivalent_drop,
    equivalent_value,
    equivalents,
    final,
    flag,
    invariant,
    number,
    one_of,
    require,
    sometimes,
)

COORDINATOR = Actor("node that coordinates the write")
REPLICA = Actor("replica")
TARGETS_MAX = 7
ANY_STAGE = cast("OneVar[Stage]", one_of(Stage, init=ANY))


class RecordedWrite(Machine):
    """One write. It begins at a stage, which says which of the tablet's replicas it goes to.

    With `quorum` it waits for a majority and for the pending replica besides, else for all targets but those
    that are given up.
    """

    stage: OneVar[Stage] = constant(ANY_STAGE)  # as the node has learned it
    # replicas before and after the transition
    staying: NumberVar = constant(number(0, 5, init=ANY))
    leaving: NumberVar = constant(number(0, 1, init=ANY))
    pending: NumberVar = constant(number(0, 1, init=ANY))
    given_up: NumberVar = constant(number(0, 1, init=ANY))  # targets that are down for good
    quorum: FlagVar = constant(flag(init=ANY))
    sent: NumberVar = number(0, TARGETS_MAX)
    answers: NumberVar = number(0, TARGETS_MAX)
    acknowledged: FlagVar = flag()

    @action(by=COORDINATOR)
    def send(self) -> None:
        """The node sends the write to one more replica."""
        require(self.sent < self._targets(), "the stage writes to one more replica")
        self.sent = self.sent + 1

    @action(by=REPLICA)
    def answer(self) -> None:
        """One more replica has stored it."""
        require(self.answers < self.sent, "it was sent to one more replica")
        self.answers = self.answers + 1

    @action(by=COORDINATOR)
    def acknowledge(self) -> None:
        """The client is told that it is written."""
        require(self.sent == self._targets(), "it went to every replica that the stage writes to")
        require(self._is_written(), "enough replicas have stored it, the pending one among them")
        self.acknowledged = True

    @action(by=COORDINATOR)
    def fail(self) -> None:
        """The client is told that it failed; it may be written all the same."""
        require(~self.acknowledged, "the client was not told that it is written")

    @invariant
    def acknowledged_writes_are_stored(self) -> Bool:
        """What a client was told is written is on as many replicas as the consistency says."""
        return self.acknowledged.implies(self._is_consistent() & (self.answers > 0))

    @invariant
    def acknowledged_writes_went_to_every_replica(self) -> Bool:
        """Before the client is told, the write is sent to all that its stage names, also to those that are late: to the
        leaving one until only the new ones are written to, to the pending one as soon as not only the old ones are.
        """
        return self.acknowledged.implies(self._went_to_all())

    @accepts(acknowledge)
    def clients_wait_for_no_more_than_they_asked_for(self) -> Bool:
        """A write that has as many replicas as the consistency says is acknowledged, whoever is late."""
        return self._went_to_all() & self._is_consistent() & (self.answers > 0)

    @accepts(answer)
    def replicas_that_are_late_answer(self) -> Bool:
        """001, stage 3: such a write "will reach CL in both" sets: who is late stores it when the client knows already."""
        return self.acknowledged & (self.answers < self.sent)

    def _went_to_all(self) -> Bool:
        to_old = self.stage.column(lambda stage: stage.writes is not Replicas.next)
        to_new = self.stage.column(lambda stage: stage.writes is not Replicas.previous)
        moving = choose(to_old, self.leaving, 0) + choose(to_new, self.pending, 0)
        return self.sent == self.staying + moving

    def _is_consistent(self) -> Bool:
        """Of a quorum, fewer than half of the replicas that are not pending lack it, even if the pending one has it;
        else nobody lacks it who is not given up.
        """
        lacking = self.sent - self.answers
        only_new = self.stage.column(lambda stage: stage.writes is Replicas.next)
        natural = self.staying + choose(only_new, self.pending, self.leaving)
        return choose(self.quorum, lacking * 2 < natural, lacking <= self.given_up)

    @sometimes
    def every_replica_can_have_it(self) -> Bool:
        """A write that is acknowledged can be on all of them."""
        return self.acknowledged & (self.answers == self._targets())

    @final
    def all_is_done(self) -> Bool:
        """The client was told, and every replica has answered."""
        return self.acknowledged

    def _targets(self) -> Number:
        return self._before_or_after() + self._extra()

    def _before_or_after(self) -> Number:
        """The replicas of one side: both have as many, but where a replica is added."""
        goes_to_new = self.stage.column(lambda stage: stage.writes is Replicas.next)
        return self.staying + choose(goes_to_new, self.pending, self.leaving)

    def _extra(self) -> Number:
        return choose(
            self.stage.column(lambda stage: stage.writes is Replicas.both), self.pending, 0
        )

    def _is_written(self) -> Bool:
        extra = self._extra()
        majority = self.answers + self.answers > self._before_or_after() + extra + extra
        all_that_live = (self.answers + self.given_up >= self._targets()) & (self.answers > 0)
        return (self.quorum & majority) | (~self.quorum & all_that_live)

    harmless = equivalents(
        equivalent_drop(
            fail,
            "the client was not told that it is written",
            because="a failure changes nothing: a trace shows what the client was told",
        ),
        equivalent_value(
            tuple(Stage),
            lambda stage: stage.writes,
            because="whom a stage writes to is tablet's to say: here they are counted",
        ),
    )
