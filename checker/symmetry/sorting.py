"""Order the components of a symmetric group: a canonical form where permutations only move components.

The cells of a component, first cell lowest, make one number (several, where they need more than 64
bits; the first counts most). Member 0 gets the least.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.packing import Layout, Place, Words
from stagewright.checker.symmetry.groups import SymmetricGroup

Column = NDArray[np.uint64]
_WORD_BITS = 64


def comparators(size: int) -> Iterator[tuple[int, int]]:
    """Batcher's merge exchange: comparing and exchanging these pairs in turn sorts so many numbers.

    Source: Knuth, The Art of Computer Programming, volume 3, algorithm 5.2.2 M.
    """
    top = 1 << (size - 1).bit_length() >> 1
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            yield from ((i, i + d) for i in range(size - d) if i & p == r)
            if q == p:
                break
            d, q, r = q - p, q >> 1, p
        p >>= 1


class ComponentSort:
    """Sorts the components of one group in packed states."""

    def __init__(self, layout: Layout, group: SymmetricGroup) -> None:
        self._pairs = tuple(comparators(group.size))
        self._parts = [parts_of([layout.places[c] for c in cells]) for cells in group.components]
        self._kept = [~np.uint64(0)] * layout.words
        for cells in group.components:
            for place in (layout.places[c] for c in cells):
                self._kept[place.word] &= ~np.uint64(place.mask << place.shift)

    def numbers(self, words: Words) -> list[list[Column]]:
        """By member: the numbers that its component makes."""
        return [[_gathered(words, part) for part in parts] for parts in self._parts]

    def sort(self, words: Words) -> None:
        """Sort the components of every state, in place."""
        if not self._parts[0]:
            return  # members have no cells
        numbers = self.numbers(words)
        for low, high in self._pairs:
            _exchange(numbers, low, high)
        for word, kept in enumerate(self._kept):
            words[word] &= kept
        for parts, of_member in zip(self._parts, numbers, strict=True):
            for part, number in zip(parts, of_member, strict=True):
                for place, offset in part:
                    code = number >> np.uint64(offset) & np.uint64(place.mask)
                    words[place.word] |= code << np.uint64(place.shift)


Part = list[tuple[Place, int]]
"""The cells that make one number, each with the place of its lowest bit in it."""


def parts_of(places: list[Place]) -> list[Part]:
    """The numbers that a component makes."""
    parts: list[Part] = []
    used = _WORD_BITS
    for place in places:
        if not place.bits:
            continue  # it has one value only
        if used + place.bits > _WORD_BITS:
            parts.append([])
            used = 0
        parts[-1].append((place, used))
        used += place.bits
    return parts


def _gathered(words: Words, part: Part) -> Column:
    number = np.zeros(words.shape[1], dtype=np.uint64)
    for place, offset in part:
        code = words[place.word] >> np.uint64(place.shift) & np.uint64(place.mask)
        number |= code << np.uint64(offset)
    return number


def _exchange(numbers: list[list[Column]], low: int, high: int) -> None:
    """Let the lesser of two members come first."""
    if len(numbers[low]) == 1:
        (one,), (other,) = numbers[low], numbers[high]
        numbers[low], numbers[high] = [np.minimum(one, other)], [np.maximum(one, other)]
        return
    greater = np.zeros(numbers[low][0].size, dtype=np.bool_)
    for one, other in reversed(list(zip(numbers[low], numbers[high], strict=True))):
        greater = (one > other) | ((one == other) & greater)
    pairs = list(zip(numbers[low], numbers[high], strict=True))
    numbers[low] = [np.where(greater, other, one) for one, other in pairs]
    numbers[high] = [np.where(greater, one, other) for one, other in pairs]
