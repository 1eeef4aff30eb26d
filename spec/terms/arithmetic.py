"""Functions of numbers: the least and the greatest of several, and sums over the members of a sort."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar, overload

from stagewright.spec.errors import ExpressionError
from stagewright.spec.nodes import BOOL, Apply, Literal, Node, Op, Quantified, Quantity
from stagewright.spec.scope import MAX_SIZE
from stagewright.spec.sorts import EntitySort, EnumSort, IntSort, SetSort, Sort
from stagewright.spec.source import Source, here
from stagewright.spec.terms.binding import Round, quantified_rounds
from stagewright.spec.terms.conditions_and_numbers import Number
from stagewright.spec.terms.intervals import (
    Interval,
    check_width,
    greatest_of,
    least_of,
    sum_of,
)
from stagewright.spec.terms.symbolic import ANY_INT, lift

_NUMBER = TypeVar("_NUMBER", bound=Number | int)


@dataclass(frozen=True)
class _Fold:
    """One way to make a number of several."""

    name: str
    op: Op
    quantity: Quantity
    interval: Callable[[Interval, Interval], Interval]


_LEAST = _Fold("least", Op.LEAST, Quantity.LEAST, least_of)
_GREATEST = _Fold("greatest", Op.GREATEST, Quantity.GREATEST, greatest_of)
_TOTAL = _Fold("total", Op.ADD, Quantity.TOTAL, sum_of)


def total(numbers: Iterable[Number | int]) -> Number:
    """The sum of a number over all members: `total(self.coins[n] for n in Node)`; of no member: 0.

    A loop over a set adds up its members alone: `total(self.coins[n] for n in self.paid)`.
    """
    where = here()
    closed = [
        _closed(_TOTAL, round_, _literal(0), where) for round_ in _numbers(numbers, _TOTAL.name)
    ]
    return Number(_joined(_TOTAL, closed, where)) if closed else Number(_literal(0))


@overload
def least(first: Number | int, *others: Number | int) -> Number: ...
@overload
def least(first: Iterable[_NUMBER], *, default: Number | int | None = ...) -> Number: ...
def least(
    first: Number | int | Iterable[_NUMBER],
    *others: Number | int,
    default: Number | int | None = None,
) -> Number:
    """The smallest of some numbers, `least(a, b)`, or over all members: `least(self.at[n] for n in Node)`.

    A loop over a set may find no member: then `default` is the result, and has to be given.
    """
    return _extreme(_LEAST, first, others, default)


@overload
def greatest(first: Number | int, *others: Number | int) -> Number: ...
@overload
def greatest(first: Iterable[_NUMBER], *, default: Number | int | None = ...) -> Number: ...
def greatest(
    first: Number | int | Iterable[_NUMBER],
    *others: Number | int,
    default: Number | int | None = None,
) -> Number:
    """The largest of some numbers, `greatest(a, b)`, or over all members: `greatest(self.at[n] for n in Node)`.

    A loop over a set may find no member: then `default` is the result, and has to be given.
    """
    return _extreme(_GREATEST, first, others, default)


def _extreme(
    fold: _Fold,
    first: Number | int | Iterable[_NUMBER],
    others: tuple[Number | int, ...],
    default: Number | int | None,
) -> Number:
    where = here()
    if isinstance(first, Number | int):
        return Number(_joined(fold, [_number(n, fold.name) for n in (first, *others)], where))
    rounds = list(_numbers(first, fold.name))
    if not rounds:
        raise ExpressionError(
            f"{fold.name}(...) of nothing", where=where, help="give it numbers, or a generator"
        )
    restricted = [r for r in rounds if any(b.condition is not None for b in r.loops)]
    if not restricted:
        return Number(_joined(fold, [_closed(fold, r, None, where) for r in rounds], where))
    if default is None or len(rounds) > 1:
        raise ExpressionError(
            f"{fold.name}(...) over a set, which may be empty, has no default",
            where=where,
            help=f"write `{fold.name}((… for x in …), default=0)`",
        )
    return Number(_of_members(fold, rounds[0], _number(default, fold.name), where))


def _of_members(fold: _Fold, round_: Round, default: Node, where: Source) -> Node:
    """The extreme over those for whom the loops' conditions hold; `default` if there are none."""
    low, high = _interval(round_.body)
    neutral = _literal(high if fold is _LEAST else low)
    found = _closed(fold, round_, neutral, where)
    any_member: Node = Apply(Op.AND, tuple(_conditions(round_)), BOOL, where)
    for binding in reversed(round_.loops):
        any_member = Quantified(Quantity.SOME, binding.bound, any_member, BOOL, where)
    joined = IntSort(
        min(_interval(found)[0], _interval(default)[0]),
        max(_interval(found)[1], _interval(default)[1]),
    )
    return Apply(Op.IF, (any_member, found, default), joined, where)


def _conditions(round_: Round) -> list[Node]:
    return [b.condition for b in round_.loops if b.condition is not None]


def _closed(fold: _Fold, round_: Round, neutral: Node | None, where: Source) -> Node:
    """The number over all rounds of its loops; `neutral` counts where a condition does not hold."""
    node = round_.body
    conditions = _conditions(round_)
    if conditions:
        assert neutral is not None
        (low, high), (other, _) = _interval(node), _interval(neutral)
        asked = conditions[0] if len(conditions) == 1 else Apply(Op.AND, tuple(conditions), BOOL)
        sort = IntSort(min(low, other), max(high, other))
        node = Apply(Op.IF, (asked, node, neutral), sort, where)
    for binding in reversed(round_.loops):
        interval = _interval(node)
        if fold is _TOTAL:
            interval = _times(interval, binding.bound.sort)
            check_width(interval, where)
        node = Quantified(fold.quantity, binding.bound, node, IntSort(*interval), where)
    return node


def _times(interval: Interval, sort: Sort) -> Interval:
    """The bounds of a sum over a sort; that of an entity may have any size that a scope allows."""
    low, high = interval
    match sort:
        case EnumSort():
            size = len(sort.members)
        case IntSort():
            size = sort.high - sort.low + 1
        case SetSort(EnumSort() as element):
            size = 1 << len(element.members)
        case EntitySort():
            return min(low, low * MAX_SIZE), max(high, high * MAX_SIZE)
        case _:
            size = 2
    return low * size, high * size


def _joined(fold: _Fold, nodes: list[Node], where: Source) -> Node:
    if len(nodes) == 1:
        return nodes[0]
    if fold is _TOTAL:
        return reduce(lambda a, b: _applied(fold, (a, b), where), nodes)
    return _applied(fold, tuple(nodes), where)


def _applied(fold: _Fold, nodes: tuple[Node, ...], where: Source) -> Node:
    interval = reduce(fold.interval, map(_interval, nodes))
    check_width(interval, where)
    return Apply(fold.op, nodes, IntSort(*interval), where)


def _numbers(numbers: Iterable[Number | int], name: str) -> Iterable[Round]:
    return quantified_rounds(numbers, f"{name}(...)", lambda n: _number(n, name), "numbers")


def _number(value: object, name: str) -> Node:
    if isinstance(value, int) and not isinstance(value, bool):
        return _literal(value)
    return lift(value, ANY_INT, f"a number of {name}(...)")


def _literal(value: int) -> Node:
    return Literal(value, IntSort(value, value))


def _interval(node: Node) -> Interval:
    assert isinstance(node.sort, IntSort)
    return node.sort.low, node.sort.high
