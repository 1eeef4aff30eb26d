"""Values as the JSON text that stands in indexes: one text for one value, as JavaScript writes it."""

from __future__ import annotations

import json
import math

_SIMPLE = {str, int, bool, type(None)}
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_ESCAPING = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def json_text(value: object) -> bytes:
    """Compact JSON in UTF-8. Raises TypeError or ValueError for what JSON cannot say."""
    if type(value) is int:
        return b"%d" % value
    if value is None:
        return b"null"
    simple = type(value) is list and all(type(element) in _SIMPLE for element in value)
    plain = value if simple else _plain(value)
    try:
        return _ENCODER.encode(plain).encode()
    except UnicodeEncodeError:  # half of a surrogate pair: only an escape can say it
        return _ESCAPING.encode(plain).encode()


def _plain(value: object) -> object:
    """With whole floats as integers, so that 1.0 and 1 are one key."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            whole = math.isfinite(value) and value.is_integer() and abs(value) < 1 << 53
            return int(value) if whole else value
        case list() | tuple():
            return [_plain(element) for element in value]
        case dict():
            return {_name(name): _plain(member) for name, member in value.items()}
        case _:
            raise TypeError(f"{type(value).__name__} is no JSON value: {value!r:.60}")


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a member is a string, not {name!r:.60}")
    return name
