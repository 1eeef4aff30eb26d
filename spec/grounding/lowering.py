"""Lower a definition at a scope to its ground form: flat cells, no names, no quantifiers.

Columns become tables, parameters constants, sets and maps one cell a member, symbolic keys choices.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from stagewright.spec.definition import Action, Definition, Property, PropertyKind
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.domains import assigned_twice, values_of
from stagewright.spec.grounding.families import Families, Input
from stagewright.spec.grounding.ground import (
    Builder,
    GroundModel,
    GroundNode,
    GroundProperty,
    GroundRequirement,
    GroundStep,
)
from stagewright.spec.grounding.ground_expressions import Expressions
from stagewright.spec.grounding.ground_sequences import Shape
from stagewright.spec.grounding.initial import (
    MAX_INITIAL_STATES,
    Independent,
    Satisfying,
    too_many_starts,
)
from stagewright.spec.grounding.layout import Layout, Place
from stagewright.spec.grounding.left_open import combinations, left_open
from stagewright.spec.nodes import Bound
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.sorts import BoolSort, IntSort
from stagewright.spec.values import Value

FOUND_AT_ONCE = 1 << 12  # candidates: that there is no initial state is then known early

MAX_WORK = 100_000  # steps and their effects, each on its own: about a minute


def ground(
    definition: Definition,
    scope: Scope,
    premises: Sequence[Property] = (),
    *,
    bounded: bool = True,
    wide: bool = False,
) -> GroundModel:
    """The ground form of a definition at a scope.

    `bounded`: no step leaves a state beyond the definition's constraints, each holds to what is `bounded(...)`,
    and no number grows larger than declared, as it is in checks. All that says nothing of running systems and of
    traces. `wide`: the steps of an action with very many choices of a number, or of which each has much to look at
    because there are many of an entity, are made when they are asked for, and no property is lowered;
    `GroundModel.steps` is then a `Families`.

    Raises:
        AssignedTwiceError: a step assigns one place twice.
        ScopeError: no state satisfies the initial conditions, or they leave too many to list. Where there
            are many candidates, that comes out only when the initial states are first asked for.
    """
    if not bounded:
        definition = replace(definition, constraints=())
    return Lowering(definition, scope, premises, bounded=bounded, wide=wide).model()


class Lowering:
    """A definition at a scope on its way to the ground form, and others that differ from it in little."""

    def __init__(
        self,
        definition: Definition,
        scope: Scope,
        premises: Sequence[Property] = (),
        *,
        bounded: bool = True,
        wide: bool = False,
    ) -> None:
        self._bounded, self._wide = bounded, wide
        self.premises = premises  # "never P", of its properties: whether they were put to the test
        self.definition = definition = within_budgets(definition, scope)
        self.scope = scope
        self.layout = Layout(definition, scope, bounded=bounded)
        if wide:  # who follows what has happened checks no property
            self.definition = replace(definition, properties=())
        self.cells = self.layout.cells
        self.builder = Builder((c.low, c.high, isinstance(c.sort, BoolSort)) for c in self.cells)
        self.expressions = Expressions(self.layout, scope, self.builder)
        self._model: GroundModel | None = None
        # What the definition itself lowered to, by name; the rest is forgotten once it was used.
        self._known_steps: dict[str, tuple[Action, list[GroundStep]]] = {}
        self._known_promises: dict[str, tuple[Property, list[GroundProperty]]] = {}
        self._within = self.builder.and_(
            self.expressions.scalar(c.condition, {}) for c in self.definition.constraints
        )

    @property
    def _beyond(self) -> GroundNode:
        return self.builder.not_(self._within)

    def beside(self, definition: Definition) -> GroundModel:
        """The ground form of another definition: what is equal in the two is not lowered again.

        Its nodes are good until this is called once more.
        """
        other = within_budgets(definition, self.scope)
        base = self._model or self.model()
        if _frame(other) != _frame(self.definition):
            return ground(definition, self.scope)
        self.expressions.forget()
        steps = self._steps(other.actions)
        kinds = self._of_kinds(other.properties)
        return replace(
            base,
            definition=other,
            steps=steps,
            invariants=kinds[PropertyKind.INVARIANT],
            step_properties=kinds[PropertyKind.STEP],
            reachable=kinds[PropertyKind.REACHABLE],
            leads_to=(*kinds[PropertyKind.LEADS_TO], *kinds[PropertyKind.EVENTUALLY]),
            witnesses=kinds[PropertyKind.SOMETIMES],
            step_witnesses=kinds[PropertyKind.SOMETIMES_STEP],
            final=self._final(other),
        )

    def model(self) -> GroundModel:
        """The ground form."""
        if not self._wide:
            self._refuse_too_many_starts()  # these first: at a large scope the rest takes long
        self._refuse_too_many_steps()
        steps = self._steps(self.definition.actions)
        kinds = self._of_kinds(self.definition.properties)
        premises = self._of_kinds(self.premises)
        condition = self.builder.and_(
            self.expressions.scalar(c, {}) for c in self.definition.initially
        )
        wellformed = self.builder.and_(
            part
            for v in self.definition.variables
            for part in self.expressions.sequences.wellformed(v.sort, self.layout.places[v.name])
        )
        if self.layout.has_any_sequence:
            condition = self.builder.and_((condition, wellformed))
        fixed = [
            self.builder.eq(self.builder.cell(i), self.builder.const(values.start))
            for i, values in enumerate(self.layout.starts)
            if len(values) == 1
        ]
        model = GroundModel(
            definition=self.definition,
            scope=self.scope,
            cells=tuple(self.cells),
            initial=self._initial_states(condition),
            steps=Families(steps) if self._wide else steps,
            places=self._assigned if self._wide else None,
            invariants=kinds[PropertyKind.INVARIANT],
            step_properties=kinds[PropertyKind.STEP],
            reachable=kinds[PropertyKind.REACHABLE],
            leads_to=(*kinds[PropertyKind.LEADS_TO], *kinds[PropertyKind.EVENTUALLY]),
            witnesses=kinds[PropertyKind.SOMETIMES],
            step_witnesses=kinds[PropertyKind.SOMETIMES_STEP],
            premises=premises[PropertyKind.INVARIANT],
            step_premises=premises[PropertyKind.STEP],
            final=self._final(self.definition),
            builder=self.builder,
            initial_condition=self.builder.and_([*fixed, condition]),
            constraint=self._within if self.definition.constraints else None,
            wellformed=wellformed,
        )
        if not self._wide:
            self._keep(model)
        return model

    def _final(self, definition: Definition) -> GroundNode:
        """Where a run may end; also where it leaves what is looked at."""
        return self.builder.or_((self.expressions.scalar(definition.final, {}), self._beyond))

    def _keep(self, model: GroundModel) -> None:
        """Remember what is not to be lowered again."""
        self._model = model
        self.expressions.keep()
        self._known_steps = {a.name: (a, []) for a in self.definition.actions}
        for step in model.steps:
            self._known_steps[step.action.name][1].append(step)
        self._known_promises = {p.name: (p, []) for p in self.definition.properties}
        for found in model.promises:
            self._known_promises[found.property.name][1].append(found)

    def _steps(self, actions: Sequence[Action]) -> tuple[GroundStep, ...]:
        steps: list[GroundStep] = []
        for action in actions:
            known = self._known_steps.get(action.name)
            for step in known[1] if known and known[0] == action else self._made(action):
                index = len(steps)
                steps.append(step if step.index == index else replace(step, index=index))
        return tuple(steps)

    def _made(self, action: Action) -> list[GroundStep]:
        inputs = {p: self.builder.input(*self._codes(p)) for p in self._left_open(action)}
        steps = (
            self._step(0, action, chosen, inputs)
            for chosen in self._instances(tuple(p for p in action.params if p not in inputs))
        )
        return [step for step in steps if step.guard is not self.builder.false]

    def _assigned(self, step: GroundStep) -> frozenset[int]:
        """The cells that a step assigns: those of a template are of all its steps."""
        given = dict(step.arguments)
        env = self.expressions.constants({p: given[p.name] for p in step.action.params})
        return frozenset(
            cell
            for assignment in step.action.assignments
            for more in self._instances(assignment.binders)
            for condition, place in self.expressions.places_of(
                assignment.place, {**env, **self.expressions.constants(more)}
            )
            if condition is not self.builder.false
            for cell in _cells(place)
        )

    def _left_open(self, action: Action) -> tuple[Bound, ...]:
        return left_open(action, self.scope) if self._wide else ()

    def _codes(self, p: Bound) -> tuple[int, int]:
        if isinstance(p.sort, IntSort):
            return p.sort.low, p.sort.high
        return 0, len(values_of(p.sort, self.scope)) - 1

    def _of_kinds(
        self, properties: Sequence[Property]
    ) -> Mapping[PropertyKind, tuple[GroundProperty, ...]]:
        kinds: dict[PropertyKind, list[GroundProperty]] = {kind: [] for kind in PropertyKind}
        for prop in properties:
            known = self._known_promises.get(prop.name)
            kinds[prop.kind] += known[1] if known and known[0] == prop else self._properties(prop)
        return {kind: tuple(found) for kind, found in kinds.items()}

    def _refuse_too_many_starts(self) -> None:
        """Where no condition leaves some out, before the rest, which takes long at a large scope."""
        candidates = math.prod(map(len, self.layout.starts))
        if candidates > MAX_INITIAL_STATES and not self.definition.initially:
            raise too_many_starts(self.definition.name, candidates)

    def _refuse_too_many_steps(self) -> None:
        made = {
            a.name: combinations([p for p in a.params if p not in self._left_open(a)], self.scope)
            for a in self.definition.actions
        }
        steps = sum(made.values())
        work = steps + sum(
            made[a.name] * combinations(e.binders, self.scope)
            for a in self.definition.actions
            for e in a.assignments
        )
        if work > MAX_WORK:
            raise ScopeError(
                f"{self.definition.name}: {steps:,} steps with {work - steps:,} effects at this scope; "
                f"together at most {MAX_WORK:,} can be looked at one by one",
                help="choose a smaller scope: what can go wrong does so with a few of a kind",
            )

    def _initial_states(self, condition: GroundNode) -> Sequence[tuple[int, ...]]:
        choices = tuple(self.layout.starts)
        candidates = math.prod(map(len, choices))
        if condition is self.builder.true and 0 < candidates <= MAX_INITIAL_STATES:
            return Independent(choices)
        states = Satisfying(self.definition.name, str(self.scope), choices, condition)
        if candidates <= FOUND_AT_ONCE:
            states.find()
        return states

    def _instances(self, params: tuple[Bound, ...]) -> Iterator[dict[Bound, Value]]:
        for chosen in product(*(values_of(p.sort, self.scope) for p in params)):
            yield dict(zip(params, chosen, strict=True))

    def _step(
        self,
        index: int,
        action: Action,
        chosen: Mapping[Bound, Value],
        open_: Mapping[Bound, GroundNode],
    ) -> GroundStep:
        env = {**self.expressions.constants(chosen), **open_}
        requirements = tuple(
            # Beyond the constraint it is not asked: there it refuses nothing.
            GroundRequirement(
                r.name,
                self.builder.or_((self._beyond, self.expressions.scalar(r.condition, env))),
            )
            for r in action.requirements
            if self._bounded or not r.bound
        )
        guard = self.builder.and_((self._within, *(r.condition for r in requirements)))
        updates: dict[int, GroundNode] = {}
        overflows: list[GroundNode] = []
        conditions: dict[int, GroundNode] = {}  # under which each cell is assigned
        if guard is not self.builder.false:
            for assignment in action.assignments:
                for more in self._instances(assignment.binders):
                    inner = {**env, **self.expressions.constants(more)}
                    target = self.expressions.places_of(assignment.place, inner)
                    overflows += self.expressions.out_of_range(assignment.place, inner)
                    value = self.expressions.lower(assignment.value, inner)
                    value = self.expressions.fit(
                        value, assignment.value.sort, assignment.place.sort
                    )
                    for condition, place in target:
                        for cell, node in _leaves(place, value):
                            other = conditions.setdefault(cell, condition)
                            if cell in updates and not (open_ and self._differ(condition, other)):
                                path = (self.cells[cell].variable, *self.cells[cell].path)
                                raise assigned_twice(action.name, path, assignment)
                            self._update(updates, overflows, cell, condition, node)
        arguments = tuple((p.name, chosen.get(p)) for p in action.params)
        overflow = self.builder.or_(overflows)
        inputs = tuple(
            Input(p.name, n.low, n.high, n.value, self._members(p)) for p, n in open_.items()
        )
        return GroundStep(index, action, arguments, requirements, guard, updates, overflow, inputs)

    def _members(self, p: Bound) -> tuple[Value, ...]:
        return () if isinstance(p.sort, IntSort) else tuple(values_of(p.sort, self.scope))

    def _differ(self, one: GroundNode, other: GroundNode) -> bool:
        """Whether two assignments of a template are of different steps: `x[a]` and `x[b]`, if its guard says that a is not b."""
        return one is not other and self.builder.true not in (one, other)

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
        updates[cell] = b.if_(condition, node, updates.get(cell, b.cell(cell)))

    def _properties(self, prop: Property) -> Iterator[GroundProperty]:
        for chosen in self._instances(prop.params):
            env = self.expressions.constants(chosen)
            premise = None if prop.premise is None else self.expressions.scalar(prop.premise, env)
            arguments = tuple((p.name, v) for p, v in chosen.items())
            yield GroundProperty(
                prop, arguments, self.expressions.scalar(prop.condition, env), premise
            )


def _frame(definition: Definition) -> tuple[object, ...]:
    """What two definitions must have in common, so that one can be lowered beside the other."""
    return (definition.variables, definition.initially, definition.constraints)


def _cells(place: Place) -> Iterator[int]:
    if isinstance(place, dict):
        for inner in place.values():
            yield from _cells(inner)
    else:
        yield place


def _leaves(place: Place, value: Shape) -> Iterator[tuple[int, GroundNode]]:
    if isinstance(place, dict):
        assert isinstance(value, dict)
        for key, inner in place.items():
            yield from _leaves(inner, value[key])
    else:
        assert isinstance(value, GroundNode)
        yield place, value


leaves = _leaves
"""The cells of a place with the parts of a value that belong there, for other modules."""
