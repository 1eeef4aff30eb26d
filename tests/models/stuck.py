"""A coordinator that hangs, and a crash that would help: nobody may count on a crash."""

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    always_reachable,
    fault_budget,
    final,
    leads_to,
    liveness,
    one_of,
)


class Phase(Enum):
    """What the coordinator does."""

    working = auto()
    stuck = auto()
    restarted = auto()
    done = auto()


class Stuck(Machine):
    """A bug: once stuck, the coordinator does nothing. Only a crash of it would help."""

    crashes = fault_budget(1, doc="crashes of the coordinator")
    phase: OneVar[Phase] = one_of(Phase, init=Phase.working)

    @phase.step(Phase.working, Phase.stuck, fair=Fairness.WEAK)
    def hang(self) -> None:
        """It waits for what never comes."""

    @phase.step({Phase.working, Phase.stuck}, Phase.restarted, spends=crashes)
    def crash(self) -> None:
        """It crashes, and starts again."""

    @phase.step(Phase.restarted, Phase.done, fair=Fairness.WEAK)
    def finish(self) -> None:
        """It does what it had to."""

    @final
    def nothing_to_do(self) -> Bool:
        return self.phase == Phase.done

    @liveness
    def it_ends(self) -> LeadsTo:
        """Work that was begun ends."""
        return leads_to(self.phase == Phase.working, self.phase == Phase.done)

    @always_reachable
    def it_can_end(self) -> Bool:
        """It can always still be done."""
        return self.phase == Phase.done
