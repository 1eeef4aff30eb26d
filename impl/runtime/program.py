"""A definition at a scope, made into one `transitions` machine that any number of instances share.

States are the members of the control variable, triggers the actions, conditions the named requirements,
effects the assignments. Nothing is written by hand: sources and targets are read off the ground form.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Protocol

from transitions import EventData, Machine

from stagewright.impl.runtime.control import control_variable
from stagewright.impl.runtime.possible import Possible
from stagewright.impl.runtime.straight_line import Evaluator, compiled
from stagewright.spec.definition import Definition
from stagewright.spec.errors import DomainError
from stagewright.spec.ground import GroundModel, GroundNode, GroundStep
from stagewright.spec.ground_eval import Ints, evaluate, take
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.lowering import ground
from stagewright.spec.nodes import root_variable
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EnumSort
from stagewright.spec.values import FrozenMap, Value
from stagewright.spec.verdict import Step

# `transitions` keeps a model's state in this attribute; no action can have such a name.
CONTROL_ATTRIBUTE = "control state"
ALWAYS = "always"  # the only state of a machine without an enum variable

Arguments = tuple[tuple[str, Value], ...]


class Model(Protocol):
    """What the callbacks need of the object that a trigger is for."""

    cells: Ints

    def about_to(self, step: GroundStep, cells: Ints) -> None:
        """Called before a step counts; an exception prevents it."""
        ...


@dataclass(frozen=True)
class Requires:
    """The condition of a transition: one named requirement of its action."""

    name: str
    position: int

    def __call__(self, event: EventData) -> bool:
        """Whether the requirement of the step holds in the model's state."""
        step = _step(event)
        return bool(evaluate(step.requirements[self.position].condition, _model(event).cells))


@dataclass(frozen=True)
class LeadsTo:
    """The condition of a transition of an action with several targets: this one is meant now."""

    name: str
    cell: int
    target: int

    def __call__(self, event: EventData) -> bool:
        """Whether the step leads from the model's state to this member."""
        update = _step(event).updates.get(self.cell)
        cells = _model(event).cells
        return self.target == (cells[self.cell] if update is None else evaluate(update, cells))


@dataclass(frozen=True)
class Edge:
    """One transition of the `transitions` machine; without a target the control state stays."""

    action: str
    source: Enum | str
    target: Enum | None
    conditions: tuple[Requires | LeadsTo, ...]


class Program:
    """The machine of a definition at a scope; `control` names its control variable if not the obvious one.

    Raises:
        DefinitionError, ScopeError: as `ground` does.
        InputError: there is no enum variable called `control`.
    """

    def __init__(self, definition: Definition, scope: Scope, *, control: str | None = None) -> None:
        self.definition = definition
        self.scope = scope
        self.model: GroundModel = ground(definition, scope)
        self.control = control_variable(definition, control)
        self.steps: dict[tuple[str, Arguments], GroundStep] = {
            (s.action.name, s.arguments): s for s in self.model.steps
        }
        self.taken = tuple(
            Step(s.action.name, FrozenMap(dict(s.arguments))) for s in self.model.steps
        )
        self.written = {a.name: a for a in definition.actions}
        self.actions = {a.name: a for a in self.model.definition.actions}  # those with a budget
        self.machine = Machine(
            model=None,
            states=list(self._members) or [ALWAYS],
            initial=None,
            auto_transitions=False,
            send_event=True,
            model_attribute=CONTROL_ATTRIBUTE,
        )
        self.edges = tuple(self._edges())
        for edge in self.edges:
            self.machine.add_transition(
                trigger=edge.action,
                source=edge.source,
                dest=edge.target,
                conditions=list(edge.conditions),
                before=_compute_effects,
                after=_count_effects,
            )

    @cached_property
    def interpreter(self) -> Interpreter:
        """The reference interpreter, for questions about steps that can never happen at this scope."""
        return Interpreter(self.definition, self.scope)

    @cached_property
    def guards(self) -> Evaluator:
        """From the cells of a state to whether each ground step is enabled."""
        return compiled(self.model.builder.nodes, [s.guard for s in self.model.steps])

    @cached_property
    def control_cell(self) -> int | None:
        """The cell of the control variable."""
        if self.control is None:
            return None
        return next(c.index for c in self.model.cells if c.variable == self.control.name)

    @property
    def _members(self) -> tuple[Enum, ...]:
        if self.control is None:
            return ()
        assert isinstance(self.control.sort, EnumSort)
        return self.control.sort.members

    def member(self, cells: Ints) -> Enum | str:
        """The state of the `transitions` machine that belongs to a state of the definition."""
        return ALWAYS if self.control_cell is None else self._members[cells[self.control_cell]]

    # -- from the ground form to transitions ---------------------------------------------------------

    def _edges(self) -> Iterator[Edge]:
        of_action: dict[str, list[GroundStep]] = {}
        for step in self.model.steps:
            of_action.setdefault(step.action.name, []).append(step)
        for name, steps in of_action.items():
            requires = [Requires(r.name, i) for i, r in enumerate(steps[0].requirements)]
            for source, targets in self._targets(steps):
                if targets is None:
                    yield Edge(name, source, None, tuple(requires))
                    continue
                for target in targets:
                    meant = self._meant(target) if len(targets) > 1 else []
                    yield Edge(name, source, self._members[target], (*requires, *meant))

    def _meant(self, target: int) -> list[LeadsTo]:
        assert self.control_cell is not None
        return [LeadsTo(f"leads to {self._members[target].name}", self.control_cell, target)]

    def _targets(self, steps: list[GroundStep]) -> Iterator[tuple[Enum | str, list[int] | None]]:
        """Each member that an action can start from, with those it can lead to (None: it stays)."""
        cell = self.control_cell
        if cell is None:
            yield ALWAYS, None
            return
        for source, member in enumerate(self._members):
            here = [s for s in steps if self._possible.can_hold(s.guard, source)]
            if not any(cell in s.updates for s in here):
                if here:
                    yield member, None
                continue
            found: set[int] = set()
            for step in here:
                found |= self._led_to(step.updates.get(cell), source)
            yield member, sorted(found)

    def _led_to(self, update: GroundNode | None, source: int) -> frozenset[int]:
        if update is None:
            return frozenset((source,))
        values = self._possible.values(update, source)
        return frozenset(range(len(self._members))) if values is None else values

    @cached_property
    def _possible(self) -> Possible:
        assert self.control_cell is not None
        return Possible(self.model.builder.nodes, self.control_cell)

    def next_cells(self, step: GroundStep, cells: Ints) -> Ints:
        """The cells after an enabled step.

        Raises:
            DomainError: it assigns a number outside of its variable's bounds.
        """
        after = take(step, cells)
        if evaluate(step.overflows, cells):
            self._refuse_bounds(step, after)
        return after

    def _refuse_bounds(self, step: GroundStep, after: Ints) -> None:
        for cell, value in zip(self.model.cells, after, strict=True):
            if not cell.low <= value <= cell.high:
                where = [
                    a.where
                    for a in step.action.assignments
                    if root_variable(a.place) == cell.variable
                ]
                raise DomainError(
                    f"`{step.label}` assigns {value} to {cell.name}, outside of {cell.low}..{cell.high}",
                    where=where[0] if where else None,
                    help="add a requirement that keeps it within its bounds, or widen them",
                )
        raise AssertionError("an overflow without a cell out of bounds")


def _step(event: EventData) -> GroundStep:
    step = event.kwargs["step"]
    assert isinstance(step, GroundStep)
    return step


def _model(event: EventData) -> Model:
    model: Model = event.model  # type: ignore[assignment]
    return model


def _compute_effects(event: EventData) -> None:
    """Compute all assignments from the old state, and announce them: the step may still be prevented."""
    step, model, program = _step(event), _model(event), event.kwargs["program"]
    event.kwargs["cells"] = cells = program.next_cells(step, model.cells)
    model.about_to(step, cells)


def _count_effects(event: EventData) -> None:
    _model(event).cells = event.kwargs["cells"]
