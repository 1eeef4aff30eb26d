"""What rows come to, made once for as long as the rows stay what they are.

A row that changes is another object (`Catalog.mutate`): to be the same one is to say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, TypeVar

T = TypeVar("T")


class Made:
    """What was made of rows, by what it is."""

    def __init__(self) -> None:
        self._made: dict[Hashable, tuple[Sequence[Any], Any]] = {}

    def of(self, key: Hashable, rows: Sequence[Any], make: Callable[[], T]) -> T:
        """What was made of these very rows; `key` says what that is, and has all else that it depends on."""
        found = self._made.get(key)
        if found is None or len(found[0]) != len(rows) or not all(map(is_, found[0], rows)):
            found = self._made[key] = rows, make()
        made: T = found[1]
        return made
