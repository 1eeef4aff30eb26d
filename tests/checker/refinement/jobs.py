"""A job as its users see it, workers that do it, and how refinements of them are decided here."""

from __future__ import annotations

from enum import Enum, auto

from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.refinement.verdicts import Searching, decide
from stagewright.spec import (
    FlagVar,
    Machine,
    NumberVar,
    OneVar,
    Refinement,
    Term,
    action,
    choose,
    flag,
    number,
    one_of,
    refinement,
    require,
    scope_of,
)
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.verdict import PropertyVerdict


def decided(
    given: Refinement, profile: str = "", engine: EngineKind = EngineKind.AUTO
) -> PropertyVerdict:
    mapped = given.mapped(profile)
    how = Searching(Limits(), engine)
    verdict = decide(mapped, mapped.scopes, how)
    if verdict.run is not None:  # it is a run of the concrete machine
        interpreter = Interpreter(mapped.concrete, scope_of(mapped.concrete))
        assert verdict.run.states[0] in list(interpreter.initial_states())
        pairs = zip(verdict.run.states, verdict.run.steps, verdict.run.states[1:], strict=False)
        assert all(interpreter.take(step, before) == after for before, step, after in pairs)
    return verdict


def steps(verdict: PropertyVerdict) -> list[str]:
    assert verdict.run is not None
    return [step.label for step in verdict.run.steps]


class Phase(Enum):
    """How far a job is."""

    idle = auto()
    running = auto()
    done = auto()


class Job(Machine):
    """A job as its users see it."""

    phase: OneVar[Phase] = one_of(Phase, init=Phase.idle)

    @phase.step(Phase.idle, Phase.running)
    def start(self) -> None:
        """It runs."""

    @phase.step(Phase.running, Phase.done)
    def finish(self) -> None:
        """It is done."""


class Worker(Machine):
    """How it is done: in rounds."""

    rounds: NumberVar = number(0, 3)
    started: FlagVar = flag()
    stopped: FlagVar = flag()

    @action
    def begin(self) -> None:
        """The first round."""
        require(~self.started, "it has not begun")
        self.started = True

    @action
    def work(self) -> None:
        """One more round."""
        require(self.started & ~self.stopped & (self.rounds < 3), "a round is left")
        self.rounds = self.rounds + 1

    @action
    def stop(self) -> None:
        """Enough."""
        require(self.started & (self.rounds == 3), "all rounds are over")
        self.stopped = True


class Hasty(Worker):
    """A worker that may give up before it has begun."""

    @action
    def give_up(self) -> None:
        """It is never done."""
        require(~self.started, "it has not begun")
        self.stopped = True


def phase_of(worker: Worker) -> Term[Phase]:
    busy = choose(worker.started, Phase.running, choose(worker.started, Phase.idle, Phase.idle))
    return choose(worker.stopped, Phase.done, busy)


@refinement()
def a_job(worker: Worker, seen: Job) -> None:
    """Rounds are nobody's business."""
    seen.phase = phase_of(worker)


@refinement()
def a_hasty_job(worker: Hasty, seen: Job) -> None:
    """Jobs are done only after they have run."""
    seen.phase = phase_of(worker)
