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
LONGEST_KEY = 4 << 10  # bytes
MOST_DIGITS = 18  # of a number with which a view calculates
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
COMPARISONS = tuple(_COMPARED)
LARGEST_NUMBER = 1_000_000  # by which a view divides, or with which it compares


@dataclass(frozen=True)
class ViewDefinition:
    """A view by the value of the base row, or by the remainder of its division by `modulus`.

    With a `comparison` the rows are in it whose value compares so with `bound`. Both are about values that are
    decimal numbers of at most 18 digits: others are in no view that calculates. A value of more than 4 KiB is no
    key, and its row in no view.
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

    def __str__(self) -> str:
        """How it is written in a statement, after the name of its base table."""
        divided = f" mod {self.modulus}" if self.modulus else ""
        where = f" where value {self.comparison} {self.bound}" if self.comparison else ""
        return f"by value{divided}{where}"

    def row_of(self, base_key: bytes, value: bytes | None) -> bytes | None:
        """The stored key of the view row of a base row, by its stored key; None: it is not in the view."""
        key = None if value is None else self._key_of(value)
        if key is None:
            return None
        return partition_of(key) + base_key[TOKEN:]

    def _key_of(self, value: bytes) -> bytes | None:
        if not self.modulus and not self.comparison:
            return value if len(value) <= LONGEST_KEY else None
        if not value.isdigit() or len(value) > MOST_DIGITS:
            return None
        number = int(value)
        if self.comparison and not _COMPARED[self.comparison](number, self.bound):
            return None
        return b"%d" % (number % self.modulus) if self.modulus else value


def definition_in(words: list[str]) -> tuple[int, str, int] | None:
    """The modulus, the comparison and the bound of `by value [mod NUMBER] [where value < NUMBER]`; None: it is none."""
    modulus = 0
    match words:
        case ["by", "value", "mod", number, *rest] if _is_number(number) and int(number):
            modulus, words = int(number), rest
        case ["by", "value", *rest]:
            words = rest
        case _:
            return None
    match words:
        case []:
            return modulus, "", 0
        case ["where", "value", comparison, bound] if comparison in COMPARISONS and _is_number(
            bound
        ):
            return modulus, comparison, int(bound)
        case _:
            return None


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) <= MOST_DIGITS and int(word) <= LARGEST_NUMBER


def partition_of(key: bytes) -> bytes:
    """What the stored keys of all rows begin with that have one key in a view."""
    return start_of(token_of(key)) + len(key).to_bytes(_LENGTH, "big") + key


def parts_of(stored: bytes) -> tuple[bytes, bytes]:
    """The view's key and the base row's key of a stored view row."""
    body = stored[TOKEN:]
    length = int.from_bytes(body[:_LENGTH], "big")
    return body[_LENGTH : _LENGTH + length], body[_LENGTH + length :]
