"""Partition states: which partitions an index of a design document has, and in which state each of them is.

The header of an index has a bitmask for each state, and a sequence number for each partition that is
indexed. This is that header in the memory of its group process, under the requests of the cluster manager
and what cleaner and updater make of it. `partition_index.py` puts workers, file and crashes around it.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.couchbase.partitions.group_states import (
    COUCHBASE,
    SEED,
    Partition,
    PartitionState,
    Role,
    Seqs,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    bounded,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    flag,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    only_when,
    per,
    profiles,
    record,
    require,
    set_of,
    some,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
MANAGER = Actor("cluster manager")
LAST_SEQ = 2
OF_THE_GROUP = "what else a group does about it is checked where it is alone: partition-states"
REFUSED = (
    "the code refuses it; a partition that changes its role while it is paused would stay paused"
)


class Content(Record):
    """What the workers change of a partition: the B-trees, and what a header says of them."""

    cbit = flag()
    in_seqs = flag()
    in_unindexable_seqs = flag()
    has_version = flag()  # it has an entry in partition_versions: a failover log to resume from
    seq = number(0, LAST_SEQ)
    rows = number(0, LAST_SEQ)  # the rows that the B-trees hold are of the documents up to here


class Entry(Record):
    """What an index header says of one partition."""

    abit = flag()
    pbit = flag()
    pending_active = flag()
    pending_passive = flag()
    pending_unindexable = flag()
    content = record(Content)


INDEXED_AMONG_OLD_ROWS = (
    "there is no pending transition: a partition that is wanted again before it was cleaned up is indexed among rows of "
    "an earlier time"
)


class PartitionGroup(Machine):
    """The states of the partitions of one index, and what holds of them also across crashes."""

    release = profiles(SEED, COUCHBASE)

    group = per(Partition, record(Entry))
    requested = per(Partition, one_of(Role, init=Role.none))  # by the cluster manager, last
    paused: SetVar[Partition] = set_of(Partition)  # by the cluster manager

    # -- the cluster manager ---------------------------------------------------------------------------

    @action(by=MANAGER)
    def set_active(self, p: Term[Partition]) -> None:
        """The partition is to be indexed and queried; if it is still in cleanup, once that is done."""
        entry = self.group[p]
        self._may_change_its_role(p)
        waits = self._waits(p)
        self._add(p, ~waits)
        self._merge_into_pending_transition(p, active=waits)
        entry.abit = ~waits
        entry.pbit = False
        self.requested[p] = Role.active

    @action(by=MANAGER)
    def set_passive(self, p: Term[Partition]) -> None:
        """The partition is to be indexed but not queried; if it is still in cleanup, once that is done."""
        entry = self.group[p]
        self._may_change_its_role(p)
        waits = self._waits(p)
        self._add(p, ~waits)
        self._merge_into_pending_transition(p, passive=waits)
        entry.abit = False
        entry.pbit = ~waits
        self.requested[p] = Role.passive

    @action(by=MANAGER)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The partition is to be removed: no query sees it from now on, the cleaner removes its rows."""
        entry = self.group[p]
        self._is_indexable(p)
        entry.content.cbit = entry.content.cbit | self._has(p)
        self._merge_into_pending_transition(p)
        entry.abit = False
        entry.pbit = False
        self._forget_sequence_number(p)
        self.requested[p] = Role.none
        if not self.release.pauses_first:
            entry.content.in_unindexable_seqs = False
            self.paused.discard(p)

    @action(by=MANAGER)
    def mark_unindexable(self, p: Term[Partition]) -> None:
        """Indexing of the partition stops; queries go on with what is indexed."""
        entry = self.group[p]
        require(self.requested[p] != Role.none, "partition is active, passive, or will be")
        entry.pending_unindexable = self._is_pending(p)
        entry.content.in_seqs = False
        entry.content.in_unindexable_seqs = ~self._is_pending(p)
        self.paused.add(p)

    @action(by=MANAGER)
    def mark_indexable(self, p: Term[Partition]) -> None:
        """Indexing of the partition goes on where it stopped."""
        entry = self.group[p]
        require(self.paused.has(p), "partition is unindexable")
        entry.pending_unindexable = False
        entry.content.in_seqs = entry.content.in_unindexable_seqs
        entry.content.in_unindexable_seqs = False
        self.paused.discard(p)

    # -- the group process and its workers -------------------------------------------------------------

    @action(fair=WEAK)
    def clean(self, p: Term[Partition]) -> None:
        """The rows of a partition in cleanup are gone from the B-trees."""
        require(self.group[p].content.cbit, "partition is in cleanup")
        self.group[p].content.cbit = False
        self.group[p].content.rows = 0

    @action(fair=WEAK)
    def apply_pending_transition(self) -> None:
        """Pending partitions that are no longer in cleanup become what they are to be."""
        only_when(self.release.pending_transition)
        require(some(self._is_ready(p) for p in Partition), "a pending partition is clean")
        for p in Partition:
            entry, ready = self.group[p], self._is_ready(p)
            stays = entry.pending_unindexable
            entry.abit = entry.abit | (ready & entry.pending_active)
            entry.pbit = entry.pbit | (ready & entry.pending_passive)
            entry.content.in_seqs = entry.content.in_seqs | (ready & ~stays)
            entry.content.in_unindexable_seqs = entry.content.in_unindexable_seqs | (ready & stays)
            entry.content.has_version = entry.content.has_version | ready
            entry.pending_active = entry.pending_active & ~ready
            entry.pending_passive = entry.pending_passive & ~ready
            entry.pending_unindexable = stays & ~ready

    @action
    def index(self, p: Term[Partition]) -> None:
        """The updater indexes the next mutation of the partition."""
        entry = self.group[p]
        require(entry.content.in_seqs, "partition is indexed")
        newer = entry.content.rows <= entry.content.seq
        entry.content.rows = choose(newer, entry.content.seq + 1, entry.content.rows)
        entry.content.seq = entry.content.seq + 1

    # -- helpers ---------------------------------------------------------------------------------------

    def _may_change_its_role(self, p: Term[Partition]) -> None:
        if self.release.pauses_first:
            require(~self.paused.has(p), "partition is indexable")

    def _is_indexable(self, p: Term[Partition]) -> None:
        if self.release.pauses_first:
            require(~self.paused.has(p), "partition is indexable")

    def _has(self, p: Term[Partition]) -> Bool:
        """The partition is a part of the index."""
        return self.group[p].abit | self.group[p].pbit

    def _is_pending(self, p: Term[Partition]) -> Bool:
        return self.group[p].pending_active | self.group[p].pending_passive

    def _is_ready(self, p: Term[Partition]) -> Bool:
        return self._is_pending(p) & ~self.group[p].content.cbit

    def _waits(self, p: Term[Partition]) -> Bool:
        """A request to add the partition has to wait for the cleaner."""
        if self.release.pending_transition:
            return self.group[p].content.cbit | self._is_pending(p)
        return self._is_pending(p)  # never

    def _merge_into_pending_transition(
        self, p: Term[Partition], *, active: Bool | bool = False, passive: Bool | bool = False
    ) -> None:
        """The new request replaces what was pending for the partition."""
        self.group[p].pending_active = active
        self.group[p].pending_passive = passive

    def _add(self, p: Term[Partition], now: Bool) -> None:
        """Unless it waits, the partition is in the index: from the beginning, or from where it was."""
        entry, new = self.group[p], now & ~self._has(p)
        entry.content.in_seqs = entry.content.in_seqs | new
        entry.content.has_version = entry.content.has_version | new
        if not self.release.pending_transition:
            entry.content.cbit = False

    def _forget_sequence_number(self, p: Term[Partition]) -> None:
        self.group[p].content.in_seqs = False
        self.group[p].content.seq = 0
        self.group[p].content.has_version = False

    def is_in(self, p: Term[Partition], state: PartitionState) -> Bool:
        """The partition is in a state, by the header's bits and lists."""
        entry = self.group[p]
        bits = (
            (entry.abit == state.abit)
            & (entry.pbit == state.pbit)
            & (entry.content.cbit == state.cbit)
        )
        listed = (entry.content.in_seqs == (state.seq is Seqs.seqs)) & (
            entry.content.in_unindexable_seqs == (state.seq is Seqs.unindexable_seqs)
        )
        if state.seq is Seqs.nowhere:
            return bits & listed & ~entry.content.has_version & (entry.content.seq == 0)
        return bits & listed & entry.content.has_version

    def is_queried(self, p: Term[Partition]) -> Bool:
        """004: what is active is returned on query time, also while it is unindexable; nothing else is."""
        return some(self.is_in(p, state) for state in PartitionState if state.queried)

    # -- what does not happen in a step while the group process runs -----------------------------------

    def starts_empty(self, after: Self, p: Term[Partition]) -> Bool:
        return (after._has(p) & ~self._has(p)).implies(after.group[p].content.rows == 0)

    def only_grows(self, after: Self, p: Term[Partition]) -> Bool:
        forward = after.group[p].content.seq >= self.group[p].content.seq
        return (self._has(p) & after._has(p)).implies(forward)

    def stays_if_unindexable(self, after: Self, p: Term[Partition]) -> Bool:
        frozen = self.paused.has(p) & after.paused.has(p) & self._has(p) & after._has(p)
        return frozen.implies(after.group[p].content.rows == self.group[p].content.rows)

    # -- promises --------------------------------------------------------------------------------------

    @lemma
    def what_is_requested_as_active_is_queried(self, p: Term[Partition]) -> Bool:
        """004, active: "the result will be returned on query time"; passive: "will not be returned on query
        time". An active partition that is still in cleanup is waited for. A lemma: `roles_are_those_requested`, and what is
        pending has no bit yet (`a_pending_partition_will_be_one_thing`).
        """
        wanted = (self.requested[p] == Role.active) & ~self.group[p].pending_active
        return self.is_queried(p) == wanted

    @invariant
    def a_partition_is_in_one_of_the_states(self, p: Term[Partition]) -> Bool:
        """004: "A partition within the view engine can be in either of the following states." The bitmasks
        are disjoint, and what is active or passive, nothing else, has a sequence number and a version.
        """
        return some(self.is_in(p, state) for state in PartitionState)

    @invariant
    def a_pending_partition_will_be_one_thing(self, p: Term[Partition]) -> Bool:
        """The pending transition adds a partition as active or as passive, and not while it is there."""
        entry = self.group[p]
        once = ~(entry.pending_active & entry.pending_passive)
        marked = entry.pending_unindexable.implies(self._is_pending(p))
        return once & marked & self._is_pending(p).implies(~self._has(p))

    @invariant
    def roles_are_those_requested(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests" of the cluster manager, now or once it can."""
        entry, role = self.group[p], self.requested[p]
        active = (entry.abit | entry.pending_active) == (role == Role.active)
        return active & ((entry.pbit | entry.pending_passive) == (role == Role.passive))

    @invariant
    def unindexable_is_what_was_marked(self, p: Term[Partition]) -> Bool:
        """004: "When set to unindexable, the indexing is stopped"; also of what is still to be added."""
        entry = self.group[p]
        marked = entry.content.in_unindexable_seqs | entry.pending_unindexable
        return marked == self.paused.has(p)

    @invariant
    def content_is_that_of_the_sequence_number(self, p: Term[Partition]) -> Bool:
        """004: "The updater stores the highest sequence number for every partition it has already
        indexed": the rows of a partition are those of the documents up to that number.
        """
        return self._has(p).implies(self.group[p].content.rows == self.group[p].content.seq)

    @invariant
    def rows_belong_to_partitions_of_the_index(self, p: Term[Partition]) -> Bool:
        """004: "After cleanup a partition will not be part of the index any more"."""
        return (self._has(p) | self.group[p].content.cbit) | (self.group[p].content.rows == 0)

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """An index may stay as it is when no partition is in cleanup or pending."""
        return every(~self.group[p].content.cbit & ~self._is_pending(p) for p in Partition)

    @liveness
    def partitions_are_cleaned_up(self, p: Term[Partition]) -> LeadsTo:
        """004: a partition marked for cleanup "will be removed during the next cleanup cycle"."""
        return leads_to(self.group[p].content.cbit, ~self.group[p].content.cbit)

    @liveness
    def pending_transitions_end(self, p: Term[Partition]) -> LeadsTo:
        """What has to wait for the cleaner is added in the end, unless the manager thinks again."""
        return leads_to(self._is_pending(p), ~self._is_pending(p))

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            content_is_that_of_the_sequence_number,
            under=SEED,
            because=INDEXED_AMONG_OLD_ROWS,
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            apply_pending_transition,
            "a pending partition is clean",
            because="where nothing is ready nothing changes",
        ),
        equivalent_loss(
            index,
            Content.rows,
            because="there are more rows only under the seed, of an earlier time",
        ),
        equivalent_drop(_may_change_its_role, "partition is indexable", because=REFUSED),
    )


class PartitionStates(PartitionGroup):
    """The states of the partitions of one index.

    `couchbase` follows the server's code but for three defects that we found there by reading, and which it does not have: a change of the pending transition forgot which of
    its partitions are unindexable; a request to clean up a pending partition was overheard while any
    partition was unindexable; and a partition that left the pending transition unindexable had no version.

    Under `seed` the text has no pending transition. Cleanup is asynchronous ("Partition will be removed
    during the next cleanup cycle"), and nothing says what happens to a partition that is wanted again
    before that: it is indexed from the beginning while its old rows are still there.
    """

    @action
    def index_mutation(self, p: Term[Partition]) -> None:
        """There are mutations up to the last sequence number."""
        bounded(self.group[p].content.seq < LAST_SEQ, "a mutation is left")
        self.index(p)

    @accepts(PartitionGroup.set_active)
    def requests_to_be_active_are_performed(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just performs such requests": now or, if it has to clean up first, later."""
        return ~self.paused.has(p)

    @accepts(PartitionGroup.set_passive)
    def requests_to_be_passive_are_performed(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be passive."""
        return ~self.paused.has(p)

    @accepts(PartitionGroup.set_cleanup)
    def requests_to_clean_up_are_performed(self, p: Term[Partition]) -> Bool:
        """The same for a partition that is to be removed."""
        return ~self.paused.has(p)

    @accepts(PartitionGroup.mark_unindexable)
    def marks_are_made_in_every_state(self, p: Term[Partition]) -> Bool:
        """004: indexable or unindexable is "independent of the state the partition is in": active, passive, or to be so."""
        return self.requested[p] != Role.none

    @accepts(PartitionGroup.mark_indexable)
    def marks_are_taken_back_in_every_state(self, p: Term[Partition]) -> Bool:
        """The same for a mark that is taken back: indexable is "the default state"."""
        return self.paused.has(p)

    @accepts(index_mutation)
    def what_is_there_is_indexed_during_a_cleanup(self, p: Term[Partition]) -> Bool:
        """004: active and passive partitions are indexed, whatever others are removed, or wait for that."""
        entry = self.group[p]
        return (entry.abit | entry.pbit) & entry.content.in_seqs

    @step_property
    def a_partition_starts_empty(self, after: Self, p: Term[Partition]) -> Bool:
        """A partition that is added was not present (004): no row of an earlier time is counted as new."""
        return self.starts_empty(after, p)

    @step_property
    def the_index_of_a_partition_only_grows(self, after: Self, p: Term[Partition]) -> Bool:
        """004: indexing starts "from last indexed sequence", whether active or passive until then."""
        return self.only_grows(after, p)

    @step_property
    def an_unindexable_partition_stays_as_it_is(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "A view query will return the results that are currently indexed"."""
        return self.stays_if_unindexable(after, p)

    left_open = known_violations(
        violated(a_partition_starts_empty, under=SEED, because=INDEXED_AMONG_OLD_ROWS),
    )
