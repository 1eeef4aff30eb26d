"""Which tablet of the table has a key, or of an index an entry: each has a range of hashes, which two others share when it has split.

A map is a version: whoever has an older one asks a tablet that has split, which refuses it. The numbers of tablets
are never used again, so a tablet need not look at what it is asked: its range is what it was when it was made.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

ALL = 1 << 32  # sums
TABLE = "table"


def index_table(index: int) -> str:
    """What a table of an index is called."""
    return f"index{index}"


def place_parts(place: str) -> tuple[str, int]:
    """The table of a tablet by its address, and its number."""
    table, _, tablet = place.partition("/")
    return table, int(tablet)


@dataclass(frozen=True)
class Split:
    """A tablet is replaced by two: the first one has the hashes below `at`."""

    parent: int
    at: int
    lower: int
    upper: int
    table: str = TABLE  # or that of an index

    @property
    def children(self) -> tuple[int, int]:
        """Those that replace it."""
        return self.lower, self.upper

    @property
    def place(self) -> str:
        """The address of the one."""
        return f"{self.table}/{self.parent}"

    @property
    def places(self) -> tuple[str, str]:
        """The addresses of the two."""
        return f"{self.table}/{self.lower}", f"{self.table}/{self.upper}"


@dataclass(frozen=True)
class TabletMap:
    """The tablets that a table was created with, and how they have split since then."""

    created: int
    splits: tuple[Split, ...] = ()
    table: str = TABLE

    @property
    def version(self) -> int:
        """Of the map; every split is a new one."""
        return len(self.splits) + 1

    @cached_property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The tablets that serve, in the order of their hashes: the first one, and the first one beyond."""
        found = {n: (n * ALL, (n + 1) * ALL) for n in range(self.created)}
        for split in self.splits:
            low, high = found.pop(split.parent)
            found |= {split.lower: (low, split.at), split.upper: (split.at, high)}
        return dict(sorted(found.items(), key=lambda one: one[1]))

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The tablets that serve."""
        return tuple(self.ranges)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Their addresses."""
        return tuple(map(self.place, self.numbers))

    @property
    def ever(self) -> tuple[str, ...]:
        """The addresses of all that there ever were."""
        return tuple(map(self.place, range(self.created + 2 * len(self.splits))))

    def place(self, tablet: int) -> str:
        """The address of a tablet."""
        return f"{self.table}/{tablet}"

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first hash of each of those that serve."""
        return tuple(low for low, _ in self.ranges.values())

    def hash_of(self, stored: bytes) -> int:
        """Where a row's key stands, or the value of an entry: the first tablets are ranges, too."""
        found = crc32(stored[:8])
        return (found % self.created) * ALL + found // self.created

    def of(self, stored: bytes) -> int:
        """The tablet of a row by its key, or of an entry."""
        return self.numbers[bisect_right(self.starts, self.hash_of(stored)) - 1]

    def place_of(self, stored: bytes) -> str:
        """Its address."""
        return self.place(self.of(stored))

    def root(self, tablet: int) -> int:
        """The tablet that had its keys when the table was created. The definitions of a job know of these alone."""
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
        last = self.root(tablet) * ALL + (ALL - 1) // self.created
        at = (low + min(high, last + 1)) // 2
        number = self.created + 2 * len(self.splits)
        return Split(tablet, at, number, number + 1, self.table) if at > low else None

    def after(self, split: Split) -> TabletMap:
        """The next version."""
        return TabletMap(self.created, (*self.splits, split), self.table)

    def split_of(self, tablet: int) -> Split | None:
        """How a tablet has split, if it has."""
        return next((s for s in self.splits if s.parent == tablet), None)

    def heirs(self, tablet: int) -> tuple[int, ...]:
        """The tablets that serve what one had: itself, or those that it has split into."""
        split = self.split_of(tablet)
        if split is None:
            return (tablet,) if tablet in self.ranges else ()
        return tuple(heir for child in split.children for heir in self.heirs(child))


class TabletMaps:
    """The newest maps that somebody has heard of, by their tables; what it has not heard of has not split."""

    def __init__(self, created: int) -> None:
        """`created`: the tablets that each table begins with."""
        self.created = created
        self._known: dict[str, TabletMap] = {}

    def of(self, table: str = TABLE) -> TabletMap:
        """That of the table, or of an index."""
        return self._known.get(table) or TabletMap(self.created, (), table)

    def learn(self, tablets: TabletMap) -> bool:
        """Hear of one; whether it is newer."""
        is_newer = tablets.version > self.of(tablets.table).version
        if is_newer:
            self._known[tablets.table] = tablets
        return is_newer

    def place_of(self, index: int, entry: bytes) -> str:
        """The address of the tablet of an index that has an entry."""
        return self.of(index_table(index)).place_of(entry)

    def first_place_of(self, index: int, entry: bytes) -> str:
        """What a wrong build takes for it: the first child of one that has split, and its first child."""
        tablets = self.of(index_table(index))
        root = TabletMap(self.created, (), tablets.table).of(entry)
        return tablets.place(tablets.heirs(root)[0])
