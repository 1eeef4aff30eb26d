"""Address space that becomes memory when it is touched, so that what is in it can grow in place."""

from __future__ import annotations

import mmap
import platform
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_SMALLEST = 1 << 21  # bytes
_NORESERVE = {"x86_64": 0x4000, "aarch64": 0x4000, "riscv64": 0x4000, "s390x": 0x4000}
_STRICT = "2"  # Linux then counts address space as if it were memory
_STRICT_SHARE = 8
_LEFT_TO_OTHERS = 4  # of what a limit leaves, one part of so many is taken


class Reserved:
    """So many bytes of zeros at one address; what was never touched costs nothing.

    A process forked from this one has them not: it would have to be granted as much again.
    """

    def __init__(self, size: int, *, huge: bool = False) -> None:
        """`huge`: many places of it will be touched in no order.

        Raises:
            MemoryError: the system does not grant even a small part of the address space.
        """
        self.size, self._map = _mapped(_modest(size))
        if hasattr(mmap, "MADV_DONTFORK"):
            self._map.madvise(mmap.MADV_DONTFORK)
        if huge and hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.address: int = self.bytes.ctypes.data

    def words(self, first: int, after: int) -> NDArray[np.uint64]:
        """A view of so many 64-bit words."""
        return self.bytes[first * 8 : after * 8].view(np.uint64)

    def clear(self, after: int) -> None:
        """Make zeros of the bytes before `after`."""
        done = 0
        if sys.platform == "linux":  # elsewhere pages given back may come again as they were
            self.forget(0, after)
            done = after // mmap.PAGESIZE * mmap.PAGESIZE
        self.bytes[done:after] = 0

    def forget(self, first: int, after: int) -> None:
        """Give back the whole pages of bytes `first .. after`; what they hold is lost."""
        if not hasattr(mmap, "MADV_DONTNEED"):
            return
        page = mmap.PAGESIZE
        start, end = -(-first // page) * page, after // page * page
        if start < end:
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)


def _mapped(size: int) -> tuple[int, mmap.mmap]:
    """As much of the address space as is granted."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _noreserve()
    wanted = size
    while True:
        try:
            mapped = mmap.mmap(-1, size, flags=flags)
        except (OSError, OverflowError) as error:
            size //= 2
            if size < _SMALLEST:
                raise MemoryError("no address space is left") from error
            continue
        if size == wanted or size < _LEFT_TO_OTHERS * _SMALLEST:
            return size, mapped
        mapped.close()  # threads, NumPy and LLVM are to find room, too
        wanted = size = size // _LEFT_TO_OTHERS


def _noreserve() -> int:
    """The flag that keeps untouched memory from being counted; Python names it since 3.13 only."""
    known = _NORESERVE.get(platform.machine(), 0) if sys.platform == "linux" else 0
    return int(getattr(mmap, "MAP_NORESERVE", known))


def _modest(size: int) -> int:
    """The size, or so much less that others are left something where all address space is counted."""
    policy, memory = Path("/proc/sys/vm/overcommit_memory"), Path("/proc/meminfo")
    try:
        if policy.read_text(encoding="ascii").strip() != _STRICT:
            return size
        limits = dict(
            line.split(":", 1) for line in memory.read_text(encoding="ascii").splitlines()
        )
        left = int(limits["CommitLimit"].split()[0]) - int(limits["Committed_AS"].split()[0])
    except (OSError, ValueError, KeyError):
        return size
    return max(_SMALLEST, min(size, left * 1024 // _STRICT_SHARE // _SMALLEST * _SMALLEST))
