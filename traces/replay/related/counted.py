"""How many entities of each class a property sees, as numbered counts: `Counting`.

Machine code looks up where a count leads when an entity comes or goes; what it does not know yet is found
here, once. So each different count is decided once, however often it is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.replay.related.classes import Related, Seen
from stagewright.traces.replay.related.formula import ClassOf, evaluate
from stagewright.traces.replay.transition_table import slot_of

Ints = NDArray[Any]

UNASKED, HOLDS, BROKEN, OPEN = -1, 0, 1, 2  # what is known of a count

CHOICES_MAX = 4_096  # ways in which uncertain entities may be; with more the count is OPEN

LESS, MORE = 0, 1


class Kind(NamedTuple):
    """A class of entities as one property sees it: the values that they may have (of none: any)."""

    prop: int
    family: int
    options: tuple[tuple[int, ...], ...]


# (kind, how many, but no more than counts), sorted; none is left out
Count = tuple[tuple[int, int], ...]


class Counting:
    """The counts of some properties."""

    def __init__(self, properties: Sequence[Related]) -> None:
        self.properties = properties
        self.kinds: list[Kind] = []
        self._kind_numbers: dict[Kind, int] = {}
        self.most = np.zeros(0, np.int64)  # by kind: with more entities nothing changes
        self.counts: list[tuple[int, Count]] = []  # property and count, by number
        self._numbers: dict[tuple[int, Count], int] = {}
        self.verdicts = np.full(64, UNASKED, np.int8)
        self.keys = np.zeros(1 << 10, np.int64)
        self.values = np.zeros(1 << 10, np.int64)
        self._used = 0
        self.nobody = np.array([self.number(p, ()) for p in range(len(properties))], np.int64)

    def kinds_of(self, seen: Seen) -> list[list[int]]:
        """The kinds of a class of entities, of each property: one a family that it is of."""
        return [
            [
                self._kind(Kind(number, family, prop.options(family, seen)))
                for family, (machine, _) in enumerate(prop.families)
                if machine == seen.machine
            ]
            for number, prop in enumerate(self.properties)
        ]

    def _kind(self, kind: Kind) -> int:
        found = self._kind_numbers.setdefault(kind, len(self.kinds))
        if found == len(self.kinds):
            self.kinds.append(kind)
            most = self.properties[kind.prop].weight * max(len(kind.options), 1)
            self.most = np.append(self.most, max(most, 1))
        return found

    def number(self, prop: int, count: Count) -> int:
        """The number of a count."""
        found = self._numbers.setdefault((prop, count), len(self.counts))
        if found == len(self.counts):
            self.counts.append((prop, count))
            if found >= len(self.verdicts):
                more = np.full_like(self.verdicts, UNASKED)
                self.verdicts = np.concatenate([self.verdicts, more])
        return found

    def fill(self, number: int, step: int) -> None:
        """Find out where a count leads when an entity of a kind comes or goes, and remember it."""
        prop, count = self.counts[number]
        kind, way = divmod(step, 2)
        changed = dict(count)
        changed[kind] = changed.get(kind, 0) + (1 if way == MORE else -1)
        value = self.number(prop, tuple(sorted((k, n) for k, n in changed.items() if n)))
        if 2 * self._used >= len(self.keys):
            self._grow()
        _store(self.keys, self.values, number, step, value)
        self._used += 1

    def decide(self, number: int) -> None:
        """Find out whether the property holds of a count."""
        self.verdicts[number] = self.verdict(*self.counts[number])

    def verdict(self, prop: int, count: Count) -> int:
        """HOLDS or BROKEN, or OPEN where that depends on what is not known."""
        related = self.properties[prop]
        found: int | None = None
        ways = 1
        for kind, times in count:
            options = self.kinds[kind].options
            if not options:
                return OPEN
            ways *= comb(times + len(options) - 1, times)
            if ways > CHOICES_MAX:
                return OPEN
        for chosen in self._choices(count):
            this = HOLDS if evaluate(related.formula, chosen) else BROKEN
            if found not in (None, this):
                return OPEN
            found = this
        assert found is not None
        return found

    def _choices(self, count: Count) -> Iterator[Mapping[ClassOf, int]]:
        """What the entities may be."""
        parts = [
            list(combinations_with_replacement(self.kinds[kind].options, times))
            for kind, times in count
        ]
        families = [self.kinds[kind].family for kind, _ in count]
        for chosen in product(*parts):
            found: dict[ClassOf, int] = {}
            for family, values in zip(families, chosen, strict=True):
                for value in values:
                    one = ClassOf(family, value)
                    found[one] = found.get(one, 0) + 1
            yield found

    def core(self, prop: int, count: Mapping[int, int], last: int) -> dict[int, int]:
        """So few entities of each kind that the property is broken by them alone; of `last` as many as can be."""
        left = dict(count)
        for kind in sorted(left, key=lambda k: (k == last, k)):
            for fewer in range(left[kind]):
                tried = {**left, kind: fewer}
                if self.verdict(prop, _count(tried)) == BROKEN:
                    left = tried
                    break
        return {kind: times for kind, times in left.items() if times}

    def _grow(self) -> None:
        keys, values = self.keys, self.values
        self.keys, self.values = (
            np.zeros(4 * len(keys), np.int64),
            np.zeros(4 * len(keys), np.int64),
        )
        for key, value in zip(keys[keys != 0].tolist(), values[keys != 0].tolist(), strict=True):
            number, step = divmod(key - 1, 1 << 31)
            _store(self.keys, self.values, number, step, value)


def _count(counts: Mapping[int, int]) -> Count:
    return tuple(sorted((kind, times) for kind, times in counts.items() if times))


@compiled
def _store(keys: Ints, values: Ints, number: int, step: int, value: int) -> None:
    slot = slot_of(keys, number, step)
    keys[slot] = (number << 31 | step) + 1
    values[slot] = value
