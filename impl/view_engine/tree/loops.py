"""The compiled loops over packed items: five bytes of lengths (12 bits key, 28 bits value), key, value.

A leaf is one type byte and packed items; sort files and batches are packed items without it. `items`
is always an array of three columns: where a key starts, where its value starts, where that ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes
from stagewright.impl.view_engine.tree.collate_loop import parse_number

Array = NDArray[Any]


@compiled
def find_items(data: Array, start: int) -> tuple[Array, int]:
    """Where the items from `start` on are; and where reading stopped: at the end, unless damaged."""
    n = len(data)
    items = np.empty((n // 24 + 16, 3), np.int64)
    count = 0
    p = start
    while p + 5 <= n:
        kl = (int(data[p]) << 4) | (int(data[p + 1]) >> 4)
        vl = ((int(data[p + 1]) & 15) << 24) | (int(data[p + 2]) << 16)
        vl |= (int(data[p + 3]) << 8) | int(data[p + 4])
        if p + 5 + kl + vl > n:
            break
        if count == len(items):
            more = np.empty((2 * count, 3), np.int64)
            for i in range(count):  # to compile `more[:count] = items` takes five seconds
                for column in range(3):
                    more[i, column] = items[i, column]
            items = more
        items[count, 0] = p + 5
        items[count, 1] = p + 5 + kl
        items[count, 2] = p + 5 + kl + vl
        p += 5 + kl + vl
        count += 1
    return items[:count], p


@compiled
def with_lengths(data: Array, sizes: Array) -> Array:
    """Items of keys and values that stand one after the other; `sizes` has both lengths of each."""
    out = np.empty(len(data) + len(sizes) // 2 * 5, np.uint8)
    p = 0
    q = 0
    for i in range(0, len(sizes), 2):
        key = sizes[i]
        value = sizes[i + 1]
        out[q] = key >> 4
        out[q + 1] = (key & 15) << 4 | value >> 24
        out[q + 2] = value >> 16 & 255
        out[q + 3] = value >> 8 & 255
        out[q + 4] = value & 255
        q += 5
        q = copy_bytes(out, q, data, p, p + key + value)
        p += key + value
    return out


@compiled
def find_pointers(data: Array, items: Array, fixed: int) -> Array:
    """Of the pointers that items are: position and size of the subtree, and where its reduction starts.

    Gives those before the first that is damaged; `fixed` are the bytes that a reduction has at least.
    """
    found = np.empty((len(items), 3), np.int64)
    for i in range(len(items)):
        v = items[i, 1]
        room = items[i, 2] - v - 14
        if room < fixed or ((int(data[v + 12]) << 8) | int(data[v + 13])) != room:
            return found[:i]
        position = np.int64(0)
        size = np.int64(0)
        for p in range(v, v + 6):
            position = (position << 8) | int(data[p])
            size = (size << 8) | int(data[p + 6])
        found[i, 0] = position
        found[i, 1] = size
        found[i, 2] = v + 14
    return found


@compiled
def compare(a: Array, a0: int, a1: int, b: Array, b0: int, b1: int) -> int:
    """-1, 0 or 1 as the bytes of `a` are less than, equal to or greater than those of `b`."""
    n = min(a1 - a0, b1 - b0)
    for i in range(n):
        if a[a0 + i] != b[b0 + i]:
            return -1 if a[a0 + i] < b[b0 + i] else 1
    if a1 - a0 == b1 - b0:
        return 0
    return -1 if a1 - a0 < b1 - b0 else 1


@compiled
def upper_bounds(node: Array, node_at: Array, keys: Array, at: Array, low: int, high: int) -> Array:
    """For each key of a node how many of the sorted keys in low … high are not above it."""
    bounds = np.empty(len(node_at) - 1, np.int64)
    first = low
    for i in range(len(bounds)):
        last = high
        while first < last:
            middle = (first + last) // 2
            c = compare(keys, at[middle], at[middle + 1], node, node_at[i], node_at[i + 1])
            if c <= 0:
                first = middle + 1
            else:
                last = middle
        bounds[i] = first
    return bounds


@compiled
def lower_bound(keys: Array, at: Array, wanted: Array, strictly: bool) -> int:
    """How many of the sorted keys are below the wanted one (or, `strictly` above, not above it)."""
    low = 0
    high = len(at) - 1
    while low < high:
        middle = (low + high) // 2
        c = compare(keys, at[middle], at[middle + 1], wanted, 0, len(wanted))
        if c < 0 or (strictly and c == 0):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def matches(keys: Array, at: Array, wanted: Array, wanted_at: Array, low: int, high: int) -> Array:
    """For each wanted key in low … high the row that has it, or -1; both sides sorted."""
    found = np.empty(high - low, np.int64)
    i = 0
    n = len(at) - 1
    for j in range(low, high):
        found[j - low] = -1
        while i < n:
            c = compare(keys, at[i], at[i + 1], wanted, wanted_at[j], wanted_at[j + 1])
            if c == 0:
                found[j - low] = i
            if c >= 0:
                break
            i += 1
    return found


@compiled
def not_in(data: Array, items: Array, purge: Array) -> tuple[Array, int]:
    """The packed items whose partition is not in the mask, and how many there were of the others."""
    out = np.empty(len(data), np.uint8)
    p = 0
    purged = 0
    for i in range(len(items)):
        v = items[i, 1]
        part = (int(data[v]) << 8) | int(data[v + 1])
        if purge[127 - ((part >> 3) & 127)] & (1 << (part & 7)):
            purged += 1
            continue
        p = copy_bytes(out, p, data, items[i, 0] - 5, items[i, 2])
    return out[:p], purged


@compiled
def cut(items: Array, threshold: int) -> Array:
    """Where to cut items into nodes: a node ends with the item that takes it above the threshold."""
    ends = np.empty(len(items), np.int64)
    nodes = 0
    size = 0
    for i in range(len(items)):
        size += items[i, 2] - items[i, 0] + 5
        if size > threshold:
            ends[nodes] = i + 1
            nodes += 1
            size = 0
    return ends[:nodes]


@compiled
def summarise(
    data: Array, items: Array, first: int, ends: Array, many: bool, numbers: bool
) -> tuple[Array, Array, Array, Array]:
    """The reductions of leaves that end before the items `ends`: counts, masks, totals, odd.

    The first of them starts with the item `first`.
    `many`: values are lists, as in views, and are counted one by one. `numbers`: totals has for each
    leaf sum, minimum, maximum and sum of squares; `odd` the first row with a value that is no simple
    number, or -1 (then the totals are right).
    """
    n = len(ends)
    counts = np.zeros(n, np.int64)
    masks = np.zeros((n, 128), np.uint8)
    totals = np.zeros((n, 4), np.float64)
    odd = np.full(n, -1, np.int64)
    i = first
    for leaf in range(n):
        while i < ends[leaf]:
            v = items[i, 1]
            end = items[i, 2]
            part = (int(data[v]) << 8) | int(data[v + 1])
            masks[leaf, 127 - ((part >> 3) & 127)] |= np.uint8(1 << (part & 7))
            if not many:
                counts[leaf] += 1
                i += 1
                continue
            p = v + 2
            while p + 3 <= end:
                size = (int(data[p]) << 16) | (int(data[p + 1]) << 8) | int(data[p + 2])
                p += 3
                if numbers and odd[leaf] < 0:
                    x, stop, status = parse_number(data, p, p + size)
                    if status or stop != p + size:
                        odd[leaf] = i
                    if counts[leaf] == 0:
                        totals[leaf, 1] = x
                        totals[leaf, 2] = x
                    totals[leaf, 0] += x
                    totals[leaf, 1] = min(totals[leaf, 1], x)
                    totals[leaf, 2] = max(totals[leaf, 2], x)
                    totals[leaf, 3] += x * x
                counts[leaf] += 1
                p += size
            i += 1
    return counts, masks, totals, odd
