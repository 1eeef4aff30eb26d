"""Which tablet of the table has a key: each has a range of hashes, which two others share when it has split.

A map is a version: whoever has an older one asks a tablet that has split, which refuses it. The numbers of tablets
are never used again, so a tablet need not look at what it is asked: its range is what it was when it was made.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

_ALL = 1 << 32  # sums


@dataclass(frozen=True)
class Split:
    """A tablet is replaced by two: the first one has the hashes below `at`."""

    parent: int
    at: int
    lower: int
    upper: int

    @property
    def children(self) -> tuple[int, int]:
        """Those that replace it."""
        return self.lower, self.upper


@dataclass(frozen=True)
class TabletMap:
    """The tablets that the table was created with, and how they have split since then."""

    created: int
    splits: tuple[Split, ...] = ()

    @property
    def version(self) -> int:
        """Of the map; every split is a new one."""
        return len(self.splits) + 1

    @cached_property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The tablets that serve, in the order of their hashes: the first one, and the first one beyond."""
        found = {n: (n * _ALL, (n + 1) * _ALL) for n in range(self.created)}
        for split in self.splits:
            low, high = found.pop(split.parent)
            found |= {split.lower: (low, split.at), split.upper: (split.at, high)}
        return dict(sorted(found.items(), key=lambda one: one[1]))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The tablets that serve."""
        return tuple(self.ranges)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(low for low, _ in self.ranges.values())

    def hash_of(self, stored: bytes) -> int:
        """Where a row's key stands: the tablets that the table was created with are ranges, too."""
        found = crc32(stored[:8])
        return (found % self.created) * _ALL + found // self.created

    def of(self, stored: bytes) -> int:
        """The tablet of a row by its key."""
        return self.numbers[bisect_right(self._starts, self.hash_of(stored)) - 1]

    def root(self, tablet: int) -> int:
        """The tablet that had its keys when the table was created. The definitions know of these alone."""
        parents = {child: split.parent for split in self.splits for child in split.children}
        while tablet in parents:
            tablet = parents[tablet]
        return tablet

    @cached_property
    def families(self) -> dict[int, frozenset[int]]:
        """By the tablets that the table was created with: those that have their keys now."""
        found = {n: set[int]() for n in range(self.created)}
        for tablet in self.numbers:
            found[self.root(tablet)].add(tablet)
        return {root: frozenset(tablets) for root, tablets in found.items()}

    def halves(self, tablet: int) -> Split | None:
        """How a tablet would split; None: it has one hash."""
        low, high = self.ranges[tablet]
        last = self.root(tablet) * _ALL + (_ALL - 1) // self.created
        at = (low + min(high, last + 1)) // 2
        number = self.created + 2 * len(self.splits)
        return Split(tablet, at, number, number + 1) if at > low else None

    def after(self, split: Split) -> TabletMap:
        """The next version."""
        return TabletMap(self.created, (*self.splits, split))

    def split_of(self, tablet: int) -> Split | None:
        """How a tablet has split, if it has."""
        return next((s for s in self.splits if s.parent == tablet), None)

    def heirs(self, tablet: int) -> tuple[int, ...]:
        """The tablets that serve what one had: itself, or those that it has split into."""
        split = self.split_of(tablet)
        if split is None:
            return (tablet,) if tablet in self.ranges else ()
        return tuple(heir for child in split.children for heir in self.heirs(child))
