"""What is derived from rows, kept for as long as the rows stay what they are.

A row that changes is another object (`Catalog.mutate`), so the same object means the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, TypeVar

T = TypeVar("T")


class Memo:
    """Values derived from rows, by their keys."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Sequence[Any], Any]] = {}

    def of(self, key: Hashable, rows: Sequence[Any], derive: Callable[[], T]) -> T:
        """The value derived from these very rows; `key` names it and includes whatever else it depends on."""
        found = self._kept.get(key)
        if found is None or len(found[0]) != len(rows) or not all(map(is_, found[0], rows)):
            found = self._kept[key] = rows, derive()
        value: T = found[1]
        return value
