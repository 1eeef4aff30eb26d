"""What clients of a run draw their transactions from: inserts, updates, deletes, keys handed from row to row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from stagewright.impl.indexes.client import Change
from stagewright.impl.indexes.schema import COLUMNS, Values


@dataclass
class Workload:
    """What clients draw their transactions from."""

    keys: int = 40
    values: int = 200
    columns: tuple[str, ...] = COLUMNS
    pause: tuple[int, int] = (3, 40)
    slow: float = 0.08
    held: Mapping[int, Values] = field(default_factory=dict[int, Values])

    def draw(self, dice: Random, known: Mapping[int, Values]) -> tuple[list[Change], int]:
        """A transaction, and how long it pauses: inserts, updates, deletes, keys handed over."""
        pause = dice.randint(80, 900) if dice.random() < self.slow else 0
        kind = dice.random()
        key = dice.randrange(self.keys)
        if kind < 0.15 and known.get(key):
            other = dice.randrange(self.keys)
            if other != key and not known.get(other):
                return [(key, None), (other, known[key])], pause
        if kind < 0.3:
            return [(key, None)], pause
        changes: list[Change] = [(key, self._values(dice))]
        if kind < 0.5:
            other = dice.randrange(self.keys)
            if other != key:
                changes.append((other, self._values(dice)))
        return changes, pause

    def _values(self, dice: Random) -> Values:
        return {c: dice.randrange(self.values) for c in self.columns if dice.random() < 0.9}
