"""Mistakes put back into `PartitionStates`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_states import (
    MANAGER,
    Entry,
    PartitionStates,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, every, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REQUESTS = 'design document 004: the view engine "just performs such requests"'
LAST = 'design document 004: "from last indexed sequence"'
EMPTY = "design document 004, partition states: not present"
STATES = "design document 004, partition states"
WEAK = Fairness.WEAK
UNINDEXABLE = 'design document 004: "When set to unindexable, the indexing is stopped"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("004-22", LAST, breaks=PartitionStates.the_index_of_a_partition_only_grows)
class PassiveIsIndexedAnew(PartitionStates):
    """An active partition that becomes passive is removed and added: it is indexed from the beginning."""

    @action(by=MANAGER)
    def set_passive(self, p: Term[Partition]) -> None:
        """Nothing of it is kept."""
        active, content = self.group[p].abit, self.group[p].content
        super().set_passive(p)
        content.seq = choose(active, 0, content.seq)
        content.rows = choose(active, 0, content.rows)


def _take_back(entry: Entry) -> None:
    entry.abit = True
    entry.content.cbit = False
    entry.content.in_seqs = True
    entry.content.has_version = True
    entry.content.seq = entry.content.rows


@known_bug("004-23", EMPTY, breaks=PartitionStates.a_partition_starts_empty)
class RowsAreTakenBack(PartitionStates):
    """A partition that is wanted again before it was cleaned up goes on with the rows that are left of it."""

    @action(by=MANAGER)
    def take_back(self, p: Term[Partition]) -> None:
        """They count as indexed."""
        require(self.group[p].content.cbit & ~self._is_pending(p), "partition is in cleanup")
        _take_back(self.group[p])
        self.requested[p] = Role.active


@known_bug("004-24", STATES, breaks=PartitionStates.rows_belong_to_partitions_of_the_index)
class RowsGoWhenTheyAreInTheWay(PartitionStates):
    """The cleaner removes rows of partitions that are wanted again; of others they stay, and nobody reads them."""

    @action(fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The partition is not in cleanup any more."""
        content = self.group[p].content
        require(content.cbit, "partition is in cleanup")
        content.cbit = False
        content.rows = choose(self._is_pending(p), 0, content.rows)

    def _add(self, p: Term[Partition], now: Bool) -> None:
        super()._add(p, now)
        content = self.group[p].content
        content.rows = choose(now & ~self._has(p), 0, content.rows)


@known_bug("004-26", UNINDEXABLE, breaks=PartitionStates.an_unindexable_partition_stays_as_it_is)
class UnindexableOnesAreIndexed(PartitionStates):
    """The updater takes what is active or passive, and does not ask which list has the sequence number."""

    @action
    def index(self, p: Term[Partition]) -> None:
        """The next mutation is indexed."""
        content = self.group[p].content
        require(self._has(p), "partition is active or passive")
        content.rows = content.seq + 1
        content.seq = content.seq + 1


@known_bug("004-27", UNINDEXABLE, breaks=PartitionStates.unindexable_is_what_was_marked)
class TheHeaderKeepsTheMark(PartitionStates):
    """A partition is indexable again, and the header goes on to say that it is not: it is never indexed."""

    @action(by=MANAGER)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """The cluster manager hears that it is done."""
        require(self.paused.has(p), "partition is unindexable")
        self.paused.discard(p)

    def _forget_sequence_number(self, p: Term[Partition]) -> None:
        super()._forget_sequence_number(p)
        self.group[p].content.in_unindexable_seqs = False

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        entry = self.group[p]
        super()._merge_into_pending_transition(p, active=active, passive=passive)
        entry.pending_unindexable = entry.pending_unindexable & (active | passive)


@known_bug(
    "Z21",
    "MB-6799",
    breaks=PartitionStates.content_is_that_of_the_sequence_number,
    sizes={Partition: 1},
)
class PendingIsAppliedDuringCleanup(PartitionStates):
    """The pending transition was applied while its partitions were still in cleanup.

    The partition is indexed from the beginning among rows of an earlier time, which the cleaner then takes
    away with the new ones.
    """

    def _is_ready(self, p: Term[Partition]) -> Bool:
        return self._is_pending(p)


@known_bug(
    "Z22",
    "couchdb merge_into_pending_transition",
    breaks=PartitionStates.a_pending_partition_will_be_one_thing,
    sizes={Partition: 1},
)
class PendingOnlyGrows(PartitionStates):
    """A new request was added to the pending transition without being taken out of the other list."""

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        entry = self.group[p]
        entry.pending_active = entry.pending_active | active
        entry.pending_passive = entry.pending_passive | passive


@known_bug(
    "Z51",
    "couchdb merge_into_pending_transition builds a record without `unindexable`",
    breaks=PartitionStates.unindexable_is_what_was_marked,
)
class MergeForgetsUnindexable(PartitionStates):
    """Any change of states built the pending transition anew, without which of it is unindexable."""

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        super()._merge_into_pending_transition(p, active=active, passive=passive)
        for other in Partition:
            self.group[other].pending_unindexable = False


@known_bug(
    "Z53",
    "couchdb set_cleanup_partitions",
    breaks=PartitionStates.a_partition_is_in_one_of_the_states,
    sizes={Partition: 1},
)
class CleanupKeepsTheSequenceNumber(PartitionStates):
    """A partition that was set to cleanup kept its sequence number and its version."""

    def _forget_sequence_number(self, p: Term[Partition]) -> None:
        pass


# -- what is never done ----------------------------------------------------------------------------


@known_bug("004-25", STATES, breaks=PartitionStates.partitions_are_cleaned_up)
class CleanupWaitsForARequest(PartitionStates):
    """The cleaner runs if a partition is to be added that is in cleanup; else nobody starts it."""

    @action
    def clean(self, p: Term[Partition]) -> None:
        """Somebody starts it, or nobody does."""
        super().clean(p)

    @action(fair=WEAK)
    def clean_what_is_wanted(self, p: Term[Partition]) -> None:
        """The partition is to be added."""
        require(self._is_pending(p), "partition is pending")
        super().clean(p)


@known_bug(
    "K9-pending",
    "design document 004, partition states",
    breaks=PartitionStates.pending_transitions_end,
)
class PendingTransitionsWaitForARequest(PartitionStates):
    """What had to wait for the cleaner was added with the next request of the manager, if one came."""

    @action
    def apply_pending_transition(self) -> None:
        """A request takes the pending ones along."""
        super().apply_pending_transition()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-35",
    REQUESTS,
    breaks=PartitionStates.requests_to_be_active_are_performed,
)
class OnePendingTransitionAtATime(PartitionStates):
    """While a partition waits for the cleaner no other one becomes active."""

    @action(by=MANAGER)
    def set_active(self, p: Term[Partition]) -> None:
        """Nothing is pending."""
        require(every(~self._is_pending(q) for q in Partition), "no partition is pending")
        super().set_active(p)


@known_bug(
    "004-36",
    REQUESTS,
    breaks=PartitionStates.requests_to_be_passive_are_performed,
    sizes={Partition: 1},
)
class PassiveOnesWaitForTheCleaner(PartitionStates):
    """A request for a passive partition is refused while its rows are cleaned up: nobody queries it anyway."""

    @action(by=MANAGER)
    def set_passive(self, p: Term[Partition]) -> None:
        """It is clean."""
        require(~self.group[p].content.cbit, "partition is clean")
        super().set_passive(p)


@known_bug(
    "004-37",
    REQUESTS,
    breaks=PartitionStates.requests_to_clean_up_are_performed,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreRemoved(PartitionStates):
    """A passive partition has to become active before it can be removed."""

    @action(by=MANAGER)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """It is not passive."""
        require(~self.group[p].pbit, "partition is not passive")
        super().set_cleanup(p)


@known_bug(
    "004-38",
    'design document 004: "independent of the state the partition is in"',
    breaks=PartitionStates.marks_are_made_in_every_state,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreMarked(PartitionStates):
    """A passive partition cannot be marked as unindexable."""

    @action(by=MANAGER)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """It is not passive."""
        require(~self.group[p].pbit, "partition is not passive")
        super().mark_unindexable(p)


BUGS = known_bugs_in(globals())
