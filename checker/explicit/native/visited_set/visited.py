"""The visited states: a table and a log in memory of their own, and the compiled code that uses them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np

from stagewright.checker.explicit.arrays import SmallInts
from stagewright.checker.explicit.native.code.jit import Module
from stagewright.checker.explicit.native.code.observed import Numbers
from stagewright.checker.explicit.native.memory import Reserved
from stagewright.checker.explicit.native.threads import threads_granted
from stagewright.checker.explicit.native.visited_set import buckets
from stagewright.checker.explicit.native.visited_set.buckets import (
    BUCKET_BYTES,
    SPARE_BUCKETS,
    Storage,
    TableKind,
    kind_for,
)
from stagewright.checker.explicit.native.visited_set.quotients import stages
from stagewright.checker.explicit.native.worker import OWN_SIZE, SPARE, worker_source
from stagewright.checker.explicit.packing import Layout, Words

_ADDRESS_SPACE = 1 << 40  # bytes, for the table and for the log
_SMALLEST = 12  # log2 of buckets
_SMALL_BITS = 30  # of a state: few enough for a bitmap, whose lines lie close together
_ROOMIEST = 18  # up to here the table may begin larger, if that makes its slots smaller
_WIDEST_REST = 29  # bits of a state that a 32-bit slot holds besides the distance
FULL_SHARE = 0.9
_LARGE = 19  # log2 of buckets: from here on, 32 MiB, memory counts for more than time
_MOST_IDS = (1 << 32) - 2


@dataclass(frozen=True)
class Code:
    """The compiled functions of one kind of table."""

    module: Module
    work: Callable[..., int]
    enter_all: Callable[..., int]
    grow: Callable[..., int] | None
    refill: Callable[..., int] | None
    rename: Callable[..., int] | None
    find_all: Callable[..., int] | None


@cache
def code_for(kind: TableKind, *, shared: bool, canonical: str = "") -> Code:
    """The compiled code of a kind of table, for one worker or several."""
    module = Module(worker_source(kind, shared=shared, canonical=canonical))
    ids = kind.knows_places
    return Code(
        module,
        module.function("work", 2),
        module.function("enter_all", 4),
        module.function("grow", 5) if kind.storage is Storage.QUOTIENTS else None,
        module.function("refill", 3) if ids else None,
        module.function("rename", 3 + kind.words) if ids else None,
        module.function("find_all", 4) if ids else None,
    )


class Visited:
    """States that were met, each once: in the table, and in the log in the order they came."""

    def __init__(
        self,
        layout: Layout,
        *,
        workers: int = 1,
        ids: bool = False,
        canonical: str = "",
        memory: int = 1 << 62,
    ) -> None:
        """`ids`: their places in the log will be asked for; `memory`: bytes there are for all of it."""
        bits = sum(place.bits for place in layout.places)
        self.table = Reserved(_ADDRESS_SPACE, huge=ids or bits > _SMALL_BITS)
        roomy = max(_SMALLEST, bits - _WIDEST_REST)
        fits = roomy <= _ROOMIEST and _bytes_of(roomy) <= self.table.size
        begin = roomy if fits else _SMALLEST
        self._workers = workers
        self.threads = threads_granted(workers)
        self.kind = kind_for(
            layout.words, bits, begin, ids=ids, memory=min(memory, 2 * self.table.size)
        )
        self.code = code_for(self.kind, shared=workers > 1, canonical=canonical)
        self.log = Reserved(_ADDRESS_SPACE, huge=True)
        self.shared = np.zeros(buckets.SHARED_SIZE, dtype=np.int64)
        self.shared[buckets.LOG] = self.log.address
        self.shared[buckets.TABLE] = self.table.address
        self.shared[buckets.BITS] = begin
        self.released = 0  # states at the log's beginning whose memory was given back

    @classmethod
    def of_states(cls, layout: Layout, states: Words) -> Visited:
        """Distinct states, whose places are their columns."""
        visited = cls(layout, ids=True)
        count = states.shape[1]
        if count > visited.log_capacity:
            raise MemoryError("no address space is left for the states")
        visited.log.words(0, count * layout.words).reshape(count, layout.words)[:] = states.T
        visited.shared[buckets.LENGTH] = count
        while visited.capacity < count:
            visited.shared[buckets.BITS] += 1
        if visited.table_bytes > visited.table.size:
            raise MemoryError("no address space is left for the table of states")
        visited._refill()
        return visited

    @property
    def count(self) -> int:
        """How many states there are."""
        return int(self.shared[buckets.LENGTH])

    @property
    def capacity(self) -> int:
        """How many states there may be before the table grows."""
        slots = self.kind.slots << int(self.shared[buckets.BITS])
        match self.kind.storage:
            case Storage.BITMAP:
                return 1 << 62  # it has room for all
            case Storage.QUOTIENTS:
                return int(slots * FULL_SHARE)
            case Storage.PLACES:
                return min(int(slots * FULL_SHARE), _MOST_IDS)

    @property
    def log_capacity(self) -> int:
        """How many states the log has places for."""
        return self.log.size // (8 * self.kind.words)

    @property
    def bytes(self) -> int:
        """Memory held."""
        return self.table_bytes + (self.count - self.released) * self.kind.words * 8

    @property
    def table_bytes(self) -> int:
        if self.kind.storage is Storage.BITMAP:
            return 1 << max(0, self.kind.bits - 3)
        return _bytes_of(int(self.shared[buckets.BITS]))

    def states(self, first: int, after: int) -> Words:
        """A view of the log, shape (words, states)."""
        words = self.kind.words
        return self.log.words(first * words, after * words).reshape(after - first, words).T

    def release(self, after: int) -> None:
        """Give back the memory of the log's states before this one."""
        size = self.kind.words * 8
        self.log.forget(self.released * size, after * size)
        self.released = after

    def add(self, states: Words) -> None:
        """Enter states, which may repeat."""
        given = np.ascontiguousarray(states.T)
        if self.count + given.shape[0] > self.log_capacity:
            raise MemoryError("no address space is left for the states")
        own = np.zeros(OWN_SIZE, dtype=np.int64)
        own[SPARE] = -1
        while self.capacity < self.count + given.shape[0]:
            self.grow()
        while self.code.enter_all(
            self.shared.ctypes.data, own.ctypes.data, given.ctypes.data, given.shape[0]
        ):
            self.grow()
        self.settle([own])

    @property
    def may_grow(self) -> bool:
        """Whether there is address space for more buckets."""
        return _bytes_of(int(self.shared[buckets.BITS]) + self._growth) <= self.table.size

    def grow(self) -> None:
        """More buckets: four times as many of a small table, else twice as many.

        Raises:
            MemoryError: there is no room for them.
        """
        bits, by = int(self.shared[buckets.BITS]), self._growth
        if not self.may_grow:
            raise MemoryError("no address space is left for the table of states")
        if self.code.grow is not None:
            self._move(bits, by, self.code.grow)
            self.shared[buckets.BITS] = bits + by
        else:
            self.table.clear(self.table_bytes)
            self.shared[buckets.BITS] = bits + by
            self._refill()

    def _move(self, bits: int, by: int, grow: Callable[..., int]) -> None:
        """Move all states to where they belong among 2^by times as many buckets."""

        def moved(some: tuple[int, int]) -> int:
            return grow(self.table.address, bits, by, *some)

        with ThreadPoolExecutor(self.threads) as pool:
            for ranges in stages(bits, self._workers):
                alone = len(ranges) == 1 or self.threads == 1
                lost = sum(map(moved, ranges) if alone else pool.map(moved, ranges))
                assert not lost, "states lost their place while the table grew"

    @property
    def _growth(self) -> int:
        """By how many powers of two the table grows next: a small one in longer strides."""
        return 2 if int(self.shared[buckets.BITS]) < _LARGE else 1

    @property
    def bytes_to_grow(self) -> int:
        """How much more memory the table takes once it has grown."""
        return self.table_bytes * ((1 << self._growth) - 1)

    def _refill(self) -> None:
        assert self.code.refill is not None
        lost = self.code.refill(self.shared.ctypes.data, 0, self.count)
        assert not lost, "states found no place in the table"

    def settle(self, owns: list[Numbers]) -> None:
        """Close the gaps that workers left in the log: each may hold a place that it did not use."""
        spares = sorted((int(own[SPARE]) for own in owns if own[SPARE] >= 0), reverse=True)
        for own in owns:
            own[SPARE] = -1
        for spare in spares:
            last = self.count - 1
            if spare != last:
                self._rename(last, spare)
            self.shared[buckets.LENGTH] = last

    def _rename(self, old: int, new: int) -> None:
        assert self.code.rename is not None
        words = [int(w) for w in self.states(old, old + 1)[:, 0]]
        self.states(new, new + 1)[:] = self.states(old, old + 1)
        assert not self.code.rename(self.shared.ctypes.data, old, new, *words)

    def places(self, states: Words) -> SmallInts:
        """The place of each state in the log, -1 if it was never met."""
        assert self.code.find_all is not None
        given = np.ascontiguousarray(states.T)
        found = np.empty(given.shape[0], dtype=np.int32)
        self.code.find_all(
            self.shared.ctypes.data, given.ctypes.data, given.shape[0], found.ctypes.data
        )
        return found


def _bytes_of(bits: int) -> int:
    """What a table of 2^bits home buckets takes."""
    return ((1 << bits) + SPARE_BUCKETS) * BUCKET_BYTES
