"""Replays what the solver found on the reference interpreter: a wrong model must never reach the user."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.checker.symbolic.claims import IN_BOUNDS, LOOKED_FOR, Claim
from stagewright.checker.symbolic.relation import State
from stagewright.spec.definition import NO_DEADLOCK, Definition
from stagewright.spec.errors import DomainError, RefusedError
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import FrozenMap, State as Values, Value
from stagewright.spec.verdict import Run, Step


class ReplayError(AssertionError):
    """The solver's run is not one of the machine's: a fault of this project or of the solver, not the user's."""


@dataclass(frozen=True)
class Path:
    """A run in the model's terms: `steps[i]` is the index of the step from `states[i]` to `states[i + 1]`."""

    states: list[State]
    steps: list[int]


@dataclass(frozen=True)
class Breach:
    """How a run breaks a claim at its end: the values of its parameters, and more in words."""

    run: Run
    arguments: FrozenMap[str, Value]
    detail: str = ""


class Replay:
    """The interpreter of the solver's runs."""

    def __init__(self, definition: Definition, model: GroundModel) -> None:
        """`definition` as it was before the scope's budgets were spelled out."""
        self._model = model
        self._interpreter = Interpreter(definition, model.scope)

    def confirm(self, claim: Claim, path: Path, *, initial: bool) -> Breach:
        """The breach at the path's end.

        `initial`: the path must start in an initial state. Else it may start anywhere, but must keep the
        claim until its end.

        Raises:
            ReplayError: it is not such a path.
        """
        if initial and path.states[0] not in self._model.initial:
            raise ReplayError(f"the solver starts in {path.states[0]}, which is not initial")
        run = self._run(path)
        for old, step, new in zip(run.states, run.steps, run.states[1:], strict=False):
            self._confirm_step(old, step, new)
        last = len(run.steps)
        if not initial and any(self._breach(claim, run, end) for end in range(last)):
            raise ReplayError(f"the solver's run breaks {claim.name} before its end")
        breach = self._breach(claim, run, last)
        if breach is None:
            raise ReplayError(f"the solver's run of {last} steps does not break {claim.name}")
        return breach

    def _run(self, path: Path) -> Run:
        for state in path.states:
            for cell, value in zip(self._model.cells, state, strict=True):
                if not cell.low <= value <= cell.high:
                    raise ReplayError(f"the solver gives {cell.name} the value {value}")
        steps = [self._model.steps[index] for index in path.steps]
        return Run(
            tuple(map(self._model.decode, path.states)),
            tuple(Step(s.action.name, FrozenMap(dict(s.arguments))) for s in steps),
        )

    def _confirm_step(self, old: Values, step: Step, new: Values) -> None:
        try:
            reached = self._interpreter.take(step, old)
        except (RefusedError, DomainError) as error:
            raise ReplayError(f"the solver takes a step that cannot happen: {error}") from error
        if reached != new:
            raise ReplayError(f"`{step.label}` does not lead where the solver says")

    def _breach(self, claim: Claim, run: Run, end: int) -> Breach | None:
        """How the claim is broken in the state at `end`, or by the step that ends there."""
        state = run.states[end]
        if claim.name == IN_BOUNDS:
            problem = self._overflow(state)
            return Breach(run, FrozenMap({}), problem) if problem else None
        if claim.name == NO_DEADLOCK:
            if not self._interpreter.is_deadlock(state):
                return None
            return Breach(run, FrozenMap({}), "no action is enabled that spends no budget")
        if claim.of_step and end == 0:
            return None
        prop = self._interpreter.definition.property(claim.name)
        old, new = (run.states[end - 1], state) if claim.of_step else (state, None)
        holds, environment = self._interpreter.holds(prop, old, new)
        if holds is not (prop.kind in LOOKED_FOR):  # there the claim is that it never holds
            return None
        return Breach(run, FrozenMap({p.name: environment[p] for p in prop.params}))

    def _overflow(self, state: Values) -> str:
        try:
            for _ in self._interpreter.successors(state):
                pass
        except DomainError as error:
            return error.problem
        return ""
