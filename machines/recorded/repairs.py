"""Repairs as they are recorded: every replica of a tablet that is not given up says that it has what the others had."""

from __future__ import annotations

from stagewright.spec import (
    ANY,
    Bool,
    FlagVar,
    Machine,
    Number,
    NumberVar,
    action,
    constant,
    final,
    flag,
    invariant,
    number,
    require,
)

REPLICAS_MAX = 5


class RecordedRepair(Machine):
    """The repair of one tablet in one session, by its replicas."""

    replicas: NumberVar = constant(number(0, REPLICAS_MAX, init=ANY))
    repaired: NumberVar = number(0, REPLICAS_MAX)
    given_up: NumberVar = number(0, REPLICAS_MAX)
    done: FlagVar = flag()
    gone: FlagVar = flag()  # a replica, and no other takes its place

    @action
    def repair(self) -> None:
        """One more replica says that it has what the others had."""
        require(self._settled() < self.replicas, "one more replica is to be repaired")
        self.repaired = self.repaired + 1

    @action
    def give_up(self) -> None:
        """A replica that has not said so is given up: nobody waits for it."""
        require(self._settled() < self.replicas, "one more replica is to be repaired")
        self.given_up = self.given_up + 1

    @action
    def end(self) -> None:
        """The coordinator takes the repair for done."""
        require(self._settled() == self.replicas, "every replica has repaired")
        self.done = True

    @action
    def let_go(self) -> None:
        """A replica goes for good, and others that live stay."""
        require(self.done, "those that stay have what it alone had")
        self.gone = True

    @invariant
    def nothing_goes_with_a_replica(self) -> Bool:
        """What a replica alone had is repaired before it goes."""
        return self.gone.implies(self.done)

    @invariant
    def repaired_tablets_are_alike(self) -> Bool:
        """What is done is done by all replicas, so that one alone may be asked for any row."""
        return self.done.implies(self.repaired + self.given_up == self.replicas)

    @final
    def over(self) -> Bool:
        """A session repairs once."""
        return self.done

    def _settled(self) -> Number:
        return self.repaired + self.given_up
