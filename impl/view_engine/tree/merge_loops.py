"""The compiled loops of updates: many leaves merged with their operations at once, and cut again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
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
def merge_leaves(
    old: Array,
    items: Array,
    keys: Array,
    at: Array,
    ends: Array,
    new: Array,
    new_items: Array,
    new_keys: Array,
    new_at: Array,
    insert: Array,
    parts: Array,
    purge: Array,
    many: bool,
) -> tuple[Array, Array, Array, int]:
    """Leaves with their operations applied, and without the rows of purged partitions.

    Leaf i has the rows before `ends[i]` and the operations `parts[i, 0]` … `parts[i, 1]`. Operations are
    sorted, one a key; `insert` says which of them insert, the others remove. `purge` is a mask of 128
    bytes. Gives packed items, up to where those of each leaf go (an unchanged leaf has none), which
    leaves changed, and how many values were purged.
    """
    room = len(old)
    for leaf in range(len(ends)):
        for j in range(parts[leaf, 0], parts[leaf, 1]):
            room += new_items[j, 2] - new_items[j, 0] + 5
    out = np.empty(room, np.uint8)
    out_ends = np.empty(len(ends), np.int64)
    changes = np.zeros(len(ends), np.uint8)
    p = 0
    i = 0
    purged = 0
    for leaf in range(len(ends)):
        leaf_start = p
        changed = False
        j = parts[leaf, 0]
        high = parts[leaf, 1]
        kept = items[i, 0] - 5 if i < ends[leaf] else 0  # old rows from here on are not copied yet
        seen = kept  # and those before here are looked at
        while i < ends[leaf] or j < high:
            if j == high:
                c = -1
            elif i == ends[leaf]:
                c = 1
            else:
                c = compare(
                    keys, int(at[i]), int(at[i + 1]), new_keys, int(new_at[j]), int(new_at[j + 1])
                )
            if c < 0:
                v = items[i, 1]
                part = (int(old[v]) << 8) | int(old[v + 1])
                if purge[127 - ((part >> 3) & 127)] & (1 << (part & 7)):
                    out[p : p + seen - kept] = old[kept:seen]
                    p += seen - kept
                    kept = items[i, 2]
                    changed = True
                    purged += values_in(old, v, items[i, 2], many)
                seen = items[i, 2]
                i += 1
                continue
            start, stop = int(new_items[j, 0]) - 5, int(new_items[j, 2])
            same = c == 0 and insert[j]
            same = same and compare(old, seen, items[i, 2], new, start, stop) == 0
            if not same and (c == 0 or insert[j]):
                changed = True
                out[p : p + seen - kept] = old[kept:seen]
                p += seen - kept
                kept = items[i, 2] if c == 0 else seen
                if insert[j]:
                    out[p : p + stop - start] = new[start:stop]
                    p += stop - start
            if c == 0:
                seen = items[i, 2]
                i += 1
            j += 1
        if changed:
            changes[leaf] = 1
            out[p : p + seen - kept] = old[kept:seen]
            p += seen - kept
        else:
            p = leaf_start
        out_ends[leaf] = p
    return out[:p], out_ends, changes, purged


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
