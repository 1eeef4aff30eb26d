"""Small decisions drawn from Hypothesis, so that failing machines shrink."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices:
    """Draws picks and chances; simplest first, so that shrinking moves to the front of every list."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._serial = 0

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, which must not be empty; shrinks towards the first."""
        return options[self.number(0, len(options) - 1)]

    def number(self, low: int, high: int) -> int:
        """A number in `low .. high`; shrinks towards `low`."""
        return low if low == high else self._draw(st.integers(low, high))

    def chance(self, percent: int) -> bool:
        """True in about `percent` of a hundred draws; shrinks towards False."""
        return self.number(0, 99) >= 100 - percent

    def serial(self) -> int:
        """A number that no other bound of this definition has."""
        self._serial += 1
        return self._serial
