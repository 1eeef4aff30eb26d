"""Keys and values as arrays of numbers, and as a store has them. A builder begins soon, for this imports little."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

KEY = 8  # bytes of a row's key
Numbers = NDArray[np.int64]
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class Entries:
    """Entries of an index for rows as columns, 8 bytes each: the values, and the keys of the rows.

    Many of them are in a file instead, one column after the other: whoever had them in a message would serve nobody while it is
    packed and unpacked. A builder has put them in the order of their values.
    """

    index: int
    unique: bool
    values: bytes
    rows: bytes
    file: str = ""
    without: bytes = b""  # the places of those that are left out, 8 bytes each

    def columns(self) -> tuple[Numbers, Numbers]:
        """The values, and the keys of the rows; of a file, as they are read.

        Raises:
            FileNotFoundError: the file is gone, for whoever had them written has given them up.
        """
        if self.file:
            mapped = np.memmap(self.file, np.int64, "r")
            values, rows = np.asarray(mapped).reshape(2, -1)
        else:
            values, rows = np.frombuffer(self.values, np.int64), np.frombuffer(self.rows, np.int64)
        if self.without:
            left = np.frombuffer(self.without, np.int64)
            values, rows = np.delete(values, left), np.delete(rows, left)
        return values, rows

    def held(self) -> Entries:
        """The same without a file."""
        return entries_of(self.index, self.unique, *self.columns())


def entries_of(index: int, unique: bool, values: Numbers, rows: Numbers) -> Entries:
    """Entries that are held in memory."""
    return Entries(index, unique, values.tobytes(), rows.tobytes())


def keys_of(stored: bytes) -> Numbers:
    """The keys of rows, which a store has one after the other."""
    return (np.frombuffer(stored, ">u8").astype(np.uint64) ^ _SIGN).view(np.int64)


def ordered(numbers: Numbers) -> NDArray[np.uint8]:
    """Numbers as a store has them: 8 bytes each, in the order of numbers."""
    big = (numbers.view(np.uint64) ^ _SIGN).astype(">u8")
    return big.view(np.uint8).reshape(-1, 8)


@lru_cache(maxsize=1)
def byte_sums() -> NDArray[np.uint32]:
    """What a byte adds to the CRC, by how many come after it."""
    tables = np.empty((8, 256), np.uint32)
    for byte in range(256):
        tables[0, byte] = crc32(bytes([byte])) ^ crc32(b"\0")
    for after in range(1, 8):
        before = tables[after - 1]
        tables[after] = (before >> np.uint32(8)) ^ tables[0][before & np.uint32(0xFF)]
    return tables
