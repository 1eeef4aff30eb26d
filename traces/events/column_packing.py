"""Packs columns of whole numbers for a file or a shuffle: each becomes as narrow as its values allow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[Any]

_KINDS = (np.uint8, np.uint16, np.uint32)


class Packed(NamedTuple):
    """A column of int64 values: `low` and what each is more than that."""

    low: int
    more: Ints


def packed(column: Ints) -> Packed:
    """An int64 column, packed."""
    if not len(column):
        return Packed(0, np.zeros(0, np.uint8))
    column = np.ascontiguousarray(column)
    low, high = int(column.min()), int(column.max())
    for kind in _KINDS:
        if high - low <= np.iinfo(kind).max:
            return Packed(low, (column - low).astype(kind))
    return Packed(0, column)


def unpacked(column: Packed) -> Ints:
    """The column as it was."""
    return column.more.astype(np.int64) + column.low


def packed_table(table: Ints) -> tuple[Packed, ...]:
    """The columns of an int64 table, packed."""
    return tuple(packed(table[:, i]) for i in range(table.shape[1]))


def unpacked_table(columns: tuple[Packed, ...]) -> Ints:
    """The table as it was."""
    table = np.empty((len(columns[0].more), len(columns)), np.int64)
    for i, column in enumerate(columns):
        np.add(column.more, column.low, out=table[:, i], casting="unsafe", dtype=np.int64)
    return table
