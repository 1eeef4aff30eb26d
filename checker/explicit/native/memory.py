"""Address space that becomes memory when it is touched, so that what is in it can grow in place."""

from __future__ import annotations

import mmap

import numpy as np
from numpy.typing import NDArray

_HUGE = 1 << 21  # bytes


class Reserved:
    """So many bytes of zeros at one address; what was never touched costs nothing."""

    def __init__(self, size: int, *, huge: bool = False) -> None:
        """`huge`: many places of it will be touched in no order.

        Raises:
            MemoryError: the system does not grant even a small part of the address space.
        """
        self.size, self._map = _mapped(size)
        if huge and hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.address: int = self.bytes.ctypes.data

    def words(self, first: int, after: int) -> NDArray[np.uint64]:
        """A view of so many 64-bit words."""
        return self.bytes[first * 8 : after * 8].view(np.uint64)

    def clear(self, after: int) -> None:
        """Make zeros of the bytes before `after`."""
        self.forget(0, after)
        self.bytes[after // mmap.PAGESIZE * mmap.PAGESIZE : after] = 0

    def forget(self, first: int, after: int) -> None:
        """Give back the whole pages of bytes `first .. after`, which become zeros."""
        page = mmap.PAGESIZE
        start, end = -(-first // page) * page, after // page * page
        if start < end:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)


def _mapped(size: int) -> tuple[int, mmap.mmap]:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    while True:
        try:
            return size, mmap.mmap(-1, size, flags=flags)
        except (OSError, OverflowError) as error:
            size //= 2
            if size < _HUGE:
                raise MemoryError("no address space is left") from error
