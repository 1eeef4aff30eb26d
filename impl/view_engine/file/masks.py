"""Sets of partitions as masks of 1,024 bits: an integer in memory, 128 bytes in the file."""

from __future__ import annotations

from collections.abc import Iterable

MOST_PARTITIONS = 1024
MASK_BYTES = MOST_PARTITIONS // 8


def mask_of(partitions: Iterable[int]) -> int:
    """The mask with the bits of these partitions; raises ValueError for one outside 0 … 1,023."""
    mask = 0
    for partition in partitions:
        if not 0 <= partition < MOST_PARTITIONS:
            raise ValueError(f"partition {partition}: an index has the partitions 0 to 1023")
        mask |= 1 << partition
    return mask


def partitions_of(mask: int) -> list[int]:
    """The partitions of a mask, in order."""
    found: list[int] = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found


def mask_bytes(mask: int) -> bytes:
    """As it stands in the file: partition 0 is the lowest bit of the last byte."""
    return mask.to_bytes(MASK_BYTES, "big")
