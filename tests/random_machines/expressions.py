"""Random expressions of every sort: all operations, all quantifiers, columns, symbolic keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from tests.random_machines.choices import Choices
from tests.random_machines.parts import contains, inside, ints_in, parts_of, same, sets_in
from tests.random_machines.sorts import (
    BOOL,
    COLOUR,
    ENTITIES,
    ENUMS,
    FINITE,
    MAIL,
    RANK,
    SEAT,
    SENT,
    STAGE,
    Stage,
    can_be_named,
)

from stagewright.spec.definition import Variable
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
from stagewright.spec.sorts import (
    BoolSort,
    BoundSort,
    EntitySort,
    EnumSort,
    IntSort,
    KeySort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.terms.binding import UNBOUNDED
from stagewright.spec.terms.intervals import (
    Interval,
    difference_of,
    greatest_of,
    least_of,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
)

MOST_MEMBERS = 3  # of any entity sort or enum that is summed over
_CHANGES = (Op.APPEND, Op.REMOVE, Op.INSERT)

Makers = list[Callable[[], Node | None]]


@dataclass(frozen=True)
class Expressions:
    """Makes expressions over some variables and bounds; `new`: the new state may be read too."""

    choices: Choices
    variables: tuple[Variable, ...]
    bounds: tuple[Bound, ...] = ()
    new: bool = False

    def within(self, *bounds: Bound) -> Expressions:
        """The same inside of quantifiers or loops that bind these."""
        return replace(self, bounds=(*self.bounds, *bounds))

    def bound(self, sort: BoundSort, name: str = "b") -> Bound:
        """A bound variable that is like no other."""
        serial = self.choices.serial()
        return Bound(f"{name}{serial}", sort, serial)

    # -- of any sort -------------------------------------------------------------------------------

    def of(self, sort: Sort, depth: int = 2) -> Node | None:
        """An expression whose sort is `sort`; None if nothing of that sort exists here."""
        leaves = self._leaves(sort, depth)
        if depth <= 0:
            return self._first(leaves)
        branches = self._branches(sort, depth)
        makers = [*leaves, *branches]
        start = self.choices.number(0, max(0, len(makers) - 1))
        return self._first([*makers[start:], *makers[:start]])

    def _first(self, makers: Makers) -> Node | None:
        return next((made for make in makers if (made := make()) is not None), None)

    def value(self, sort: Sort, depth: int = 2) -> Node | None:
        """An expression that may be assigned to `sort`: also one of the element of an optional."""
        if isinstance(sort, OptionalSort) and self.choices.chance(50):
            found = self.of(sort.element, depth)
            if found is not None:
                return found
        return self.of(sort, depth)

    def condition(self, depth: int = 3) -> Node:
        """A condition."""
        found = self.of(BOOL, depth)
        assert found is not None
        return found

    # -- leaves ------------------------------------------------------------------------------------

    def _leaves(self, sort: Sort, depth: int) -> Makers:
        makers: Makers = []
        if depth >= 0 and self._readable(sort):
            makers.append(lambda: self._place(sort, depth))
        bounds = [b for b in self.bounds if same(b.sort, sort)]
        if bounds:
            makers.append(lambda: self.choices.pick(bounds))
        if not isinstance(sort, EntitySort | MapSort | RecordSort) or (
            isinstance(sort, EntitySort) and can_be_named(sort)
        ):
            makers.append(lambda: self._literal(sort))
        return makers

    def _literal(self, sort: Sort) -> Node | None:
        pick = self.choices.pick
        match sort:
            case BoolSort():
                return Literal(pick((True, False)), sort)
            case IntSort(low, high):
                value = self.choices.number(low, high)
                return Literal(value, IntSort(value, value))
            case EnumSort():
                return Literal(pick(sort.members), sort)
            case EntitySort(kind):
                if kind.is_ordered and pick((False, True)):
                    return Apply(Op.LAST, (), sort)
                return Literal(kind(0), sort)
            case OptionalSort():
                return Literal(None, sort)
            case SeqSort():
                return Literal((), sort)
            case SetSort(EnumSort() as element):
                return Literal(frozenset(m for m in element.members if pick((0, 1))), sort)
            case _:
                return Literal(frozenset(), sort) if isinstance(sort, SetSort) else None

    def _readable(self, sort: Sort) -> list[Variable]:
        return [v for v in self.variables if contains(v.sort, sort)]

    def _place(self, sort: Sort, depth: int) -> Node | None:
        variable = self.choices.pick(self._readable(sort))
        new = self.new and self.choices.chance(50)
        return self._below(Read(variable.name, variable.sort, new), sort, min(depth, 1))

    def _below(self, node: Node, sort: Sort, depth: int) -> Node | None:
        """A part of `node` that has `sort`, with any keys on the way; None if a key is lacking."""
        if same(node.sort, sort) and not (inside(node.sort, sort) and self.choices.chance(50)):
            return node
        match node.sort:
            case MapSort(key, value):
                index = self.key_of(key, depth - 1)
                return (
                    None if index is None else self._below(Select(node, index, value), sort, depth)
                )
            case RecordSort(_, fields):
                name, field = self.choices.pick([f for f in fields if contains(f[1], sort)])
                return self._below(Field(node, name, field), sort, depth)
            case _:
                raise AssertionError(f"{sort} is not in {node.sort}")

    def key_of(self, sort: KeySort, depth: int) -> Node | None:
        """A key of a map: a number is kept within the keys."""
        key = self.of(sort, depth)
        if key is None or not isinstance(sort, IntSort):
            return key
        low, high = (Literal(n, IntSort(n, n)) for n in (sort.low, sort.high))
        bounds = least_of(_bounds(key), (sort.high, sort.high))
        if _bounds(key)[1] > sort.high:
            key = Apply(Op.LEAST, (key, high), IntSort(*bounds))
        if _bounds(key)[0] < sort.low:
            bounds = greatest_of(_bounds(key), (sort.low, sort.low))
            key = Apply(Op.GREATEST, (low, key), IntSort(*bounds))
        return key

    # -- branches ----------------------------------------------------------------------------------

    def _branches(self, sort: Sort, depth: int) -> Makers:
        makers: Makers = [lambda: self._if(sort, depth - 1)]
        if isinstance(sort, BoolSort | IntSort | EnumSort | EntitySort | RecordSort):
            makers.append(lambda: self._item(sort, depth - 1))
        match sort:
            case BoolSort():
                makers += self._conditions(depth - 1)
            case IntSort():
                makers += [
                    lambda: self._sum(Op.ADD, depth - 1),
                    lambda: self._sum(Op.SUB, depth - 1),
                    lambda: self._count(depth - 1),
                    lambda: self._product(depth - 1),
                    lambda: self._divided(Op.DIV, depth - 1),
                    lambda: self._divided(Op.MOD, depth - 1),
                    lambda: self._extreme(Op.LEAST, depth - 1),
                    lambda: self._extreme(Op.GREATEST, depth - 1),
                    lambda: self._folded(Quantity.TOTAL, depth - 1),
                    lambda: self._folded(Quantity.LEAST, depth - 1),
                    lambda: self._folded(Quantity.GREATEST, depth - 1),
                    lambda: self._length(depth - 1),
                    lambda: self._column(sort, depth - 1),
                ]
            case EnumSort():
                makers.append(lambda: self._column(sort, depth - 1))
                makers.append(lambda: self._or_else(sort, depth - 1))
            case EntitySort(kind):
                makers.append(lambda: self._or_else(sort, depth - 1))
                makers += self._beside(sort, sort, depth - 1) if kind.is_ring else ()
            case OptionalSort(EnumSort()):
                makers.append(lambda: self._column(sort, depth - 1))
            case OptionalSort(EntitySort(kind) as element) if kind.is_ordered and not kind.is_ring:
                makers += self._beside(element, sort, depth - 1)
            case RecordSort() if sort in SENT:
                makers += [lambda: self._record(sort, depth - 1)] * 3
            case SeqSort():
                makers += [lambda op=op: self._changed(op, sort, depth - 1) for op in _CHANGES]  # type: ignore[misc]
            case SetSort():
                makers += [
                    lambda op=op: self._both(op, sort, sort, depth - 1)  # type: ignore[misc]
                    for op in (Op.UNION, Op.INTERSECTION, Op.DIFFERENCE)
                ]
                makers.append(lambda: self._column(sort, depth - 1))
                makers.append(lambda: self._set_of(sort, depth - 1))
            case _:
                pass
        return makers

    def _conditions(self, depth: int) -> Makers:
        return [
            lambda: self._not(depth),
            lambda: self._junction(Op.AND, depth),
            lambda: self._junction(Op.OR, depth),
            lambda: self._equal(depth),
            lambda: self._compare(Op.LT, depth),
            lambda: self._compare(Op.LE, depth),
            lambda: self._member(depth),
            lambda: self._quantified(Quantity.EVERY, depth),
            lambda: self._quantified(Quantity.SOME, depth),
            lambda: self._column(BOOL, depth),
        ]

    def _record(self, sort: RecordSort, depth: int) -> Node | None:
        args: list[Node] = []
        for _, field in sort.fields:
            arg = self._literal(field) if isinstance(field, IntSort) else self.value(field, depth)
            if arg is None:
                return None
            args.append(arg)
        return Apply(Op.RECORD, tuple(args), sort)

    def _sequences(self) -> list[SeqSort]:
        return [p for v in self.variables for p in parts_of(v.sort) if isinstance(p, SeqSort)]

    def _sequence(self, depth: int, element: Sort | None = None) -> Node | None:
        sorts = [s for s in self._sequences() if element is None or s.element == element]
        return self.of(self.choices.pick(sorts), depth) if sorts else None

    def _length(self, depth: int) -> Node | None:
        sequence = self._sequence(depth)
        if sequence is None:
            return None
        assert isinstance(sequence.sort, SeqSort)
        return Apply(Op.LENGTH, (sequence,), IntSort(0, sequence.sort.capacity))

    def _item(self, sort: Sort, depth: int) -> Node | None:
        alike = [s for s in self._sequences() if same(s.element, sort)]
        sequence = self.of(self.choices.pick(alike), depth) if alike else None
        index = self._index(depth)
        if sequence is None or index is None:
            return None
        assert isinstance(sequence.sort, SeqSort)
        return Apply(Op.ITEM, (sequence, index), sequence.sort.element)

    def _index(self, depth: int) -> Node | None:
        if self.choices.chance(40):
            return Literal(0, IntSort(0, 0))
        return self._number(depth) if self.choices.chance(50) else self.of(IntSort(-1, 2), 0)

    def _changed(self, op: Op, sort: SeqSort, depth: int) -> Node | None:
        """A sequence made of another."""
        sequence, element, index = self._sequence(depth, sort.element), None, None
        if op is not Op.REMOVE:
            element = self.value(sort.element, depth)
        if op is not Op.APPEND:
            index = self._index(depth)
        args = [a for a in (sequence, index, element) if a is not None]
        if sequence is None or len(args) != (2 if op is not Op.INSERT else 3):
            return None
        assert isinstance(sequence.sort, SeqSort)
        more = 0 if op is Op.REMOVE else 1
        return Apply(op, tuple(args), SeqSort(sort.element, sequence.sort.capacity + more))

    def _beside(self, sort: EntitySort, result: Sort, depth: int) -> Makers:
        """The member before or after one of an ordered entity."""

        def beside(op: Op) -> Node | None:
            member = self.of(sort, depth)
            return None if member is None else Apply(op, (member,), result)

        return [lambda: beside(Op.NEXT), lambda: beside(Op.PREVIOUS)]

    def _not(self, depth: int) -> Node | None:
        return Apply(Op.NOT, (self.condition(depth),), BOOL)

    def _junction(self, op: Op, depth: int) -> Node:
        parts = [self.condition(depth) for _ in range(self.choices.pick((2, 3, 1, 0)))]
        return Apply(op, tuple(parts), BOOL)

    def _equal(self, depth: int) -> Node | None:
        sort = self.choices.pick([*FINITE, BOOL, IntSort(0, 2), *(v.sort for v in self.variables)])
        if isinstance(sort, EnumSort | EntitySort) and self.choices.chance(25):
            sort = OptionalSort(sort)
        if isinstance(sort, EnumSort) and self.choices.chance(25):
            sort = SetSort(sort)
        left, right = self.of(sort, depth), self.value(sort, depth)
        if left is None or right is None:
            return None
        args = (left, right) if self.choices.chance(50) else (right, left)
        return Apply(Op.EQ, args, BOOL)

    def _number(self, depth: int) -> Node | None:
        sorts = [s for v in self.variables for s in ints_in(v.sort)] or [IntSort(0, 2)]
        return self.of(self.choices.pick(sorts), depth)

    def _compare(self, op: Op, depth: int) -> Node | None:
        if self.choices.chance(20):
            ordered = self.choices.pick((SEAT, RANK))
            left, right = self.of(ordered, depth), self.of(ordered, depth)
        else:
            left, right = self._number(depth), self._number(depth)
        return None if left is None or right is None else Apply(op, (left, right), BOOL)

    def _member(self, depth: int) -> Node | None:
        element = self.choices.pick(
            [s.element for v in self.variables for s in sets_in(v.sort)] + [COLOUR]
        )
        within: SetSort | SeqSort = SetSort(element)
        if self.choices.chance(30) and (sequences := self._sequences()):
            within = self.choices.pick(sequences)
        member, members = self.of(within.element, depth), self.of(within, depth)
        if member is None or members is None:
            return None
        return Apply(Op.MEMBER, (member, members), BOOL)

    def _over_members(self, quantity: Quantity, depth: int) -> Node | None:
        """A quantifier over what is in a set of records or a sequence, as loops over these are written."""
        parts = [p for v in self.variables for p in parts_of(v.sort)]
        held = [p for p in parts if isinstance(p, SeqSort | SetSort)]
        if not held or quantity is Quantity.COUNT:
            return None
        sort = self.choices.pick(held)
        members, bound = self.of(sort, depth), self.bound(sort.element)
        if members is None:
            return None
        inside = Apply(Op.MEMBER, (bound, members), BOOL)
        body = self.within(bound).condition(depth)
        if quantity is Quantity.SOME:
            body = Apply(Op.AND, (inside, body), BOOL)
        else:
            body = Apply(Op.OR, (Apply(Op.NOT, (inside,), BOOL), body), BOOL)
        return Quantified(quantity, bound, body, BOOL)

    def _quantified(self, quantity: Quantity, depth: int) -> Node | None:
        if self.choices.chance(30):
            found = self._over_members(quantity, depth)
            if found is not None:
                return found
        sorts: list[BoundSort] = [MAIL, *ENTITIES, *ENUMS, IntSort(-1, 1), BOOL]
        bound = self.bound(self.choices.pick(sorts))
        body = self.within(bound).condition(depth)
        sort: Sort = IntSort(0, UNBOUNDED) if quantity is Quantity.COUNT else BOOL
        return Quantified(quantity, bound, body, sort)

    def _count(self, depth: int) -> Node | None:
        return self._quantified(Quantity.COUNT, depth)

    def _sum(self, op: Op, depth: int) -> Node | None:
        left, right = self._number(depth), self._number(depth)
        if left is None or right is None:
            return None
        interval = sum_of if op is Op.ADD else difference_of
        return Apply(op, (left, right), IntSort(*interval(_bounds(left), _bounds(right))))

    def _set_of(self, sort: SetSort, depth: int) -> Node | None:
        if isinstance(sort.element, RecordSort):
            return None
        some = [self.of(sort.element, depth) for _ in range(self.choices.pick((1, 2)))]
        members = tuple(m for m in some if m is not None)
        return Apply(Op.SET, members, sort) if members else None

    def _or_else(self, sort: EnumSort | EntitySort, depth: int) -> Node | None:
        value, default = self.of(OptionalSort(sort), depth), self.of(sort, depth)
        if value is None or default is None or not isinstance(value.sort, OptionalSort):
            return None  # where a member may stand for itself, there is nothing to unwrap
        return Apply(Op.OR_ELSE, (value, default), sort)

    def _product(self, depth: int) -> Node | None:
        left, right = self._number(depth), self._number(depth)
        if left is None or right is None:
            return None
        bounds = product_of(_bounds(left), _bounds(right))
        return Apply(Op.MUL, (left, right), IntSort(*bounds))

    def _divided(self, op: Op, depth: int) -> Node | None:
        left, right = self._number(depth), self._number(depth)
        if left is None or right is None:
            return None
        if _bounds(right)[0] < 1:
            one = Literal(1, IntSort(1, 1))
            right = Apply(Op.GREATEST, (right, one), IntSort(*greatest_of(_bounds(right), (1, 1))))
        interval = quotient_of if op is Op.DIV else remainder_of
        return Apply(op, (left, right), IntSort(*interval(_bounds(left), _bounds(right))))

    def _extreme(self, op: Op, depth: int) -> Node | None:
        some = [self._number(depth) for _ in range(self.choices.pick((2, 1, 3)))]
        numbers = [n for n in some if n is not None]
        if not numbers:
            return None
        interval = least_of if op is Op.LEAST else greatest_of
        return Apply(op, tuple(numbers), IntSort(*reduce(interval, map(_bounds, numbers))))

    def _folded(self, quantity: Quantity, depth: int) -> Node | None:
        sorts: list[BoundSort] = [MAIL, *ENTITIES, *ENUMS, IntSort(-1, 1), BOOL]
        bound = self.bound(self.choices.pick(sorts))
        body = self.within(bound)._number(depth)
        if body is None:
            return None
        low, high = _bounds(body)
        if quantity is Quantity.TOTAL:
            most = MOST_MEMBERS * (len(COLOUR.members) if bound.sort == MAIL else 1)
            low, high = min(low, low * most), max(high, high * most)
        return Quantified(quantity, bound, body, IntSort(low, high))

    def _both(self, op: Op, sort: Sort, result: Sort, depth: int) -> Node | None:
        left, right = self.of(sort, depth), self.of(sort, depth)
        return None if left is None or right is None else Apply(op, (left, right), result)

    def _if(self, sort: Sort, depth: int) -> Node | None:
        then, otherwise = self.value(sort, depth), self.value(sort, depth)
        if then is None or otherwise is None:
            return None
        joined = sort
        if isinstance(then.sort, IntSort) and isinstance(otherwise.sort, IntSort):
            joined = IntSort(
                min(then.sort.low, otherwise.sort.low), max(then.sort.high, otherwise.sort.high)
            )
        elif isinstance(then.sort, SeqSort) and isinstance(otherwise.sort, SeqSort):
            most = max(then.sort.capacity, otherwise.sort.capacity)
            joined = SeqSort(then.sort.element, most)
        elif not isinstance(then.sort, OptionalSort) and not isinstance(
            otherwise.sort, OptionalSort
        ):
            joined = then.sort
        return Apply(Op.IF, (self.condition(depth), then, otherwise), joined)

    def _column(self, sort: Sort, depth: int) -> Node | None:
        columns: dict[object, Callable[[Stage], object]] = {
            BOOL: lambda s: s.idle,
            COLOUR: lambda s: s.shade,
            OptionalSort(COLOUR): lambda s: s.other,
            SetSort(COLOUR): lambda s: frozenset(s.shades),
        }
        if isinstance(sort, IntSort):
            sort = IntSort(-1, 2)
            columns[sort] = lambda s: s.rank
        column, index = columns.get(sort), self.of(STAGE, depth)
        if column is None or index is None:
            return None
        return Column(tuple(column(s) for s in Stage), index, sort)  # type: ignore[misc]


def _bounds(node: Node) -> Interval:
    assert isinstance(node.sort, IntSort)
    return node.sort.low, node.sort.high
