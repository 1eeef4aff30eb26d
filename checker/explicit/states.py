"""The set of visited states: an exact hash table over packed states, vectorised with NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.packing import Words

Ids = NDArray[np.int64]

_EMPTY = np.int64(-1)
_FIRST_CLAIM = -2
_ID_BITS = np.int64(32)
_ID_MASK = np.int64((1 << 32) - 1)
_TAG_MASK = np.uint64((1 << 31) - 1)
_MULTIPLIERS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9))
_SMALLEST = 1 << 12


class StateTable:
    """Distinct states, numbered from 0 in the order in which they were first added.

    A slot holds an id and 31 bits of the state's hash; the states themselves decide equality, so
    that no two states are ever taken for one.
    """

    def __init__(self, words: int) -> None:
        self.count = 0
        self._store = np.empty((words, _SMALLEST), dtype=np.uint64)
        self._slots = np.full(_SMALLEST, _EMPTY, dtype=np.int64)

    @property
    def states(self) -> Words:
        """All states, by id. A view: it is stale after the next `add`."""
        return self._store[:, : self.count]

    @property
    def bytes(self) -> int:
        """How much memory the table holds."""
        return self._store.nbytes + self._slots.nbytes

    def add(self, states: Words) -> Ids:
        """The ids of `states`, which may repeat; those not seen before get the next free ids."""
        rows = states.shape[1]
        self._make_room(self.count + rows)
        hashes = _hash(states)
        tags = (hashes >> np.uint64(33) & _TAG_MASK).astype(np.int64)
        slots = (hashes & np.uint64(self._slots.size - 1)).astype(np.int64)
        ids = np.empty(rows, dtype=np.int64)
        pending = np.arange(rows, dtype=np.int64)
        while pending.size:
            self._claim(states, pending, slots, tags)
            entries = self._slots[slots]
            found = entries & _ID_MASK
            same = entries >> _ID_BITS == tags
            for word, stored in zip(states, self._store, strict=True):
                same &= stored[found] == word[pending]
            ids[pending[same]] = found[same]
            other = np.flatnonzero(~same)
            pending, tags = pending[other], tags[other]
            slots = (slots[other] + 1) & np.int64(self._slots.size - 1)
        return ids

    def _claim(self, states: Words, pending: Ids, slots: Ids, tags: Ids) -> None:
        """Give every empty slot to the first of the pending rows that ask for it, as a new state."""
        free = np.flatnonzero(self._slots[slots] == _EMPTY)
        if not free.size:
            return
        wanted = slots[free]
        # Of repeated indices NumPy keeps the last assignment: backwards, so that the first row wins.
        self._slots[wanted[::-1]] = _FIRST_CLAIM - free[::-1]
        won = self._slots[wanted] == _FIRST_CLAIM - free
        winners = free[won]
        end = self.count + winners.size
        for word, stored in zip(states, self._store, strict=True):
            stored[self.count : end] = word[pending[winners]]
        new = np.arange(self.count, end, dtype=np.int64)
        self._slots[wanted[won]] = tags[winners] << _ID_BITS | new
        self.count = end

    def _make_room(self, needed: int) -> None:
        if needed > self._store.shape[1]:
            grown = np.empty((self._store.shape[0], _above(needed)), dtype=np.uint64)
            grown[:, : self.count] = self.states
            self._store = grown
        if 2 * needed > self._slots.size:
            self._slots = np.full(_above(2 * needed), _EMPTY, dtype=np.int64)
            self._refill()

    def _refill(self) -> None:
        step = 1 << 20
        mask = np.uint64(self._slots.size - 1)
        for start in range(0, self.count, step):
            hashes = _hash(self._store[:, start : min(start + step, self.count)])
            slots = (hashes & mask).astype(np.int64)
            tags = (hashes >> np.uint64(33) & _TAG_MASK).astype(np.int64)
            entries = tags << _ID_BITS | np.arange(start, start + slots.size, dtype=np.int64)
            self._place(slots, entries)

    def _place(self, slots: Ids, entries: Ids) -> None:
        """Put entries of states known to be distinct at their slots, or the next free ones."""
        while slots.size:
            free = self._slots[slots] == _EMPTY
            self._slots[slots[free]] = entries[free]
            left = np.flatnonzero(self._slots[slots] != entries)
            slots = (slots[left] + 1) & np.int64(self._slots.size - 1)
            entries = entries[left]


def _above(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << (number - 1).bit_length()


def _hash(states: Words) -> Words:
    """A 64-bit hash of every state."""
    hashes = np.zeros(states.shape[1], dtype=np.uint64)
    for word in states:
        hashes ^= word
        hashes *= _MULTIPLIERS[0]
        hashes ^= hashes >> np.uint64(32)
    hashes *= _MULTIPLIERS[1]
    hashes ^= hashes >> np.uint64(29)
    return hashes
