"""From emitted rows to packed items, many documents at a time: what an initial build sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.design.emitted import EmittedRows
from stagewright.impl.view_engine.design.mapping import MappedBatch
from stagewright.impl.view_engine.index.pack_loops import first_of_equal, pack_back, pack_view

Array = NDArray[Any]
MOST_COMPARED = 256  # rows of a document whose keys are compared with each other one by one


def pack_batch(batch: MappedBatch) -> list[tuple[bytes, int]]:
    """The items of the back index, then of each view, and how many.

    Several values that were emitted with one key are one row. Raises ValueError for what is too long
    for the format, naming the document.
    """
    ids = batch.changes.ids
    places = (np.array(batch.changes.partitions, np.int64), *batch.changes.id_texts)
    firsts = [_first_of_equal(column) for column in batch.columns]
    views: list[tuple[bytes, int]] = []
    for column, first in zip(batch.columns, firsts, strict=True):
        items, made, wrong = pack_view(
            column.keys,
            column.key_ends,
            column.values,
            column.value_ends,
            column.ends,
            first,
            *places,
        )
        if wrong >= 0:
            raise ValueError(
                f"document {ids[wrong].decode('utf-8', 'replace')}: a key has at most 4,095 bytes with "
                "the document's id, a value 16,777,215"
            )
        views.append((items.tobytes(), int(made)))
    entries, made = pack_back(*_all_keys(batch.columns, firsts), *places)
    return [(entries.tobytes(), int(made)), *views]


def _all_keys(
    columns: Sequence[EmittedRows], firsts: Sequence[Array]
) -> tuple[Array, Array, Array, Array]:
    """The keys of all views one after the other, as `pack_back` takes them."""
    key_at = np.cumsum([0, *(len(column.keys) for column in columns)])
    row_at = np.cumsum([0, *(len(column.key_ends) for column in columns)])
    return (
        np.concatenate([column.keys for column in columns]),
        np.concatenate([c.key_ends + at for c, at in zip(columns, key_at, strict=False)]),
        np.concatenate([first + at for first, at in zip(firsts, row_at, strict=False)]),
        np.stack([c.ends + at for c, at in zip(columns, row_at, strict=False)]),
    )


def _first_of_equal(column: EmittedRows) -> Array:
    """For each row the first row of its document that has the same key."""
    rows = np.diff(column.ends, prepend=0)
    if not len(rows) or rows.max() <= MOST_COMPARED:
        found: Array = first_of_equal(column.keys, column.key_ends, column.ends)
        return found
    first: list[int] = []
    for of_document in column:
        begin = len(first)
        seen: dict[bytes, int] = {}
        first += [seen.setdefault(key, begin + i) for i, (key, _) in enumerate(of_document)]
    return np.array(first, np.int64)
