"""A cache beside a database: readers fill it, writers invalidate it, and leases keep old values out.

After Nishtala and others' "Scaling Memcache at Facebook", 3.2.1.
"""

from __future__ import annotations

from enum import Enum, auto

import stagewright.spec as sw

LAST = 2  # versions that a check goes through


class Reader(sw.Entity, scope=2):
    """Looks into the cache first."""


class At(Enum):
    """Where a reader is."""

    idle = auto()
    missed = auto()
    loaded = auto()


WRITER, CACHE = sw.Actor("writer"), sw.Actor("cache")


class CacheInvalidation(sw.Machine):
    """One key: its version in the database and in the cache."""

    version: sw.NumberVar = sw.number(0, LAST)  # in the database
    invalidations: sw.NumberVar = sw.number(0, LAST)  # under way to the cache
    filled: sw.FlagVar = sw.flag()
    cached: sw.NumberVar = sw.number(0, LAST)  # if the cache is filled
    at = sw.per(Reader, sw.one_of(At, init=At.idle))
    loaded = sw.per(Reader, sw.number(0, LAST))
    leases: sw.SetVar[Reader] = sw.set_of(Reader)  # may fill the cache

    @sw.action(by=WRITER)
    def write(self) -> None:
        """A new version is written to the database, and an invalidation sent to the cache."""
        sw.bounded(self.version < LAST)
        self.version = self.version + 1
        self.invalidations = self.invalidations + 1

    @sw.action(by=CACHE, fair=sw.Fairness.WEAK)
    def invalidate(self) -> None:
        """An invalidation arrives: the entry goes, and so do the leases."""
        sw.require(self.invalidations > 0, "an invalidation is under way")
        self.invalidations = self.invalidations - 1
        self.filled = False
        self.cached = 0
        self.leases = frozenset()

    @sw.action
    def miss(self, r: sw.Term[Reader]) -> None:
        """A reader finds nothing in the cache, and is given a lease."""
        sw.require(self.at[r] == At.idle, "reader is idle")
        sw.require(~self.filled, "the cache is empty")
        self.at[r] = At.missed
        self.leases.add(r)

    @sw.action(fair=sw.Fairness.WEAK)
    def load(self, r: sw.Term[Reader]) -> None:
        """A reader reads the database."""
        sw.require(self.at[r] == At.missed, "reader has missed")
        self.at[r] = At.loaded
        self.loaded[r] = self.version

    @sw.action(fair=sw.Fairness.WEAK)
    def fill(self, r: sw.Term[Reader]) -> None:
        """The cache takes what a reader with a lease has read."""
        sw.require(self.at[r] == At.loaded, "reader has read the database")
        sw.require(self.leases.has(r), "its lease is valid")
        self.filled = True
        self.cached = self.loaded[r]
        self.at[r] = At.idle
        self.loaded[r] = 0
        self.leases.discard(r)

    @sw.action(fair=sw.Fairness.WEAK)
    def fill_refused(self, r: sw.Term[Reader]) -> None:
        """The cache refuses what a reader without a lease has read."""
        sw.require(self.at[r] == At.loaded, "reader has read the database")
        sw.require(~self.leases.has(r), "its lease is gone")
        self.at[r] = At.idle
        self.loaded[r] = 0

    @sw.final
    def all_is_quiet(self) -> sw.Bool:
        """Readers find the last version in the cache."""
        return self.filled & (self.version == LAST)

    @sw.invariant
    def nothing_stays_stale(self) -> sw.Bool:
        """The cache has an old version only while an invalidation is under way."""
        quiet = self.filled & (self.invalidations == 0)
        return quiet.implies(self.cached == self.version)

    @sw.liveness
    def readers_get_an_answer(self, r: sw.Term[Reader]) -> sw.LeadsTo:
        return sw.leads_to(self.at[r] == At.missed, self.at[r] == At.idle)


class CacheWithoutLeases(CacheInvalidation):
    """The bug: the cache takes whatever a reader has read, however long ago."""

    @sw.action(fair=sw.Fairness.WEAK)
    def fill(self, r: sw.Term[Reader]) -> None:
        """The cache takes what a reader has read."""
        sw.require(self.at[r] == At.loaded, "reader has read the database")
        self.filled = True
        self.cached = self.loaded[r]
        self.at[r] = At.idle
        self.loaded[r] = 0
        self.leases.discard(r)
