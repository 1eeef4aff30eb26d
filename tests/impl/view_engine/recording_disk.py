"""A disk that records every write and sync, and gives every file that a crash could leave behind."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

SECTOR = 512
FEW = 6  # unsynced sectors: up to this many, every subset is tried


@dataclass
class MemoryDisk:
    """A file in memory."""

    data: bytearray = field(default_factory=bytearray)

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.data[at : at + size])

    def write(self, at: int, data: bytes) -> None:
        if len(self.data) < at:
            self.data += bytes(at - len(self.data))
        self.data[at : at + len(data)] = data

    def sync(self) -> None:
        pass

    def size(self) -> int:
        return len(self.data)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Crash:
    """A file as a crash left it, and how many commits had been acknowledged before."""

    data: bytes
    acknowledged: int


@dataclass
class RecordingDisk(MemoryDisk):
    """Keeps what is durable apart from what a crash may take."""

    durable: bytes = b""
    unsynced: list[tuple[int, bytes]] = field(default_factory=list)
    windows: list[tuple[bytes, list[tuple[int, bytes]], int]] = field(default_factory=list)
    acknowledged: int = 0

    def write(self, at: int, data: bytes) -> None:
        super().write(at, data)
        self.unsynced.append((at, data))
        self.windows.append((self.durable, [*self.unsynced], self.acknowledged))

    def sync(self) -> None:
        self.durable = bytes(self.data)
        self.unsynced = []
        self.windows.append((self.durable, [], self.acknowledged))

    def acknowledge(self) -> None:
        """The commit returned: from here on it must survive."""
        self.acknowledged += 1
        self.windows.append((self.durable, [*self.unsynced], self.acknowledged))

    def crashes(self, seed: int, samples: int) -> Iterator[Crash]:
        """After each write and sync: any set of its unsynced sectors; and writes cut at any byte."""
        chosen = random.Random(seed)
        for durable, unsynced, acknowledged in self.windows:
            sectors = [piece for at, data in unsynced for piece in _sectors(at, data)]
            for kept in _subsets(len(sectors), chosen, samples):
                disk = MemoryDisk(bytearray(durable))
                for number in kept:
                    disk.write(*sectors[number])
                yield Crash(bytes(disk.data), acknowledged)
            if unsynced:
                at, data = unsynced[-1]
                whole = MemoryDisk(bytearray(durable))
                for earlier in unsynced[:-1]:
                    whole.write(*earlier)
                cuts = (
                    range(len(data) + 1) if len(data) < 700 else chosen.sample(range(len(data)), 40)
                )
                for cut in cuts:
                    disk = MemoryDisk(bytearray(whole.data))
                    disk.write(at, data[:cut])
                    yield Crash(bytes(disk.data), acknowledged)


def _sectors(at: int, data: bytes) -> Iterator[tuple[int, bytes]]:
    start = at
    while start < at + len(data):
        end = min((start // SECTOR + 1) * SECTOR, at + len(data))
        yield start, data[start - at : end - at]
        start = end


def _subsets(count: int, chosen: random.Random, samples: int) -> Iterator[tuple[int, ...]]:
    if count <= FEW:
        for size in range(count + 1):
            yield from itertools.combinations(range(count), size)
        return
    yield tuple(range(count))
    yield ()
    for _ in range(samples):
        likely = chosen.random()
        yield tuple(number for number in range(count) if chosen.random() < likely)
