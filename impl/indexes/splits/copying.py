"""What the stores of the two get that a tablet splits into: what it has, and what it writes until it takes no more.

It is served meanwhile; `fill` and `finish` are called where they keep nobody waiting, in any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.splits.tablet_map import TABLE, Split, TabletMap
from stagewright.impl.indexes.tablet import ENDED, INTENTS, META, NEWEST, ROWS
from stagewright.impl.storage.port import Put, Version

if TYPE_CHECKING:
    from stagewright.impl.indexes.port import NewTablet
    from stagewright.impl.indexes.splits.divisible import DivisibleTablet

COUNT = b"rows"
_AT_ONCE = 1_000
_SHORT = 500  # writes that clients may wait for
Wrong = tuple[Defect | None, Defect | None]  # of tablets of the table, and of an index
_LATE = Defect.late_writes_stay_with_the_parent, Defect.late_entries_stay_with_the_parent
_PENDING = Defect.intents_stay_with_the_parent, Defect.pending_entries_stay_with_the_parent
_ALL = Defect.children_have_all_rows, Defect.children_have_all_entries
_HISTORY = Defect.children_have_no_history, None
_MARKERS = None, Defect.splits_reclaim_markers


@dataclass
class Child:
    """One of the two, and what it got."""

    place: str
    new: NewTablet | None = None  # None: it is there already
    found: int = 0  # rows or entries
    added: int = 0  # since then
    versions: int = 0
    intents: int = 0
    puts: list[Put] = field(default_factory=list[Put])

    @property
    def rows(self) -> int:
        """How many it has."""
        return self.found + self.added

    def put(self, put: Put) -> None:
        """Have it written with others."""
        self.puts.append(put)
        if len(self.puts) >= _AT_ONCE:
            self.write()

    def write(self) -> None:
        """Write what is put."""
        if self.new is not None:
            self.new.store.write(self.puts)
        self.puts.clear()

    def sync(self) -> None:
        """What was written is on the disk."""
        if self.new is not None:
            self.new.store.sync()


class Copying:
    """Of one tablet, as it splits."""

    def __init__(self, tablet: DivisibleTablet, split: Split, tablets: TabletMap) -> None:
        self.split = split
        self.is_short = False  # nothing is left but what was written last
        self.lower, self.upper = self.children = Child(split.places[0]), Child(split.places[1])
        self._tablet = tablet
        self._tablets = tablets
        self._snapshot = tablet.store.snapshot()
        self._stored = self._all()
        self._written: list[Put] = []  # since the snapshot, and not given to them yet
        self._is_begun = False

    def keep(self, puts: Iterable[Put]) -> None:
        """The tablet has written this."""
        if not self._has(_LATE):
            self._written += (p for p in puts if p.family in (ROWS, ENDED))

    def count(self, key: bytes, more: int) -> None:
        """There are more rows or entries, or fewer, by what it has written."""
        self._of(key).added += more

    def written(self) -> list[Put]:
        """What is to be given to them next."""
        found, self._written = self._written, []
        return found

    def fill(self, written: list[Put]) -> None:
        """Give them some of what was stored, and what was written meanwhile."""
        if not self._is_begun:
            self._is_begun = True
            for child in self.children:
                child.new = self._tablet.port.make_tablet(child.place)
        some = list(islice(self._stored, self._tablet.settings.chunk_rows))
        for put in chain(some, written):
            self._give(put)
        for child in self.children:
            child.write()
        self.is_short = not some and len(written) <= _SHORT
        if self.is_short:  # who waits later waits for little
            for child in self.children:
                child.sync()

    def finish(self, until: int) -> None:
        """The tablet takes no more: give them the rest, and they are there."""
        for put in self._written:
            self._give(put)
        tablet, inherited = self._tablet, list(self._tablet.inherited())
        if not self._has(_PENDING):
            for key, intent in tablet.intents.items():
                child = self._of(key)
                child.intents += 1
                child.put(Put(INTENTS, Version(key, 1, intent.encoded())))
        for child in self.children:
            for put in inherited:
                child.put(put)
            child.put(Put(META, Version(NEWEST, 1, str(until).encode())))
            child.put(Put(META, Version(COUNT, 1, str(child.rows).encode())))
            child.write()
            child.sync()
        for child in self.children:
            if child.new is not None:
                child.new.finish()

    def close(self) -> None:
        """Nothing of the tablet's store is held any more; of what is not finished nothing is there."""
        self._snapshot.close()
        for child in self.children:
            if child.new is not None:
                child.new.close()

    def _of(self, key: bytes) -> Child:
        return self.lower if self._tablets.hash_of(key) < self.split.at else self.upper

    def _has(self, wrong: Wrong) -> bool:
        """Whether this build is wrong so."""
        return wrong[self.split.table != TABLE] in self._tablet.settings.defects

    def _give(self, put: Put) -> None:
        all_rows = self._has(_ALL)
        if put.family != ROWS:
            self.lower.put(put)
            self.upper.put(put)
            return
        for child in self.children if all_rows else (self._of(put.version.key),):
            child.versions += 1
            child.put(put)

    def _all(self) -> Iterator[Put]:
        """Rows or entries, and ends of transactions, as they were."""
        history = not self._has(_HISTORY)
        last, reclaimed = b"", False
        for version in self._snapshot.versions(ROWS, b"", None):
            if version.key != last:
                last, reclaimed = version.key, version.value is None and self._has(_MARKERS)
                if reclaimed:
                    continue
                self._of(last).found += version.value is not None
                yield Put(ROWS, version)
            elif history and not reclaimed:
                yield Put(ROWS, version)
        yield from (Put(ENDED, v) for v in self._snapshot.versions(ENDED, b"", None))
