"""The reduction of the rows of one leaf that lie in a range, without looking at the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.impl.view_engine.tree.collate_loop import parse_number, view_sort_key
from stagewright.impl.view_engine.tree.loops import compare, find_items

Array = NDArray[Any]


@compiled
def first_not_below(data: Array, items: Array, low: int, key: Array) -> int:
    """The first row from `low` on whose key is not below `key`; -1 where Python must settle a key."""
    out = np.empty(5 * 4096 + 64, np.uint8)  # for the longest key
    bits = np.empty(1, np.uint64)
    high = len(items)
    while low < high:
        middle = (low + high) // 2
        size, status = view_sort_key(data, items[middle, 0], items[middle, 1], out, 0, bits)
        if status:
            return -1
        if compare(out, 0, size, key, 0, len(key)) < 0:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def reduce_between(
    data: Array, start: int, low: Array, high: Array, numbers: bool
) -> tuple[bool, int, Array, Array]:
    """Whether all could be read; the number of values; their sum, minimum, maximum, squares; the partitions.

    Of the rows of a view's leaf, whose items begin at `start`, from the key `low` to before `high`; empty
    keys are open ends. `numbers`: values are to be read.
    """
    totals = np.zeros(4, np.float64)
    mask = np.zeros(128, np.uint8)
    items, stop = find_items(data, start)
    if stop != len(data):
        return False, 0, totals, mask
    first = first_not_below(data, items, 0, low) if len(low) else 0
    last = first_not_below(data, items, max(first, 0), high) if len(high) else len(items)
    if first < 0 or last < 0:
        return False, 0, totals, mask
    count = 0
    for i in range(first, last):
        v = items[i, 1]
        end = items[i, 2]
        part = (int(data[v]) << 8) | int(data[v + 1])
        mask[127 - ((part >> 3) & 127)] |= np.uint8(1 << (part & 7))
        p = v + 2
        while p + 3 <= end:
            size = (int(data[p]) << 16) | (int(data[p + 1]) << 8) | int(data[p + 2])
            p += 3
            if numbers:
                x, stop, status = parse_number(data, p, p + size)
                if status or stop != p + size:
                    return False, 0, totals, mask
                if count == 0:
                    totals[1] = x
                    totals[2] = x
                totals[0] += x
                totals[1] = min(totals[1], x)
                totals[2] = max(totals[2], x)
                totals[3] += x * x
            count += 1
            p += size
    return True, count, totals, mask
