"""The compiled loops that make packed items of emitted rows: of the views, and of the back index."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes

Array = NDArray[Any]


@compiled
def first_of_equal(keys: Array, key_ends: Array, ends: Array) -> Array:
    """For each row the first row of its document that has the same key."""
    first = np.arange(len(key_ends))
    begin = 0
    for d in range(len(ends)):
        for i in range(begin + 1, ends[d]):
            i0 = key_ends[i - 1]
            for j in range(begin, i):
                j0 = key_ends[j - 1] if j else 0
                same = first[j] == j and key_ends[j] - j0 == key_ends[i] - i0
                for q in range(key_ends[i] - i0):
                    if not same:
                        break
                    same = keys[j0 + q] == keys[i0 + q]
                if same:
                    first[i] = j
                    break
        begin = ends[d]
    return first


@compiled
def put_number(out: Array, q: int, value: int, size: int) -> int:
    """A number in so many bytes, the highest first; gives the place after it."""
    for i in range(size):
        out[q + i] = (value >> (8 * (size - 1 - i))) & 255
    return q + size


@compiled
def put_lengths(out: Array, q: int, key: int, value: int) -> None:
    """The five bytes before an item."""
    put_number(out, q, (key << 28) | value, 5)


@compiled
def pack_view(
    keys: Array,
    key_ends: Array,
    values: Array,
    value_ends: Array,
    ends: Array,
    first: Array,
    partitions: Array,
    ids: Array,
    id_at: Array,
) -> tuple[Array, int, int]:
    """The packed items of a view, how many, and the first document that does not fit or -1.

    A key has at most 4,095 bytes with its length and the document's id, a value 16,777,215.
    """
    rows = len(key_ends)
    room = len(keys) + len(values) + rows * 12
    for d in range(len(ends)):
        room += (ends[d] - (ends[d - 1] if d else 0)) * (id_at[d + 1] - id_at[d])
    out = np.empty(room, np.uint8)
    last = np.arange(rows)  # of each key's rows
    for i in range(rows):
        last[first[i]] = i
    q = 0
    made = 0
    begin = 0
    for d in range(len(ends)):
        size_of_id = id_at[d + 1] - id_at[d]
        for i in range(begin, ends[d]):
            if first[i] != i:
                continue
            k0 = key_ends[i - 1] if i else 0
            size = key_ends[i] - k0
            if size + size_of_id + 2 > 4095:
                return out[:0], 0, d
            start = q
            q = put_number(out, q + 5, size, 2)
            q = copy_bytes(out, q, keys, k0, k0 + size)
            q = copy_bytes(out, q, ids, id_at[d], id_at[d + 1])
            q = put_number(out, q, partitions[d], 2)
            value_start = q - 2
            for j in range(i, last[i] + 1):
                if first[j] != i:
                    continue
                v0 = value_ends[j - 1] if j else 0
                length = value_ends[j] - v0
                if length > 16777215:
                    return out[:0], 0, d
                q = put_number(out, q, length, 3)
                q = copy_bytes(out, q, values, v0, v0 + length)
            put_lengths(out, start, size + size_of_id + 2, q - value_start)
            made += 1
        begin = ends[d]
    return out[:q], made, -1


@compiled
def pack_back(
    keys: Array,
    key_ends: Array,
    first: Array,
    row_ends: Array,
    partitions: Array,
    ids: Array,
    id_at: Array,
) -> tuple[Array, int]:
    """The packed items of the back index, and how many: of each document that has rows.

    `keys` are those of all views, one view after the other; the rows of document d in view v end before
    `row_ends[v, d]`, and begin where those of the document before end (or those of the view before).
    """
    views, documents = row_ends.shape
    out = np.empty(len(keys) + 2 * len(key_ends) + len(ids) + documents * (9 + 3 * views), np.uint8)
    q = 0
    made = 0
    for d in range(documents):
        start = q
        size_of_id = id_at[d + 1] - id_at[d]
        q = put_number(out, q + 5, partitions[d], 2)
        q = copy_bytes(out, q, ids, id_at[d], id_at[d + 1])
        value_start = q
        q = put_number(out, q, partitions[d], 2)
        has_rows = False
        for v in range(views):
            begin = row_ends[v, d - 1] if d else (row_ends[v - 1, documents - 1] if v else 0)
            count = 0
            count_at = q + 1
            for i in range(begin, row_ends[v, d]):
                if first[i] != i:
                    continue
                if count == 0:
                    out[q] = v
                    q += 3
                k0 = key_ends[i - 1] if i else 0
                size = key_ends[i] - k0
                q = put_number(out, q, size, 2)
                q = copy_bytes(out, q, keys, k0, k0 + size)
                count += 1
            if count:
                has_rows = True
                put_number(out, count_at, count, 2)
        if has_rows:
            put_lengths(out, start, size_of_id + 2, q - value_start)
            made += 1
        else:
            q = start
    return out[:q], made
