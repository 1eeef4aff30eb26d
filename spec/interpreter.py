"""The reference interpreter: short, slow, obviously right. Every backend is compared with it.

It works on the expression tree as written, with Python's own values, and shares nothing with the
lowering that the other backends use.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, assert_never, cast

from stagewright.spec.definition import (
    Action,
    Assignment,
    Definition,
    Property,
    Requirement,
    Variable,
)
from stagewright.spec.derived.open_ended import LARGEST, open_ended
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DomainError, RefusedError
from stagewright.spec.grounding.domains import (
    assigned_twice,
    first_value,
    record_of,
    starts,
    values_of,
)
from stagewright.spec.nodes import (
    Apply,
    Bound,
    Column,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
    variables_in,
)
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.sorts import (
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, State, Value, path_name, show
from stagewright.spec.verdict import Step

Environment = Mapping[Bound, Value]
_Path = tuple[Value, ...]


@dataclass(frozen=True)
class Interpreter:
    """Runs a definition at a scope, one state at a time."""

    source: Definition
    scope: Scope
    bounded: bool = True  # with a check's bounds: what is `bounded(...)`, and of numbers

    @cached_property
    def definition(self) -> Definition:
        """The definition with its budgets spelled out as variables."""
        return within_budgets(self.source, self.scope)

    @cached_property
    def _open(self) -> frozenset[str]:
        """The variables whose numbers may be larger than declared."""
        return frozenset() if self.bounded else open_ended(self.definition)

    def initial_states(self) -> Iterator[State]:
        """Every initial state, in a fixed order."""
        definition = self.definition
        names = [v.name for v in definition.variables]
        options = [list(self._starts(v)) for v in definition.variables]
        for chosen in product(*options):
            state: State = FrozenMap(dict(zip(names, chosen, strict=True)))
            if all(self.evaluate(condition, state) for condition in definition.initially):
                yield state

    def _starts(self, variable: Variable) -> Iterator[Value]:
        """What a variable may start with, by the conditions that speak of it alone."""
        own = [c for c in self.definition.initially if variables_in(c) == {variable.name}]
        for value in starts(variable.sort, variable.initial, self.scope):
            state: State = FrozenMap({variable.name: value})
            if all(self.evaluate(condition, state) for condition in own):
                yield value

    def instances(
        self, params: tuple[Bound, ...], given: Mapping[str, Value] | None = None
    ) -> Iterator[Environment]:
        """Every assignment of values to parameters; of those that are `given`, this value alone."""
        known = given or {}
        values = (
            (known[p.name],) if p.name in known else values_of(p.sort, self.scope) for p in params
        )
        for chosen in product(*values):
            yield dict(zip(params, chosen, strict=True))

    def successors(self, state: State) -> Iterator[tuple[Step, State]]:
        """Every enabled step with the state it leads to.

        Raises:
            DomainError: a step assigns a number outside of its variable's bounds.
        """
        for action in self.definition.actions:
            for environment in self.instances(action.params):
                if not self._failed(action, environment, state):
                    yield step_of(action, environment), self._apply(action, environment, state)

    def failed_requirements(self, step: Step, state: State) -> tuple[Requirement, ...]:
        """The requirements that refuse a step in a state; none if it is enabled."""
        action, environment = self.resolve(step)
        return self._failed(action, environment, state)

    def take(self, step: Step, state: State) -> State:
        """The state after an enabled step.

        Raises:
            RefusedError: the step is not enabled; names the requirements that are false.
            DomainError: it assigns a number outside of its variable's bounds.
        """
        action, environment = self.resolve(step)
        failed = tuple(r.name for r in self._failed(action, environment, state))
        if failed:
            raise RefusedError(
                f"`{step.label}` cannot happen now; unmet: {'; '.join(failed)}",
                failed,
                help="the action is enabled only where all its requirements hold",
            )
        return self._apply(action, environment, state)

    def resolve(self, step: Step) -> tuple[Action, Environment]:
        """The action of a step and the values of its parameters."""
        action = self.definition.action(step.action)
        return action, {p: step.arguments[p.name] for p in action.params}

    def holds(
        self, prop: Property, state: State, new: State | None = None
    ) -> tuple[bool, Environment]:
        """Whether a property's condition holds for all its parameters; else values for which not."""
        for environment in self.instances(prop.params):
            if not self.evaluate(prop.condition, state, new, environment):
                return False, environment
        return True, {}

    def is_final(self, state: State) -> bool:
        return bool(self.evaluate(self.definition.final, state))

    def is_within(self, state: State) -> bool:
        """Whether the state satisfies the constraints: a check takes no step from one that does not."""
        return all(self.evaluate(c.condition, state) for c in self.definition.constraints)

    def is_deadlock(self, state: State) -> bool:
        """Whether no step is enabled but those that spend a budget, and the state is not final."""
        return not self.is_final(state) and all(
            self._failed(action, environment, state)
            for action in self.definition.actions
            if not action.spends
            for environment in self.instances(action.params)
        )

    def evaluate(
        self,
        node: Node,
        state: State,
        new: State | None = None,
        environment: Environment | None = None,
    ) -> Value:
        """The value of an expression; `new` is the state after the step, for step properties."""
        value: Value = self._value(node, state, new, environment or {})
        return value

    def _value(self, node: Node, state: State, new: State | None, env: Environment) -> Any:
        match node:
            case Literal(value):
                return value
            case Bound():
                return env[node]
            case Read(variable, _, is_new):
                source = new if is_new else state
                assert source is not None, "the new state is read outside of a step property"
                return source[variable]
            case Select(base, key):
                held, index = self._value(base, state, new, env), self._value(key, state, new, env)
                if isinstance(key.sort, RecordSort):
                    return held.get(index, 0)  # of a record with a number out of its bounds: none
                return held[index]
            case Field(base, name):
                return self._value(base, state, new, env)[name]
            case Column(values, index, _):
                assert isinstance(index.sort, EnumSort)
                return values[index.sort.members.index(self._value(index, state, new, env))]
            case Quantified(quantity, bound, body):
                members = values_of(bound.sort, self.scope)
                found = [self._value(body, state, new, {**env, bound: m}) for m in members]
                return _over_all(quantity, found)
            case Apply(Op.IF, (condition, then, otherwise)):
                chosen = then if self._value(condition, state, new, env) else otherwise
                return self._value(chosen, state, new, env)
            case Apply(op, args):
                given = [self._value(a, state, new, env) for a in args]
                return self._applied(op, given, node.sort)
        assert_never(node)

    def _applied(self, op: Op, args: list[Any], sort: Sort) -> Any:
        """What an operation makes of its arguments; some depend on the scope, or on the result's sort."""
        match op, sort:
            case ((Op.NEXT | Op.PREVIOUS | Op.LAST), _):
                return self._in_order(op, args, sort)
            case Op.RECORD, RecordSort(_, fields):
                return record_of([name for name, _ in fields], args)
            case Op.ITEM, _:
                items, at = args
                return items[at] if 0 <= at < len(items) else first_value(sort, self.scope)
            case ((Op.LENGTH | Op.APPEND | Op.INSERT | Op.REMOVE), _):
                return of_sequence(op, args)
            case _:
                return operate(op, args)

    def _in_order(self, op: Op, args: list[Any], sort: Sort) -> Any:
        sort = sort.element if isinstance(sort, OptionalSort) else sort
        assert isinstance(sort, EntitySort)
        return in_order(op, args, sort.kind, len(values_of(sort, self.scope)))

    def _failed(self, action: Action, env: Environment, state: State) -> tuple[Requirement, ...]:
        return tuple(
            r
            for r in action.requirements
            if (self.bounded or not r.bound) and not self._value(r.condition, state, None, env)
        )

    def _apply(self, action: Action, env: Environment, state: State) -> State:
        written: dict[_Path, Value] = {}
        for assignment in action.assignments:
            for more in self.instances(assignment.binders):
                inner = {**env, **more}
                path = self._path(assignment.place, state, inner)
                value = self._value(assignment.value, state, None, inner)
                label = step_of(action, env).label
                _check_keys(assignment, path, label)
                most = LARGEST if path[0] in self._open else 0
                _check_bounds(assignment, path, value, label, most)
                for other in written:
                    if path[: len(other)] == other[: len(path)]:
                        raise assigned_twice(step_of(action, env).label, path, assignment)
                written[path] = value
        after: Any = dict(state)
        for path, value in written.items():
            after = _put(after, path, value)
        return FrozenMap(after)

    def _path(self, place: Node, state: State, env: Environment) -> _Path:
        match place:
            case Read(variable):
                return (variable,)
            case Select(base, key):
                return (*self._path(base, state, env), self._value(key, state, None, env))
            case Field(base, name):
                return (*self._path(base, state, env), name)
            case _:
                raise AssertionError(f"not a place: {place}")


def step_of(action: Action, environment: Environment) -> Step:
    """The step that an action takes with these parameter values."""
    return Step(action.name, FrozenMap({p.name: environment[p] for p in action.params}))


def _check_keys(assignment: Assignment, path: _Path, label: str) -> None:
    """A member of a set or bag of records is one of its values only if its numbers are in bounds."""
    place, keys = assignment.place, list(path[1:])
    while isinstance(place, Select | Field):
        key = keys.pop()
        if isinstance(place, Select) and isinstance(place.key.sort, RecordSort):
            for low, high, number in numbers_in(place.key.sort, key):
                if not low <= number <= high:
                    raise DomainError(
                        f"`{label}` names {show(key)}, of which {number} is outside of {low}..{high}",
                        where=assignment.where,
                        help="add a requirement that keeps it within its bounds, or widen them",
                    )
        place = place.base


def _check_bounds(assignment: Assignment, path: _Path, value: Value, label: str, most: int) -> None:
    for low, high, number in numbers_in(assignment.place.sort, value, most):
        if not low <= number <= high:
            problem = f"assigns {number} to {path_name(path)}, outside of {low}..{high}"
            mend = "add a requirement that keeps it within its bounds, or widen them"
            if isinstance(value, tuple) and number == len(value) > high:
                problem = f"makes {path_name(path)} {number} long, but it holds at most {high}"
                mend = "require that it is not full, `~….is_full()`, or give it a larger capacity"
            raise DomainError(f"`{label}` {problem}", where=assignment.where, help=mend)


def numbers_in(sort: Sort, value: Any, most: int = 0) -> Iterator[tuple[int, int, int]]:
    """Every number that has bounds, with these: (low, high, number); of a sequence also its length.

    `most`: what a number may be, if that is more than its sort says.
    """
    match sort:
        case IntSort(low, high):
            yield low, max(high, most), value
        case MapSort(_, inner):
            for one in value.values():
                yield from numbers_in(inner, one, most)
        case RecordSort(_, fields):
            for name, inner in fields:
                yield from numbers_in(inner, value[name], most)
        case SeqSort(element, capacity):
            yield 0, capacity, len(value)
            for one in value:
                yield from numbers_in(element, one, most)
        case _:
            return


def _put(container: Any, path: _Path, value: Value) -> Any:
    """`container` with the value at `path` replaced."""
    first, *rest = path
    if isinstance(container, frozenset):
        members = cast("frozenset[Value]", container)
        return members | {first} if value else members - {first}
    inner = _put(container[first], tuple(rest), value) if rest else value
    changed = {**container, first: inner}
    return changed if type(container) is dict else FrozenMap(changed)


def of_sequence(op: Op, args: list[Any]) -> Any:
    """The length of a sequence, or what one becomes."""
    items = args[0]
    match op, args[1:]:
        case Op.APPEND, [new]:
            return (*items, new)
        case Op.INSERT, [at, new]:
            return (*items[:at], new, *items[at:]) if 0 <= at <= len(items) else items
        case Op.REMOVE, [at]:
            return (*items[:at], *items[at + 1 :]) if 0 <= at < len(items) else items
        case _:
            return len(items)


def in_order(op: Op, args: list[Any], kind: type[Entity], size: int) -> Entity | None:
    """A member of an ordered entity of which there are `size`, by where it stands."""
    if op is Op.LAST:
        return kind(size - 1)
    there: int = args[0].index + (1 if op is Op.NEXT else -1)
    if kind.is_ring:
        return kind(there % size)
    return kind(there) if 0 <= there < size else None


def _over_all(quantity: Quantity, found: list[Any]) -> Any:
    match quantity:
        case Quantity.EVERY:
            return all(found)
        case Quantity.SOME:
            return any(found)
        case Quantity.COUNT | Quantity.TOTAL:
            return sum(found)
        case Quantity.LEAST:
            return min(found)
        case Quantity.GREATEST:
            return max(found)
    assert_never(quantity)


_OPERATIONS: Mapping[Op, Callable[[Any, Any], Any]] = {
    Op.EQ: operator.eq,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: lambda a, b: a // b,
    Op.MOD: operator.mod,
    Op.MEMBER: lambda member, members: member in members,
    Op.UNION: lambda a, b: a | b,
    Op.INTERSECTION: lambda a, b: a & b,
    Op.OR_ELSE: lambda value, default: default if value is None else value,
    Op.DIFFERENCE: lambda a, b: a - b,
}


def operate(op: Op, args: list[Any]) -> Any:
    """The value of an operation (not of IF, which evaluates only one branch)."""
    match op:
        case Op.NOT:
            return not args[0]
        case Op.AND:
            return all(args)
        case Op.OR:
            return any(args)
        case Op.SET:
            return frozenset(args)
        case Op.LEAST:
            return min(args)
        case Op.GREATEST:
            return max(args)
        case _:
            return _OPERATIONS[op](*args)
