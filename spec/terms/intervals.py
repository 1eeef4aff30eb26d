"""Bounds of computed numbers: the smallest interval that holds every result, from those of the operands.

Both the sorts of a definition's expressions and the ranges of its ground form come from here. Quotients
and remainders are Python's and TLA+'s: rounded down, and the remainder has no sign. Divisors are positive.
"""

from __future__ import annotations

from stagewright.spec.errors import ExpressionError
from stagewright.spec.source import Source

Interval = tuple[int, int]
"""The lowest and the highest value, both included."""

WIDEST = 1 << 62
"""No computed number may be further from zero: every backend holds numbers in 64 bits."""


def sum_of(a: Interval, b: Interval) -> Interval:
    """The bounds of `x + y`."""
    return a[0] + b[0], a[1] + b[1]


def difference_of(a: Interval, b: Interval) -> Interval:
    """The bounds of `x - y`."""
    return a[0] - b[1], a[1] - b[0]


def product_of(a: Interval, b: Interval) -> Interval:
    """The bounds of `x * y`."""
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def quotient_of(a: Interval, b: Interval) -> Interval:
    """The bounds of `x // y`, for `y >= 1`."""
    corners = [x // y for x in a for y in b]
    return min(corners), max(corners)


def remainder_of(a: Interval, b: Interval) -> Interval:
    """The bounds of `x % y`, for `y >= 1`."""
    if a[0] >= 0:
        return (a[0] if a[1] < b[0] else 0), min(a[1], b[1] - 1)
    return 0, b[1] - 1


def least_of(a: Interval, b: Interval) -> Interval:
    """The bounds of the smaller of two numbers."""
    return min(a[0], b[0]), min(a[1], b[1])


def greatest_of(a: Interval, b: Interval) -> Interval:
    """The bounds of the larger of two numbers."""
    return max(a[0], b[0]), max(a[1], b[1])


def check_width(interval: Interval, where: Source | None) -> None:
    """Refuse numbers that 64 bits may not hold.

    Raises:
        DefinitionError: the bounds are wider than `WIDEST`; names the expression's place.
    """
    if interval[0] < -WIDEST or interval[1] > WIDEST:
        reached = max(-interval[0], interval[1])
        raise ExpressionError(
            f"this number may be as large as {reached:,}, which does not fit in 64 bits",
            where=where,
            help="give the variables that it is computed from narrower bounds",
        )
