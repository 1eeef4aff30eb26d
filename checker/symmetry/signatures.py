"""A number for every member of a sort that no permutation changes: members with different ones need no trying.

A member's signature depends on what the cells with it as a key hold, on which cells hold it, and on
what their other keys look like; never on how members are numbered. It is one round of colour
refinement with 64-bit hashes: two members with equal hashes are merely tried in both orders.

All numbers are unsigned and wrap at 64 bits; `code` is what a cell holds, its lowest value as 0:

    mix(x)            = let y = (x ^ x >> 32) * FIRST in y ^ y >> 29
    own[g][m]         = the sum of mix(code + salt) over the `OwnTerm`s of member m of group g
    total of a `RelationTerm` = base + the sum over its keys of mix(own[key] + party)
                        + mix(code + held)                                  if it holds no member
                        + mix(own[value][m] + held) + the m-th of `equal`   if it holds member m
    signature[g][m]   = own[g][m]
                        + mix(total + role) for every relation's key that is m of g
                        + mix(total + value_role) for every relation that holds m of g
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.checker.symmetry.groups import CellAction, Symmetry

Codes = NDArray[np.uint64]
"""Shape (cells, states): what each cell holds, its lowest value as 0."""

Signatures = NDArray[np.uint64]
"""Shape (members, states)."""

FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1

# What a salt is for; a key's place in the path is added to those that are multiples of 16.
_OWN, _RELATION, _HELD, _VALUE_ROLE, _EQUAL, _PARTY, _ROLE = 1, 2, 3, 4, 16, 32, 48


@dataclass(frozen=True)
class OwnTerm:
    """A cell with one key, which holds no member: it shows what its key looks like."""

    cell: int
    group: int
    member: int
    salt: int


@dataclass(frozen=True)
class KeyTerm:
    """One key of a cell: its member, and the salts with which it tells and is told."""

    group: int
    member: int
    party: int
    role: int


@dataclass(frozen=True)
class RelationTerm:
    """A cell with several keys, or one that holds a member: it relates members to each other.

    `value` is the group whose members it holds: code `first + m` stands for member m, less for none.
    """

    cell: int
    keys: tuple[KeyTerm, ...]
    base: int
    held: int
    value: int | None = None
    first: int = 0
    value_role: int = 0
    equal: tuple[int, ...] = ()  # by member: added where the cell holds it


@dataclass(frozen=True)
class Terms:
    """What signatures are made of."""

    own: tuple[OwnTerm, ...]
    relations: tuple[RelationTerm, ...]


def salt(pattern: int, use: int) -> int:
    """A constant for one use of one pattern of cells (splitmix64 of a counter)."""
    number = (pattern * 64 + use + 1) * _GOLDEN & _MASK
    number = (number ^ number >> 30) * FIRST & _MASK
    number = (number ^ number >> 27) * SECOND & _MASK
    return number ^ number >> 31


def terms_of(symmetry: Symmetry) -> Terms:
    """The terms that make the signatures of the groups that are tried."""
    own: list[OwnTerm] = []
    relations: list[RelationTerm] = []
    for cell, action in enumerate(symmetry.actions):
        if len(action.keys) == 1 and action.value is None:
            ((group, member),) = action.keys
            own.append(OwnTerm(cell, group, member, salt(action.pattern, _OWN)))
        elif action.keys or action.value is not None:
            relations.append(_relation(symmetry, cell, action))
    return Terms(tuple(own), tuple(relations))


def _relation(symmetry: Symmetry, cell: int, action: CellAction) -> RelationTerm:
    pattern, keys = action.pattern, action.keys
    parts = [
        KeyTerm(
            *key,
            # equal keys (`knows[node0][node0]`) are another thing than different ones
            party=salt(pattern, _PARTY + place) + keys[:place].count(key) & _MASK,
            role=salt(pattern, _ROLE + place),
        )
        for place, key in enumerate(keys)
    ]
    base, held = salt(pattern, _RELATION), salt(pattern, _HELD)
    if action.value is None:
        return RelationTerm(cell, tuple(parts), base, held)
    equal = tuple(
        sum(
            salt(pattern, _EQUAL + place)
            for place, key in enumerate(keys)
            if key == (action.value, member)
        )
        & _MASK
        for member in range(symmetry.groups[action.value].size)
    )
    role = salt(pattern, _VALUE_ROLE)
    return RelationTerm(cell, tuple(parts), base, held, action.value, action.first, role, equal)


def mix(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of every number."""
    mixed = (numbers ^ numbers >> np.uint64(32)) * np.uint64(FIRST)
    return mixed ^ mixed >> np.uint64(29)


def signatures(symmetry: Symmetry, terms: Terms, codes: Codes) -> dict[int, Signatures]:
    """By group that is tried: the signatures of its members."""
    states = codes.shape[1]
    own = [np.zeros((group.size, states), dtype=np.uint64) for group in symmetry.groups]
    for term in terms.own:
        own[term.group][term.member] += mix(codes[term.cell] + np.uint64(term.salt))
    found = {group: own[group].copy() for group in symmetry.tried}
    for relation in terms.relations:
        _add(relation, codes[relation.cell], own, found)
    return found


def _add(
    relation: RelationTerm,
    code: NDArray[np.uint64],
    own: list[Signatures],
    found: dict[int, Signatures],
) -> None:
    """Add what a cell says of the members that it relates: its keys, and the one that it holds."""
    total = np.full(code.size, relation.base, dtype=np.uint64)
    held = np.uint64(relation.held)
    for key in relation.keys:
        total += mix(own[key.group][key.member] + np.uint64(key.party))
    holds: list[NDArray[np.bool_]] = []
    if relation.value is None:
        total += mix(code + held)
    else:
        for member, equal in enumerate(relation.equal):
            here = code == np.uint64(relation.first + member)
            said = mix(own[relation.value][member] + held) + np.uint64(equal)
            total += np.where(here, said, np.uint64(0))
            holds.append(here)
    for key in relation.keys:
        if key.group in found:
            found[key.group][key.member] += mix(total + np.uint64(key.role))
    if relation.value in found:
        summand = mix(total + np.uint64(relation.value_role))
        for member, here in enumerate(holds):
            found[relation.value][member] += np.where(here, summand, np.uint64(0))
