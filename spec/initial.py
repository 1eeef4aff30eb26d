"""Initial states of which nothing is asked but that each cell starts within its values: never listed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, cast, overload

Cells: TypeAlias = tuple[object, ...]


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
        if not isinstance(state, tuple) or len(cells := cast("Cells", state)) != len(self.choices):
            return False
        return all(value in values for value, values in zip(cells, self.choices, strict=True))

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
