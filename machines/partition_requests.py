"""A request to the view engine with lists of partitions: how `set_state` gets from ids to new bitmasks.

The lists of a request are ordsets. What is in cleanup already is filtered out, and the rest subtracted from
the lists of what is pending; subtracting goes through both lists at once, from their heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from stagewright.machines.partition_lists import (
    LAST_ID,
    PLACES,
    Ids,
    PartitionId,
    Place,
    appended,
    has,
    is_empty,
    is_ordset,
    number_of,
    removed,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    OneVar,
    SetVar,
    Term,
    action,
    budget,
    choose,
    constant,
    every,
    final,
    initially,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    per,
    require,
    set_of,
)

WEAK = Fairness.WEAK
MANAGER = Actor("cluster manager")


class Step(Enum):
    """What is done about the request."""

    none = auto()
    filtering = auto()  # what is in cleanup already is left out
    subtracting = auto()  # the rest is taken out of what is pending


class PartitionRequests(Machine):
    """A request to clean up partitions, some of which are not there, and some pending.

    There is no profile: the document has no lists.
    """

    requests = budget(2, doc="requests of the cluster manager")

    gone = constant(set_of(PartitionId, init=ANY))  # what there is nothing to clean up of
    pending = per(Place, number(0, LAST_ID, init=ANY))  # the pending transition
    step: OneVar[Step] = one_of(Step, init=Step.none)
    asked: SetVar[PartitionId] = set_of(PartitionId)  # what the last request is to remove
    before: SetVar[PartitionId] = set_of(PartitionId)  # what was pending then
    request = per(Place, number(0, LAST_ID))  # its list, from where it is read
    filtered = per(Place, number(0, LAST_ID))  # what there is something to clean up of
    left = per(Place, number(0, LAST_ID))  # what stays pending

    @initially
    def pending_is_an_ordset(self) -> Bool:
        """Whatever is pending, it is an ordset; and what is pending can be cleaned up."""
        listed = every(~self.gone.has(p) | ~has(self.pending, p.number) for p in PartitionId)
        return is_ordset(self.pending) & listed

    @step.step(Step.none, Step.filtering, by=MANAGER, spends=requests)
    def clean_up(self, first: Term[PartitionId], second: Term[PartitionId]) -> None:
        """The cluster manager asks for two partitions to be cleaned up."""
        require(number_of(first) < number_of(second), "the list of the request is an ordset")
        self.request[Place.first] = number_of(first)
        self.request[Place.second] = number_of(second)
        for p in PartitionId:
            self.asked.put(p, (first == p) | (second == p))
            self.before.put(p, has(self.pending, p.number))

    @action(fair=WEAK)
    def filter_next(self, p: Term[PartitionId]) -> None:
        """A partition of the request is kept if there is something to clean up of it."""
        require(self.step == Step.filtering, "request is filtered")
        require(self.request[Place.first] == number_of(p), "it is next in the request")
        kept = self._kept(self.filtered, number_of(p))
        for place in PLACES:
            old = self.filtered[place]
            self.filtered[place] = choose(self.gone.has(p), old, kept[place])
        self._assign(self.request, removed(self.request, number_of(p)))

    @step.step(Step.filtering, Step.subtracting, fair=WEAK)
    def begin_to_subtract(self) -> None:
        """The whole request is filtered."""
        require(is_empty(self.request), "nothing is left of the request")

    @action(fair=WEAK)
    def keep_pending(self) -> None:
        """The head of what is pending comes before all that is removed, or nothing is: it stays."""
        require(self.step == Step.subtracting, "request is subtracted")
        p, head = self.pending[Place.first] + 0, self.filtered[Place.first]
        require(~is_empty(self.pending), "something is pending")
        require(is_empty(self.filtered) | (p < head), "it comes before what is removed")
        self._assign(self.left, appended(self.left, p))
        self._assign(self.pending, removed(self.pending, p))

    @action(fair=WEAK)
    def remove_pending(self) -> None:
        """The head of what is pending is also the head of what is removed."""
        require(self.step == Step.subtracting, "request is subtracted")
        p = self.pending[Place.first] + 0
        require(~is_empty(self.pending) & (p == self.filtered[Place.first]), "it is removed")
        self._assign(self.pending, removed(self.pending, p))
        self._assign(self.filtered, removed(self.filtered, p))

    @action(fair=WEAK)
    def skip_removed(self) -> None:
        """The head of what is removed is not pending, for what is pending comes after it."""
        require(self.step == Step.subtracting, "request is subtracted")
        p = self.filtered[Place.first] + 0
        after = is_empty(self.pending) | (p < self.pending[Place.first])
        require(~is_empty(self.filtered) & after, "it is not pending")
        self._assign(self.filtered, removed(self.filtered, p))

    @step.step(Step.subtracting, Step.none, fair=WEAK)
    def finish(self) -> None:
        """What is left is what is pending now."""
        require(is_empty(self.pending) & is_empty(self.filtered), "both lists are through")
        for place in PLACES:
            self.pending[place] = self.left[place] + 0
            self.left[place] = 0

    def _kept(self, ids: Ids, p: Number) -> Mapping[Place, Number]:
        """The filtered list goes on in the order of the request."""
        return appended(ids, p)

    def _assign(self, ids: Ids, new: Mapping[Place, Number]) -> None:
        for place, p in new.items():
            ids[place] = p

    @invariant
    def lists_are_ordsets(self) -> Bool:
        """MB-18125: what is given to a function on ordsets is one."""
        return is_ordset(self.filtered) & is_ordset(self.pending) & is_ordset(self.left)

    @invariant
    def what_is_to_be_removed_is_not_pending(self, p: Term[PartitionId]) -> Bool:
        """004: the view engine "just performs such requests": what is cleaned up is not added later, and
        all else that was pending is.
        """
        pending = has(self.pending, number_of(p))
        done = (self.step == Step.none) & ~self.asked.is_empty()
        return done.implies(pending == (self.before.has(p) & ~self.asked.has(p)))

    @final
    def nothing_is_asked(self) -> Bool:
        """A group process without a request may stay as it is."""
        return self.step == Step.none

    @liveness
    def requests_end(self) -> LeadsTo:
        """Every request is done in the end."""
        return leads_to(self.step != Step.none, self.step == Step.none)
