"""Which entities a quantifier, a loop or a parameter needs to look at: never too few.

`some(p(x) for x in T)` need not visit an x for which a column has its default value, if p is false there:
the keys of the sparse column are enough. The members of a set that p names do as well, or the entities
with a certain value of a column, which are kept in buckets. A wrong answer here is a missed step or a
missed refusal, so what is not understood visits every living entity.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass
from enum import Enum
from typing import Any

from stagewright.impl.runtime.columns import Column, path_of
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Column as Table,
    Literal,
    Node,
    Op,
    Select,
    children,
    free_bounds,
)
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    OptionalSort,
    SetSort,
)


@dataclass(frozen=True)
class Keys:
    """The entities of which a column does not hold its default."""

    column: int


@dataclass(frozen=True)
class Bucket:
    """The entities of which a column holds a value."""

    column: int
    value: Node
    default: bool = False


@dataclass(frozen=True)
class Members:
    """The members of a set."""

    group: Node


@dataclass(frozen=True)
class Exactly:
    """The record that an element of a sequence is."""

    value: Node


Source = Keys | Bucket | Members | Exactly
Sources = tuple[Source, ...] | None  # all of these together; None: every living entity
UNKNOWN = object()


def _cost(sources: tuple[Source, ...]) -> int:
    """Entities with a value that is computed are the fewest; those at rest are the most."""
    return max(map(_rank, sources), default=-1)


def _rank(source: Source) -> int:
    match source:
        case Bucket(_, Literal(), True):
            return 4
        case Keys():
            return 3
        case Bucket(_, Literal()):
            return 2
        case Members():
            return 1
        case _:
            return 0


def _best(*found: Sources) -> Sources:
    return min((f for f in found if f is not None), default=None, key=_cost)


def _union(*parts: Sources) -> Sources:
    found: dict[Source, None] = {}
    for part in parts:
        if part is None:
            return None
        found.update(dict.fromkeys(part))
    return tuple(found)


class Candidates:
    """The search for candidates among the columns of a definition."""

    def __init__(
        self, column: Callable[[Node], Column | None], known: Set[Bound] | None = None
    ) -> None:
        self._column = column
        self._known = known

    def where_known(self, known: Set[Bound]) -> Candidates:
        """The same search where only these parameters have their values yet."""
        return Candidates(self._column, known)

    def of(self, node: Node, bound: Bound, want: bool = True) -> Sources:
        """For which members of the bound's sort `node` can be `want`."""
        found: list[Sources] = []
        match node:
            case Literal(value, BoolSort()):
                return None if value is want else ()
            case Apply(Op.NOT, (inner,)):
                return self.of(inner, bound, not want)
            case Apply(Op.AND | Op.OR as op, args):
                # What a part does not say for itself, the parts together do not say either.
                parts = [self.of(a, bound, want) for a in args]
                return _best(*parts) if (op is Op.AND) == want else _union(*parts)
            case Apply(Op.MEMBER, (member, group)) if want and member == bound:
                if self._is_known(group, bound):
                    found.append((Members(group),))
            case Apply(Op.EQ, (left, right)) if want:
                found.append(self._equal(left, right, bound))
                found.append(self._equal(right, left, bound))
                for one, other in ((left, right), (right, left)):
                    if one == bound and self._is_element(other, bound):
                        found.append((Exactly(other),))
            case _:
                pass
        for place in self._places(node, bound):
            column = self._own(place, bound)
            assert column is not None
            if fold(node, place, column.default) is (not want):
                found.append((Keys(column.index),))
            if isinstance(column.sort, EnumSort):
                held = [m for m in column.sort.members if fold(node, place, m) is not (not want)]
                if len(held) < len(column.sort.members):
                    found.append(tuple(_with(column, m) for m in held))
        return _best(*found)

    def changed(self, place: Node, value: Node, bound: Bound) -> Sources:
        """For which members of the bound's sort `place := value` can change something."""
        if isinstance(place.sort, BoolSort):
            old = place
            if isinstance(place, Select) and isinstance(place.base.sort, SetSort):
                old = Apply(Op.MEMBER, (place.key, place.base), BOOL)
            added = _best(
                self.of(old, bound, False), self.of(_given(value, old, False), bound, True)
            )
            removed = _best(
                self.of(old, bound, True), self.of(_given(value, old, True), bound, False)
            )
            return _union(added, removed)
        column = self._own(place, bound)
        match value:
            case Apply(Op.IF, (condition, then, otherwise)):
                first = () if then == place else self.of(condition, bound, True)
                second = () if otherwise == place else self.of(condition, bound, False)
                return _union(first, second)
            case Literal(constant) if column and not column.is_set and constant == column.default:
                return (Keys(column.index),)
            case Table(values, index) if column and index == place:
                if not isinstance(column.sort, EnumSort):
                    return None
                moving = zip(column.sort.members, values, strict=True)
                return tuple(_with(column, m) for m, v in moving if v != m)
            case _:
                return None

    def _equal(self, place: Node, other: Node, bound: Bound) -> Sources:
        column = self._own(place, bound)
        if column is None or not self._is_known(other, bound):
            return None
        if not isinstance(column.sort, EnumSort | EntitySort | OptionalSort):
            return None
        at_rest = isinstance(other, Literal) and other.value == column.default
        return (Bucket(column.index, other, at_rest),)

    def _is_element(self, node: Node, bound: Bound) -> bool:
        """Whether it is an element of a sequence, whose sort the bound has."""
        return isinstance(node, Apply) and node.op is Op.ITEM and self._is_known(node, bound)

    def _is_known(self, node: Node, bound: Bound) -> bool:
        free = free_bounds(node)
        return bound not in free and (self._known is None or free <= self._known)

    def _own(self, place: Node, bound: Bound) -> Column | None:
        """The column of a place that is keyed by the bound alone."""
        path = path_of(place)
        if path is None or path[2] != (bound,) or not isinstance(bound.sort, EntitySort):
            return None
        return self._column(place)

    def _places(self, node: Node, bound: Bound) -> set[Node]:
        own = {node} if self._own(node, bound) else set[Node]()
        return own.union(*(self._places(c, bound) for c in children(node)))


def _with(column: Column, member: Enum) -> Bucket:
    """The entities of which an enum column holds a member."""
    return Bucket(column.index, Literal(member, column.sort), member == column.default)


def _given(node: Node, part: Node, value: bool) -> Node:
    """`node` where a condition in it is known, simplified."""
    if node == part:
        return Literal(value, BOOL)
    if not isinstance(node, Apply) or node.op not in (Op.AND, Op.OR, Op.NOT, Op.IF):
        return node
    args = tuple(_given(a, part, value) for a in node.args)
    if node.op is Op.IF and isinstance(args[0], Literal):
        return args[1 if args[0].value else 2]
    made = Apply(node.op, args, node.sort)
    simple = fold(made, part, value) if isinstance(node.sort, BoolSort) else UNKNOWN
    return made if simple is UNKNOWN else Literal(bool(simple), BOOL)


def fold(node: Node, place: Node | None, held: Any) -> Any:
    """The value of an expression where one place holds `held`; UNKNOWN if that does not decide it."""
    if node == place:
        return held
    match node:
        case Literal(value):
            return value
        case Table(values, index) if isinstance(index.sort, EnumSort):
            at = fold(index, place, held)
            return UNKNOWN if at is UNKNOWN or at is None else values[index.sort.members.index(at)]
        case Apply(Op.MEMBER, (_, group)):
            return False if fold(group, place, held) == frozenset() else UNKNOWN
        case Apply(Op.AND | Op.OR as op, args):
            parts = [fold(a, place, held) for a in args]
            absorbing = op is Op.OR
            if any(p is absorbing for p in parts):
                return absorbing
            return UNKNOWN if any(p is UNKNOWN for p in parts) else not absorbing
        case Apply(Op.IF, (condition, then, otherwise)):
            chosen = fold(condition, place, held)
            return (
                UNKNOWN if chosen is UNKNOWN else fold(then if chosen else otherwise, place, held)
            )
        case Apply(Op.NOT | Op.EQ | Op.LT | Op.LE as op, args):
            parts = [fold(a, place, held) for a in args]
            if any(p is UNKNOWN for p in parts):
                return UNKNOWN
            if op in (Op.LT, Op.LE) and None in parts:  # of an entity of which nothing is said
                return UNKNOWN
            return _compared(op, parts[0], parts[-1])
        case _:
            return UNKNOWN


def _compared(op: Op, left: Any, right: Any) -> bool:
    match op:
        case Op.NOT:
            return not left
        case Op.EQ:
            return bool(left == right)
        case Op.LT:
            return bool(left < right)
        case _:
            return bool(left <= right)
