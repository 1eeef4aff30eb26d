"""The entities that are not ok beyond those that a report lists one by one: as packed rows, and by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from stagewright.traces.report.page_entity import kind_of
from stagewright.traces.report.results import EntityReport
from stagewright.traces.report.violations_table import packed, unpacked

_TOGETHER = 10_000  # rows that are packed at once


class Overflow:
    """Takes entities in the order of reports; a packed row is some tens of bytes."""

    def __init__(self) -> None:
        self.kinds: Counter[tuple[str, str, str]] = Counter()
        self._packed: list[bytes] = []
        self._waiting: list[EntityReport] = []

    def add(self, entity: EntityReport) -> None:
        """Take one more."""
        self.kinds[kind_of(entity)] += 1
        self._waiting.append(entity)
        if len(self._waiting) >= _TOGETHER:
            self._packed.append(packed(self._waiting))
            self._waiting = []

    def tables(self) -> Iterator[Any]:
        """All rows, as tables of Arrow."""
        for one in self._packed:
            yield unpacked(one)
        if self._waiting:
            yield unpacked(packed(self._waiting))
