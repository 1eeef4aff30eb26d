"""Initial states: those of which nothing is asked are never listed, the others are sifted cell by cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, cast, overload

from stagewright.spec.ground import GroundNode, GroundOp
from stagewright.spec.ground_eval import evaluate

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


def sifted(choices: Sequence[range], condition: GroundNode) -> Iterator[tuple[int, ...]]:
    """The states that satisfy a condition, in the order of `itertools.product`.

    A conjunct is asked as soon as the cells are chosen that it reads, so that what fails early is not gone on with.
    """
    free = [cell for cell, values in enumerate(choices) if len(values) != 1]
    known = {cell: place for place, cell in enumerate(free, start=1)}  # chosen at that place
    asked: list[list[GroundNode]] = [[] for _ in range(len(free) + 1)]
    for conjunct in condition.args if condition.op is GroundOp.AND else (condition,):
        asked[max((known.get(cell, 0) for cell in cells_read(conjunct)), default=0)].append(
            conjunct
        )
    state = [values[0] if values else 0 for values in choices]

    def chosen_from(place: int) -> Iterator[tuple[int, ...]]:
        so_far = tuple(state)
        if not all(evaluate(conjunct, so_far) for conjunct in asked[place]):
            return
        if place == len(free):
            yield so_far
            return
        for value in choices[free[place]]:
            state[free[place]] = value
            yield from chosen_from(place + 1)

    return chosen_from(0)


def cells_read(node: GroundNode) -> set[int]:
    """The cells of the old state that a node reads."""
    cells: set[int] = set()
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if one.id in seen:
            continue
        seen.add(one.id)
        if one.op is GroundOp.CELL:
            cells.add(one.value)
        waiting += one.args
    return cells
