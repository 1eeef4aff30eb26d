"""How many states each orbit stands for: all permutations, by those that leave the state as it is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import factorial, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.explicit.packing import Words
from stagewright.checker.symmetry.canonical import Canonical
from stagewright.checker.symmetry.sorting import ComponentSort

_ROWS = 1 << 14
_LARGEST = (1 << 63) - 1


def states_in(canonical: Canonical, words: Words) -> int:
    """How many states the orbits of these canonical states have, all together."""
    return sum(int(size) for sizes in _batches(canonical, words) for size in sizes)


def orbit_sizes(canonical: Canonical, words: Words) -> list[int]:
    """How many states the orbit of each of these canonical states has."""
    return [int(size) for sizes in _batches(canonical, words) for size in sizes]


def _batches(canonical: Canonical, words: Words) -> Iterator[NDArray[Any]]:
    order = canonical.symmetry.order
    # Python's integers where 64 bits are not enough, as for all permutations of 21 members
    kind = np.dtype(np.int64 if order <= _LARGEST else object)
    for first in range(0, words.shape[1], _ROWS):
        states = words[:, first : first + _ROWS]
        fixing = _renamings(canonical, states).astype(kind)
        for sort in canonical.sorts:
            fixing *= _exchanges(sort, states, kind)
        yield order // fixing


def _renamings(canonical: Canonical, states: Words) -> NDArray[np.int64]:
    """How many permutations of the groups that are tried give the state again, components sorted."""
    found = np.ones(states.shape[1], dtype=np.int64)
    symmetry = canonical.symmetry
    if not symmetry.tried:
        return found
    codes, ties = canonical.in_order(canonical.codes(states))
    for tie in np.unique(ties[ties != 0]).tolist():
        rows = np.flatnonzero(ties == tie)
        blocks = canonical.blocks(tie)
        alike = canonical.alike(codes[:, rows], states[:, rows], tie)
        found[rows[alike]] = prod(factorial(len(block)) for group in blocks for block in group)
        rows = rows[~alike]
        for permutation in symmetry.permutations(blocks) if rows.size else ():
            if permutation != symmetry.identity:
                image = canonical.image(codes[:, rows], permutation)
                found[rows] += (image == states[:, rows]).all(axis=0)
    return found


def _exchanges(sort: ComponentSort, states: Words, kind: np.dtype[Any]) -> NDArray[Any]:
    """How many permutations of the members of a group exchange equal components only."""
    run = np.ones(states.shape[1], dtype=np.int64)
    found = np.ones(states.shape[1], dtype=kind)
    members = sort.numbers(states)
    for before, member in pairwise(members):
        equal = np.ones(states.shape[1], dtype=np.bool_)
        for one, other in zip(before, member, strict=True):
            equal &= one == other
        run = np.where(equal, run + 1, 1)
        found = found * run.astype(kind)
    return found
