"""Where each cell lies in the words of a packed state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground import Cell, GroundModel
from stagewright.spec.grounding.initial import Independent, Satisfying

Words = NDArray[np.uint64]
"""Packed states, shape (words, states): row w holds word w of every state."""

_WORD_BITS = 64
_ROWS = 1 << 16  # states converted at once
_MAX_CELL_BITS = 62  # values are computed with as signed 64-bit integers


@dataclass(frozen=True)
class Place:
    """A cell's bits: `bits` of them from `shift` upwards in word `word`; none for a constant cell."""

    word: int
    shift: int
    bits: int

    @property
    def mask(self) -> int:
        """Ones in the lowest `bits` bits."""
        return (1 << self.bits) - 1


@dataclass(frozen=True)
class Layout:
    """The place of every cell, by its index. A cell's lowest value is packed as 0."""

    cells: tuple[Cell, ...]
    places: tuple[Place, ...]
    words: int

    def pack(self, states: Sequence[tuple[int, ...]]) -> Words:
        """Pack states given as tuples of cell values."""
        packed = np.zeros((self.words, len(states)), dtype=np.uint64)
        if isinstance(states, Independent):
            self._pack_independent(states, packed)
            return packed
        if isinstance(states, Satisfying):
            self._pack_columns(states, packed)
            return packed
        if isinstance(states, Packed):
            return states.words
        for first in range(0, len(states), _ROWS):
            rows = np.array(states[first : first + _ROWS], dtype=np.int64)
            part = packed[:, first : first + _ROWS]
            for cell, place in zip(self.cells, self.places, strict=True):
                value = (rows[:, cell.index] - cell.low).astype(np.uint64)
                part[place.word] |= value << np.uint64(place.shift)
        return packed

    def _pack_independent(self, states: Independent, packed: Words) -> None:
        """Pack a product: each cell runs through its values, the last cell the fastest."""
        inner = 1  # states between two values of the cell
        for cell, place in zip(reversed(self.cells), reversed(self.places), strict=True):
            values = states.choices[cell.index]
            shifted = np.array([v - cell.low << place.shift for v in values], dtype=np.uint64)
            # A view with the cell's values along the middle axis.
            packed[place.word].reshape(-1, len(values), inner)[:] |= shifted[:, np.newaxis]
            inner *= len(values)

    def _pack_columns(self, states: Satisfying, packed: Words) -> None:
        for cell, place, column in zip(self.cells, self.places, states.columns, strict=True):
            if isinstance(column, int):
                packed[place.word] |= np.uint64(column - cell.low << place.shift)
            else:
                value = (column.astype(np.int64) - cell.low).astype(np.uint64)
                packed[place.word] |= value << np.uint64(place.shift)

    def unpack(self, states: Words, column: int) -> tuple[int, ...]:
        """The cell values of one packed state."""
        words = [int(word) for word in states[:, column]]
        return tuple(
            cell.low + (words[place.word] >> place.shift & place.mask)
            for cell, place in zip(self.cells, self.places, strict=True)
        )


class Packed(Sequence[tuple[int, ...]]):
    """States that are unpacked only where one is asked for."""

    def __init__(self, layout: Layout, words: Words) -> None:
        self.words = words
        self._layout = layout

    def __len__(self) -> int:
        return int(self.words.shape[1])

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        if isinstance(index, slice):
            return Packed(self._layout, self.words[:, index])
        return self._layout.unpack(self.words, range(len(self))[index])


def layout_for(model: GroundModel) -> Layout:
    """The layout of a model with which engines can compute: every number in it fits 64 bits.

    Raises:
        ScopeError: a cell has too many values, or a sum may be too large.
    """
    layout = layout_of(model.cells)
    low = min(node.low for node in model.builder.nodes)
    high = max(node.high for node in model.builder.nodes)
    if low < -(1 << _WORD_BITS - 1) or high >= 1 << _WORD_BITS - 1:
        wide = max(model.cells, key=lambda cell: max(abs(cell.low), abs(cell.high)))
        raise ScopeError(
            f"numbers add up to values in {low} .. {high}, which 64 bits do not hold",
            help=f"narrow the bounds of {wide.name} ({wide.low} .. {wide.high}), or use `prove`",
        )
    return layout


def layout_of(cells: Sequence[Cell]) -> Layout:
    """Cells side by side in the order they are declared; none straddles two words.

    Raises:
        ScopeError: a cell has too many values for the engine.
    """
    places: list[Place] = []
    word = used = 0
    for cell in cells:
        bits = (cell.size - 1).bit_length()
        if bits > _MAX_CELL_BITS:
            raise ScopeError(
                f"{cell.name} ranges over {cell.low} .. {cell.high}, too wide for the search",
                help=f"narrow its bounds to fewer than 2**{_MAX_CELL_BITS} values",
            )
        if used + bits > _WORD_BITS:
            word, used = word + 1, 0
        places.append(Place(word, used if bits else 0, bits))
        used += bits
    return Layout(tuple(cells), tuple(places), word + 1)
