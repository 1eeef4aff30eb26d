"""A small machine that breaks one promise of every kind, each in a known number of steps."""

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    Term,
    action,
    always_reachable,
    budget,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    per,
    require,
    step_property,
)


class Phase(Enum):
    """Where the turnstile is."""

    IDLE = auto()
    WAITING = auto()
    DONE = auto()
    NEVER = auto()


class Gate(Entity, scope=2):
    """A gate."""


class Turnstile(Machine):
    """Waits, counts to two and back, and may be done when the count is one."""

    kicks = budget(1, doc="kicks against a gate")
    phase: OneVar[Phase] = one_of(Phase, init=Phase.IDLE)
    count: NumberVar = number(0, 2)
    shut = per(Gate, flag())

    @action
    def start(self) -> None:
        """Somebody comes."""
        require(self.phase == Phase.IDLE, "it is idle")
        self.phase = Phase.WAITING

    @action(fair=Fairness.WEAK)
    def tick(self) -> None:
        """One more."""
        require(self.phase == Phase.WAITING, "it is waiting")
        self.count = self.count + 1

    @action
    def reset(self) -> None:
        """Back to none."""
        require(self.count == 2, "the count is full")
        self.count = 0

    @action(fair=Fairness.WEAK)
    def finish(self) -> None:
        """Somebody goes."""
        require(self.phase == Phase.WAITING, "it is waiting")
        require(self.count == 1, "the count is one")
        self.phase = Phase.DONE

    @action(spends=kicks)
    def kick(self, g: Term[Gate]) -> None:
        """A gate falls shut."""
        require(self.phase == Phase.DONE, "it is done")
        self.shut[g] = True

    @action
    def vanish(self) -> None:
        """Never happens."""
        require(self.phase == Phase.NEVER, "it is nowhere")
        require(self.count <= 2, "the count is a count")
        self.phase = Phase.IDLE

    @invariant
    def small(self) -> Bool:
        """The count stays below two. It must."""
        return self.count < 2

    @invariant
    def open_gates(self, g: Term[Gate]) -> Bool:
        """All gates are open."""
        return ~self.shut[g]

    @invariant
    def nowhere_is_empty(self) -> Bool:
        """Nobody counts nowhere."""
        return (self.phase == Phase.NEVER).implies(self.count == 0)

    @step_property
    def grows(self, after: Self) -> Bool:
        """The count never falls."""
        return after.count >= self.count

    @liveness
    def ends(self) -> LeadsTo:
        """Waiting comes to an end."""
        return leads_to(self.phase == Phase.WAITING, self.phase == Phase.DONE)

    @liveness
    def never_ends(self) -> LeadsTo:
        """Being nowhere comes to an end."""
        return leads_to(self.phase == Phase.NEVER, self.phase == Phase.IDLE)

    @always_reachable
    def idle_again(self) -> Bool:
        """It can be idle again."""
        return self.phase == Phase.IDLE
