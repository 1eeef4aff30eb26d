"""A number for every member of a sort that no permutation changes: members with different ones need no trying.

A member's signature depends on what the cells with it as a key hold, on which cells hold it, and on
what their other keys look like; never on how members are numbered. It is one round of colour
refinement with 64-bit hashes: two members with equal hashes are merely tried in both orders.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.symmetry.groups import CellAction, Symmetry

Codes = NDArray[np.uint64]
"""Shape (cells, states): what each cell holds, its lowest value as 0."""

Signatures = NDArray[np.uint64]
"""Shape (members, states)."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB

# What a salt is for; a key's position in the path is added to the last two.
_OWN, _RELATION, _NONE, _EQUAL, _PARTY, _ROLE = 1, 2, 3, 4, 16, 32


def salt(pattern: int, use: int) -> int:
    """A constant for one use of one pattern of cells (splitmix64 of a counter)."""
    return _mixed((pattern * 64 + use + 1) * _GOLDEN & _MASK)


def _mixed(number: int) -> int:
    number = (number ^ number >> 30) * _FIRST & _MASK
    number = (number ^ number >> 27) * _SECOND & _MASK
    return number ^ number >> 31


def mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of every number."""
    mixed = (numbers ^ numbers >> np.uint64(32)) * np.uint64(_FIRST)
    return mixed ^ mixed >> np.uint64(29)


def signatures(symmetry: Symmetry, codes: Codes) -> dict[int, Signatures]:
    """By group that is tried: the signatures of its members."""
    states = codes.shape[1]
    own = [np.zeros((group.size, states), dtype=np.uint64) for group in symmetry.groups]
    related: list[tuple[CellAction, NDArray[np.uint64]]] = []
    for action, held in zip(symmetry.actions, codes, strict=True):
        if len(action.keys) == 1 and action.value is None:
            ((group, member),) = action.keys
            own[group][member] += mix(held + np.uint64(salt(action.pattern, _OWN)))
        elif action.keys or action.value is not None:
            related.append((action, held))
    found = {group: own[group].copy() for group in symmetry.tried}
    for action, held in related:
        _add_relation(symmetry, action, held, own, found)
    return found


def _add_relation(
    symmetry: Symmetry,
    action: CellAction,
    held: NDArray[np.uint64],
    own: list[Signatures],
    found: dict[int, Signatures],
) -> None:
    """Add what a cell says of the members that it relates: its keys, and the one that it holds."""
    pattern, keys = action.pattern, action.keys
    total = np.full(held.size, salt(pattern, _RELATION), dtype=np.uint64)
    for position, (group, member) in enumerate(keys):
        equal = sum((group, member) == earlier for earlier in keys[:position])
        total += mix(
            own[group][member] + np.uint64(salt(pattern, _PARTY + position) + equal & _MASK)
        )
    if action.value is None:
        total += mix(held + np.uint64(salt(pattern, _OWN)))
        holds = None
    else:
        size = symmetry.groups[action.value].size
        holds = [held == np.uint64(action.first + member) for member in range(size)]
        for member, here in enumerate(holds):
            said = mix(own[action.value][member] + np.uint64(salt(pattern, _NONE)))
            for position, key in enumerate(keys):
                if key == (action.value, member):
                    said = said + np.uint64(salt(pattern, _EQUAL + position))
            total += np.where(here, said, np.uint64(0))
    for position, (group, member) in enumerate(keys):
        if group in found:
            found[group][member] += mix(total + np.uint64(salt(pattern, _ROLE + position)))
    if holds is not None and action.value in found:
        told = mix(total + np.uint64(salt(pattern, _ROLE - 1)))
        for member, here in enumerate(holds):
            found[action.value][member] += np.where(here, told, np.uint64(0))
