"""Lower a definition at a scope to its ground form: flat cells, no names, no quantifiers.

Columns become tables, parameters constants, sets and maps one cell a member, symbolic keys choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, assert_never

from stagewright.spec.definition import Action, AnyValue, Definition, Property, PropertyKind
from stagewright.spec.domains import values_of
from stagewright.spec.errors import ScopeError
from stagewright.spec.ground import (
    Builder,
    Cell,
    GroundModel,
    GroundNode,
    GroundOp,
    GroundProperty,
    GroundRequirement,
    GroundStep,
)
from stagewright.spec.ground_eval import evaluate
from stagewright.spec.interpreter import assigned_twice, path_name
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
)
from stagewright.spec.scope import Scope, within_budgets
from stagewright.spec.sorts import (
    BoolSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    ScalarSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, State, Value

MAX_INITIAL_CANDIDATES = 2_000_000

# What an expression lowers to: a scalar's node, or the parts of a set, map or record by key.
Shape = GroundNode | dict[Value, "Shape"]
Environment = Mapping[Bound, GroundNode]


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
        self.cells: list[Cell] = []
        self.starts: list[int | None] = []  # the initial value of each cell; None: any
        self.layout: dict[str, Any] = {}
        for v in definition.variables:
            self.layout[v.name] = self._allocate(v.name, v.sort, v.initial, ())
        self.builder = Builder((c.low, c.high, isinstance(c.sort, BoolSort)) for c in self.cells)
        self.reads: dict[tuple[str, bool], Shape] = {}

    def model(self) -> GroundModel:
        steps: list[GroundStep] = []
        for action in self.definition.actions:
            for chosen in self._instances(action.params):
                step = self._step(len(steps), action, chosen)
                if step.guard is not self.builder.false:
                    steps.append(step)
        kinds: dict[PropertyKind, list[GroundProperty]] = {kind: [] for kind in PropertyKind}
        for prop in self.definition.properties:
            kinds[prop.kind] += self._properties(prop)
        condition = self.builder.and_(self._condition(c, {}) for c in self.definition.initially)
        fixed = [
            self.builder.eq(self.builder.cell(i), self.builder.const(v))
            for i, v in enumerate(self.starts)
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
            final=self._condition(self.definition.final, {}),
            builder=self.builder,
            initial_condition=self.builder.and_([*fixed, condition]),
        )

    # -- layout ------------------------------------------------------------------------------------

    def _allocate(
        self, variable: str, sort: Sort, initial: Any, path: tuple[Value, ...]
    ) -> int | dict[Value, Any]:
        """Cells for one variable: an index for a scalar, else the parts by key."""
        match sort:
            case MapSort(key, value):
                return {
                    k: self._allocate(variable, value, initial, (*path, k))
                    for k in values_of(key, self.scope)
                }
            case SetSort(element):
                return {
                    k: self._allocate(
                        variable,
                        BoolSort(),
                        initial if initial is AnyValue.ANY else k in initial,
                        (*path, k),
                    )
                    for k in values_of(element, self.scope)
                }
            case RecordSort(_, fields):
                return {
                    name: self._allocate(
                        variable,
                        s,
                        initial if initial is AnyValue.ANY else initial[name],
                        (*path, name),
                    )
                    for name, s in fields
                }
            case _:
                index = len(self.cells)
                values = values_of(sort, self.scope)
                low = sort.low if isinstance(sort, IntSort) else 0
                name = path_name((variable, *path))
                self.cells.append(Cell(index, name, variable, path, sort, low, len(values)))
                start = None if initial is AnyValue.ANY else self._code(initial, sort)
                self.starts.append(start)
                return index

    def _code(self, value: Value, sort: ScalarSort) -> int:
        return encode_scalar(value, sort, self.scope)

    def _initial_states(self, condition: GroundNode) -> tuple[tuple[int, ...], ...]:
        ranges = [
            range(c.low, c.high + 1) if start is None else (start,)
            for c, start in zip(self.cells, self.starts, strict=True)
        ]
        candidates = 1
        for choices in ranges:
            candidates *= len(choices)
        if candidates > MAX_INITIAL_CANDIDATES:
            raise ScopeError(
                f"{self.definition.name}: {candidates:,} candidates for the initial state at this scope",
                help="give more variables an `init`, or choose a smaller scope",
            )
        states = tuple(s for s in product(*ranges) if evaluate(condition, s))
        if not states:
            raise ScopeError(
                f"{self.definition.name}: no state satisfies its initial conditions at this scope "
                f"({self.scope})",
                help="choose a larger scope, or weaken the @initially conditions",
            )
        return states

    # -- steps and properties ----------------------------------------------------------------------

    def _instances(self, params: tuple[Bound, ...]) -> Iterator[dict[Bound, Value]]:
        for chosen in product(*(values_of(p.sort, self.scope) for p in params)):
            yield dict(zip(params, chosen, strict=True))

    def _constants(self, chosen: Mapping[Bound, Value]) -> dict[Bound, GroundNode]:
        return {
            p: self.builder.const(self._code(v, p.sort), boolean=isinstance(p.sort, BoolSort))
            for p, v in chosen.items()
        }

    def _step(self, index: int, action: Action, chosen: Mapping[Bound, Value]) -> GroundStep:
        env = self._constants(chosen)
        requirements = tuple(
            GroundRequirement(r.name, self._condition(r.condition, env))
            for r in action.requirements
        )
        guard = self.builder.and_(r.condition for r in requirements)
        updates: dict[int, GroundNode] = {}
        overflows: list[GroundNode] = []
        if guard is not self.builder.false:
            for assignment in action.assignments:
                for more in self._instances(assignment.binders):
                    inner = {**env, **self._constants(more)}
                    target = self.layout_of(assignment.place, inner)
                    value = self.lower(assignment.value, inner)
                    value = self._fit(value, assignment.value.sort, assignment.place.sort)
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

    def layout_of(self, place: Node, env: Environment) -> list[tuple[GroundNode, Any]]:
        """The cells that a place names, each alternative with the condition under which it does."""
        match place:
            case Read(variable):
                return [(self.builder.true, self.layout[variable])]
            case Field(base, name):
                return [(c, cells[name]) for c, cells in self.layout_of(base, env)]
            case Select(base, key):
                index = self._scalar(key, env)
                found: list[tuple[GroundNode, Any]] = []
                for condition, cells in self.layout_of(base, env):
                    for k, inner in cells.items():
                        same = self._equals(index, k, key.sort)
                        if same is not self.builder.false:
                            found.append((self.builder.and_((condition, same)), inner))
                return found
            case _:
                raise AssertionError(f"not a place: {place}")

    def _properties(self, prop: Property) -> Iterator[GroundProperty]:
        for chosen in self._instances(prop.params):
            env = self._constants(chosen)
            premise = None if prop.premise is None else self._condition(prop.premise, env)
            arguments = tuple((p.name, v) for p, v in chosen.items())
            yield GroundProperty(prop, arguments, self._condition(prop.condition, env), premise)

    # -- expressions -------------------------------------------------------------------------------

    def _condition(self, node: Node, env: Environment) -> GroundNode:
        return self._scalar(node, env)

    def _scalar(self, node: Node, env: Environment) -> GroundNode:
        lowered = self.lower(node, env)
        assert isinstance(lowered, GroundNode), f"not a scalar: {node.sort}"
        return lowered

    def lower(self, node: Node, env: Environment) -> Shape:
        """The ground form of an expression."""
        b = self.builder
        match node:
            case Literal(value, sort):
                return self._literal(value, sort)
            case Bound():
                return env[node]
            case Read(variable, _, new):
                if (variable, new) not in self.reads:
                    self.reads[variable, new] = self._read(self.layout[variable], new)
                return self.reads[variable, new]
            case Field(base, name):
                record = self.lower(base, env)
                assert isinstance(record, dict)
                return record[name]
            case Select(base, key):
                return self._select(self.lower(base, env), self._scalar(key, env), key.sort)
            case Column(values, index, sort):
                return self._column(values, self._scalar(index, env), sort)
            case Quantified(quantity, bound, body):
                bodies = [
                    self._scalar(body, {**env, **self._constants({bound: value})})
                    for value in values_of(bound.sort, self.scope)
                ]
                if quantity is Quantity.EVERY:
                    return b.and_(bodies)
                if quantity is Quantity.SOME:
                    return b.or_(bodies)
                total = b.const(0)
                for one in bodies:
                    total = b.add(total, b.if_(one, b.const(1), b.const(0)))
                return total
            case Apply():
                return self._apply(node, env)
        assert_never(node)

    def _read(self, layout: Any, new: bool) -> Shape:
        if isinstance(layout, dict):
            return {k: self._read(inner, new) for k, inner in layout.items()}
        return self.builder.cell(layout, new=new)

    def _literal(self, value: Value, sort: Sort) -> Shape:
        if isinstance(sort, SetSort):
            assert isinstance(value, frozenset)
            members = values_of(sort.element, self.scope)
            return {m: self.builder.true if m in value else self.builder.false for m in members}
        assert not isinstance(sort, MapSort | RecordSort)
        return self.builder.const(self._code(value, sort), boolean=isinstance(sort, BoolSort))

    def _equals(self, index: GroundNode, value: Value, sort: Sort) -> GroundNode:
        assert not isinstance(sort, SetSort | MapSort | RecordSort)
        boolean = isinstance(sort, BoolSort)
        return self.builder.eq(index, self.builder.const(self._code(value, sort), boolean=boolean))

    def _select(self, shape: Shape, index: GroundNode, sort: Sort) -> Shape:
        assert isinstance(shape, dict)
        entries = list(shape.items())
        if index.op is GroundOp.CONST:
            return entries[index.value][1]
        chosen = entries[-1][1]
        for key, value in reversed(entries[:-1]):
            chosen = self._merge(self._equals(index, key, sort), value, chosen)
        return chosen

    def _merge(self, condition: GroundNode, then: Shape, otherwise: Shape) -> Shape:
        if isinstance(then, dict):
            assert isinstance(otherwise, dict)
            return {k: self._merge(condition, v, otherwise[k]) for k, v in then.items()}
        assert isinstance(otherwise, GroundNode)
        return self.builder.if_(condition, then, otherwise)

    def _column(self, values: tuple[Value, ...], index: GroundNode, sort: Sort) -> Shape:
        if isinstance(sort, SetSort):
            sets = [v if isinstance(v, frozenset) else frozenset() for v in values]
            return {
                m: self.builder.table(tuple(int(m in s) for s in sets), index, boolean=True)
                for m in values_of(sort.element, self.scope)
            }
        assert not isinstance(sort, MapSort | RecordSort)
        codes = tuple(self._code(v, sort) for v in values)
        return self.builder.table(codes, index, boolean=isinstance(sort, BoolSort))

    def _fit(self, shape: Shape, sort: Sort, target: Sort) -> Shape:
        """`shape`, coded as `target` codes it: an optional value counts none as 0."""
        if isinstance(target, OptionalSort) and not isinstance(sort, OptionalSort):
            assert isinstance(shape, GroundNode)
            low = sort.low if isinstance(sort, IntSort) else 0
            return self.builder.add(shape, self.builder.const(1 - low))
        return shape

    def _apply(self, node: Apply, env: Environment) -> Shape:
        b = self.builder
        lowered = [self.lower(a, env) for a in node.args]
        match node.op:
            case Op.IF:
                condition, then, otherwise = lowered
                assert isinstance(condition, GroundNode)
                then = self._fit(then, node.args[1].sort, node.sort)
                return self._merge(
                    condition, then, self._fit(otherwise, node.args[2].sort, node.sort)
                )
            case Op.UNION | Op.INTERSECTION | Op.DIFFERENCE:
                return self._set_operation(node.op, lowered)
            case Op.EQ:
                return self._equal(node, lowered)
            case Op.MEMBER:
                member, members = lowered
                assert isinstance(member, GroundNode)
                return self._select(members, member, node.args[0].sort)
        args = [a for a in lowered if isinstance(a, GroundNode)]
        assert len(args) == len(lowered)
        match node.op:
            case Op.NOT:
                return b.not_(args[0])
            case Op.AND:
                return b.and_(args)
            case Op.OR:
                return b.or_(args)
            case Op.LT:
                return b.lt(args[0], args[1])
            case Op.LE:
                return b.le(args[0], args[1])
            case Op.ADD:
                return b.add(args[0], args[1])
            case Op.SUB:
                return b.sub(args[0], args[1])
        assert_never(node.op)

    def _equal(self, node: Apply, lowered: list[Shape]) -> GroundNode:
        left, right = lowered
        if isinstance(left, GroundNode):
            left = self._fit(left, node.args[0].sort, node.args[1].sort)
            right = self._fit(right, node.args[1].sort, node.args[0].sort)
            assert isinstance(left, GroundNode)
            assert isinstance(right, GroundNode)
            return self.builder.eq(left, right)
        return self.builder.and_(self.builder.eq(a, b) for a, b in _paired(left, right))

    def _set_operation(self, op: Op, lowered: list[Shape]) -> Shape:
        b = self.builder
        left, right = lowered
        assert isinstance(left, dict)
        assert isinstance(right, dict)
        result: dict[Value, Shape] = {}
        for member, one in left.items():
            other = right[member]
            assert isinstance(one, GroundNode)
            assert isinstance(other, GroundNode)
            match op:
                case Op.UNION:
                    result[member] = b.or_((one, other))
                case Op.INTERSECTION:
                    result[member] = b.and_((one, other))
                case _:
                    result[member] = b.and_((one, b.not_(other)))
        return result


def _paired(left: Shape, right: Shape) -> Iterator[tuple[GroundNode, GroundNode]]:
    if isinstance(left, dict):
        assert isinstance(right, dict)
        for key, value in left.items():
            yield from _paired(value, right[key])
    else:
        assert isinstance(right, GroundNode)
        yield left, right


def _leaves(layout: Any, value: Shape) -> Iterator[tuple[int, GroundNode]]:
    if isinstance(layout, dict):
        assert isinstance(value, dict)
        for key, inner in layout.items():
            yield from _leaves(inner, value[key])
    else:
        assert isinstance(value, GroundNode)
        yield layout, value


def encode_scalar(value: Any, sort: ScalarSort, scope: Scope) -> int:
    """The integer that codes a scalar value.

    Raises:
        ValueError: the value is not one of the sort at this scope.
    """
    if isinstance(sort, IntSort):
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not sort.low <= value <= sort.high
        ):
            raise ValueError(f"{value!r} is not in {sort}")
        return value
    values = values_of(sort, scope)
    for code, known in enumerate(values):
        if known is value or (type(known) is type(value) and known == value):
            return code
    raise ValueError(f"{value!r} is not a value of {sort}")


def decode(model: GroundModel, state: tuple[int, ...]) -> State:
    """The definition's own values of a ground state."""
    decoded = {}
    for cell, code in zip(model.cells, state, strict=True):
        values = values_of(cell.sort, model.scope)
        decoded[cell.variable, *cell.path] = values[code - cell.low]
    return FrozenMap(
        {
            v.name: _assemble(v.sort, (v.name,), decoded, model.scope)
            for v in model.definition.variables
        }
    )


def _assemble(
    sort: Sort, path: tuple[Value, ...], decoded: Mapping[Any, Value], scope: Scope
) -> Value:
    match sort:
        case MapSort(key, value):
            keys = values_of(key, scope)
            return FrozenMap({k: _assemble(value, (*path, k), decoded, scope) for k in keys})
        case SetSort(element):
            return frozenset(k for k in values_of(element, scope) if decoded[*path, k])
        case RecordSort(_, fields):
            return FrozenMap({n: _assemble(s, (*path, n), decoded, scope) for n, s in fields})
        case _:
            return decoded[path]


def encode(model: GroundModel, state: State) -> tuple[int, ...]:
    """The ground form of a state in the definition's own values."""
    return tuple(_cell_code(model, cell, state) for cell in model.cells)


def _cell_code(model: GroundModel, cell: Cell, state: State) -> int:
    value: Any = state[cell.variable]
    for key in cell.path:
        value = key in value if isinstance(value, frozenset) else value[key]
    return encode_scalar(value, cell.sort, model.scope)
