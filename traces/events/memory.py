"""How a process that replays traces uses its memory: large arrays are kept, garbage is sought seldom."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Iterator
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3)
_LARGEST = 1 << 25  # bytes; the C library takes no higher threshold
_KEPT = 1 << 28  # bytes
_OBJECTS = 100_000  # new ones before garbage is sought


@cache
def keep_memory() -> None:
    """Ask the C library, where it is one that can, not to give freed memory back at once.

    To get it anew for every block costs more than to fill it.
    """
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    tune(_MMAP_THRESHOLD, _LARGEST)
    tune(_TRIM_THRESHOLD, _KEPT)


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """While this lasts, Python seeks cycles of garbage more seldom: next to nothing here is one.

    The many small objects that stand for sets and steps are looked through each time.
    """
    before = gc.get_threshold()
    gc.set_threshold(max(_OBJECTS, before[0]), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
