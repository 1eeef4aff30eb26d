"""Columns: the keys of rows and their values as numbers, and the tablets that their entries are for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.indexes.bulk.numbers import (
    Entries,
    Numbers,
    byte_sums,
    entries_of,
    ordered,
)
from stagewright.impl.indexes.schema import EntryChange, IndexInfo, entry_key, index_tablet
from stagewright.impl.indexes.splits.tablet_map import ALL, TabletMap

TURN = 500  # rows that are handled at once, in less than a millisecond


class EntryColumns:
    """Entries of a batch by the tablet that they are for, gathered page by page."""

    def __init__(self, tablets: int) -> None:
        self._tablets = tablets
        self._parts: dict[tuple[int, bool, int], list[tuple[Numbers, Numbers]]] = {}

    def add(self, keys: Numbers, rows: Sequence[bytes], indexes: Sequence[IndexInfo]) -> None:
        """What indexes have for rows, whose columns are JSON; where a column is null there is no entry."""
        if not indexes or not rows:
            return
        names = tuple(sorted({index.column for index in indexes}))
        columns = dict(zip(names, column_values(rows, names), strict=True))
        for index in indexes:
            found, there = columns[index.column], keys
            if None in found:
                there = keys[[value is not None for value in found]]
                found = [value for value in found if value is not None]
            self._route(index, np.array(found, np.int64), there)

    def _route(self, index: IndexInfo, values: Numbers, keys: Numbers) -> None:
        places = tablets_of(values, self._tablets)
        for tablet in range(self._tablets):
            here = places == tablet
            if here.any():
                place = index.number, index.unique, tablet
                self._parts.setdefault(place, []).append((values[here], keys[here]))

    def entries(self) -> Iterator[tuple[str, Entries]]:
        """The address of a tablet, and what is for it."""
        for (number, unique, tablet), parts in self._parts.items():
            values, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
            yield index_tablet(number, tablet), entries_of(number, unique, values, rows)


def changes_of(entries: Entries) -> Iterator[EntryChange]:
    """One by one."""
    values, rows = entries.columns()
    for value, row in zip(values.tolist(), rows.tolist(), strict=True):
        entry = entry_key(entries.unique, value, row)
        yield EntryChange(entries.index, entries.unique, entry, row)


def keys_of_entries(unique: bool, values: Numbers, rows: Numbers) -> list[bytes]:
    """As `entry_key` makes them."""
    columns = [ordered(values)] if unique else [ordered(values), ordered(rows)]
    together = np.hstack(columns)
    keys: list[bytes] = together.view(f"V{together.shape[1]}").ravel().tolist()
    return keys


# -- values -------------------------------------------------------------------------------------------------------


def column_values(rows: Sequence[bytes], names: tuple[str, ...]) -> list[list[int | None]]:
    """The values of columns; a column that a row does not have is null."""
    decode = _decoder(names)
    return decode(b"[" + b",".join(rows) + b"]")


@lru_cache(maxsize=64)
def _decoder(names: tuple[str, ...]) -> Callable[[bytes], list[list[int | None]]]:
    try:
        msgspec: Any = import_module("msgspec")
    except ImportError:
        return lambda text: _decoded(text, names)
    fields = [(f"c{n}", int | None, None) for n in range(len(names))]
    renamed = {f"c{n}": name for n, name in enumerate(names)}
    kind: Any = msgspec.defstruct("Columns", fields, rename=renamed, gc=False)
    decode = msgspec.json.Decoder(list[kind]).decode

    def decoded(text: bytes) -> list[list[int | None]]:
        rows = decode(text)
        return [[getattr(row, name) for row in rows] for name, _, _ in fields]

    return decoded


def _decoded(text: bytes, names: tuple[str, ...]) -> list[list[int | None]]:
    rows: list[dict[str, int]] = json.loads(text)
    return [[row.get(name) for row in rows] for name in names]


# -- tablets ------------------------------------------------------------------------------------------------------


def by_place(entries: Entries, tablets: TabletMap) -> Iterator[tuple[str, Entries]]:
    """Entries by the address of the tablet that has them, in the order that they have."""
    values, rows = entries.columns()
    found = np.searchsorted(tablets.starts, _hashes(values, tablets.created), "right") - 1
    for n in np.unique(found).tolist():
        here = found == n
        some = entries_of(entries.index, entries.unique, values[here], rows[here])
        yield tablets.places[n], some


def _hashes(values: Numbers, created: int) -> NDArray[np.int64]:
    """`TabletMap.hash_of` of many."""
    sums = _sums(values).astype(np.int64)
    return (sums % created) * ALL + sums // created


def tablets_of(values: Numbers, tablets: int) -> NDArray[np.uint32]:
    """`tablet_of` of many."""
    return _sums(values) % np.uint32(tablets)


def _sums(values: Numbers) -> NDArray[np.uint32]:
    stored, tables = ordered(values), byte_sums()
    found = np.full(len(values), crc32(bytes(8)), np.uint32)
    for place in range(8):
        found ^= tables[7 - place][stored[:, place]]
    return found
