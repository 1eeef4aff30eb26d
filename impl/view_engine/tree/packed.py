"""Rows as they stand in leaves: packed items, with their sort keys where they are needed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.view_engine.file.collation import sort_bytes
from stagewright.impl.view_engine.tree.collate_loop import NOT_JSON, raw_sort_keys, view_sort_keys
from stagewright.impl.view_engine.tree.loops import find_items, lower_bound, with_lengths
from stagewright.impl.view_engine.tree.merge_loops import find_places
from stagewright.impl.view_engine.tree.sort_loops import (
    common_prefix,
    gather,
    gather_keys,
    last_of_equal,
    prefixes,
    radix_order,
    settle_ties,
)

Array = NDArray[Any]

LONGEST_KEY = 4095  # bytes: lengths of keys have 12 bits
LONGEST_VALUE = (1 << 28) - 1
_MANY_TIES = 32
_ONE: Array = np.array([[0, 1]], np.int64)  # the operations of one leaf: one


class PackedItemsError(ValueError):
    """Bytes that should be packed items are not; `at` is the first offset that cannot be read."""

    def __init__(self, at: int, size: int) -> None:
        super().__init__(f"the items stop making sense {at} bytes into {size}")
        self.at = at


def pack(key: bytes, value: bytes) -> bytes:
    """One item. Raises ValueError for a key or value that is too long for the format."""
    if len(key) > LONGEST_KEY:
        raise ValueError(f"a key of {len(key)} bytes: at most {LONGEST_KEY} fit")
    if len(value) > LONGEST_VALUE:
        raise ValueError(f"a value of {len(value)} bytes: at most {LONGEST_VALUE} fit")
    return (len(key) << 28 | len(value)).to_bytes(5, "big") + key + value


def pack_all(rows: Sequence[tuple[bytes, bytes]]) -> bytes | Array:
    """Several items. Raises ValueError for a key or value that is too long for the format."""
    pieces = [*chain.from_iterable(rows)]
    sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
    if rows and (sizes[::2].max() > LONGEST_KEY or sizes[1::2].max() > LONGEST_VALUE):
        return b"".join([pack(key, value) for key, value in rows])
    packed: Array = with_lengths(np.frombuffer(b"".join(pieces), np.uint8), sizes)
    return packed


class Packed:
    """Packed items after the first `start` bytes of `data`; `collated` says how their keys compare."""

    def __init__(
        self, data: bytes | Array, *, collated: bool, start: int = 0, items: Array | None = None
    ) -> None:
        """`items`: where they are, if that is known."""
        self.data: Array = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
        self.data.flags.writeable = False  # loops are compiled for the one kind of array
        self.collated = collated
        self.start = start
        if items is not None:
            self.items = items

    @classmethod
    def of(cls, rows: Iterable[tuple[bytes, bytes]], *, collated: bool) -> Packed:
        """From keys and values as they stand in leaves."""
        return cls(pack_all([*rows]), collated=collated)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def items(self) -> Array:
        """Where each key starts, each value starts and ends; raises PackedItemsError for damage."""
        items, stop = find_items(self.data, self.start)
        if stop != len(self.data):
            raise PackedItemsError(int(stop), len(self.data))
        found: Array = items
        return found

    @cached_property
    def sort_keys(self) -> tuple[Array, Array]:
        """The bytes by which rows compare, and where each row's start (one more than rows).

        Raises ValueError for a view key that is not JSON.
        """
        if not self.collated:
            keys, at = raw_sort_keys(self.data, self.items)
        else:
            keys, at, status = view_sort_keys(self.data, self.items)
            if status.any():
                keys, at = self._settled(keys, at, status)
        keys.flags.writeable = False
        return keys, at

    def _settled(self, keys: Array, at: Array, status: Array) -> tuple[Array, Array]:
        """With the sort keys of the rows whose numbers Python must read."""
        made: list[bytes] = []
        for row, (start, value, _) in enumerate(self.items.tolist()):
            if status[row] == 0:
                made.append(keys[at[row] : at[row + 1]].tobytes())
                continue
            key = self.data[start:value].tobytes()
            length = int.from_bytes(key[:2], "big")
            if status[row] == NOT_JSON or len(key) < 2 + length:
                raise ValueError(f"the key {key[2:62]!r} of a view is not JSON")
            made.append(sort_bytes(key[2 : 2 + length]) + key[2 + length :])
        sizes = np.zeros(len(made) + 1, np.int64)
        sizes[1:] = np.cumsum([len(key) for key in made])
        return np.frombuffer(b"".join(made), np.uint8), sizes

    def rows(self) -> list[tuple[bytes, bytes]]:
        """Keys and values."""
        data = self.data.tobytes()
        columns = self.items.T.tolist()  # a list for each column, not one for each row
        return [
            (data[key:value], data[value:end]) for key, value, end in zip(*columns, strict=True)
        ]

    def first_from(self, key: bytes) -> int:
        """How many of the rows, which are in order, are below a sort key; collates those it meets."""
        wanted = (np.frombuffer(key, np.uint8), np.array([0, len(key)], np.int64), _ONE)
        ends = np.array([len(self)], np.int64)
        places, _, settled = find_places(self.data, self.items, self.collated, ends, *wanted)
        return int(places[0]) if settled else lower_bound(*self.sort_keys, wanted[0], False)

    def part(self, first: int, last: int) -> Array:
        """The bytes of the items from `first` to before `last`."""
        if first == last:
            return self.data[:0]
        return self.data[self.items[first, 0] - 5 : self.items[last - 1, 2]]

    def order(self) -> Array:
        """The rows in the order of their keys; equal keys as they stand."""
        n = len(self)
        order = np.arange(n, dtype=np.int64)
        if n < 2:
            return order
        keys, at = self.sort_keys
        words = prefixes(keys, at, common_prefix(keys, at))
        order = radix_order(words[0], radix_order(words[1], order))
        for first, last in settle_ties(keys, at, words, order, _MANY_TIES).tolist():
            raw = keys.tobytes()
            group = order[first:last].tolist()
            group.sort(key=lambda row: raw[at[row] : at[row + 1]])
            order[first:last] = group
        return order

    def sorted(self) -> Packed:
        """In order, with the last of several items that have one key."""
        keys, at = self.sort_keys
        order = last_of_equal(keys, at, self.order())
        return Packed(gather(self.data, self.items, order), collated=self.collated)


class Operations:
    """Sorted insertions and removals, at most one a key."""

    def __init__(self, rows: Packed, inserts: Array) -> None:
        """`rows` in any order, later ones win; `inserts`: 1 where a row is inserted, 0 removed."""
        keys, at = rows.sort_keys
        order = last_of_equal(keys, at, rows.order())
        self.rows = Packed(gather(rows.data, rows.items, order), collated=rows.collated)
        self.keys, self.at = _sort_keys_of(rows, order)
        self.inserts: Array = np.ascontiguousarray(inserts[order]).astype(np.uint8)

    @classmethod
    def of(
        cls,
        inserted: Iterable[tuple[bytes, bytes]],
        removed: Iterable[bytes] = (),
        *,
        collated: bool,
    ) -> Operations:
        """Removals first: a key that is removed and inserted is inserted."""
        gone = [(key, b"") for key in removed]
        new = [*inserted]
        rows = Packed(pack_all([*gone, *new]), collated=collated)
        return cls(rows, np.repeat(np.array([0, 1], np.uint8), [len(gone), len(new)]))

    def __len__(self) -> int:
        return len(self.inserts)


def _sort_keys_of(rows: Packed, order: Array) -> tuple[Array, Array]:
    keys, at = gather_keys(*rows.sort_keys, order)
    keys.flags.writeable = False
    return keys, at
