"""The explored states of a definition, as suites need them: its edges, and what each state refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.conformance.divergence import Move, Walk
from stagewright.checker.conformance.oracle import without_budgets
from stagewright.checker.engines import search
from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.exploration import Exploration, Watch
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.runs import decoded, paths_to, step_of
from stagewright.checker.limits import Limits, OnProgress, Stop
from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.grounding.coverable import parts_of
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.nodes import Node
from stagewright.spec.scope import BUDGET_PREFIX, Scope
from stagewright.spec.sorts import EnumSort, OptionalSort
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

Numbers = NDArray[np.int64]


class Cover(Enum):
    """How finely a suite tells states apart."""

    STATES = "states"  # by everything but the budgets that are left
    CONTROL = "control"  # by the variables whose values are members of enums


@dataclass(frozen=True)
class Instance:
    """One action with its parameters chosen, and where its requirements stand among all conditions.

    `parts`: the same of the sides of those that are an "or", by requirement and in words; only if asked for.
    """

    step: Step
    conditions: tuple[int, ...]
    parts: FrozenMap[tuple[str, str], int] = field(default_factory=lambda: FrozenMap({}))


@dataclass(frozen=True)
class Space:
    """The states found within the limits; ids are in breadth-first order."""

    definition: Definition
    found: Exploration
    instances: tuple[Instance, ...]

    @property
    def states(self) -> int:
        """How many there are."""
        return self.found.states

    @property
    def initial(self) -> int:
        """How many initial states there are; theirs are the first ids."""
        return len(self.found.engine.model.initial)

    @property
    def note(self) -> str:
        """What was left out; empty if everything reachable was explored."""
        if self.found.exhausted:
            return ""
        return f"not all states: {self.found.stopped}"

    @cached_property
    def graph(self) -> Graph:
        """The edges; states that were not expanded have none."""
        return self.found.graph

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps by the index that edges carry."""
        return tuple(step_of(step) for step in self.found.engine.model.steps)

    def state(self, number: int) -> State:
        """A state in the definition's own values."""
        return decoded(self.found, number)

    @cached_property
    def _numbers(self) -> dict[State, int]:
        """The nearest explored state of each that an implementation can tell apart."""
        return {without_budgets(self.state(n)): n for n in reversed(range(self.states))}

    def way_to(self, state: State) -> Walk | None:
        """A shortest walk to an explored state, whatever budgets are left there; always the same one."""
        number = self._numbers.get(without_budgets(state))
        if number is None:
            return None
        start, path = paths_to(self.found, [number])[number]
        return Walk(self.state(start), tuple(Move(self.steps[step]) for step, _ in path))

    def classes(self, cover: Cover) -> Numbers:
        """The class of each state: equal numbers for states that are not told apart."""
        rows = [self.values(cell.index) for cell in self._distinct(cover)]
        if not rows:
            return np.zeros(self.states, dtype=np.int64)
        _, classes = np.unique(np.stack(rows), axis=1, return_inverse=True)
        return np.asarray(classes, dtype=np.int64).reshape(-1)

    def patterns(self, expanded: int) -> NDArray[np.int64]:
        """Which written requirements are false: bit k for the k-th one, shape (instances, states).

        0: the step need not be refused. Only of the states with ids below `expanded`.
        """
        false = ~self.holds(expanded)
        patterns = np.zeros((len(self.instances), expanded), dtype=np.int64)
        for row, instance in enumerate(self.instances):
            for bit, condition in enumerate(instance.conditions):
                patterns[row] |= false[condition].astype(np.int64) << bit
        return patterns

    def _distinct(self, cover: Cover) -> list[Cell]:
        cells = [
            cell
            for cell in self.found.engine.model.cells
            if not cell.variable.startswith(BUDGET_PREFIX)
        ]
        control = [cell for cell in cells if _of_enum(cell)]
        return control if cover is Cover.CONTROL and control else cells

    def values(self, cell: int) -> Numbers:
        """A cell's value in each state, counted from its lowest one."""
        place = self.found.engine.layout.places[cell]
        words = self.found.words[place.word]
        bits = words >> np.uint64(place.shift) & np.uint64(place.mask)
        values: Numbers = bits.astype(np.int64)
        return values

    def holds(self, expanded: int) -> Bools:
        """Which conditions hold in the states with ids below `expanded`, shape (conditions, states)."""
        engine = self.found.engine
        conditions = [p.condition for p in engine.model.invariants]
        holds = np.zeros((len(conditions), expanded), dtype=np.bool_)
        evaluate = engine.state_conditions(conditions)
        for start in range(0, expanded, engine.batch):
            end = min(start + engine.batch, expanded)
            for row, values in zip(holds, evaluate(self.found.words[:, start:end]), strict=True):
                row[start:end] = values
        return holds


def explored(
    definition: Definition,
    scope: Scope,
    *,
    states: int | None = None,
    parts: bool = False,
    progress: OnProgress | None = None,
) -> Space:
    """Explore a definition breadth-first, up to a number of states; with `parts`, also of requirements."""
    sides = _sides(definition) if parts else {}
    model = ground(_requirements_as_invariants(definition, scope, sides), scope)
    watch = Watch(deadlock=False, graph=True)
    found = search(model, watch, Stop(Limits(states=states)), progress)
    positions: dict[Step, list[int]] = {}
    of_parts: dict[Step, dict[tuple[str, str], int]] = {}
    for i, condition in enumerate(model.invariants):
        action, _, side = condition.property.name.partition(" ")
        step = Step(action, FrozenMap(dict(condition.arguments)))
        if side:
            of_parts.setdefault(step, {})[sides[action][int(side)][0]] = i
        else:
            positions.setdefault(step, []).append(i)
    instances = tuple(
        Instance(step, tuple(found), FrozenMap(of_parts.get(step, {})))
        for step, found in positions.items()
    )
    return Space(definition, found, instances)


# By action: the sides of its requirements that are an "or", by requirement and in words.
_Sides = Mapping[str, Sequence[tuple[tuple[str, str], Node]]]


def _sides(definition: Definition) -> _Sides:
    return {
        action: [((name, part), side) for name, parts in found.items() for part, side in parts]
        for action, found in parts_of(definition).items()
    }


def _requirements_as_invariants(definition: Definition, scope: Scope, sides: _Sides) -> Definition:
    """The definition with one property for each written requirement, named after its action.

    So every choice of parameters gets its conditions, also one that no state enables, of which the
    ground form has no step. The k-th of an action's `sides` is named after its action and k.
    """
    conditions: list[Property] = []
    for action in definition.actions:
        if action.budget is None or scope.budgets[action.budget] != 0:
            named = [(action.name, guard.condition) for guard in action.guards]
            named += [
                (f"{action.name} {k}", side)
                for k, (_, side) in enumerate(sides.get(action.name, ()))
            ]
            conditions += [
                Property(name, PropertyKind.INVARIANT, action.params, condition)
                for name, condition in named
            ]
    return replace(definition, properties=tuple(conditions))


def _of_enum(cell: Cell) -> bool:
    sort = cell.sort.element if isinstance(cell.sort, OptionalSort) else cell.sort
    return isinstance(sort, EnumSort)
