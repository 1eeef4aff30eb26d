"""What is reduced in the nodes of a view's tree: the builtin functions, and what others must offer."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class ReduceError(Exception):
    """A reduce function failed; `key` is the emitted key (JSON) at which, where one is known."""

    def __init__(self, function: str, reason: str, key: str | None = None) -> None:
        at = f" (key {key})" if key is not None else ""
        super().__init__(f"{function}: {reason}{at}")
        self.function = function
        self.key = key


class Totals(NamedTuple):
    """Of the numbers among the values of a leaf."""

    sum: float
    least: float
    greatest: float
    squares: float


class ReduceRow(NamedTuple):
    """One emitted value: its key as JSON, the document's id, the value as JSON."""

    key: bytes
    doc_id: bytes
    value: bytes


class LeafRows(Protocol):
    """What a reduce function gets of a leaf; what it does not ask for is not computed."""

    @property
    def count(self) -> int:
        """How many values there are."""
        ...

    def totals(self) -> Totals:
        """Of the numbers; raises ReduceError where a value is not one."""
        ...

    def rows(self) -> Sequence[ReduceRow]:
        """The values one by one."""
        ...


class Reducer(Protocol):
    """A reduce function. Values are JSON text; at most 65,535 bytes fit into a node."""

    @property
    def name(self) -> str: ...

    def reduce(self, leaf: LeafRows) -> bytes:
        """The value of the rows of one leaf (or of part of one)."""
        ...

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        """One value for several."""
        ...


def number_text(number: float) -> bytes:
    """A number as JSON: exact, and short where it is whole."""
    if not math.isfinite(number):
        raise ReduceError("_sum", "the total is too large for a double")
    if number.is_integer() and abs(number) < 1 << 53:
        return b"%d" % int(number)
    return repr(number).encode()


def _numbers(function: str, values: Sequence[bytes]) -> list[float]:
    try:
        return [float(value) for value in values]
    except ValueError:
        raise ReduceError(function, "a reduction is not a number") from None


@dataclass(frozen=True)
class Count:
    """`_count`: how many values."""

    name: str = "_count"

    def reduce(self, leaf: LeafRows) -> bytes:
        return b"%d" % leaf.count

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        try:
            return b"%d" % sum(int(value) for value in values)
        except ValueError:
            raise ReduceError(self.name, "a reduction is not a count") from None


@dataclass(frozen=True)
class Sum:
    """`_sum`: the sum of the values, which must be numbers, in doubles."""

    name: str = "_sum"

    def reduce(self, leaf: LeafRows) -> bytes:
        return number_text(leaf.totals().sum)

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        return number_text(sum(_numbers(self.name, values)))


@dataclass(frozen=True)
class Stats:
    """`_stats`: sum, count, min, max and the sum of squares. Written exactly; the original keeps 6 digits."""

    name: str = "_stats"
    _fields: tuple[str, ...] = field(default=("sum", "count", "min", "max", "sumsqr"), repr=False)

    def reduce(self, leaf: LeafRows) -> bytes:
        totals = leaf.totals()
        return self._text(totals.sum, leaf.count, totals.least, totals.greatest, totals.squares)

    def rereduce(self, values: Sequence[bytes]) -> bytes:
        try:
            parts = [json.loads(value) for value in values]
            columns = [[part[name] for part in parts] for name in self._fields]
            sums, counts, leasts, greatests, squares = columns
            return self._text(
                float(sum(sums)),
                int(sum(counts)),
                float(min(leasts)),
                float(max(greatests)),
                float(sum(squares)),
            )
        except (ValueError, TypeError, KeyError):
            raise ReduceError(self.name, "a reduction is no object of _stats") from None

    def _text(
        self, total: float, count: int, least: float, greatest: float, squares: float
    ) -> bytes:
        numbers = (number_text(total), b"%d" % count, *map(number_text, (least, greatest, squares)))
        members = (
            b'"%b":%b' % (name.encode(), number)
            for name, number in zip(self._fields, numbers, strict=True)
        )
        return b"{" + b",".join(members) + b"}"


BUILTIN: dict[str, Reducer] = {reducer.name: reducer for reducer in (Count(), Sum(), Stats())}
