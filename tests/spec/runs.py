"""Runs of small machines, step by step: every question is put to the interpreter and to the ground form."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Entity, Machine, States, define, scope_of
from stagewright.spec.grounding.ground import GroundStep
from stagewright.spec.grounding.ground_eval import enabled, evaluate, take
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import FrozenMap, State, flatten, show
from stagewright.spec.verdict import Step


class Node(Entity):
    """Two of them, unless a test says otherwise."""


class Colour(Enum):
    """Three."""

    red = auto()
    green = auto()
    blue = auto()


class Stage(States):
    """A column of every kind."""

    rest = False, 0, Colour.red, None, {Colour.red}
    moving = True, 3, Colour.green, Colour.red, {Colour.red, Colour.green}
    done = False, -1, Colour.red, Colour.blue, set[Colour]()

    def __init__(
        self, busy: bool, rank: int, shade: Colour, other: Colour | None, shades: set[Colour]
    ) -> None:
        self.busy, self.rank, self.shade, self.other = busy, rank, shade, other
        self.shades = shades


Shown = dict[str, str]


@dataclass
class Run:
    """A machine in one state; every question is put to the interpreter and to the ground form."""

    interpreter: Interpreter
    state: State

    def __post_init__(self) -> None:
        self.model = ground(self.interpreter.source, self.interpreter.scope)

    @property
    def shown(self) -> Shown:
        """The leaves of the state as people read them."""
        return {n: show(v) for name, value in self.state.items() for n, v in flatten(name, value)}

    @property
    def steps(self) -> set[str]:
        """The labels of the steps that are enabled; both forms lead to the same states by them."""
        found = {(step.label, self.model.encode(after)) for step, after in self._successors()}
        cells = self.model.encode(self.state)
        lowered = {
            (s.label, take(s, cells))
            for s in self.model.steps
            if enabled(s, cells) and not evaluate(s.overflows, cells)
        }
        assert found == lowered
        return {label for label, _ in found}

    def _successors(self) -> list[tuple[Step, State]]:
        return list(self.interpreter.successors(self.state))

    def take(self, label: str) -> Shown:
        """Take the step with this label; the state afterwards."""
        assert label in self.steps
        self.state = next(after for step, after in self._successors() if step.label == label)
        return self.shown

    def ground_step(self, label: str) -> GroundStep:
        """The ground form of a step."""
        return next(s for s in self.model.steps if s.label == label)

    def step(self, label: str) -> Step:
        """A step with the arguments that its label shows, enabled or not."""
        found = self.ground_step(label)
        return Step(found.action.name, FrozenMap(dict(found.arguments)))


def run(machine: type[Machine], nodes: int = 2, **budgets: int | None) -> Run:
    """A machine in its first initial state."""
    definition = define(machine)
    sizes = {"node": nodes} if definition.entities else {}
    interpreter = Interpreter(definition, scope_of(definition, sizes, budgets))
    states = list(interpreter.initial_states())
    model = ground(definition, interpreter.scope)
    assert [model.encode(s) for s in states] == sorted(model.initial)
    assert [model.decode(model.encode(s)) for s in states] == states
    return Run(interpreter, states[0])
