"""A sieve of values: those that were never put in mostly fall through, those that were never do (a Bloom filter)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.indexes.bulk.numbers import Numbers

_BITS = 27  # 16 MiB: of ten million values in it, one of a hundred others is held
SHIFT = np.uint64(64 - _BITS)
FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


class Sieve:
    """It takes the same memory whatever is in it."""

    def __init__(self) -> None:
        self._bytes = np.zeros(1 << (_BITS - 3), np.uint8)

    def add(self, values: Numbers) -> None:
        """Hold these from now on."""
        for place, bit in _places(values):
            for one in range(8):  # each byte is written once for a bit, whoever shares it
                self._bytes[place[bit == one]] |= np.uint8(1 << one)

    def holds(self, values: Numbers) -> NDArray[np.bool_]:
        """Which of these may be in it; the others are not."""
        held = np.ones(len(values), np.bool_)
        for place, bit in _places(values):
            held &= (self._bytes[place] >> bit) & np.uint8(1) == 1
        return held


def _places(values: Numbers) -> list[tuple[NDArray[np.uint64], NDArray[np.uint8]]]:
    found: list[tuple[NDArray[np.uint64], NDArray[np.uint8]]] = []
    for factor in FACTORS:
        hashed = (values.view(np.uint64) * factor) >> SHIFT
        found.append((hashed >> np.uint64(3), (hashed & np.uint64(7)).astype(np.uint8)))
    return found
