"""Leaves out of a list what a failure does not need.

ddmin: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

P = TypeVar("P")


def minimize(parts: Sequence[P], fails: Callable[[list[P]], bool]) -> list[P]:
    """Parts of which none can be left out without `fails` of the others being false."""
    left, size = list(parts), 2
    while left:
        step = max(1, len(left) // size)
        for start in range(0, len(left), step):
            kept = left[:start] + left[start + step :]
            if fails(kept):
                left, size = kept, max(size - 1, 2)
                break
        else:
            if step == 1:
                return left
            size *= 2
    return left
