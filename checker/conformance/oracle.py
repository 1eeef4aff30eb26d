"""What the definition says of a state: which steps may happen there, and which must be refused.

The reference interpreter decides; its answers are remembered, since runs come through the same states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Any

from stagewright.spec.definition import Definition, Requirement
from stagewright.spec.interpreter import Environment, Interpreter, step_of
from stagewright.spec.scope import BUDGET_PREFIX, Scope, within_budgets
from stagewright.spec.trace import observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

_MOST_REMEMBERED = 50_000  # answers of one kind


@dataclass(frozen=True)
class Allowed:
    """The steps that may happen in a state, and those that an implementation must refuse there.

    A step that only a spent budget or `bounded(...)` forbids is neither: these bound a check, not an
    implementation.
    """

    enabled: tuple[Step, ...]
    refused: tuple[Step, ...]

    @cached_property
    def actions(self) -> tuple[tuple[Step, ...], ...]:
        """The enabled steps, action by action."""
        return tuple(tuple(steps) for _, steps in groupby(self.enabled, lambda s: s.action))


class Oracle:
    """A definition at a scope, asked about one state at a time."""

    def __init__(self, definition: Definition, scope: Scope) -> None:
        self.source = definition
        self.scope = scope
        self.definition = within_budgets(definition, scope)
        unbounded: FrozenMap[str, int | None] = FrozenMap(dict.fromkeys(scope.budgets))
        # The budgets are spelled out already: the interpreter must not count them again.
        self._interpreter = Interpreter(self.definition, replace(scope, budgets=unbounded))
        self._written: dict[str, tuple[Requirement, ...]] = {
            action.name: action.guards for action in definition.actions
        }
        self._instances = [
            (action, step_of(action, values), values)
            for action in self.definition.actions
            for values in self._interpreter.instances(action.params)
        ]
        self._values = {step: values for _, step, values in self._instances}
        self._allowed: dict[State, Allowed] = {}
        self._after: dict[tuple[State, Step], State] = {}
        self._leaves: dict[State, dict[str, object]] = {}

    @property
    def name(self) -> str:
        """`TabletMigration (scylla-2026.2)`."""
        profile = self.source.profile
        return f"{self.source.name} ({profile})" if profile else self.source.name

    @property
    def steps(self) -> Sequence[Step]:
        """Every action with every choice of parameters, in definition order."""
        return [step for _, step, _ in self._instances]

    def unbudgeted(self) -> Oracle:
        """The same with every budget that may be spent at all without bound: what an implementation knows of."""
        budgets = {name: None if limit else limit for name, limit in self.scope.budgets.items()}
        return Oracle(self.source, replace(self.scope, budgets=FrozenMap(budgets)))

    def initial_states(self) -> tuple[State, ...]:
        """Every initial state, in a fixed order."""
        return tuple(self._interpreter.initial_states())

    def allowed(self, state: State) -> Allowed:
        """What may happen in a state and what must be refused."""
        known = self._allowed.get(state)
        if known is None:
            _make_room(self._allowed)
            known = self._allowed[state] = self._look(state)
        return known

    def false_requirements(self, step: Step, state: State) -> tuple[Requirement, ...]:
        """The written requirements that refuse a step; none if at most a budget or a bound does."""
        return tuple(
            r for r in self._written[step.action] if not self._true(r, state, self._values[step])
        )

    def values_of(self, step: Step) -> Environment:
        """The values of a step's parameters."""
        return self._values[step]

    def after(self, step: Step, state: State) -> State:
        """The state after an enabled step.

        Raises:
            DomainError: the definition lets a variable leave its bounds.
        """
        known = self._after.get((state, step))
        if known is None:
            _make_room(self._after)
            known = self._after[state, step] = self._interpreter.take(step, state)
        return known

    def leaves(self, state: State) -> dict[str, object]:
        """A state as an adapter observes it."""
        known = self._leaves.get(state)
        if known is None:
            _make_room(self._leaves)
            known = self._leaves[state] = observation(state)
        return known

    def _look(self, state: State) -> Allowed:
        enabled: list[Step] = []
        refused: list[Step] = []
        for action, step, values in self._instances:
            if all(self._true(r, state, values) for r in action.requirements):
                enabled.append(step)
            elif not all(self._true(r, state, values) for r in self._written[action.name]):
                refused.append(step)
        return Allowed(tuple(enabled), tuple(refused))

    def _true(self, guard: Requirement, state: State, values: Environment) -> bool:
        return bool(self._interpreter.evaluate(guard.condition, state, environment=values))


def _make_room(memory: dict[Any, Any]) -> None:
    if len(memory) >= _MOST_REMEMBERED:
        memory.clear()


def without_budgets(state: State) -> State:
    """The part of a state that an implementation can know."""
    return FrozenMap({n: v for n, v in state.items() if not n.startswith(BUDGET_PREFIX)})
