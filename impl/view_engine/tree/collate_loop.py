"""The sort keys of many rows at once: the compiled form of `collation.sort_bytes`.

A number that needs more than 53 bits or a large power of ten is left to Python, by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes

Array = NDArray[Any]

SIMPLE, SLOW, NOT_JSON = 0, 1, 2
_LARGEST_EXACT = 1 << 53
_LARGEST_POWER = 22  # 10**22 is the largest power of ten that is a double


@compiled
def parse_number(data: Array, at: int, end: int) -> tuple[float, int, int]:
    """The number at `at`, where it ends, and SIMPLE, SLOW (Python must do it) or NOT_JSON."""
    negative = at < end and data[at] == 45
    p = at + 1 if negative else at
    mantissa = 0
    digits = 0
    scale = 0
    slow = False
    while p < end and 48 <= data[p] <= 57:
        slow = slow or mantissa > 900719925474098
        mantissa = mantissa * 10 + int(data[p]) - 48 if not slow else mantissa
        digits += 1
        p += 1
    if p < end and data[p] == 46 and digits:
        p += 1
        while p < end and 48 <= data[p] <= 57:
            slow = slow or mantissa > 900719925474098
            mantissa = mantissa * 10 + int(data[p]) - 48 if not slow else mantissa
            scale -= 1
            p += 1
    if not digits:
        return 0.0, p, 2
    if p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        down = p < end and data[p] == 45
        if p < end and (data[p] == 45 or data[p] == 43):
            p += 1
        power = 0
        while p < end and 48 <= data[p] <= 57:
            power = min(power * 10 + int(data[p]) - 48, 10000)
            p += 1
        scale += -power if down else power
    if slow or mantissa > _LARGEST_EXACT or scale > _LARGEST_POWER or scale < -_LARGEST_POWER:
        return 0.0, p, 1
    ten = 1.0
    for _ in range(abs(scale)):
        ten *= 10.0
    value = mantissa / ten if scale < 0 else mantissa * ten
    return (0.0 - value if negative else value) + 0.0, p, 0


@compiled
def _hex4(data: Array, at: int) -> int:
    value = 0
    for i in range(4):
        c = int(data[at + i])
        if 48 <= c <= 57:
            c -= 48
        elif 65 <= c <= 70:
            c -= 55
        elif 97 <= c <= 102:
            c -= 87
        else:
            return -1
        value = value * 16 + c
    return value


@compiled
def _put(out: Array, q: int, byte: int) -> int:
    """One byte of a string; 0 and 1 are written as two."""
    if byte < 2:
        out[q] = 1
        out[q + 1] = byte + 1
        return q + 2
    out[q] = byte
    return q + 1


@compiled
def _put_point(out: Array, q: int, point: int) -> int:
    if point < 0x80:
        return _put(out, q, point)
    if point < 0x800:
        out[q] = 0xC0 | (point >> 6)
        out[q + 1] = 0x80 | (point & 63)
        return q + 2
    if point < 0x10000:
        out[q] = 0xE0 | (point >> 12)
        out[q + 1] = 0x80 | ((point >> 6) & 63)
        out[q + 2] = 0x80 | (point & 63)
        return q + 3
    out[q] = 0xF0 | (point >> 18)
    out[q + 1] = 0x80 | ((point >> 12) & 63)
    out[q + 2] = 0x80 | ((point >> 6) & 63)
    out[q + 3] = 0x80 | (point & 63)
    return q + 4


@compiled
def _string(data: Array, p: int, end: int, out: Array, q: int) -> tuple[int, int]:
    """The string after the quote at `p - 1`; gives the next place, -1 where it does not end."""
    while p < end:
        c = int(data[p])
        if c == 34:
            out[q] = 0
            return p + 1, q + 1
        if c != 92:
            q = _put(out, q, c)
            p += 1
            continue
        if p + 1 >= end:
            return -1, q
        c = int(data[p + 1])
        p += 2
        if c == 117:
            point = _hex4(data, p) if p + 4 <= end else -1
            if point < 0:
                return -1, q
            p += 4
            if 0xD800 <= point < 0xDC00 and p + 6 <= end and data[p] == 92 and data[p + 1] == 117:
                low = _hex4(data, p + 2)
                if 0xDC00 <= low < 0xE000:
                    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                    p += 6
            q = _put_point(out, q, point)
        elif c == 98:
            q = _put(out, q, 8)
        elif c == 102:
            q = _put(out, q, 12)
        elif c == 110:
            q = _put(out, q, 10)
        elif c == 114:
            q = _put(out, q, 13)
        elif c == 116:
            q = _put(out, q, 9)
        else:
            q = _put(out, q, c)
    return -1, q


@compiled
def _value(data: Array, p: int, end: int, out: Array, q: int, bits: Array) -> tuple[int, int]:
    """The sort bytes of one JSON value into `out`; gives their end, and SIMPLE, SLOW or NOT_JSON."""
    doubles = bits.view(np.float64)
    while p < end:
        c = int(data[p])
        p += 1
        if c == 34:
            out[q] = 6
            p, q = _string(data, p, end, out, q + 1)
            if p < 0:
                return q, 2
        elif c == 45 or 48 <= c <= 57:
            value, p, status = parse_number(data, p - 1, end)
            if status:
                return q, status
            doubles[0] = value
            word = bits[0]
            one = np.uint64(1)
            top = one << np.uint64(63)
            word = ~word if word & top else word | top
            out[q] = 5
            for i in range(8):
                out[q + 1 + i] = (word >> np.uint64(56 - 8 * i)) & np.uint64(255)
            q += 9
        elif c == 91 or c == 123:
            out[q] = 7 if c == 91 else 8
            q += 1
        elif c == 93 or c == 125:
            out[q] = 1
            q += 1
        elif c == 110 or c == 116:
            out[q] = 2 if c == 110 else 4
            q += 1
            p += 3
        elif c == 102:
            out[q] = 3
            q += 1
            p += 4
        elif c != 44 and c != 58:
            return q, 2
    return q, 0 if p == end else 2


@compiled
def view_sort_key(data: Array, k: int, v: int, out: Array, q: int, bits: Array) -> tuple[int, int]:
    """The sort key of the view row whose key is at `k` … `v`, written to `out` from `q` on.

    `out` needs room for five times the key, and `bits` for one number. Gives where the sort key ends, and
    SIMPLE, SLOW or NOT_JSON.
    """
    if v - k < 2:
        return q, 2
    end = k + 2 + ((int(data[k]) << 8) | int(data[k + 1]))
    if end > v or end == k + 2:
        return q, 2
    stop, status = _value(data, k + 2, end, out, q, bits)
    if status:
        return q, status
    for p in range(end, v):
        out[stop] = data[p]
        stop += 1
    return stop, 0


@compiled
def view_sort_keys(data: Array, items: Array) -> tuple[Array, Array, Array]:
    """The sort keys of view rows: of the emitted key, then the document's id.

    `items` has the start of each key, of its value, and the end. Gives the bytes, where each sort key
    starts (one more than rows), and each row's SIMPLE, SLOW or NOT_JSON: for the latter two it is empty.
    """
    n = len(items)
    at = np.empty(n + 1, np.int64)
    status = np.zeros(n, np.uint8)
    bits = np.empty(1, np.uint64)
    out = np.empty(64 + n * 32, np.uint8)
    q = 0
    for i in range(n):
        at[i] = q
        k = items[i, 0]
        v = items[i, 1]
        need = q + 5 * (v - k) + 64
        if need > len(out):
            larger = np.empty(need + len(out), np.uint8)
            copy_bytes(larger, 0, out, 0, q)
            out = larger
        q, found = view_sort_key(data, k, v, out, q, bits)
        status[i] = found
    at[n] = q
    return out[:q], at, status


@compiled
def raw_sort_keys(data: Array, items: Array) -> tuple[Array, Array]:
    """The keys themselves, one after the other, and where each starts (one more than rows)."""
    n = len(items)
    at = np.empty(n + 1, np.int64)
    total = 0
    for i in range(n):
        at[i] = total
        total += items[i, 1] - items[i, 0]
    at[n] = total
    out = np.empty(total, np.uint8)
    for i in range(n):
        copy_bytes(out, at[i], data, items[i, 0], items[i, 1])
    return out, at
