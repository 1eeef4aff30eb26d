"""The compiled loops that find the places of declared maps in JSON text, without making objects of it.

What they do not understand in full, they leave to Python: damage, very deep nesting, repeated or escaped
names, and numbers that Python would write in another way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled

Array = NDArray[Any]

FOUND, MISSING, LEFT = 0, 1, 2
_DEEPEST = 64
_MOST_DIGITS = 15  # of a fraction: so many always come back from a double
_LONGEST_NUMBER = 300


@compiled
def after_space(data: Array, p: int, end: int) -> int:
    """The next place that is no white space."""
    while p < end and (data[p] == 32 or data[p] == 10 or data[p] == 13 or data[p] == 9):
        p += 1
    return p


@compiled
def string_end(data: Array, p: int, end: int) -> int:
    """The place after the string whose quote is at `p`; -1 if it is none."""
    p += 1
    while p < end:
        c = data[p]
        if c == 34:
            return p + 1
        if c < 32:
            return -1
        if c != 92:
            p += 1
            continue
        if p + 1 >= end:
            return -1
        c = data[p + 1]
        if c == 117:
            if p + 6 > end:
                return -1
            for q in range(p + 2, p + 6):
                h = data[q]
                if not (48 <= h <= 57 or 65 <= h <= 70 or 97 <= h <= 102):
                    return -1
            p += 6
        elif (
            c == 34 or c == 92 or c == 47 or c == 98 or c == 102 or c == 110 or c == 114 or c == 116
        ):
            p += 2
        else:
            return -1
    return -1


@compiled
def digits_end(data: Array, p: int, end: int) -> int:
    """The place after the digits at `p`."""
    while p < end and 48 <= data[p] <= 57:
        p += 1
    return p


@compiled
def number_end(data: Array, p: int, end: int) -> int:
    """The place after the number at `p`; -1 if it is none."""
    if data[p] == 45:
        p += 1
    q = digits_end(data, p, end)
    if q == p or (data[p] == 48 and q > p + 1) or q - p > 300:
        return -1
    p = q
    if p < end and data[p] == 46:
        q = digits_end(data, p + 1, end)
        if q == p + 1:
            return -1
        p = q
    if p < end and (data[p] == 101 or data[p] == 69):
        p += 1
        if p < end and (data[p] == 43 or data[p] == 45):
            p += 1
        q = digits_end(data, p, end)
        if q == p:
            return -1
        p = q
    return p


@compiled
def word_end(data: Array, p: int, end: int) -> int:
    """The place after null, true or false at `p`; -1 if it is none."""
    if p + 4 <= end:
        a, b, c, d = data[p], data[p + 1], data[p + 2], data[p + 3]
        if a == 110 and b == 117 and c == 108 and d == 108:
            return p + 4
        if a == 116 and b == 114 and c == 117 and d == 101:
            return p + 4
        if a == 102 and b == 97 and c == 108 and d == 115 and p + 5 <= end and data[p + 4] == 101:
            return p + 5
    return -1


@compiled
def scalar_end(data: Array, p: int, end: int) -> int:
    """The place after the string, number or word at `p`; -1 if it is none."""
    if data[p] == 34:
        return string_end(data, p, end)
    if data[p] == 45 or 48 <= data[p] <= 57:
        return number_end(data, p, end)
    return word_end(data, p, end)


@compiled
def name_end(data: Array, p: int, end: int) -> int:
    """The start of the value after a member's name and colon; -1 if there is none."""
    p = after_space(data, p, end)
    if p >= end or data[p] != 34:
        return -1
    p = string_end(data, p, end)
    if p < 0:
        return -1
    p = after_space(data, p, end)
    if p >= end or data[p] != 58:
        return -1
    return after_space(data, p + 1, end)


@compiled
def value_end(data: Array, p: int, end: int) -> int:
    """The place after the JSON value at `p`; -1 for what is not understood."""
    closing = np.empty(64, np.uint8)
    depth = 0
    while True:
        p = after_space(data, p, end)
        if p >= end:
            return -1
        c = data[p]
        opened = False
        if c == 123 or c == 91:
            if depth == 64:
                return -1
            closing[depth] = c + 2
            depth += 1
            p = after_space(data, p + 1, end)
            opened = p < end and data[p] != c + 2
            if opened and c == 123:
                p = name_end(data, p, end)
        else:
            p = scalar_end(data, p, end)
        if p < 0:
            return -1
        if opened:
            continue
        while depth > 0:
            p = after_space(data, p, end)
            if p >= end:
                return -1
            if data[p] == closing[depth - 1]:
                depth -= 1
                p += 1
                continue
            if data[p] != 44:
                return -1
            p += 1
            if closing[depth - 1] == 125:
                p = name_end(data, p, end)
                if p < 0:
                    return -1
            break
        else:
            return p


@compiled
def is_kept(data: Array, start: int, end: int) -> bool:
    """Whether Python would write this value just as it stands: a simple value in its shortest form."""
    c = data[start]
    if c == 123 or c == 91:
        return False
    if c == 34:
        escapes = 0
        for p in range(start + 1, end - 1):
            escapes += data[p] == 92
        return escapes == 0
    if c != 45 and not 48 <= c <= 57:
        return True
    p = start + 1 if c == 45 else start
    point = digits_end(data, p, end)
    if point == end:
        return not (c == 45 and data[p] == 48)
    whole_is_zero = data[p] == 48
    if data[point] != 46 or digits_end(data, point + 1, end) != end or data[end - 1] == 48:
        return False
    if end - p - 1 > 15:
        return False
    if not whole_is_zero:
        return True
    q = point + 1
    while q < end and data[q] == 48:
        q += 1
    return q < point + 5  # from 0.0001 on Python writes no exponent


@compiled
def find_path(
    data: Array, p: int, end: int, names: Array, name_at: Array, first: int, last: int
) -> tuple[int, int, int]:
    """Where the value is that the names `first` … `last` lead to: start, end, and FOUND, MISSING or LEFT.

    The document at `p` is JSON in full: `value_end` has read it.
    """
    stop = p
    for level in range(first, last):
        p = after_space(data, p, end)
        if data[p] != 123:
            return 0, 0, 1
        size = name_at[level + 1] - name_at[level]
        found = -1
        p = after_space(data, p + 1, end)
        while data[p] != 125:
            close = string_end(data, p, end)
            same = close - p - 2 == size
            for q in range(close - p - 2):
                if data[p + 1 + q] == 92:
                    return 0, 0, 2
                same = same and data[p + 1 + q] == names[name_at[level] + q]
            value = name_end(data, p, end)
            after = value_end(data, value, end)
            if same:
                if found >= 0:
                    return 0, 0, 2
                found = value
                stop = after
            p = after_space(data, after, end)
            if data[p] == 44:
                p = after_space(data, p + 1, end)
        if found < 0:
            return 0, 0, 1
        p = found
    return p, stop, 0
