"""The order of view keys: JSON text as bytes that compare as CouchDB's collation orders the values.

null < false < true < numbers < strings < arrays < objects; arrays and objects element by element, in
the order in which they are written; numbers as doubles, so that 1 and 1.0 are one key. Strings compare
by code points. The original asks ICU for the order of strings: there "a" < "B" < "c", here "B" < "a" < "c".
For strings of lower-case letters and digits the two agree.
"""

from __future__ import annotations

import json
import struct

END = 1  # of an array or object: less than any element
NULL, FALSE, TRUE, NUMBER, STRING, ARRAY, OBJECT = range(2, 9)
STRING_END = 0

_ESCAPED = {0: b"\1\1", 1: b"\1\2"}  # so that no byte of a string is less than its end
_DOUBLE = struct.Struct(">d")
_SIGN = 1 << 63
_ALL = (1 << 64) - 1


class _Members(list[tuple[str, object]]):
    """The members of an object in the order of the text."""


def sort_bytes(text: bytes | str) -> bytes:
    """The bytes that stand for a JSON value in comparisons; no value's bytes start another's.

    Raises ValueError for text that is not JSON.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    _append(json.loads(text, object_pairs_hook=_Members, parse_int=_double), parts)
    return b"".join(parts)


def _double(digits: str) -> float:
    return float(digits)  # an int of Python would be exact, and too large for a double


def number_bytes(number: float) -> bytes:
    """A double as 9 bytes that compare as numbers do; -0.0 and 0.0 are one."""
    bits = int.from_bytes(_DOUBLE.pack(number + 0.0), "big")
    return bytes([NUMBER]) + ((bits ^ _ALL) if bits & _SIGN else bits | _SIGN).to_bytes(8, "big")


def _append(value: object, parts: list[bytes]) -> None:
    match value:
        case None:
            parts.append(bytes([NULL]))
        case False:
            parts.append(bytes([FALSE]))
        case True:
            parts.append(bytes([TRUE]))
        case float():
            parts.append(number_bytes(value))
        case str():
            body = value.encode("utf-8", "surrogatepass")
            if b"\0" in body or b"\1" in body:
                body = b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in body)
            parts += (bytes([STRING]), body, bytes([STRING_END]))
        case _Members():
            parts.append(bytes([OBJECT]))
            for name, member in value:
                _append(name, parts)
                _append(member, parts)
            parts.append(bytes([END]))
        case list():
            parts.append(bytes([ARRAY]))
            for element in value:
                _append(element, parts)
            parts.append(bytes([END]))
        case _:
            raise ValueError(f"{value!r} is no JSON value")
