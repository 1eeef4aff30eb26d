"""Initial states of which nothing is asked but that each cell starts within its values: never listed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import overload


@dataclass(frozen=True)
class Independent(Sequence[tuple[int, ...]]):
    """Every choice of one value a cell, in the order of `itertools.product`: the last cell first.

    `choices` has, by cell, the values that it may start with.
    """

    choices: tuple[range, ...]

    def __len__(self) -> int:
        return math.prod(map(len, self.choices))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(*self.choices)

    def __contains__(self, state: object) -> bool:
        return (
            isinstance(state, tuple)
            and len(state) == len(self.choices)
            and all(value in values for value, values in zip(state, self.choices, strict=True))
        )

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        rest = range(len(self))[index]
        state: list[int] = []
        for values in reversed(self.choices):
            rest, digit = divmod(rest, len(values))
            state.append(values[digit])
        return tuple(reversed(state))
