"""Numbers of a JSON object, as a row has its columns: found by their names, without an object for each."""

from __future__ import annotations

from typing import Any

from stagewright.compiled import compiled
from stagewright.impl.storage.sst.blocks import wide

FOUND, ABSENT, OTHER = 1, 0, -3  # a number; none, or null; anything else
_DIGITS = 18  # that fit into 64 bits, whatever they are
_OPEN, _CLOSE, _QUOTE, _BACKSLASH, _COLON, _COMMA, _BLANK = b'{}"\\:, '
_MINUS, _ZERO, _NINE, _NULL = b"-09n"


@compiled
def _after_name(text: Any, at: int, stop: int) -> int:
    """The place after the quote that ends it."""
    while at < stop and text[at] != _QUOTE:
        at += 2 if text[at] == _BACKSLASH else 1
    return at + 1


@compiled
def number_of(text: Any, at: int, stop: int, names: Any, begin: int, end: int) -> tuple[int, int]:
    """What an object of numbers has under a name, `names[begin:end]`, with its quotes: `FOUND` and the number, or not."""
    nothing = wide(0)
    if at >= stop or text[at] != _OPEN:
        return OTHER, nothing
    at += 1
    while True:
        while at < stop and (text[at] == _BLANK or text[at] == _COMMA):
            at += 1
        if at < stop and text[at] == _CLOSE:
            return (ABSENT if at + 1 == stop else OTHER), nothing
        if at >= stop or text[at] != _QUOTE:
            return OTHER, nothing
        name = at
        at = _after_name(text, at + 1, stop)
        same = at - name == end - begin
        one = 0
        while same and one < end - begin:
            same = text[name + one] == names[begin + one]
            one += 1
        while at < stop and (text[at] == _BLANK or text[at] == _COLON):
            at += 1
        if at < stop and text[at] == _NULL:
            at += 4
            if same:
                return ABSENT, nothing
            continue
        negative = at < stop and text[at] == _MINUS
        if negative:
            at += 1
        first, value = at, wide(0)
        while at < stop and _ZERO <= text[at] <= _NINE and at - first < _DIGITS:
            value = value * 10 + (wide(text[at]) - _ZERO)
            at += 1
        if at == first or at >= stop:
            return OTHER, nothing
        if text[at] != _COMMA and text[at] != _CLOSE:
            return OTHER, nothing  # more digits, or no whole number
        if same:
            return FOUND, (-value if negative else value)
