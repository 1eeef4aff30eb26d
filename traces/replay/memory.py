"""Keeps the memory of large arrays in the process: to get it anew for every block costs more than to fill it."""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3)
_KEPT = 1 << 28  # bytes


@cache
def keep_memory() -> None:
    """Ask the C library, where it is one that can, not to give freed memory back at once."""
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    tune(_MMAP_THRESHOLD, _KEPT)
    tune(_TRIM_THRESHOLD, _KEPT)
