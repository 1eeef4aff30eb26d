"""Sets, bags and queues of messages: records and other values that are sent, kept and received.

`set_of(Message)`, `bag(Message, at_most=2)` and `queue(Message, 3)` declare them (`declarations/messages.py`); these
are what a body reads and changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NoReturn, TypeVar

from stagewright.spec.nodes import BOOL, Literal, Node, Op, Select
from stagewright.spec.sorts import (
    BagSort,
    IntSort,
    RecordSort,
    SeqSort,
    SetSort,
)
from stagewright.spec.source import here
from stagewright.spec.terms.binding import bind, count, some
from stagewright.spec.terms.conditions_and_numbers import Bool, Number
from stagewright.spec.terms.symbolic import ANY_INT, Placed, Symbolic, apply, assign, lift
from stagewright.spec.terms.terms import facade, reading
from stagewright.spec.terms.truth import truth_asked

R = TypeVar("R", bound=Placed)
S = TypeVar("S")
V = TypeVar("V")


class RecordSet(Symbolic, Generic[R]):
    """A symbolic set of records. Iterating visits its members: `some(m.kind == Kind.ack for m in self.sent)`."""

    __slots__ = ()

    def has(self, member: R) -> Bool:
        """Whether a record is in the set."""
        return Bool(apply(Op.MEMBER, BOOL, lift(member, self._element, "the member"), self.node))

    def __contains__(self, member: object) -> NoReturn:
        raise truth_asked()

    def __iter__(self) -> Iterator[R]:
        for bound in bind(self._element, lambda b: apply(Op.MEMBER, BOOL, b, self.node)):
            yield facade(self._element)(bound)

    def __eq__(self, other: RecordSet[R]) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, lift(other, self.node.sort, "the other set")))

    def __ne__(self, other: RecordSet[R]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __or__(self, other: RecordSet[R]) -> RecordSet[R]:
        return self._with(Op.UNION, other)

    def __and__(self, other: RecordSet[R]) -> RecordSet[R]:
        return self._with(Op.INTERSECTION, other)

    def __sub__(self, other: RecordSet[R]) -> RecordSet[R]:
        return self._with(Op.DIFFERENCE, other)

    def _with(self, op: Op, other: RecordSet[R]) -> RecordSet[R]:
        right = lift(other, self.node.sort, "the other set")
        return RecordSet(apply(op, self.node.sort, self.node, right))

    def is_empty(self) -> Bool:
        """Whether nothing is in the set."""
        return Bool(apply(Op.EQ, BOOL, self.node, Literal(frozenset(), self.node.sort)))

    def size(self) -> Number:
        """How many records are in the set."""
        return count(self.has(member) for member in self)

    def add(self, member: R) -> None:
        """Effect: the record is in the set afterwards."""
        self._put(member, present=True)

    def discard(self, member: R) -> None:
        """Effect: the record is not in the set afterwards."""
        self._put(member, present=False)

    def _put(self, member: object, *, present: bool) -> None:
        where = here()
        key = lift(member, self._element, "the member")
        assign(Select(self.node, key, BOOL, where), present, where)

    @property
    def _element(self) -> RecordSort:
        sort = self.node.sort
        assert isinstance(sort, SetSort)
        assert isinstance(sort.element, RecordSort)
        return sort.element


class BagOf(Symbolic, Generic[S, V]):
    """A symbolic bag, of which each member may be there several times. Iterating visits each member once."""

    __slots__ = ()

    def count_of(self, member: S | V) -> Number:
        """How often it is in the bag."""
        return Number(reading(self._cell(member)))

    def has(self, member: S | V) -> Bool:
        """Whether it is in the bag at least once."""
        return self.count_of(member) > 0

    def __contains__(self, member: object) -> NoReturn:
        raise truth_asked()

    def __iter__(self) -> Iterator[S]:
        for bound in bind(self._sort.key, lambda b: self.has(facade(b.sort)(b)).node):
            yield facade(bound.sort)(bound)

    def __eq__(self, other: BagOf[S, V]) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, lift(other, self._sort, "the other bag")))

    def __ne__(self, other: BagOf[S, V]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def is_empty(self) -> Bool:
        """Whether nothing is in the bag."""
        return ~some(self.has(facade(b.sort)(b)) for b in bind(self._sort.key, lambda _: None))

    def add(self, member: S | V) -> None:
        """Effect: it is in the bag once more afterwards. More often than the bag allows is out of bounds."""
        self._change(member, Op.ADD)

    def remove(self, member: S | V) -> None:
        """Effect: it is in the bag once less afterwards. Less often than not at all is out of bounds."""
        self._change(member, Op.SUB)

    def _change(self, member: S | V, op: Op) -> None:
        where = here()
        place, most = self._cell(member), self._sort.value.high
        one = Literal(1, IntSort(1, 1))
        sort = IntSort(1, most + 1) if op is Op.ADD else IntSort(-1, most - 1)
        assign(place, Number(apply(op, sort, place, one)), where)

    def _cell(self, member: object) -> Node:
        return Select(
            self.node, lift(member, self._sort.key, "the member"), self._sort.value, here()
        )

    @property
    def _sort(self) -> BagSort:
        sort = self.node.sort
        assert isinstance(sort, BagSort)
        return sort


class QueueOf(Symbolic, Generic[S, V]):
    """A symbolic sequence: a queue, a channel, a log. Iterating visits each value that is in it once."""

    __slots__ = ()

    @property
    def length(self) -> Number:
        """How many elements are in it."""
        return Number(apply(Op.LENGTH, IntSort(0, self._sort.capacity), self.node))

    def is_empty(self) -> Bool:
        """Whether nothing is in it."""
        return self.length == 0

    def is_full(self) -> Bool:
        """Whether it holds as many elements as it can: another one would be out of bounds."""
        return self.length == self._sort.capacity

    @property
    def head(self) -> S:
        """The element that was appended first; of an empty queue the first value of its sort."""
        return self[0]

    @property
    def last(self) -> S:
        """The element that was appended last; of an empty queue the first value of its sort."""
        return self[self.length - 1]

    def __getitem__(self, index: Number | int) -> S:
        """The element at an index, from 0 on; outside of the queue the first value of its sort."""
        element = self._sort.element
        found: S = facade(element)(apply(Op.ITEM, element, self.node, self._index(index)))
        return found

    def has(self, element: S | V) -> Bool:
        """Whether it is in the queue."""
        return Bool(apply(Op.MEMBER, BOOL, self._element(element), self.node))

    def __contains__(self, element: object) -> NoReturn:
        raise truth_asked()

    def __iter__(self) -> Iterator[S]:
        element = self._sort.element
        for bound in bind(element, lambda b: apply(Op.MEMBER, BOOL, b, self.node)):
            yield facade(element)(bound)

    def __eq__(self, other: QueueOf[S, V]) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, lift(other, self._sort, "the other queue")))

    def __ne__(self, other: QueueOf[S, V]) -> Bool:  # type: ignore[override]
        return ~(self == other)

    # -- other queues made of this one ---------------------------------------------------------------

    @property
    def tail(self) -> QueueOf[S, V]:
        """All but the first element; of an empty queue the empty one."""
        return self.without(0)

    def appended(self, element: S | V) -> QueueOf[S, V]:
        """The queue with one more element at its end."""
        sort = SeqSort(self._sort.element, self._sort.capacity + 1)
        return QueueOf(apply(Op.APPEND, sort, self.node, self._element(element)))

    def inserted(self, index: Number | int, element: S | V) -> QueueOf[S, V]:
        """The queue with one more element at an index; the same queue where the index is outside."""
        sort = SeqSort(self._sort.element, self._sort.capacity + 1)
        at, new = self._index(index), self._element(element)
        return QueueOf(apply(Op.INSERT, sort, self.node, at, new))

    def without(self, index: Number | int) -> QueueOf[S, V]:
        """The queue without the element at an index; the same queue where the index is outside."""
        return QueueOf(apply(Op.REMOVE, self._sort, self.node, self._index(index)))

    # -- effects -------------------------------------------------------------------------------------

    def append(self, element: S | V) -> None:
        """Effect: the element is the last one afterwards. In a full queue that is out of bounds."""
        assign(self.node, self.appended(element), here())

    def drop_head(self) -> None:
        """Effect: the first element is gone afterwards."""
        assign(self.node, self.tail, here())

    def lose(self, index: Number | int) -> None:
        """Effect: the element at an index is gone afterwards, as a lossy channel has it."""
        assign(self.node, self.without(index), here())

    def duplicate(self, index: Number | int) -> None:
        """Effect: the element at an index, if there is one, is there twice afterwards."""
        assign(self.node, self.inserted(index + 1, self[index]), here())

    def clear(self) -> None:
        """Effect: nothing is in it afterwards."""
        assign(self.node, QueueOf[S, V](Literal((), self._sort)), here())

    @property
    def _sort(self) -> SeqSort:
        sort = self.node.sort
        assert isinstance(sort, SeqSort)
        return sort

    def _element(self, element: object) -> Node:
        return lift(element, self._sort.element, "the element")

    def _index(self, index: Number | int) -> Node:
        sort = IntSort(index, index) if isinstance(index, int) else ANY_INT
        return lift(index, sort, "the index")
