"""Sequences in ground form: a length, and the elements up to the capacity, those beyond the end all alike.

A sequence is `{"length": node, 0: element, 1: element, ...}`. Elements are held as their cells are: a
member of an entity by its number and one more, so that what is beyond the end is 0 for none and no
member is told apart. `held` and `plain` go from one form to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.encoding import LENGTH, held_as
from stagewright.spec.grounding.ground import Builder, GroundNode
from stagewright.spec.grounding.layout import Place
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    IntSort,
    MapSort,
    RecordSort,
    ScalarSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import Value

# What an expression lowers to: a scalar's node, or the parts of a set, map, record or sequence by key.
Shape = GroundNode | dict[Value, "Shape"]


class Sequences:
    """What the operations on sequences come to."""

    def __init__(self, scope: Scope, builder: Builder) -> None:
        self._scope = scope
        self._builder = builder

    def empty(self, sort: SeqSort) -> Shape:
        """The sequence without elements."""
        return self.fitted({LENGTH: self._builder.const(0)}, sort)

    def fitted(self, shape: Shape, sort: SeqSort) -> Shape:
        """The same with places for as many elements as the sort may have; longer ones stay longer."""
        parts = _parts(shape)
        missing: dict[Value, Shape] = {
            i: self._nothing(sort.element) for i in range(sort.capacity) if i not in parts
        }
        return {**parts, **missing}

    def item(self, shape: Shape, index: GroundNode, sort: SeqSort) -> Shape:
        """The element at an index; the first value of its sort outside of the sequence."""
        b = self._builder
        found = self._nothing(sort.element)
        for i in reversed(range(sort.capacity)):
            found = self.merged(b.eq(index, b.const(i)), self._element(shape, i, sort), found)
        return self._plain(found, sort.element)

    def has(self, shape: Shape, element: Shape, sort: SeqSort) -> GroundNode:
        """Whether some element equals a plain one."""
        b, wanted = self._builder, self._held(element, sort.element)
        length = _length(shape)
        return b.or_(
            b.and_((b.lt(b.const(i), length), *self._equal(self._element(shape, i, sort), wanted)))
            for i in range(sort.capacity)
        )

    def append(self, shape: Shape, element: Shape, sort: SeqSort) -> Shape:
        """With one more element; `sort` is that of the shorter one."""
        b, length = self._builder, _length(shape)
        new = self._held(element, sort.element)
        longer: dict[Value, Shape] = {LENGTH: b.add(length, b.const(1))}
        for i in range(sort.capacity + 1):
            longer[i] = self.merged(b.eq(length, b.const(i)), new, self._element(shape, i, sort))
        return longer

    def insert(self, shape: Shape, index: GroundNode, element: Shape, sort: SeqSort) -> Shape:
        """With one more element before the one at an index, or last; the same if the index is outside."""
        b, length = self._builder, _length(shape)
        new = self._held(element, sort.element)
        inside = b.and_((b.le(b.const(0), index), b.le(index, length)))
        longer: dict[Value, Shape] = {LENGTH: b.if_(inside, b.add(length, b.const(1)), length)}
        for i in range(sort.capacity + 1):
            kept = self._element(shape, i, sort)
            behind = self._element(shape, i - 1, sort) if i else new
            here = self.merged(b.eq(index, b.const(i)), new, behind)
            moved = self.merged(b.lt(b.const(i), index), kept, here)
            longer[i] = self.merged(inside, moved, kept)
        return longer

    def remove(self, shape: Shape, index: GroundNode, sort: SeqSort) -> Shape:
        """Without the element at an index; the same if the index is outside."""
        b, length = self._builder, _length(shape)
        inside = b.and_((b.le(b.const(0), index), b.lt(index, length)))
        less = b.table((0, *range(length.high)), length, boolean=False)
        shorter: dict[Value, Shape] = {LENGTH: b.if_(inside, less, length)}
        for i in range(sort.capacity):
            stays = b.or_((b.lt(b.const(i), index), b.lt(index, b.const(0))))
            shorter[i] = self.merged(
                stays, self._element(shape, i, sort), self._element(shape, i + 1, sort)
            )
        return shorter

    def merged(self, condition: GroundNode, then: Shape, otherwise: Shape) -> Shape:
        """One of two values of one form."""
        if isinstance(then, dict):
            parts = _parts(otherwise)
            return {k: self.merged(condition, v, parts[k]) for k, v in then.items()}
        assert isinstance(otherwise, GroundNode)
        return self._builder.if_(condition, then, otherwise)

    def wellformed(self, sort: Sort, place: Place) -> Iterator[GroundNode]:
        """What holds of the cells of a variable whenever they stand for a value."""
        match sort:
            case MapSort(_, value):
                for inner in _places(place).values():
                    yield from self.wellformed(value, inner)
            case RecordSort(_, fields):
                for name, field in fields:
                    yield from self.wellformed(field, _places(place)[name])
            case SeqSort(element, capacity):
                cell = _places(place)[LENGTH]
                assert isinstance(cell, int)
                length = self._builder.cell(cell)
                for i in range(capacity):
                    inside = self._builder.lt(self._builder.const(i), length)
                    yield from self._in_place(element, _places(place)[i], inside)
            case _:
                return

    def _in_place(self, sort: Sort, place: Place, inside: GroundNode) -> Iterator[GroundNode]:
        b = self._builder
        if isinstance(sort, RecordSort):
            for name, field in sort.fields:
                yield from self._in_place(field, _places(place)[name], inside)
            return
        assert isinstance(place, int)
        cell = b.cell(place)
        nothing = b.eq(cell, b.const(cell.low, boolean=cell.boolean))
        if isinstance(sort, EntitySort):
            yield b.eq(inside, b.not_(nothing))
        else:
            yield b.or_((inside, nothing))

    # -- elements ----------------------------------------------------------------------------------

    def _element(self, shape: Shape, index: int, sort: SeqSort) -> Shape:
        found = _parts(shape).get(index)
        return self._nothing(sort.element) if found is None else found

    def _nothing(self, sort: Sort) -> Shape:
        """What is beyond the end."""
        if isinstance(sort, RecordSort):
            return {name: self._nothing(field) for name, field in sort.fields}
        cell = held_as(_scalar(sort))
        low = cell.low if isinstance(cell, IntSort) else 0
        return self._builder.const(low, boolean=isinstance(cell, BoolSort))

    def _held(self, element: Shape, sort: Sort) -> Shape:
        if isinstance(sort, RecordSort):
            parts = _parts(element)
            return {name: self._held(parts[name], field) for name, field in sort.fields}
        assert isinstance(element, GroundNode)
        more = isinstance(sort, EntitySort)
        return self._builder.add(element, self._builder.const(1)) if more else element

    def _plain(self, element: Shape, sort: Sort) -> Shape:
        if isinstance(sort, RecordSort):
            parts = _parts(element)
            return {name: self._plain(parts[name], field) for name, field in sort.fields}
        assert isinstance(element, GroundNode)
        if not isinstance(sort, EntitySort):
            return element
        numbers = (0, *range(len(values_of(sort, self._scope))))
        return self._builder.table(numbers, element, boolean=False)

    def _equal(self, one: Shape, other: Shape) -> Iterator[GroundNode]:
        if isinstance(one, dict):
            parts = _parts(other)
            for key, value in one.items():
                yield from self._equal(value, parts[key])
        else:
            assert isinstance(other, GroundNode)
            yield self._builder.eq(one, other)


def _length(shape: Shape) -> GroundNode:
    length = _parts(shape)[LENGTH]
    assert isinstance(length, GroundNode)
    return length


def _parts(shape: Shape) -> dict[Value, Shape]:
    assert isinstance(shape, dict)
    return shape


def _places(place: Place) -> Mapping[Value, Place]:
    assert isinstance(place, dict)
    return place


def _scalar(sort: Sort) -> ScalarSort:
    assert not isinstance(sort, MapSort | SetSort | RecordSort | SeqSort)
    return sort
