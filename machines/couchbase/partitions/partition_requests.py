"""A request to the view engine with a list of partitions: how `set_state` filters it.

The lists of a request are ordsets, and stay so: what comes next subtracts them from others and intersects
them, which goes through both lists at once, from their heads (`partition_lists.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.couchbase.partitions.partition_lists import (
    LAST_ID,
    PLACES,
    Ids,
    PartitionId,
    Place,
    appended,
    assign,
    has,
    inserted,
    is_empty,
    is_ordset,
    number_of,
    rest,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    SetVar,
    Term,
    action,
    choose,
    constant,
    equivalent_drop,
    equivalents,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    per,
    require,
    set_of,
)

WEAK = Fairness.WEAK
MANAGER = Actor("cluster manager")


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
        """004: the view engine "just performs such requests": all that is there is cleaned up, no more."""
        wanted = self.asked.has(p) & ~self.gone.has(p) & ~has(self.request, number_of(p))
        return has(self.filtered, number_of(p)) == wanted

    @invariant
    def what_is_filtered_was_before(self) -> Bool:
        """Lemma: what was filtered comes before what is left of the request."""
        is_before = every(self.filtered[p] < self.request[Place.first] for p in PLACES)
        return is_empty(self.filtered) | (self.sent & (is_empty(self.request) | is_before))

    @invariant
    def requests_are_what_is_asked(self, p: Term[PartitionId]) -> Bool:
        """Lemma: a request lists what it is to remove, and all of it until it is sent."""
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            send, "the request is not sent yet", because="a request that is sent is sent"
        ),
    )
