"""Initial states: listed by sifting, or never listed where nothing is asked of them but a value a cell."""

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


def sifted(
    choices: Sequence[range], condition: GroundNode, most: int
) -> tuple[tuple[int, ...], ...] | None:
    """The states that satisfy a condition, in the order of `itertools.product`; None if too many are looked at.

    Cell after cell: each part of the condition is asked as soon as all its cells have their values.
    """
    due: dict[int, list[GroundNode]] = {}
    for part in _conjuncts(condition):
        due.setdefault(_last_cell(part), []).append(part)
    if not all(evaluate(part, ()) for part in due.get(-1, [])):
        return ()
    states: list[tuple[int, ...]] = [()]
    for cell, values in enumerate(choices):
        if len(states) * len(values) > most:
            return None
        asked = due.get(cell, [])
        longer = ((*state, value) for state in states for value in values)
        states = [s for s in longer if all(evaluate(part, s) for part in asked)]
    return tuple(states)


def _conjuncts(node: GroundNode) -> Iterator[GroundNode]:
    if node.op is not GroundOp.AND:
        yield node
        return
    for part in node.args:
        yield from _conjuncts(part)


def _last_cell(node: GroundNode) -> int:
    """The highest cell that a condition reads; -1 if it reads none."""
    seen: set[int] = set()
    todo, last = [node], -1
    while todo:
        one = todo.pop()
        if one.id in seen:
            continue
        seen.add(one.id)
        if one.op is GroundOp.CELL:
            last = max(last, one.value)
        todo += one.args
    return last
