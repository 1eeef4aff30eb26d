"""Lower a definition at a scope to its ground form: flat cells, no names, no quantifiers.

Columns become tables, parameters constants, sets and maps one cell a member, symbolic keys choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from stagewright.spec.definition import Action, Definition, Property, PropertyKind
from stagewright.spec.domains import values_of
from stagewright.spec.errors import ScopeError
from stagewright.spec.ground import (
    Builder,
    GroundModel,
    GroundNode,
    GroundProperty,
    GroundRequirement,
    GroundStep,
)
from stagewright.spec.ground_expressions import Expressions, Shape
from stagewright.spec.initial import Independent, sifted
from stagewright.spec.interpreter import assigned_twice
from stagewright.spec.layout import Layout, Place
from stagewright.spec.nodes import Bound
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.sorts import BoolSort
from stagewright.spec.values import Value

MAX_INITIAL_CANDIDATES = 2_000_000
MAX_INITIAL_STATES = 1 << 24  # where nothing is asked of them, so that they need not be listed


def ground(definition: Definition, scope: Scope) -> GroundModel:
    """The ground form of a definition at a scope.

    Raises:
        DefinitionError: a step assigns one place twice.
        ScopeError: no state satisfies the initial conditions, or they leave too many to list.
    """
    return _Lowering(within_budgets(definition, scope), scope).model()


class _Lowering:
    def __init__(self, definition: Definition, scope: Scope) -> None:
        self.definition = definition
        self.scope = scope
        self.layout = Layout(definition, scope)
        self.cells = self.layout.cells
        self.builder = Builder((c.low, c.high, isinstance(c.sort, BoolSort)) for c in self.cells)
        self.expressions = Expressions(self.layout, scope, self.builder)

    def model(self) -> GroundModel:
        self._refuse_too_many_starts()  # first: at a large scope the rest takes long
        steps: list[GroundStep] = []
        for action in self.definition.actions:
            for chosen in self._instances(action.params):
                step = self._step(len(steps), action, chosen)
                if step.guard is not self.builder.false:
                    steps.append(step)
        kinds: dict[PropertyKind, list[GroundProperty]] = {kind: [] for kind in PropertyKind}
        for prop in self.definition.properties:
            kinds[prop.kind] += self._properties(prop)
        condition = self.builder.and_(
            self.expressions.scalar(c, {}) for c in self.definition.initially
        )
        fixed = [
            self.builder.eq(self.builder.cell(i), self.builder.const(v))
            for i, v in enumerate(self.layout.starts)
            if v is not None
        ]
        return GroundModel(
            definition=self.definition,
            scope=self.scope,
            cells=tuple(self.cells),
            initial=self._initial_states(condition),
            steps=tuple(steps),
            invariants=tuple(kinds[PropertyKind.INVARIANT]),
            step_properties=tuple(kinds[PropertyKind.STEP]),
            reachable=tuple(kinds[PropertyKind.REACHABLE]),
            leads_to=tuple(kinds[PropertyKind.LEADS_TO]),
            final=self.expressions.scalar(self.definition.final, {}),
            builder=self.builder,
            initial_condition=self.builder.and_([*fixed, condition]),
        )

    def _starts(self) -> tuple[range, ...]:
        """What each cell may hold at first, if no condition says more."""
        return tuple(
            range(c.low, c.high + 1) if start is None else range(start, start + 1)
            for c, start in zip(self.cells, self.layout.starts, strict=True)
        )

    def _refuse_too_many_starts(self) -> None:
        """Nothing sifts them: that is told before the rest, which takes long at a large scope."""
        candidates = math.prod(map(len, self._starts()))
        if candidates > MAX_INITIAL_STATES and not self.definition.initially:
            raise self._too_many_starts(candidates)

    def _too_many_starts(self, candidates: int) -> ScopeError:
        return ScopeError(
            f"{self.definition.name}: {candidates:,} candidates for the initial state at this scope",
            help="give more variables an `init`, or choose a smaller scope",
        )

    def _initial_states(self, condition: GroundNode) -> Sequence[tuple[int, ...]]:
        candidates = Independent(self._starts())
        if condition is self.builder.true and candidates:
            return candidates
        states = sifted(candidates.choices, condition, MAX_INITIAL_CANDIDATES)
        if states is None:
            raise self._too_many_starts(len(candidates))
        if not states:
            raise ScopeError(
                f"{self.definition.name}: no state satisfies its initial conditions at this scope "
                f"({self.scope})",
                help="choose a larger scope, or weaken the @initially conditions",
            )
        return states

    def _instances(self, params: tuple[Bound, ...]) -> Iterator[dict[Bound, Value]]:
        for chosen in product(*(values_of(p.sort, self.scope) for p in params)):
            yield dict(zip(params, chosen, strict=True))

    def _step(self, index: int, action: Action, chosen: Mapping[Bound, Value]) -> GroundStep:
        env = self.expressions.constants(chosen)
        requirements = tuple(
            GroundRequirement(r.name, self.expressions.scalar(r.condition, env))
            for r in action.requirements
        )
        guard = self.builder.and_(r.condition for r in requirements)
        updates: dict[int, GroundNode] = {}
        overflows: list[GroundNode] = []
        if guard is not self.builder.false:
            for assignment in action.assignments:
                for more in self._instances(assignment.binders):
                    inner = {**env, **self.expressions.constants(more)}
                    target = self.expressions.places_of(assignment.place, inner)
                    value = self.expressions.lower(assignment.value, inner)
                    value = self.expressions.fit(
                        value, assignment.value.sort, assignment.place.sort
                    )
                    for condition, place in target:
                        for cell, node in _leaves(place, value):
                            if cell in updates:
                                path = (self.cells[cell].variable, *self.cells[cell].path)
                                raise assigned_twice(action.name, path, assignment)
                            self._update(updates, overflows, cell, condition, node)
        arguments = tuple((p.name, v) for p, v in chosen.items())
        overflow = self.builder.or_(overflows)
        return GroundStep(index, action, arguments, requirements, guard, updates, overflow)

    def _update(
        self,
        updates: dict[int, GroundNode],
        overflows: list[GroundNode],
        cell: int,
        condition: GroundNode,
        node: GroundNode,
    ) -> None:
        b, c = self.builder, self.cells[cell]
        if condition is b.false:
            return
        if node.low < c.low or node.high > c.high:
            within = b.and_((b.le(b.const(c.low), node), b.le(node, b.const(c.high))))
            overflows.append(b.and_((condition, b.not_(within))))
        updates[cell] = b.if_(condition, node, b.cell(cell))

    def _properties(self, prop: Property) -> Iterator[GroundProperty]:
        for chosen in self._instances(prop.params):
            env = self.expressions.constants(chosen)
            premise = None if prop.premise is None else self.expressions.scalar(prop.premise, env)
            arguments = tuple((p.name, v) for p, v in chosen.items())
            yield GroundProperty(
                prop, arguments, self.expressions.scalar(prop.condition, env), premise
            )


def _leaves(place: Place, value: Shape) -> Iterator[tuple[int, GroundNode]]:
    if isinstance(place, dict):
        assert isinstance(value, dict)
        for key, inner in place.items():
            yield from _leaves(inner, value[key])
    else:
        assert isinstance(value, GroundNode)
        yield place, value
