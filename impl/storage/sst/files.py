"""An SST file: where its blocks are, by the last key of each. What it must not have is refused, not guessed at."""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.storage.sst import FORMAT
from stagewright.impl.storage.sst.blocks import (
    TRAILER,
    Bytes,
    as_bytes,
    block_of,
    entries_of,
    number_in,
)

MAGIC = bytes.fromhex("f7cff485b741e288")
CRC32C = 1  # of blocks
FOOTER = 53
PROPERTIES, RANGES = b"rocksdb.properties", b"rocksdb.range_del"
FROM_OUTSIDE = b"rocksdb.external_sst_file.version"  # the manifest has the numbers of its writes
INNER = 8  # bytes at the end of a key: the number of the write, and its kind


class UnreadableError(Exception):
    """A file is damaged, or has what loops do not know: RocksDB itself is to read it."""


@dataclass(frozen=True)
class SstFile:
    """A file that stays readable after its store has removed it."""

    data: Bytes
    last: list[bytes]  # a key of a block, or after it and before the next block
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def opened(cls, path: str) -> SstFile:
        """Find its blocks.

        Raises:
            FileNotFoundError: the store has removed it.
            UnreadableError: see there.
        """
        handle = os.open(path, os.O_RDONLY)
        try:
            if os.fstat(handle).st_size < FOOTER:
                raise UnreadableError(path)
            data = as_bytes(memoryview(mmap.mmap(handle, 0, access=mmap.ACCESS_READ)))
        finally:
            os.close(handle)
        stored = data[-FOOTER:].tobytes()
        kind = stored[0], int.from_bytes(stored[41:45], "little"), stored[45:]
        if kind != (CRC32C, FORMAT, MAGIC):
            raise UnreadableError(path)
        at = 1
        handles: list[int] = []
        for _ in range(4):  # of the block that names others, and of the index: place and size
            number, at = number_in(stored, at)
            handles.append(number)
        named = dict(_entries(data, handles[0], handles[1], path))
        properties = dict(_entries(data, *_handle(named.get(PROPERTIES), path), path))
        if RANGES in named or FROM_OUTSIDE in properties:
            raise UnreadableError(path)
        blocks = _entries(data, handles[2], handles[3], path)
        places = [_handle(value, path) for _, value in blocks]
        starts, sizes = np.array(places, np.int64).reshape(-1, 2).T.copy()
        return cls(data, [key[:-INNER] for key, _ in blocks], starts, sizes)

    def first_block(self, key: bytes) -> int:
        """The first block that may have a key or one after it."""
        return bisect_left(self.last, key)

    def end_of(self, block: int, room: int) -> int:
        """The block after as many as fit into some bytes, one at least."""
        if block >= len(self.starts):
            return block
        until = int(self.starts[block]) + room
        ends = self.starts[block:] + self.sizes[block:] + TRAILER
        return block + max(1, int(np.searchsorted(ends, until, "right")))


def _entries(data: Bytes, start: int, size: int, path: str) -> list[tuple[bytes, bytes]]:
    block = block_of(data, start, size)
    found = None if block is None else entries_of(block)
    if found is None:
        raise UnreadableError(path)
    return found


def _handle(stored: bytes | None, path: str) -> tuple[int, int]:
    """The place and the size of a block."""
    try:
        start, at = number_in(stored or b"", 0)
        return start, number_in(stored or b"", at)[0]
    except IndexError:
        raise UnreadableError(path) from None
