"""A user's own machine: a lock that a node holds for at most a few turns, in one file."""

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    OptionalVar,
    Term,
    action,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    optional,
    require,
)


class Node(Entity): ...


class Phase(Enum):
    free, held = auto(), auto()


class Lock(Machine):
    phase: OneVar[Phase] = one_of(Phase, init=Phase.free)
    holder: OptionalVar[Node] = optional(Node)
    turns: NumberVar = number(0, 2)

    @phase.step(Phase.free, Phase.held)
    def take(self, node: Term[Node]) -> None:
        self.holder = node
        self.turns = 2

    @action
    def use(self) -> None:
        require(self.turns > 0, "turns are left")
        self.turns -= 1

    @phase.step(Phase.held, Phase.free, fair=Fairness.WEAK)
    def release(self) -> None:
        require(self.turns == 0, "all turns are used")
        self.holder = None

    @invariant
    def held_by_one(self) -> Bool:
        return (self.phase == Phase.held) == self.holder.is_some()

    @liveness
    def it_is_released(self) -> LeadsTo:
        return leads_to(self.turns == 0, self.phase == Phase.free)
