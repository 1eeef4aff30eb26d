"""Which values entries of a unique index may have already: all that a leader has stored go through a sieve."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stagewright.impl.indexes.bulk.columns import TURN
from stagewright.impl.indexes.bulk.numbers import Entries, Numbers, entries_of
from stagewright.impl.indexes.bulk.sieve import Sieve
from stagewright.impl.indexes.bulk.work import (
    Answer,
    DropSieve,
    RefusedWork,
    SiftedValues,
    SiftValues,
)
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.schema import value_of
from stagewright.impl.indexes.splits.tablet_map import place_parts
from stagewright.impl.indexes.tablet import ROWS

if TYPE_CHECKING:
    from stagewright.impl.indexes.index_tablet import IndexTablet

_MOST = 1 << 16  # values that wait to be put into the sieve of a builder
_NONE = Entries(0, True, b"", b"")
Then = Callable[[list[int]], None]


class StoredValues:
    """Of one leader. The sieve is here or, for many values, a builder's."""

    def __init__(self, tablet: IndexTablet) -> None:
        self._tablet = tablet
        self._sieve: Sieve | None = None  # here
        self._is_there = False
        self._is_new = False  # a builder has not heard of it
        self._known: list[int] = []  # what is to be put in

    def know(self, keys: Iterable[bytes]) -> None:
        """Entries are about to be stored."""
        values = list(map(value_of, keys))
        if self._sieve is not None:
            self._sieve.add(np.array(values, np.int64))
        elif self._is_there:
            self._known += values

    def sift(
        self, entries: Entries, values: Numbers, is_wanted: Callable[[], bool], then: Then
    ) -> None:
        """Go on with the places of those whose values entries may have already; from now on these have them, too.

        `values`: of all of them. What is stored meanwhile is not looked at. If they are not wanted any more, nothing follows.
        """
        if self._sieve is None and not self._is_there:
            self._is_there = self._is_new = len(values) >= self._tablet.settings.bulk
            self._sieve = None if self._is_there else Sieve()
            if self._forgets():
                self._sift(entries, values, is_wanted, then)
                return
            self._fill(b"", is_wanted, lambda: self._sift(entries, values, is_wanted, then))
        else:
            self._sift(entries, values, is_wanted, then)

    def close(self) -> None:
        """Nothing is sifted any more."""
        if self._is_there and not self._is_new:
            self._tablet.port.elsewhere(DropSieve(self._tablet.port.address), lambda _: None)
        self._is_there, self._sieve, self._known = False, None, []

    def _forgets(self) -> bool:
        """Whether this build is wrong, and the tablet a child of another."""
        settings = self._tablet.settings
        is_child = place_parts(self._tablet.port.address)[1] >= settings.tablets
        return is_child and Defect.children_do_not_know_values in settings.defects

    def _fill(self, low: bytes, is_wanted: Callable[[], bool], then: Callable[[], None]) -> None:
        """The first values that this leader sees: learn which there are."""
        if not is_wanted():
            return
        snapshot = self._tablet.store.snapshot()
        keys = [v.key for v in islice(snapshot.versions(ROWS, low, None), TURN)]
        snapshot.close()
        self.know(keys)
        if len(keys) < TURN:
            then()
        elif len(self._known) < _MOST:
            self._tablet.port.turn(self._fill, keys[-1] + b"\0", is_wanted, then)
        else:
            following = keys[-1] + b"\0"
            self._ask(_NONE, lambda _: self._fill(following, is_wanted, then))

    def _sift(
        self, entries: Entries, values: Numbers, is_wanted: Callable[[], bool], then: Then
    ) -> None:
        if not is_wanted():
            return
        if self._sieve is not None:
            self._sift_here(values, 0, [], is_wanted, then)
            return

        def answered(answer: Answer) -> None:
            if not is_wanted():
                return
            match answer:
                case SiftedValues(places):
                    then(list(places))
                case RefusedWork(again=True):  # the file is gone
                    held = entries_of(entries.index, entries.unique, values, values)
                    self._sift(held, values, is_wanted, then)
                case _:
                    self._is_there = False  # what the builder knew is lost
                    self.sift(entries, values, is_wanted, then)

        self._ask(entries, answered)

    def _ask(self, entries: Entries, then: Callable[[Answer], None]) -> None:
        port, known = self._tablet.port, np.array(self._known, np.int64)
        work = SiftValues(port.address, self._is_new, known.tobytes(), entries)
        self._known, self._is_new = [], False
        port.elsewhere(work, then)

    def _sift_here(
        self,
        values: Numbers,
        begin: int,
        found: list[int],
        is_wanted: Callable[[], bool],
        then: Then,
    ) -> None:
        if not is_wanted():
            return
        assert self._sieve is not None
        some = values[begin : begin + TURN]
        found += (np.flatnonzero(self._sieve.holds(some)) + begin).tolist()
        self._sieve.add(some)
        if begin + TURN >= len(values):
            then(found)
        else:
            here, port = self._sift_here, self._tablet.port
            port.turn(here, values, begin + TURN, found, is_wanted, then)
