"""The canonical form of packed states: equal for all states of one orbit, and only for them.

Among the permutations of the groups that must be tried, those count that put the members of each in
the order of their signatures (`signatures.py`). Of a state's images under them, the components of all
other groups sorted (`sorting.py`), the least is the canonical form; word 0 counts most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.packing import Layout, Words
from stagewright.checker.symmetry.groups import Permutation, Symmetry
from stagewright.checker.symmetry.signatures import Codes, signatures, terms_of
from stagewright.checker.symmetry.sorting import ComponentSort

_ROWS = 1 << 14  # states at a time: their cells then stay in the cache
Numbers = NDArray[np.int64]


class Canonical:
    """Computes canonical forms of the packed states of one layout."""

    def __init__(self, layout: Layout, symmetry: Symmetry) -> None:
        self.layout, self.symmetry = layout, symmetry
        self.sorts = [ComponentSort(layout, g) for g in symmetry.groups if g.by_sorting]
        self._tried = symmetry.tried
        self._terms = terms_of(symmetry)
        self._cells_at = _cells_at(symmetry)
        moves = {
            cell
            for cell, action in enumerate(symmetry.actions)
            if action.value in self._tried or any(g in self._tried for g, _ in action.keys)
        }
        self._moving = sorted(moves)

    def __call__(self, words: Words) -> Words:
        """The canonical forms of states; the given ones stay as they are."""
        if not self._tried:
            found = words.copy()
            self._sort(found)
            return found
        parts = [
            self._least(words[:, first : first + _ROWS])
            for first in range(0, words.shape[1], _ROWS)
        ]
        return np.concatenate(parts, axis=1) if parts else words.copy()

    def _sort(self, words: Words) -> None:
        for sort in self.sorts:
            sort.sort(words)

    def _least(self, words: Words) -> Words:
        codes, ties = self.in_order(self.codes(words))
        least = self.packed(codes)
        self._sort(least)
        for tie in np.unique(ties[ties != 0]).tolist():
            rows = np.flatnonzero(ties == tie)
            self._try(codes[:, rows], least, rows, tie)
        return least

    def _try(self, codes: Codes, least: Words, rows: Numbers, tie: int) -> None:
        """Try all permutations among members with equal signatures."""
        left = ~self.alike(codes, least[:, rows], tie)
        rows, codes = rows[left], codes[:, left]
        best = least[:, rows]
        if rows.size:
            for permutation in self.symmetry.permutations(self.blocks(tie)):
                if permutation != self.symmetry.identity:
                    image = self.image(codes, permutation)
                    lesser = _lesser(image, best)
                    best = np.where(lesser, image, best)
        least[:, rows] = best

    def alike(self, codes: Codes, least: Words, tie: int) -> NDArray[np.bool_]:
        """Where exchanging any two neighbours with equal signatures changes nothing.

        Then no permutation among them does: for most ties, there is nothing to be tried.
        """
        alike = np.ones(codes.shape[1], dtype=np.bool_)
        for swap in self._swaps(tie):
            alike &= (self.image(codes, swap) == least).all(axis=0)
        return alike

    def _swaps(self, tie: int) -> Iterator[Permutation]:
        identity = self.symmetry.identity
        for group, blocks in enumerate(self.blocks(tie)):
            for one, other in (pair for block in blocks for pair in pairwise(block)):
                images = list(identity[group])
                images[one], images[other] = other, one
                yield (*identity[:group], tuple(images), *identity[group + 1 :])

    def image(self, codes: Codes, permutation: Permutation) -> Words:
        """The packed images under a permutation, with sorted components."""
        image = self.packed(self._permuted(codes, permutation))
        self._sort(image)
        return image

    def codes(self, words: Words) -> Codes:
        """What every cell of packed states holds."""
        codes = np.empty((len(self.layout.places), words.shape[1]), dtype=np.uint64)
        for cell, place in enumerate(self.layout.places):
            codes[cell] = words[place.word] >> np.uint64(place.shift) & np.uint64(place.mask)
        return codes

    def packed(self, codes: Codes) -> Words:
        """The states whose cells hold this."""
        words = np.zeros((self.layout.words, codes.shape[1]), dtype=np.uint64)
        for held, place in zip(codes, self.layout.places, strict=True):
            words[place.word] |= held << np.uint64(place.shift)
        return words

    def _permuted(self, codes: Codes, permutation: Permutation) -> Codes:
        permuted = codes.copy()
        destinations = self.symmetry.destinations(permutation)
        for cell in self._moving:
            action = self.symmetry.actions[cell]
            held = codes[cell]
            if action.value is not None:
                images = [action.first + image for image in permutation[action.value]]
                table = np.array([*range(action.first), *images], dtype=np.uint64)
                held = table[held.astype(np.intp)]
            permuted[destinations[cell]] = held
        return permuted

    def in_order(self, codes: Codes) -> tuple[Codes, Numbers]:
        """The states with members in the order of their signatures, and which neighbours are equal.

        Bit by bit, group by group: whether a member's signature is that of the next one.
        """
        states = np.arange(codes.shape[1])
        ties = np.zeros(codes.shape[1], dtype=np.int64)
        orders: dict[int, Numbers] = {}  # by place: the member that comes there
        images: dict[int, Numbers] = {}  # by member: the place where it comes
        bit = 0
        for group, of_group in signatures(self.symmetry, self._terms, codes).items():
            order = np.argsort(of_group, axis=0, kind="stable")
            ordered = np.take_along_axis(of_group, order, axis=0)
            for place in range(ordered.shape[0] - 1):
                equal = ordered[place] == ordered[place + 1]
                ties |= equal.astype(np.int64) << np.int64(bit)
                bit += 1
            orders[group] = order
            images[group] = np.argsort(order, axis=0, kind="stable")
        result = codes.copy()
        for cell in self._moving:
            action = self.symmetry.actions[cell]
            at: list[Numbers | int] = [orders[g][e] if g in orders else e for g, e in action.keys]
            source = self._cells_at[action.pattern][tuple(at)] if at else cell
            held = codes[source, states]
            if action.value in images:
                member = held.astype(np.int64) - action.first
                renamed = images[action.value][np.maximum(member, 0), states] + action.first
                held = np.where(member >= 0, renamed.astype(np.uint64), held)
            result[cell] = held
        return result, ties

    def blocks(self, tie: int) -> list[list[list[int]]]:
        """By group: the members that may change places, when so many neighbours are equal."""
        found: list[list[list[int]]] = []
        bit = 0
        for group in self.symmetry.groups:
            blocks = [[0]]
            for member in range(1, group.size):
                if group.by_sorting:
                    equal = False
                else:
                    equal = bool(tie >> bit & 1)
                    bit += 1
                if equal:
                    blocks[-1].append(member)
                else:
                    blocks.append([member])
            found.append(blocks)
        return found


def _cells_at(symmetry: Symmetry) -> dict[int, NDArray[np.intp]]:
    """By pattern: the cells, by the members that are their keys."""
    tables: dict[int, NDArray[np.intp]] = {}
    for cell, action in enumerate(symmetry.actions):
        shape: Sequence[int] = [symmetry.groups[g].size for g, _ in action.keys]
        if shape:
            table = tables.setdefault(action.pattern, np.zeros(shape, dtype=np.intp))
            table[tuple(e for _, e in action.keys)] = cell
    return tables


def _lesser(words: Words, others: Words) -> NDArray[np.bool_]:
    """Where a state is less than another; word 0 counts most."""
    lesser = np.zeros(words.shape[1], dtype=np.bool_)
    for word, other in reversed(list(zip(words, others, strict=True))):
        lesser = (word < other) | ((word == other) & lesser)
    return lesser
