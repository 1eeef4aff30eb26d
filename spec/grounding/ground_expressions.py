"""Expressions in ground form: parameters become constants, columns tables, symbolic keys choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import assert_never, cast

from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.encoding import LENGTH, encode_scalar
from stagewright.spec.grounding.ground import Builder, GroundNode, GroundOp
from stagewright.spec.grounding.ground_sequences import Sequences, Shape
from stagewright.spec.grounding.known_shapes import Environment, KnownShapes
from stagewright.spec.grounding.layout import Layout, Place
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
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    IntSort,
    KeySort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.terms.intervals import check_width
from stagewright.spec.values import FrozenMap, Value

_TWO = {
    Op.LT: GroundOp.LT,
    Op.LE: GroundOp.LE,
    Op.ADD: GroundOp.ADD,
    Op.SUB: GroundOp.SUB,
    Op.MUL: GroundOp.MUL,
    Op.DIV: GroundOp.DIV,
    Op.MOD: GroundOp.MOD,
}


class Expressions:
    """Lowers expressions over the cells of one layout, into the nodes of one builder."""

    def __init__(self, layout: Layout, scope: Scope, builder: Builder) -> None:
        self.layout = layout
        self.scope = scope
        self.builder = builder
        self.sequences = Sequences(scope, builder)
        self._known = KnownShapes()
        self._nodes = 0  # when `keep` was called
        self._records: dict[RecordSort, dict[tuple[int, ...], Value]] = {}

    def keep(self) -> None:
        """Remember what was made so far when `forget` is called."""
        self._nodes = len(self.builder.nodes)
        self._known.keep()

    def forget(self) -> None:
        """Forget all nodes that were made since `keep`: they are used no more."""
        self.builder.forget(self._nodes)
        self._known.forget()

    def constants(self, chosen: Mapping[Bound, Value]) -> dict[Bound, Shape]:
        return {p: self._chosen(p, v) for p, v in chosen.items()}

    def _chosen(self, bound: Bound, value: Value) -> Shape:
        known = self._known.constants.get((bound, value))
        if known is None:
            known = self._known.constants[bound, value] = self._constant(value, bound.sort)
        return known

    def _constant(self, value: Value, sort: Sort) -> Shape:
        """A scalar's, a record's or a set's value."""
        if isinstance(sort, SetSort):
            return self._literal(value, sort)
        if isinstance(sort, RecordSort):
            assert isinstance(value, FrozenMap)
            return {name: self._constant(value[name], field) for name, field in sort.fields}
        assert not isinstance(sort, MapSort | SeqSort)
        code = encode_scalar(value, sort, self.scope)
        return self.builder.const(code, boolean=isinstance(sort, BoolSort))

    def places_of(self, place: Node, env: Environment) -> list[tuple[GroundNode, Place]]:
        """The cells that a place names, each alternative with the condition under which it does."""
        match place:
            case Read(variable):
                return [(self.builder.true, self.layout.places[variable])]
            case Field(base, name):
                return [(c, _parts(cells)[name]) for c, cells in self.places_of(base, env)]
            case Select(base, key):
                index = self.lower(key, env)
                found: list[tuple[GroundNode, Place]] = []
                for condition, cells in self.places_of(base, env):
                    for k, inner in _parts(cells).items():
                        same = self._equals(index, k, _key_sort(base))
                        if same is not self.builder.false:
                            found.append((self.builder.and_((condition, same)), inner))
                return found
            case _:
                raise AssertionError(f"not a place: {place}")

    def scalar(self, node: Node, env: Environment) -> GroundNode:
        lowered = self.lower(node, env)
        assert isinstance(lowered, GroundNode), f"not a scalar: {node.sort}"
        return lowered

    def lower(self, node: Node, env: Environment) -> Shape:
        """The ground form of an expression."""
        if isinstance(node, Bound):
            return env[node]
        if isinstance(node, Read):
            return self._variable(node.variable, new=node.new)
        key = self._known.key(node, env)
        known = self._known.shapes.get(key)
        if known is None:
            known = self._known.shapes[key] = self._lowered(node, env)
        return known

    def _variable(self, name: str, *, new: bool) -> Shape:
        known = self._known.reads.get((name, new))
        if known is None:
            known = self._known.reads[name, new] = self._read(self.layout.places[name], new)
        return known

    def _lowered(
        self, node: Literal | Field | Select | Column | Quantified | Apply, env: Environment
    ) -> Shape:
        match node:
            case Literal(value, sort):
                return self._literal(value, sort)
            case Field(base, name):
                record = self.lower(base, env)
                assert isinstance(record, dict)
                return record[name]
            case Select(base, key):
                return self._select(self.lower(base, env), self.lower(key, env), _key_sort(base))
            case Column(values, index, sort):
                return self._column(values, self.scalar(index, env), sort)
            case Quantified(quantity, bound, body):
                bodies = [
                    self.scalar(body, {**env, bound: self._chosen(bound, value)})
                    for value in values_of(bound.sort, self.scope)
                ]
                return self._over_all(quantity, bodies, node)
            case Apply():
                return self._apply(node, env)
        assert_never(node)

    def _over_all(
        self, quantity: Quantity, bodies: list[GroundNode], node: Quantified
    ) -> GroundNode:
        b = self.builder
        match quantity:
            case Quantity.EVERY:
                return b.and_(bodies)
            case Quantity.SOME:
                return b.or_(bodies)
            case Quantity.COUNT:
                bodies = [b.if_(one, b.const(1), b.const(0)) for one in bodies]
                return reduce(b.add, bodies, b.const(0))
            case Quantity.TOTAL:
                return self._narrow(reduce(b.add, bodies), node)
            case Quantity.LEAST:
                return reduce(b.min_, bodies)
            case Quantity.GREATEST:
                return reduce(b.max_, bodies)
        assert_never(quantity)

    def _narrow(self, computed: GroundNode, node: Node) -> GroundNode:
        check_width(computed.interval, node.where)
        return computed

    def _read(self, place: Place, new: bool) -> Shape:
        if isinstance(place, dict):
            return {k: self._read(inner, new) for k, inner in place.items()}
        return self.builder.cell(place, new=new)

    def _literal(self, value: Value, sort: Sort) -> Shape:
        if isinstance(sort, SetSort):
            assert isinstance(value, frozenset)
            members = values_of(sort.element, self.scope)
            return {m: self.builder.true if m in value else self.builder.false for m in members}
        if isinstance(sort, SeqSort):
            assert value == ()
            return self.sequences.empty(sort)
        return self._constant(value, sort)

    def _equals(self, index: Shape, value: Value, sort: Sort) -> GroundNode:
        wanted = self._constant(value, sort)
        return self.builder.and_(self.builder.eq(a, b) for a, b in _paired(index, wanted))

    def _select(self, shape: Shape, index: Shape, sort: Sort) -> Shape:
        assert isinstance(shape, dict)
        if isinstance(sort, RecordSort):
            return self._select_record(shape, index, sort)
        assert isinstance(index, GroundNode)
        entries = list(shape.items())
        if index.op is GroundOp.CONST:
            first = sort.low if isinstance(sort, IntSort) else 0
            return entries[index.value - first][1]
        chosen = entries[-1][1]
        for key, value in reversed(entries[:-1]):
            chosen = self._merge(self._equals(index, key, sort), value, chosen)
        return chosen

    def _select_record(self, shape: dict[Value, Shape], index: Shape, sort: RecordSort) -> Shape:
        """What belongs to a record; nothing (false, 0) to one with a number out of its bounds."""
        chosen = self._nothing_like(next(iter(shape.values())))
        if sort not in self._records:
            codes = ((tuple(_codes(self._constant(k, sort))), k) for k in shape)
            self._records[sort] = {c: k for c, k in codes if None not in c}  # type: ignore[misc]
        exact = tuple(_codes(index))
        if None not in exact:
            key = self._records[sort].get(cast("tuple[int, ...]", exact))
            return chosen if key is None else shape[key]
        for key, value in shape.items():
            chosen = self._merge(self._equals(index, key, sort), value, chosen)
        return chosen

    def _nothing_like(self, shape: Shape) -> Shape:
        if isinstance(shape, dict):
            return {k: self._nothing_like(v) for k, v in shape.items()}
        return self.builder.const(0, boolean=shape.boolean)

    def out_of_range(self, place: Node, env: Environment) -> Iterator[GroundNode]:
        """Where a place is chosen by a record of which some number is out of its bounds."""
        match place:
            case Select(base, key):
                if isinstance(key.sort, RecordSort):
                    yield from self._outside(self.lower(key, env), key.sort)
                yield from self.out_of_range(base, env)
            case Field(base):
                yield from self.out_of_range(base, env)
            case _:
                return

    def _outside(self, shape: Shape, sort: RecordSort) -> Iterator[GroundNode]:
        b = self.builder
        assert isinstance(shape, dict)
        for name, field in sort.fields:
            node = shape[name]
            if isinstance(field, IntSort):
                assert isinstance(node, GroundNode)
                yield b.or_((b.lt(node, b.const(field.low)), b.lt(b.const(field.high), node)))

    def _merge(self, condition: GroundNode, then: Shape, otherwise: Shape) -> Shape:
        if isinstance(then, dict):
            assert isinstance(otherwise, dict)
            return {k: self._merge(condition, v, otherwise[k]) for k, v in then.items()}
        assert isinstance(otherwise, GroundNode)
        return self.builder.if_(condition, then, otherwise)

    def _column(self, values: tuple[Value, ...], index: GroundNode, sort: Sort) -> Shape:
        if isinstance(sort, SetSort):
            none = frozenset[Value]()
            sets = [v if isinstance(v, frozenset) else none for v in values]
            return {
                m: self.builder.table(tuple(int(m in s) for s in sets), index, boolean=True)
                for m in values_of(sort.element, self.scope)
            }
        assert not isinstance(sort, MapSort | RecordSort | SeqSort)
        codes = tuple(encode_scalar(v, sort, self.scope) for v in values)
        return self.builder.table(codes, index, boolean=isinstance(sort, BoolSort))

    def fit(self, shape: Shape, sort: Sort, target: Sort) -> Shape:
        """`shape`, coded as `target` codes it: an optional value counts none as 0."""
        if isinstance(target, OptionalSort) and not isinstance(sort, OptionalSort):
            assert isinstance(shape, GroundNode)
            low = sort.low if isinstance(sort, IntSort) else 0
            return self.builder.add(shape, self.builder.const(1 - low))
        if isinstance(target, SeqSort):
            return self.sequences.fitted(shape, target)
        return shape

    def _junction(self, node: Apply, env: Environment) -> GroundNode:
        """Of a conjunction or disjunction only as much as decides it."""
        b, is_and = self.builder, node.op is Op.AND
        found: list[GroundNode] = []
        for arg in node.args:
            found.append(self.scalar(arg, env))
            if found[-1] is (b.false if is_and else b.true):
                break
        return b.and_(found) if is_and else b.or_(found)

    def _apply(self, node: Apply, env: Environment) -> Shape:
        if node.op in {Op.AND, Op.OR}:
            return self._junction(node, env)
        lowered = [self.lower(a, env) for a in node.args]
        match node.op:
            case Op.IF:
                condition, then, otherwise = lowered
                assert isinstance(condition, GroundNode)
                then = self.fit(then, node.args[1].sort, node.sort)
                otherwise = self.fit(otherwise, node.args[2].sort, node.sort)
                if isinstance(node.sort, SeqSort):  # either may be longer than the assigned place
                    then = self.fit(then, node.sort, node.args[2].sort)
                    otherwise = self.fit(otherwise, node.sort, node.args[1].sort)
                return self._merge(condition, then, otherwise)
            case Op.UNION | Op.INTERSECTION | Op.DIFFERENCE:
                return self._set_operation(node.op, lowered)
            case Op.EQ:
                return self._equal(node, lowered)
            case Op.OR_ELSE:
                return self._or_else(node, lowered)
            case Op.SET:
                return self._set_of(node, lowered)
            case Op.MEMBER:
                member, members = lowered
                if isinstance(within := node.args[1].sort, SeqSort):
                    return self.sequences.has(members, member, within)
                return self._select(members, member, _key_sort(node.args[1]))
            case Op.RECORD:
                return self._record(node, lowered)
            case Op.LENGTH | Op.ITEM | Op.APPEND | Op.INSERT | Op.REMOVE:
                return self._sequence(node, lowered)
            case _:
                return self._scalar(node, lowered)

    def _scalar(self, node: Apply, lowered: list[Shape]) -> GroundNode:
        """What an operation makes of scalars."""
        b = self.builder
        args = [a for a in lowered if isinstance(a, GroundNode)]
        assert len(args) == len(lowered)
        match node.op:
            case Op.NOT:
                return b.not_(args[0])
            case Op.NEXT | Op.PREVIOUS | Op.LAST:
                return self._in_order(node.op, args, node.sort)
            case Op.LEAST:
                return reduce(b.min_, args)
            case Op.GREATEST:
                return reduce(b.max_, args)
            case _:
                return self._narrow(b.operation(_TWO[node.op], args), node)

    def _in_order(self, op: Op, args: list[GroundNode], sort: Sort) -> GroundNode:
        """A member of an ordered entity by where it stands: a table over all members."""
        may_lack = isinstance(sort, OptionalSort)
        entity = sort.element if isinstance(sort, OptionalSort) else sort
        assert isinstance(entity, EntitySort)
        size = len(values_of(entity, self.scope))
        if op is Op.LAST:
            return self.builder.const(size - 1)
        there = [i + (1 if op is Op.NEXT else -1) for i in range(size)]
        if may_lack:  # none is coded as 0, and the member i as i + 1
            codes = tuple(i + 1 if 0 <= i < size else 0 for i in there)
        else:
            codes = tuple(i % size for i in there)
        return self.builder.table(codes, args[0], boolean=False)

    def _set_of(self, node: Apply, lowered: list[Shape]) -> Shape:
        sort = node.sort
        assert isinstance(sort, SetSort)
        given = [one for one in lowered if isinstance(one, GroundNode)]
        assert len(given) == len(lowered), "members of a set that is written out are scalars"
        return {
            member: self.builder.or_(self._equals(one, member, sort.element) for one in given)
            for member in values_of(sort.element, self.scope)
        }

    def _or_else(self, node: Apply, lowered: list[Shape]) -> GroundNode:
        b, (value, default) = self.builder, lowered
        assert isinstance(value, GroundNode)
        assert isinstance(default, GroundNode)
        assert isinstance(node.args[0].sort, OptionalSort)  # else the codes would be one too high
        sort = node.sort
        low = sort.low if isinstance(sort, IntSort) else 0
        # None is coded as 0 and the i-th value as 1 + i: what stands for none here is never chosen.
        codes = tuple(low + max(code - 1, 0) for code in range(value.high + 1))
        some = b.table(codes, value, boolean=isinstance(sort, BoolSort))
        return b.if_(b.eq(value, b.const(0)), default, some)

    def _record(self, node: Apply, lowered: list[Shape]) -> Shape:
        assert isinstance(node.sort, RecordSort)
        return {
            name: self.fit(shape, arg.sort, field)
            for arg, shape, (name, field) in zip(node.args, lowered, node.sort.fields, strict=True)
        }

    def _sequence(self, node: Apply, lowered: list[Shape]) -> Shape:
        sequence, *others = lowered
        sort = node.args[0].sort
        assert isinstance(sort, SeqSort)
        match node.op, others:
            case (Op.ITEM, [GroundNode() as index]):
                return self.sequences.item(sequence, index, sort)
            case (Op.APPEND, [element]):
                return self.sequences.append(sequence, element, sort)
            case (Op.INSERT, [GroundNode() as index, element]):
                return self.sequences.insert(sequence, index, element, sort)
            case (Op.REMOVE, [GroundNode() as index]):
                return self.sequences.remove(sequence, index, sort)
            case _:
                assert isinstance(sequence, dict)
                return sequence[LENGTH]

    def _equal(self, node: Apply, lowered: list[Shape]) -> GroundNode:
        left, right = lowered
        if isinstance(left, GroundNode):
            left = self.fit(left, node.args[0].sort, node.args[1].sort)
            right = self.fit(right, node.args[1].sort, node.args[0].sort)
            assert isinstance(left, GroundNode)
            assert isinstance(right, GroundNode)
            return self.builder.eq(left, right)
        if isinstance(sort := node.args[0].sort, SeqSort):
            left, right = self.sequences.fitted(left, sort), self.sequences.fitted(right, sort)
            other = node.args[1].sort
            assert isinstance(other, SeqSort)
            left, right = self.sequences.fitted(left, other), self.sequences.fitted(right, other)
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


def _key_sort(base: Node) -> KeySort:
    """What the keys of a map, or the members of a set, range over."""
    match base.sort:
        case MapSort(key):
            return key
        case SetSort(element):
            return element
        case _:
            raise AssertionError(f"{base.sort} has no keys")


def _codes(shape: Shape) -> Iterator[int | None]:
    """The constants that a record's fields are; None for one that is none."""
    if isinstance(shape, dict):
        for part in shape.values():
            yield from _codes(part)
    else:
        yield shape.value if shape.op is GroundOp.CONST else None


def _parts(place: Place) -> dict[Value, Place]:
    assert isinstance(place, dict)
    return place
