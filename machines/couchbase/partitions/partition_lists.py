"""Lists of partition ids, as requests and headers of the view engine have them: sorted, each id once.

An `ordset` is a list that is so by the care of those who build it; what is done with it (`subtract`,
`intersection`, `ukeymerge`) is wrong if it is not. `partition_versions.py` and `partition_requests.py` have
such lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from itertools import pairwise

from stagewright.spec import Bool, MapOf, Number, States, Term, choose, every, some

LAST_ID = 3


class PartitionId(States):
    """A partition by its number; unlike `Partition`, one comes before the other."""

    p1 = 1
    p2 = 2
    p3 = 3

    def __init__(self, number: int) -> None:
        self.number = number


class Place(Enum):
    """A place of a list, from its head on."""

    first = auto()
    second = auto()
    third = auto()


PLACES = tuple(Place)
Ids = MapOf[Place, Number, int]
"""A list: the number at each place, 0 behind its end."""


def number_of(p: Term[PartitionId]) -> Number:
    return p.number_column(lambda member: member.number)


def has(ids: Ids, p: Number | int) -> Bool:
    return some(ids[place] == p for place in PLACES)


def is_empty(ids: Ids) -> Bool:
    return ids[Place.first] == 0


def is_ordset(ids: Ids) -> Bool:
    """Sorted, and no id twice."""
    return every(
        (ids[after] == 0) | ((ids[before] > 0) & (ids[before] < ids[after]))
        for before, after in pairwise(PLACES)
    )


def inserted(ids: Ids, p: Number) -> Mapping[Place, Number]:
    """The list with `p` in its place, if it is not in it."""
    new: dict[Place, Number] = {}
    for i, place in enumerate(PLACES):
        smaller = (ids[place] > 0) & (ids[place] < p)
        if i == 0:
            new[place] = choose(smaller, ids[place], p)
            continue
        before = ids[PLACES[i - 1]]
        there = choose((before > 0) & (before < p), p, before)
        new[place] = choose(smaller | has(ids, p), ids[place], there)
    return new


def appended(ids: Ids, p: Number) -> Mapping[Place, Number]:
    """The list with `p` at its end, in or not."""
    new: dict[Place, Number] = {}
    for i, place in enumerate(PLACES):
        end = (ids[place] == 0) & (ids[PLACES[i - 1]] > 0) if i else ids[place] == 0
        new[place] = choose(end, p, ids[place])
    return new


def prepended(ids: Ids, p: Number) -> Mapping[Place, Number]:
    """The list with `p` at its head, as building it while walking from the left does."""
    return {place: p + 0 if i == 0 else ids[PLACES[i - 1]] + 0 for i, place in enumerate(PLACES)}


def removed(ids: Ids, p: Number) -> Mapping[Place, Number | int]:
    """The list without `p`; a list without it has room at its end, as there are no more ids than places."""
    new: dict[Place, Number | int] = {}
    for i, place in enumerate(PLACES[:-1]):
        gone = some(ids[earlier] == p for earlier in PLACES[: i + 1])
        new[place] = choose(gone, ids[PLACES[i + 1]], ids[place])
    return new | {PLACES[-1]: 0}


def rest(ids: Ids) -> Mapping[Place, Number | int]:
    """The list without its head."""
    following = {place: ids[after] + 0 for place, after in pairwise(PLACES)}
    return following | {PLACES[-1]: 0}


def assign(ids: Ids, new: Mapping[Place, Number] | Mapping[Place, Number | int]) -> None:
    """Effect: the list is the other one afterwards."""
    for place, p in new.items():
        ids[place] = p
