"""The compiled loops of updates: many leaves merged with their operations at once, and cut again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes
from stagewright.impl.view_engine.tree.collate_loop import view_sort_key
from stagewright.impl.view_engine.tree.loops import compare

Array = NDArray[Any]


@compiled
def values_in(data: Array, start: int, end: int, many: bool) -> int:
    """How many values a row has, whose value is at `start` … `end`; one unless they are lists."""
    if not many:
        return 1
    values = 0
    p = start + 2
    while p + 3 <= end:
        p += 3 + ((int(data[p]) << 16) | (int(data[p + 1]) << 8) | int(data[p + 2]))
        values += 1
    return values


@compiled
def find_places(
    old: Array,
    items: Array,
    collated: bool,
    ends: Array,
    new_keys: Array,
    new_at: Array,
    parts: Array,
) -> tuple[Array, Array, bool]:
    """For each operation the first row of its leaf that is not below it, and whether it has its key.

    Leaf i has the rows before `ends[i]` and the operations `parts[i, 0]` … `parts[i, 1]`. Only the keys
    that a binary search meets are collated. Gives also whether all of those could be: if not, Python
    must settle the keys first.
    """
    low_operation = parts[0, 0] if len(parts) else 0
    high_operation = parts[len(parts) - 1, 1] if len(parts) else 0
    places = np.empty(high_operation - low_operation, np.int64)
    equal = np.zeros(len(places), np.uint8)
    out = np.empty(5 * 4096 + 64, np.uint8)  # for the longest key
    bits = np.empty(1, np.uint64)
    i = 0
    for leaf in range(len(ends)):
        for j in range(parts[leaf, 0], parts[leaf, 1]):
            low = i
            high = ends[leaf]
            while low < high:
                middle = (low + high) // 2
                k = items[middle, 0]
                v = items[middle, 1]
                if collated:
                    size, status = view_sort_key(old, k, v, out, 0, bits)
                    if status:
                        return places, equal, False
                    c = compare(out, 0, size, new_keys, int(new_at[j]), int(new_at[j + 1]))
                else:
                    c = compare(old, k, v, new_keys, int(new_at[j]), int(new_at[j + 1]))
                if c < 0:
                    low = middle + 1
                else:
                    high = middle
                if c == 0:
                    equal[j - low_operation] = 1
                    low = high
            places[j - low_operation] = low
            i = low
        i = ends[leaf]
    return places, equal, True


@compiled
def copy_rows(
    old: Array, items: Array, first: int, last: int, out: Array, out_items: Array, p: int, r: int
) -> tuple[int, int]:
    """Append the rows from `first` to before `last` at byte `p`, as row `r`; gives what comes after them."""
    if first >= last:
        return p, r
    start, stop = items[first, 0] - 5, items[last - 1, 2]
    copy_bytes(out, p, old, start, stop)
    for i in range(first, last):
        for column in range(3):
            out_items[r + i - first, column] = items[i, column] + p - start
    return p + stop - start, r + last - first


@compiled
def merge_leaves(
    old: Array,
    items: Array,
    ends: Array,
    places: Array,
    equal: Array,
    new: Array,
    new_items: Array,
    insert: Array,
    parts: Array,
    purge: Array,
    many: bool,
) -> tuple[Array, Array, Array, Array, int]:
    """Leaves with their operations applied, and without the rows of purged partitions.

    Leaf i has the rows before `ends[i]` and the operations `parts[i, 0]` … `parts[i, 1]`, whose places
    `find_places` found. Operations are sorted, one a key; `insert` says which of them insert, the others
    remove. `purge` is a mask of 128 bytes. Gives packed items and where they are, before which row those of
    each leaf end (an unchanged leaf has none), which leaves changed, and how many values were purged.
    """
    purges = purge.any()
    low_operation = parts[0, 0] if len(parts) else 0
    room = len(old)
    rows = len(items)
    for leaf in range(len(ends)):
        for j in range(parts[leaf, 0], parts[leaf, 1]):
            room += new_items[j, 2] - new_items[j, 0] + 5
            rows += 1
    out = np.empty(room, np.uint8)
    out_items = np.empty((rows, 3), np.int64)
    out_ends = np.empty(len(ends), np.int64)
    changes = np.zeros(len(ends), np.uint8)
    p = 0
    r = 0
    i = 0
    purged = 0
    for leaf in range(len(ends)):
        changed = False
        kept = i  # old rows from here on are not copied yet
        for j in range(parts[leaf, 0], parts[leaf, 1] + 1):
            last = j == parts[leaf, 1]
            place = ends[leaf] if last else places[j - low_operation]
            while purges and i < place:
                v = items[i, 1]
                part = (int(old[v]) << 8) | int(old[v + 1])
                if purge[127 - ((part >> 3) & 127)] & (1 << (part & 7)):
                    p, r = copy_rows(old, items, kept, i, out, out_items, p, r)
                    kept = i + 1
                    changed = True
                    purged += values_in(old, v, items[i, 2], many)
                i += 1
            i = max(i, place)
            if last:
                break
            start, stop = int(new_items[j, 0]) - 5, int(new_items[j, 2])
            found = equal[j - low_operation] == 1
            same = found and insert[j]
            same = same and compare(old, items[i, 0] - 5, items[i, 2], new, start, stop) == 0
            if not same and (found or insert[j]):
                changed = True
                p, r = copy_rows(old, items, kept, i, out, out_items, p, r)
                kept = i + 1 if found else i
                if insert[j]:
                    p, r = copy_rows(new, new_items, j, j + 1, out, out_items, p, r)
            if found:
                i += 1
        if changed:
            changes[leaf] = 1
            p, r = copy_rows(old, items, kept, ends[leaf], out, out_items, p, r)
        out_ends[leaf] = r
    return out[:p], out_items[:r], out_ends, changes, purged


@compiled
def cut_leaves(items: Array, ends: Array, largest: int) -> tuple[Array, Array]:
    """Where to cut leaves that got too large, each into parts of about equal size.

    Leaf i has the rows before `ends[i]`. Gives the ends of all new leaves, and how many each became.
    """
    cuts = np.empty(len(items) + len(ends), np.int64)
    became = np.zeros(len(ends), np.int64)
    made = 0
    first = 0
    for leaf in range(len(ends)):
        last = ends[leaf]
        if last == first:
            continue
        before = made
        size = items[last - 1, 2] - items[first, 0] + 5
        if size > largest:
            target = size // ((size + largest - 1) // largest)
            threshold = max(target - size // (2 * (last - first)), 1)
            here = 0
            for i in range(first, last):
                here += items[i, 2] - items[i, 0] + 5
                if here > threshold:
                    cuts[made] = i + 1
                    made += 1
                    here = 0
        if made == before or cuts[made - 1] != last:
            cuts[made] = last
            made += 1
        became[leaf] = made - before
        first = last
    return cuts[:made], became
