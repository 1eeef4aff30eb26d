"""Choices that depend on a symbolic value: a column of an enum's table, and one of two values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from enum import Enum
from typing import Any, TypeVar, cast, overload

from stagewright.spec.entities import Entity
from stagewright.spec.errors import ExpressionError
from stagewright.spec.nodes import BOOL, Column, Node, Op, fits
from stagewright.spec.sorts import (
    EntitySort,
    EnumSort,
    IntSort,
    OptionalSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import here
from stagewright.spec.terms.conditions_and_numbers import Bool, Number
from stagewright.spec.terms.messages import BagOf, QueueOf, RecordSet
from stagewright.spec.terms.symbolic import Placed, Symbolic, apply, lift, mend, node_of
from stagewright.spec.terms.terms import MapOf, Maybe, SetOf, Term, facade
from stagewright.spec.terms.tracing import check_use

X = TypeVar("X", bound=Enum | Entity)
F = TypeVar("F", bound=Enum)
R = TypeVar("R", bound=Placed)
K = TypeVar("K")
S = TypeVar("S")
V = TypeVar("V")


def column_at(
    index: Node,
    column: Callable[..., Any],
    others: tuple[object, ...] = (),
    wanted: type[Symbolic] | None = None,
) -> Symbolic:
    """A column of an enum, given as a function of its members, at a symbolic member.

    With `others`, which is one more symbolic member, it is a function of two. `wanted` is the facade that the
    column must have, if only one will do.
    """
    members = _members(index)
    if others:
        other = node_of(others[0], BOOL)
        if other is None:
            raise ExpressionError(
                f"a column of two members is given {others[0]!r} as the second",
                where=here(),
                help="write `a.column(lambda a, b: …, b)` with a symbolic `b`",
            )
        rows = [tuple(_frozen(column(m, n)) for n in _members(other)) for m in members]
    else:
        other, rows = index, [tuple(_frozen(column(member)) for member in members)]
    sort, wrap = _column_sort([value for row in rows for value in row])
    if wanted is Maybe and isinstance(sort, EnumSort):
        optional = OptionalSort(sort)
        sort, wrap = optional, facade(optional)
    if wanted not in {None, wrap}:
        raise ExpressionError(
            f"the column is of sort {sort}, which is not what this method is for",
            where=here(),
            help="`number_column` is for numbers, `optional_column` for members of which some are none, "
            "`column` for all else",
        )
    found: Node = Column(rows[-1], other, sort, here())
    for member, row in reversed([*zip(members, rows, strict=False)][:-1]):
        same = apply(Op.EQ, BOOL, index, lift(member, index.sort, "a member"))
        found = apply(Op.IF, sort, same, Column(row, other, sort, here()), found)
    return wrap(found)


def _members(index: Node) -> tuple[Enum, ...]:
    if isinstance(index.sort, EnumSort):
        return index.sort.members
    raise ExpressionError(
        f"{index.sort} has no columns: its members are interchangeable",
        where=here(),
        help=f"declare a variable `per({index.sort}, …)`; `constant(…)` if it never changes",
    )


def _frozen(value: Any) -> Any:
    return frozenset(cast("Set[object]", value)) if isinstance(value, Set) else value


def _column_sort(values: list[Any]) -> tuple[Sort, Callable[[Node], Symbolic]]:
    present = [v for v in values if v is not None]
    if present and all(isinstance(v, frozenset) for v in present) and len(present) == len(values):
        kinds = {type(m) for v in cast("list[frozenset[object]]", present) for m in v}
        if len(kinds) == 1 and issubclass(kind := next(iter(kinds)), Enum):
            return SetSort(EnumSort(kind)), SetOf
    elif all(isinstance(v, bool) for v in values):
        return BOOL, Bool
    elif all(isinstance(v, int) and not isinstance(v, bool | Enum) for v in values):
        return IntSort(min(values), max(values)), Number
    elif present and all(isinstance(v, Enum) and type(v) is type(present[0]) for v in present):
        sort = EnumSort(type(cast("Enum", present[0])))
        return (sort, Term) if len(present) == len(values) else (OptionalSort(sort), Maybe)
    kinds_found = ", ".join(sorted({type(v).__name__ for v in values}))
    raise ExpressionError(
        f"a column must be of one kind for all members; this one has: {kinds_found}",
        where=here(),
        help="return a bool, an int, a member of one enum (or None), or a set of members of one enum",
    )


@overload
def choose(condition: Bool, then: Bool, otherwise: Bool | bool) -> Bool: ...
@overload
def choose(condition: Bool, then: bool, otherwise: Bool) -> Bool: ...
@overload
def choose(condition: Bool, then: Number, otherwise: Number | int) -> Number: ...
@overload
def choose(condition: Bool, then: int, otherwise: Number) -> Number: ...
@overload
def choose(condition: Bool, then: Term[X], otherwise: Term[X] | X) -> Term[X]: ...
@overload
def choose(condition: Bool, then: X, otherwise: Term[X] | X) -> Term[X]: ...
@overload
def choose(
    condition: Bool, then: Maybe[X], otherwise: Maybe[X] | Term[X] | X | None
) -> Maybe[X]: ...
@overload
def choose(condition: Bool, then: Term[X] | X | None, otherwise: Maybe[X]) -> Maybe[X]: ...
@overload
def choose(condition: Bool, then: Term[X], otherwise: None) -> Maybe[X]: ...
@overload
def choose(condition: Bool, then: None, otherwise: Term[X]) -> Maybe[X]: ...
@overload
def choose(condition: Bool, then: SetOf[X], otherwise: SetOf[X] | Set[X]) -> SetOf[X]: ...
@overload
def choose(condition: Bool, then: Set[X], otherwise: SetOf[X]) -> SetOf[X]: ...
@overload
def choose(condition: Bool, then: int, otherwise: int) -> Number: ...
@overload
def choose(condition: Bool, then: R, otherwise: R) -> R: ...
@overload
def choose(condition: Bool, then: QueueOf[S, V], otherwise: QueueOf[S, V]) -> QueueOf[S, V]: ...
@overload
def choose(condition: Bool, then: BagOf[S, V], otherwise: BagOf[S, V]) -> BagOf[S, V]: ...
@overload
def choose(condition: Bool, then: RecordSet[R], otherwise: RecordSet[R]) -> RecordSet[R]: ...
@overload
def choose(condition: Bool, then: MapOf[K, S, V], otherwise: MapOf[K, S, V]) -> MapOf[K, S, V]: ...
def choose(condition: Bool, then: Any, otherwise: Any) -> Any:
    """`then` where the condition holds, else `otherwise`; both are values of one sort."""
    test = lift(condition, BOOL, "the condition of choose(...)")
    hint = _hint(then, otherwise)
    first, second = node_of(then, hint), node_of(otherwise, hint)
    if first is None or second is None:
        bad = then if first is None else otherwise
        raise ExpressionError(
            f"choose(...) is given {bad!r} ({type(bad).__name__})",
            where=here(),
            help=mend(bad, hint)
            if bad is not None
            else "none is chosen against a value: `choose(condition, x, None)`",
        )
    sort = _joined(first.sort, second.sort)
    if sort is None:
        raise ExpressionError(
            f"choose(...) of two sorts: {first.sort} and {second.sort}",
            where=here(),
            help="both values must be of one sort",
        )
    for node in (first, second):
        check_use(node)
    return facade(sort)(apply(Op.IF, sort, test, first, second))


def first_where(members: Iterable[F], holds: Callable[[F], Bool]) -> Maybe[F]:
    """The first of these members of an enum for which a condition holds, or none.

    `first_where(NodeState, lambda s: some(node_state[n] == s for n in Node))` is the state that some node is in.
    """
    listed = list(members)
    if not listed:
        raise ExpressionError(
            "first_where(...) is given no members",
            where=here(),
            help="name an enum, or some members",
        )
    sort = OptionalSort(EnumSort(type(listed[0])))
    found: Node = lift(None, sort, "none")
    for member in reversed(listed):
        test = lift(holds(member), BOOL, "the condition of first_where(...)")
        found = apply(Op.IF, sort, test, lift(member, sort, "a member"), found)
    return Maybe(found)


def _hint(then: object, otherwise: object) -> Sort:
    """The sort that says what a plain None or set is."""
    nodes = [node_of(x, BOOL) for x in (then, otherwise)]
    sort = next((n.sort for n in nodes if n is not None), BOOL)
    if (then is None or otherwise is None) and isinstance(sort, EnumSort | EntitySort):
        return OptionalSort(sort)
    return sort


def _joined(a: Sort, b: Sort) -> Sort | None:
    if isinstance(a, IntSort) and isinstance(b, IntSort):
        return IntSort(min(a.low, b.low), max(a.high, b.high))
    if isinstance(a, SeqSort) and isinstance(b, SeqSort) and fits(a, b):
        return SeqSort(a.element, max(a.capacity, b.capacity))
    if fits(a, b):
        return b
    return a if fits(b, a) else None
