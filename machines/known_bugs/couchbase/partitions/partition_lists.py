"""Bugs of sorted lists: partition ids as the server's requests and headers have them, each once and in order.

The design document has no lists, only sets of partitions, and so has no machine for them. An `ordset` of the
server is a list that is one by the care of those who build it; what is done with it (`subtract`,
`intersection`, `ukeymerge`) is wrong if it is not. Two such lists stand here for the bugs that they had.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from itertools import pairwise

from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    MapOf,
    Number,
    SetVar,
    States,
    Term,
    action,
    budget,
    choose,
    constant,
    equivalent_drop,
    equivalents,
    every,
    final,
    flag,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
MANAGER = Actor("cluster manager")
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


class PartitionVersions(Machine):
    """The list of partition versions, and the messages to the updater that make it longer.

    There is no profile: the document has no versions, the code says no more than this.
    """

    requests = budget(4, doc="requests of the cluster manager")

    partitions: SetVar[PartitionId] = set_of(PartitionId)  # active or passive
    versions = per(Place, number(0, LAST_ID))  # partition_versions
    told = per(Place, number(0, LAST_ID))  # new_passive_partitions that the updater has to read

    @action(by=MANAGER, spends=requests)
    def add(self, p: Term[PartitionId]) -> None:
        """A partition becomes passive, and the updater is told: its messages are merged."""
        self.partitions.add(p)
        assign(self.told, self._merged(self.told, number_of(p)))

    @action(fair=WEAK)
    def read_message(self) -> None:
        """The updater adds the first of the partitions that it is told of to its list."""
        require(~is_empty(self.told), "there is a message")
        p = self.told[Place.first] + 0
        assign(self.versions, self._merged(self.versions, p))
        assign(self.told, rest(self.told))

    @action
    def take_over(self, p: Term[PartitionId]) -> None:
        """The group process adds a partition that the updater may not have read of yet."""
        require(self.partitions.has(p), "partition is in the index")
        assign(self.versions, self._merged(self.versions, number_of(p)))

    @action(by=MANAGER, spends=requests)
    def remove(self, p: Term[PartitionId]) -> None:
        """A partition is cleaned up: it leaves the list, and nobody is told of it any more."""
        self.partitions.discard(p)
        assign(self.versions, removed(self.versions, number_of(p)))
        assign(self.told, removed(self.told, number_of(p)))

    def _merged(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        """The union of two ordsets, of which one has one member."""
        return inserted(ids, p)

    @invariant
    def versions_are_sorted(self) -> Bool:
        """MB-14068: keys(partition_versions) are unique and sorted (the stats count duplicates)."""
        return is_ordset(self.versions)

    @invariant
    def messages_are_sorted(self) -> Bool:
        """MB-11371: what the updater merges into its lists is an ordset, too."""
        return is_ordset(self.told)

    @invariant
    def versions_are_of_partitions_of_the_index(self, p: Term[PartitionId]) -> Bool:
        """MB-21594: a partition that comes again does not find the failover log of its last time."""
        return has(self.versions, number_of(p)).implies(self.partitions.has(p))

    @invariant
    def no_partition_is_forgotten(self, p: Term[PartitionId]) -> Bool:
        """Every partition of the index has a version, or the updater is about to give it one."""
        known = has(self.versions, number_of(p)) | has(self.told, number_of(p))
        return self.partitions.has(p).implies(known)

    @lemma
    def messages_are_of_partitions_of_the_index(self, p: Term[PartitionId]) -> Bool:
        """Nobody is told of a partition that was cleaned up."""
        return has(self.told, number_of(p)).implies(self.partitions.has(p))

    @final
    def nothing_is_to_be_read(self) -> Bool:
        """An updater that has read its messages may stay as it is."""
        return is_empty(self.told)

    @liveness
    def messages_are_read(self, p: Term[PartitionId]) -> LeadsTo:
        """A new partition gets its version."""
        given = has(self.versions, number_of(p)) | ~self.partitions.has(p)
        return leads_to(self.partitions.has(p), given)


@known_bug("Z59", "MB-11371, MB-14068", breaks=PartitionVersions.messages_are_sorted)
class MessagesAreAppended(PartitionVersions):
    """Messages of new passive partitions were appended to each other, and so came into the header."""

    def _merged(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        return appended(ids, p)


class PartitionRequests(Machine):
    """A request to clean up partitions, of some of which there is nothing to clean up.

    There is no profile: the document has no lists.
    """

    gone = constant(set_of(PartitionId, init=ANY))  # what there is nothing to clean up of
    asked: SetVar[PartitionId] = set_of(PartitionId)  # what the request is to remove
    sent: FlagVar = flag()
    request = per(Place, number(0, LAST_ID))  # its list, from where it is read
    filtered = per(Place, number(0, LAST_ID))  # what there is something to clean up of

    @action(by=MANAGER)
    def clean_up(self, p: Term[PartitionId]) -> None:
        """The cluster manager's list gets one partition more, in its place, before it is sent."""
        require(~self.sent, "the request is not sent yet")
        assign(self.request, inserted(self.request, number_of(p)))
        self.asked.add(p)

    @action(by=MANAGER, fair=WEAK)
    def send(self) -> None:
        """The request is sent."""
        require(~self.sent, "the request is not sent yet")
        self.sent = True

    @action(fair=WEAK)
    def filter_next(self, p: Term[PartitionId]) -> None:
        """The next partition of the request is kept if there is something to clean up of it."""
        require(self.sent, "the request is sent")
        require(self.request[Place.first] == number_of(p), "it is next in the request")
        kept = self._kept(self.filtered, number_of(p))
        for place in PLACES:
            old = self.filtered[place]
            self.filtered[place] = choose(self.gone.has(p), old, kept[place])
        assign(self.request, rest(self.request))

    def _kept(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        """The filtered list goes on in the order of the request."""
        return appended(ids, p)

    @invariant
    def lists_are_ordsets(self) -> Bool:
        """MB-18125: what is given to a function on ordsets is one."""
        return is_ordset(self.request) & is_ordset(self.filtered)

    @invariant
    def what_is_left_is_what_was_asked_for(self, p: Term[PartitionId]) -> Bool:
        """Design document 004: the view engine "just performs such requests": all that is there is cleaned up, no more."""
        wanted = self.asked.has(p) & ~self.gone.has(p) & ~has(self.request, number_of(p))
        return has(self.filtered, number_of(p)) == wanted

    @lemma
    def what_is_filtered_was_before(self) -> Bool:
        """What was filtered comes before what is left of the request."""
        is_before = every(self.filtered[p] < self.request[Place.first] for p in PLACES)
        return is_empty(self.filtered) | (self.sent & (is_empty(self.request) | is_before))

    @lemma
    def requests_are_what_is_asked(self, p: Term[PartitionId]) -> Bool:
        """A request lists what it is to remove, and all of it until it is sent."""
        listed, asked = has(self.request, number_of(p)), self.asked.has(p)
        return listed.implies(asked) & (asked & ~self.sent).implies(listed)

    @final
    def nothing_is_to_be_read(self) -> Bool:
        """A request that is filtered may stay as it is."""
        return is_empty(self.request)

    @liveness
    def requests_are_read(self) -> LeadsTo:
        """Every request is filtered in the end."""
        return leads_to(~is_empty(self.request), is_empty(self.request))

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            send, "the request is not sent yet", because="a request that is sent is sent"
        ),
    )


@known_bug(
    "Z64",
    "MB-18125",
    breaks=PartitionRequests.lists_are_ordsets,
)
class FilteringReversesTheList(PartitionRequests):
    """A list was filtered by a fold from the left that put each id in front of those before it.

    What is subtracted in the wrong order stays, and what is intersected with is missed.
    """

    def _kept(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        return prepended(ids, p)


BUGS = known_bugs_in(globals())
