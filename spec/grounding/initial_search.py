"""Finds initial states: cell after cell, whole columns of candidates at once.

A cell that a condition determines (`x == y + 1`) is computed; the others are chosen in an order in which
conditions can be decided early. Of a condition some of whose cells are still open, the least and the
greatest possible value are computed: a candidate goes as soon as the condition cannot become true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.grounding.ground import GroundNode, GroundOp
from stagewright.spec.grounding.ground_eval import cells_of, conjuncts
from stagewright.spec.grounding.initial import Going

Column: TypeAlias = int | NDArray[Any]
"""A cell's value in each candidate; an integer if it is the same in all."""

_BLOCK = 1 << 16  # candidates looked at together
_MOST_LOOKED_AT = 1 << 28
_MOST_BYTES = 1 << 31  # of the states found
_LISTED = 1 << 16  # values of one cell that are tried one by one


class TooManyError(Exception):
    """There are more initial states, or candidates, than a search should list."""


@dataclass(frozen=True)
class _Stage:
    """One cell that gets its value, and the conditions that are looked at then."""

    cell: int
    values: NDArray[Any]  # to choose from; those allowed, if it is determined
    allowed: range
    determined: GroundNode | None
    due: tuple[GroundNode, ...]


@dataclass
class _Block:
    """Candidates: the columns of the cells that have their values."""

    stage: int
    rows: int
    columns: dict[int, NDArray[Any]]


class InitialSearch:
    """The search for all choices of one value a cell that satisfy a condition."""

    def __init__(self, choices: Sequence[range], condition: GroundNode, most: int) -> None:
        self._choices = list(choices)
        self._parts = list(conjuncts(condition))
        self._fixed = {i: values.start for i, values in enumerate(choices) if len(values) == 1}
        self._values: dict[int, NDArray[Any]] = {}
        self._most = most
        self._done: list[_Block] = []
        self.found = 0
        self._looked_at = 0

    def run(self, going: Going | None = None) -> bool:
        """Search; False if `going` said to stop.

        Raises:
            TooManyError: there are too many of them, or too many candidates.
        """
        if not all(map(len, self._choices)) or not self._narrowed():
            return True
        stages = list(self._stages())
        width = sum(_narrow(s.allowed).itemsize for s in stages)
        self._most = min(self._most, _MOST_BYTES // max(1, width))
        waiting = [_Block(0, 1, {})]
        while waiting:
            if going is not None and not going(self._looked_at, self.found):
                return False
            block = waiting.pop()
            if block.stage == len(stages):
                self.found += block.rows
                self._done.append(block)
                if self.found > self._most:
                    raise TooManyError
                continue
            waiting += reversed(list(self._extended(block, stages[block.stage])))
            if self._looked_at > _MOST_LOOKED_AT:
                raise TooManyError
        return True

    def columns(self) -> tuple[Column, ...]:
        """By cell, its values in the states found, which are in the order of `itertools.product`."""
        joined: dict[int, NDArray[Any]] = {}
        for cell in self._done[0].columns if self._done else ():
            joined[cell] = np.concatenate([b.columns[cell] for b in self._done])
        self._done.clear()
        order = self._order(joined) if list(joined) != sorted(joined) else None
        return tuple(
            self._fixed.get(cell, self._choices[cell].start)
            if cell not in joined
            else joined[cell]
            if order is None
            else joined[cell][order]
            for cell in range(len(self._choices))
        )

    def _order(self, columns: dict[int, NDArray[Any]]) -> NDArray[np.int64]:
        """The order of the states, from as few sort keys as hold the digits of their cells."""
        keys: list[NDArray[np.uint64]] = []
        room = 0
        for cell in sorted(columns):
            values = self._choices[cell]
            digit = (columns[cell].astype(np.int64) - values.start).astype(np.uint64)
            if not keys or room // len(values) == 0:
                keys.append(digit)
                room = (1 << 64) // len(values)
            else:
                keys[-1] = keys[-1] * np.uint64(len(values)) + digit
                room //= len(values)
        return np.lexsort(keys[::-1])

    def _narrowed(self) -> bool:
        """Decide the conditions on one cell alone for each of its values; False if nothing is left."""
        rest: list[GroundNode] = []
        for part in self._parts:
            cells = cells_of(part) - set(self._fixed)
            if len(cells) > 1:
                rest.append(part)
                continue
            if not cells:
                if not _Values(self._fixed, self._choices).bounds(part)[0]:
                    return False
                continue
            (cell,) = cells
            if len(self._choices[cell]) > _LISTED:
                rest.append(part)
                continue
            values = self._values_of(cell)
            holds = _Values({**self._fixed, cell: values}, self._choices).bounds(part)[0]
            self._values[cell] = values[
                np.broadcast_to(np.asarray(holds, dtype=bool), values.shape)
            ]
            if not self._values[cell].size:
                return False
        self._parts = rest
        for cell, values in self._values.items():
            self._choices[cell] = range(int(values[0]), int(values[-1]) + 1)
        known = len(self._fixed)
        self._fixed |= {c: int(v[0]) for c, v in self._values.items() if v.size == 1}
        # What is known now may leave one cell, or none, in a condition that had several.
        return len(self._fixed) == known or self._narrowed()

    def _values_of(self, cell: int) -> NDArray[Any]:
        if cell not in self._values:
            values = self._choices[cell]
            if len(values) > self._most:
                raise TooManyError
            self._values[cell] = np.arange(values.start, values.stop, dtype=_narrow(values))
        return self._values[cell]

    def _stages(self) -> Iterator[_Stage]:
        """The cells in the order in which they get their values."""
        cells = {part.id: cells_of(part) for part in self._parts}
        open_parts = {part.id: part for part in self._parts}
        left = {i for i in range(len(self._choices)) if i not in self._fixed}
        while left:
            cell, by = self._next(left, open_parts, cells)
            left.discard(cell)
            due = [part for part in open_parts.values() if cell in cells[part.id]]
            for part in due:
                if not cells[part.id] & left:
                    del open_parts[part.id]
            determined = None if by is None else _equal_to(by, cell)
            values = np.empty(0) if determined is not None else self._values_of(cell)
            asked = tuple(part for part in due if part is not by)
            yield _Stage(cell, values, self._choices[cell], determined, asked)

    def _next(
        self, left: set[int], parts: dict[int, GroundNode], cells: dict[int, frozenset[int]]
    ) -> tuple[int, GroundNode | None]:
        """The cell to choose next, and the equation that determines it, if one does.

        Else a cell of the condition of which the fewest choices are open.
        """
        best: tuple[float, int] | None = None
        for part in parts.values():
            unknown = cells[part.id] & left
            if len(unknown) == 1 and cells[part.id] != unknown:
                (cell,) = unknown
                if _equal_to(part, cell) is not None and cell not in self._values:
                    return cell, part
            size = sum(math.log2(len(self._choices[c])) for c in unknown)
            if best is None or (size, min(unknown)) < best:
                best = (size, min(unknown))
        return (min(left) if best is None else best[1]), None

    def _extended(self, block: _Block, stage: _Stage) -> Iterator[_Block]:
        """The candidates with one cell more, without those that cannot become initial states."""
        if stage.determined is not None:
            known = _Values({**self._fixed, **block.columns}, self._choices)
            found = np.broadcast_to(np.asarray(known.bounds(stage.determined)[0]), (block.rows,))
            inside = (found >= stage.allowed.start) & (found < stage.allowed.stop)
            columns = {c: column[inside] for c, column in block.columns.items()}
            columns[stage.cell] = found[inside].astype(_narrow(stage.allowed))
            yield from self._asked(stage, block.stage + 1, columns)
            return
        each = max(1, _BLOCK // stage.values.size)
        for first in range(0, block.rows, each):
            part = {c: column[first : first + each] for c, column in block.columns.items()}
            rows = min(each, block.rows - first)
            longer = {c: np.repeat(column, stage.values.size) for c, column in part.items()}
            longer[stage.cell] = np.tile(stage.values, rows)
            yield from self._asked(stage, block.stage + 1, longer)

    def _asked(
        self, stage: _Stage, after: int, columns: dict[int, NDArray[Any]]
    ) -> Iterator[_Block]:
        """Those of the candidates of which no condition is false."""
        rows = columns[stage.cell].size
        self._looked_at += rows
        if stage.due and rows:
            known = _Values({**self._fixed, **columns}, self._choices)
            keep = np.ones(rows, dtype=bool)
            for part in stage.due:
                keep &= np.asarray(known.bounds(part)[1], dtype=bool)
            if not keep.all():
                columns = {c: column[keep] for c, column in columns.items()}
                rows = int(keep.sum())
        if rows:
            yield _Block(after, rows, columns)


@dataclass
class _Values:
    """The least and the greatest value that expressions can have, once some cells have their values."""

    known: dict[int, Any]
    choices: Sequence[range]
    _seen: dict[int, tuple[Any, Any]] = field(default_factory=dict[int, tuple[Any, Any]])

    def bounds(self, node: GroundNode) -> tuple[Any, Any]:
        """Both are one and the same object where the value is known."""
        if node.id not in self._seen:
            self._seen[node.id] = self._bounds(node)
        return self._seen[node.id]

    def _bounds(self, node: GroundNode) -> tuple[Any, Any]:
        if node.op is GroundOp.CONST:
            return node.value, node.value
        if node.op is GroundOp.CELL:
            return self._cell(node)
        args = [self.bounds(arg) for arg in node.args]
        if all(low is high for low, high in args):
            value = _computed(node, [low for low, _ in args])
            return value, value
        return _between(node, args)

    def _cell(self, node: GroundNode) -> tuple[Any, Any]:
        if node.value not in self.known:
            values = self.choices[node.value]
            return values.start, values.stop - 1
        value = self.known[node.value]
        if not isinstance(value, int):
            value = value.astype(bool if node.boolean else np.int64)
        return value, value


def _computed(node: GroundNode, args: list[Any]) -> Any:
    """The value of an operation, from those of its arguments."""
    match node.op:
        case GroundOp.NOT:
            return np.logical_not(args[0])
        case GroundOp.AND:
            return _joined(np.logical_and, args)
        case GroundOp.OR:
            return _joined(np.logical_or, args)
        case GroundOp.IF:
            return _chosen(args[0], _number(args[1]), _number(args[2]))
        case GroundOp.TABLE:
            return np.asarray(node.table)[_number(args[0])]
        case GroundOp.CONST | GroundOp.CELL | GroundOp.NEXT:
            raise AssertionError(f"{node.op} is not an operation on the old state")
        case _:
            return _TWO[node.op](_number(args[0]), _number(args[1]))


_TWO: Mapping[GroundOp, Callable[[Any, Any], Any]] = {
    GroundOp.EQ: np.equal,
    GroundOp.LT: np.less,
    GroundOp.LE: np.less_equal,
    GroundOp.ADD: np.add,
    GroundOp.SUB: np.subtract,
    GroundOp.MUL: np.multiply,
    GroundOp.DIV: np.floor_divide,
    GroundOp.MOD: np.remainder,
    GroundOp.MIN: np.minimum,
    GroundOp.MAX: np.maximum,
}


def _between(node: GroundNode, args: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Bounds of an operation, from those of its arguments."""
    low, high = [a for a, _ in args], [b for _, b in args]
    match node.op:
        case GroundOp.NOT:
            return np.logical_not(high[0]), np.logical_not(low[0])
        case GroundOp.AND:
            return _joined(np.logical_and, low), _joined(np.logical_and, high)
        case GroundOp.OR:
            return _joined(np.logical_or, low), _joined(np.logical_or, high)
        case GroundOp.EQ:
            met = np.less_equal(low[0], high[1]) & np.less_equal(low[1], high[0])
            sure = np.equal(low[0], high[0]) & np.equal(low[1], high[1])
            return met & sure, met
        case GroundOp.LT:
            return np.less(high[0], low[1]), np.less(low[0], high[1])
        case GroundOp.LE:
            return np.less_equal(high[0], low[1]), np.less_equal(low[0], high[1])
        case GroundOp.ADD:
            return _number(low[0]) + _number(low[1]), _number(high[0]) + _number(high[1])
        case GroundOp.SUB:
            return _number(low[0]) - _number(high[1]), _number(high[0]) - _number(low[1])
        case GroundOp.IF:
            (_, then, other), (_, most, last) = map(_number, low), map(_number, high)
            sure, possible = low[0], high[0]
            least, greatest = np.minimum(then, other), np.maximum(most, last)
            return (
                _chosen(sure, then, _chosen(possible, least, other)),
                _chosen(sure, most, _chosen(possible, greatest, last)),
            )
        case _:
            return node.low, node.high


def _chosen(condition: Any, then: Any, otherwise: Any) -> NDArray[Any]:
    return np.where(np.asarray(condition), np.asarray(then), np.asarray(otherwise))


def _joined(operation: Any, args: list[Any]) -> Any:
    joined = args[0]
    for arg in args[1:]:
        joined = operation(joined, arg)
    return joined


def _number(value: Any) -> Any:
    """A condition's value as a number: NumPy's booleans do not add."""
    return value if isinstance(value, int) else np.asarray(value, dtype=np.int64)


def _narrow(values: range) -> np.dtype[Any]:
    """The narrowest type that holds the values."""
    return np.promote_types(np.min_scalar_type(values.start), np.min_scalar_type(values.stop - 1))


def _equal_to(part: GroundNode, cell: int) -> GroundNode | None:
    """What the cell equals, if that is what the condition says."""
    if part.op is not GroundOp.EQ:
        return None
    for one, other in (part.args, part.args[::-1]):
        if one.op is GroundOp.CELL and one.value == cell and cell not in cells_of(other):
            return other
    return None
