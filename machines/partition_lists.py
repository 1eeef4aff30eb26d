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
        moved = ids[PLACES[i - 1]] if i else ids[place]
        follows = (ids[PLACES[i - 1]] > 0) & (ids[PLACES[i - 1]] < p) if i else ~smaller
        there = choose(follows, p, moved)
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


def removed(ids: Ids, p: Number) -> Mapping[Place, Number]:
    """The list without `p`."""
    new: dict[Place, Number] = {}
    for i, place in enumerate(PLACES):
        gone = some(ids[earlier] == p for earlier in PLACES[: i + 1])
        following = ids[PLACES[i + 1]] if i + 1 < len(PLACES) else ids[place] - ids[place]
        new[place] = choose(gone, following, ids[place])
    return new
