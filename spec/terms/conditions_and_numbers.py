"""The facades of conditions and of numbers: their operators build the expression tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NoReturn

from stagewright.spec.errors import ExpressionError
from stagewright.spec.nodes import BOOL, Node, Op
from stagewright.spec.sorts import IntSort
from stagewright.spec.source import here
from stagewright.spec.terms.intervals import (
    Interval,
    check_width,
    difference_of,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
)
from stagewright.spec.terms.symbolic import ANY_INT, Symbolic, apply, lift


def _side(other: object, sign: str) -> Node:
    """What stands at one side of `&` or `|`; a part of a comparison was meant to be the whole."""
    part = isinstance(other, Enum) or (isinstance(other, Symbolic) and other.node.sort != BOOL)
    mend = "parenthesise comparisons, `(a == b) & (c == d)`: `&`, `|` and `~` bind tighter"
    return lift(other, BOOL, f"one side of `{sign}`", help=mend if part else "")


class Bool(Symbolic):
    """A symbolic condition."""

    __slots__ = ()

    def __and__(self, other: Bool | bool) -> Bool:
        return Bool(apply(Op.AND, BOOL, self.node, _side(other, "&")))

    __rand__ = __and__

    def __or__(self, other: Bool | bool) -> Bool:
        return Bool(apply(Op.OR, BOOL, self.node, _side(other, "|")))

    __ror__ = __or__

    def __invert__(self) -> Bool:
        return Bool(apply(Op.NOT, BOOL, self.node))

    def __eq__(self, other: Bool | bool) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, lift(other, BOOL, "the right side of `==`")))

    def __ne__(self, other: Bool | bool) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def implies(self, other: Bool | bool) -> Bool:
        """False only if this holds and `other` does not."""
        return ~self | other


class Number(Symbolic):
    """A symbolic integer."""

    __slots__ = ()

    def __eq__(self, other: Number | int) -> Bool:  # type: ignore[override]
        return Bool(apply(Op.EQ, BOOL, self.node, self._lift(other, "==")))

    def __ne__(self, other: Number | int) -> Bool:  # type: ignore[override]
        return ~(self == other)

    def __lt__(self, other: Number | int) -> Bool:
        return Bool(apply(Op.LT, BOOL, self.node, self._lift(other, "<")))

    def __le__(self, other: Number | int) -> Bool:
        return Bool(apply(Op.LE, BOOL, self.node, self._lift(other, "<=")))

    def __gt__(self, other: Number | int) -> Bool:
        return Bool(apply(Op.LT, BOOL, self._lift(other, ">"), self.node))

    def __ge__(self, other: Number | int) -> Bool:
        return Bool(apply(Op.LE, BOOL, self._lift(other, ">="), self.node))

    def __add__(self, other: Number | int) -> Number:
        return _computed(Op.ADD, self.node, self._lift(other, "+"))

    __radd__ = __add__

    def __sub__(self, other: Number | int) -> Number:
        return _computed(Op.SUB, self.node, self._lift(other, "-"))

    def __rsub__(self, other: int) -> Number:
        return _computed(Op.SUB, self._lift(other, "-"), self.node)

    def __neg__(self) -> Number:
        return 0 - self

    def __mul__(self, other: Number | int) -> Number:
        return _computed(Op.MUL, self.node, self._lift(other, "*"))

    def __rmul__(self, other: int) -> Number:
        return _computed(Op.MUL, self._lift(other, "*"), self.node)

    def __floordiv__(self, other: Number | int) -> Number:
        """The quotient, rounded down: `-3 // 2` is -2, as in Python and TLA+. The divisor is positive."""
        return _computed(Op.DIV, self.node, self._lift(other, "//"))

    def __rfloordiv__(self, other: int) -> Number:
        return _computed(Op.DIV, self._lift(other, "//"), self.node)

    def __mod__(self, other: Number | int) -> Number:
        """The remainder, never negative: `-3 % 2` is 1, as in Python and TLA+. The divisor is positive."""
        return _computed(Op.MOD, self.node, self._lift(other, "%"))

    def __rmod__(self, other: int) -> Number:
        return _computed(Op.MOD, self._lift(other, "%"), self.node)

    def __truediv__(self, _other: object) -> NoReturn:
        raise ExpressionError(
            "`/` makes fractions, and numbers here are whole",
            where=here(),
            help="write `//`, which rounds down",
        )

    def __index__(self) -> NoReturn:
        raise ExpressionError(
            "a symbolic number cannot be used as a Python index or in range(...)",
            where=here(),
            help="make it a parameter of the action, or compare it with `==`",
        )

    def _lift(self, other: object, operator: str) -> Node:
        if isinstance(other, bool):
            raise ExpressionError(
                f"`{operator}` compares a number with {other!r}",
                where=here(),
                help="write a number",
            )
        where = f"the other side of `{operator}`"
        return lift(other, IntSort(other, other) if isinstance(other, int) else ANY_INT, where)


_INTERVALS: Mapping[Op, tuple[str, Callable[[Interval, Interval], Interval]]] = {
    Op.ADD: ("+", sum_of),
    Op.SUB: ("-", difference_of),
    Op.MUL: ("*", product_of),
    Op.DIV: ("//", quotient_of),
    Op.MOD: ("%", remainder_of),
}


def _computed(op: Op, left: Node, right: Node) -> Number:
    """A number that is computed from two others, with the bounds that follow from theirs."""
    sign, interval = _INTERVALS[op]
    if op in {Op.DIV, Op.MOD} and _range(right)[0] < 1:
        raise ExpressionError(
            f"the divisor of `{sign}` is {_bounds_of(right)}, which is not always positive",
            where=here(),
            help=f"divide by a positive number, or write `{sign} greatest(1, …)`",
        )
    bounds = interval(_range(left), _range(right))
    check_width(bounds, here())
    return Number(apply(op, IntSort(*bounds), left, right))


def _bounds_of(node: Node) -> str:
    low, high = _range(node)
    return str(low) if low == high else f"a number in {node.sort}"


def _range(node: Node) -> Interval:
    assert isinstance(node.sort, IntSort)
    return node.sort.low, node.sort.high
