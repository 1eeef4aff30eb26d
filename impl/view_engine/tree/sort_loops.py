"""The compiled loops of sorting: by 16 bytes with a radix sort, then what is equal there by the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes
from stagewright.impl.view_engine.tree.loops import compare

Array = NDArray[Any]


@compiled
def common_prefix(keys: Array, at: Array) -> int:
    """How many bytes all keys share at their start."""
    n = len(at) - 1
    shared = at[1] - at[0]
    for i in range(1, n):
        shared = min(shared, at[i + 1] - at[i])
        for p in range(shared):
            if keys[at[i] + p] != keys[at[0] + p]:
                shared = p
                break
    return int(shared)


@compiled
def prefixes(keys: Array, at: Array, skip: int) -> Array:
    """16 bytes of each key after the first `skip`, as two words that compare like them."""
    n = len(at) - 1
    out = np.zeros((2, n), np.uint64)
    for i in range(n):
        for w in range(2):
            word = np.uint64(0)
            start = at[i] + skip + 8 * w
            for p in range(start, start + 8):
                byte = np.uint64(keys[p]) if p < at[i + 1] else np.uint64(0)
                word = (word << np.uint64(8)) | byte
            out[w, i] = word
    return out


@compiled
def radix_order(words: Array, order: Array) -> Array:
    """The order stably sorted by one word each, 11 bits a pass; passes over equal digits are skipped."""
    n = len(order)
    a = order.copy()
    b = np.empty_like(a)
    counts = np.empty(2048, np.int64)
    low = np.uint64(2047)
    for shift in range(0, 64, 11):
        by = np.uint64(shift)
        for digit in range(2048):
            counts[digit] = 0
        for i in range(n):
            counts[(words[a[i]] >> by) & low] += 1
        if n == 0 or counts[(words[a[0]] >> by) & low] == n:
            continue
        total = 0
        for digit in range(2048):
            here = counts[digit]
            counts[digit] = total
            total += here
        for i in range(n):
            digit = (words[a[i]] >> by) & low
            b[counts[digit]] = a[i]
            counts[digit] += 1
        a, b = b, a
    return a


@compiled
def settle_ties(keys: Array, at: Array, words: Array, order: Array, most: int) -> Array:
    """Sort what is equal in its words by whole keys, stably; gives the groups larger than `most`."""
    n = len(order)
    large = np.empty((n // most + 1, 2), np.int64)
    found = 0
    i = 0
    while i < n:
        j = i + 1
        while (
            j < n
            and words[0, order[j]] == words[0, order[i]]
            and words[1, order[j]] == words[1, order[i]]
        ):
            j += 1
        if j - i > most:
            large[found, 0] = i
            large[found, 1] = j
            found += 1
        else:
            for x in range(i + 1, j):
                row = int(order[x])
                y = x
                while y > i:
                    before = int(order[y - 1])
                    c = compare(keys, at[row], at[row + 1], keys, at[before], at[before + 1])
                    if c >= 0:
                        break
                    order[y] = before
                    y -= 1
                order[y] = row
        i = j
    return large[:found]


@compiled
def last_of_equal(keys: Array, at: Array, order: Array) -> Array:
    """The order without the rows that are followed by one with the same key."""
    out = np.empty_like(order)
    n = 0
    for i in range(len(order)):
        if i + 1 < len(order):
            a, b = int(order[i]), int(order[i + 1])
            if compare(keys, at[a], at[a + 1], keys, at[b], at[b + 1]) == 0:
                continue
        out[n] = order[i]
        n += 1
    return out[:n]


@compiled
def first_disorder(keys: Array, at: Array) -> int:
    """The first row whose key is not above the key before it, or -1."""
    for i in range(1, len(at) - 1):
        if compare(keys, at[i - 1], at[i], keys, at[i], at[i + 1]) >= 0:
            return i
    return -1


@compiled
def gather(data: Array, items: Array, order: Array) -> Array:
    """The packed items in this order."""
    total = 0
    for i in order:
        total += items[i, 2] - items[i, 0] + 5
    out = np.empty(total, np.uint8)
    p = 0
    for i in order:
        p = copy_bytes(out, p, data, items[i, 0] - 5, items[i, 2])
    return out


@compiled
def gather_keys(keys: Array, at: Array, order: Array) -> tuple[Array, Array]:
    """Sort keys in this order, and where each starts (one more than rows)."""
    new_at = np.empty(len(order) + 1, np.int64)
    total = 0
    for i in range(len(order)):
        new_at[i] = total
        total += at[order[i] + 1] - at[order[i]]
    new_at[len(order)] = total
    out = np.empty(total, np.uint8)
    for i in range(len(order)):
        copy_bytes(out, new_at[i], keys, at[order[i]], at[order[i] + 1])
    return out, new_at
