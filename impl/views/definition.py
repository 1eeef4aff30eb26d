"""What a view is: which rows of its base table are in it, and under which key each of them is.

A row of a view has the key that the definition makes of the base row's value, and the base row's own key beside
it. Both are stored one after the other, behind the token of the first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stagewright.impl.node.keys import start_of
from stagewright.impl.ring.partitioner import token_of

TOKEN = 8  # bytes of the token before a stored key
_LENGTH = 2  # bytes of the length of a view's key
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
COMPARISONS = tuple(_COMPARED)


@dataclass(frozen=True)
class ViewDefinition:
    """A view by the value of the base row, or by the remainder of its division by `modulus`.

    With a `comparison` the rows are in it whose value compares so with `bound`. Both are about values that are
    decimal numbers: others are in no view that calculates.
    """

    name: str
    base: str
    modulus: int = 0
    comparison: str = ""
    bound: int = 0

    @classmethod
    def of(cls, name: str, row: Mapping[str, Any]) -> ViewDefinition:
        """The definition that a row of the table of tables has."""
        return cls(name, row["view_of"], *row["view_definition"])

    @property
    def columns(self) -> dict[str, Any]:
        """The inverse: what such a row says of it."""
        definition = [self.modulus, self.comparison, self.bound]
        return {"view_of": self.base, "view_definition": definition}

    def row_of(self, base_key: bytes, value: bytes | None) -> bytes | None:
        """The stored key of the view row of a base row, by its stored key; None: it is not in the view."""
        key = None if value is None else self._key_of(value)
        if key is None:
            return None
        length = len(key).to_bytes(_LENGTH, "big")
        return start_of(token_of(key)) + length + key + base_key[TOKEN:]

    def _key_of(self, value: bytes) -> bytes | None:
        if not self.modulus and not self.comparison:
            return value
        if not value.isdigit():
            return None
        number = int(value)
        if self.comparison and not _COMPARED[self.comparison](number, self.bound):
            return None
        return b"%d" % (number % self.modulus) if self.modulus else value


def parts_of(stored: bytes) -> tuple[bytes, bytes]:
    """The view's key and the base row's key of a stored view row."""
    body = stored[TOKEN:]
    length = int.from_bytes(body[:_LENGTH], "big")
    return body[_LENGTH : _LENGTH + length], body[_LENGTH + length :]
