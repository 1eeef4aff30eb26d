"""Replica partitions: a failover makes the replica index answer, until the main index has its partitions.

A design document has two indexes on a server, each with its partitions (`partition_states.py`): the main one
and one of replicas. After a failover a replica is queried where it is, as it is: it is unindexable from then
on. It is transferred: indexed in the main index from the beginning, as passive, until it becomes active there.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.group_states import (
    COUCHBASE,
    SEED,
    Partition,
    PartitionState,
    Role,
)
from stagewright.machines.couchbase.partitions.partition_states import (
    LAST_SEQ,
    MANAGER,
    OF_THE_GROUP,
    Content,
    Entry,
    PartitionGroup,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    SetVar,
    States,
    Term,
    accepts,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    final,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    only_when,
    part,
    per,
    profiles,
    require,
    scopes,
    set_of,
    sometimes,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
MARKS = (PartitionGroup.mark_unindexable, PartitionGroup.mark_indexable)  # of other machines


class Failover(States):
    """The events of the document's table of a failover, and what a partition then is in the two indexes.

    In between the indexes take single steps: what the replica index is asked for it does after the failover.
    """

    # fmt: off
    #           main index                  replica index
    initial   = PartitionState.not_present, PartitionState.passive
    initiated = PartitionState.not_present, PartitionState.active_unindexable
    started   = PartitionState.passive,     PartitionState.active_unindexable
    completed = PartitionState.active,      PartitionState.not_present
    # fmt: on

    def __init__(self, main: PartitionState, replica: PartitionState) -> None:
        self.main = main
        self.replica = replica


class Asked(Enum):
    """What the cluster manager has asked for last, of a partition."""

    nothing = auto()
    replica = auto()
    passive = auto()
    active = auto()


class PartitionReplicas(Machine):
    """The main and the replica index of one server, through failovers.

    Two things are as the document has them and, as far as we see,
    not as the code does: a replica that is queried is unindexable, so that its transfer never loses a row (the
    code activates it, and marks nothing); and what a restart cleans up in the replica index are the partitions
    that are no longer on transfer (the code cleans up those that are).
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(2, doc="mutations of documents")
    requests = budget(5, doc="requests of the cluster manager")

    exercised_at = scopes({}, {Partition: 1, writes: 3, requests: 6}, {requests: 8, writes: 0})

    main = part(PartitionGroup, without=MARKS)
    replica = part(PartitionGroup)
    replicas: SetVar[Partition] = set_of(Partition)  # replica partitions of this server
    on_transfer: SetVar[Partition] = set_of(Partition)  # queried in the replica index
    asked = per(Partition, one_of(Asked, init=Asked.nothing))
    kv = per(Partition, number(0, LAST_SEQ))  # the documents, replicated to this server
    target = per(Partition, number(0, LAST_SEQ))  # what the main index has to reach

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition]) -> None:
        """A document changes, here or on the server of which this one has the replica."""
        bounded(self.kv[p] < LAST_SEQ, "a sequence number is left")
        self.kv[p] = self.kv[p] + 1

    # -- the cluster manager -----------------------------------------------------------------------------

    @action(by=MANAGER, spends=requests)
    def add_replica(self, p: Term[Partition]) -> None:
        """The partition is passive in the replica index; one that the main index has is left alone."""
        require(self.main.requested[p] == Role.none, "the main index does not have the partition")
        require(~self.on_transfer.has(p), "it is not on transfer")
        require(~self.replica.paused.has(p), "a copy of an earlier transfer is indexable")
        self.replicas.add(p)
        self.asked[p] = Asked.replica
        self.replica.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def remove_replica(self, p: Term[Partition]) -> None:
        """The replica is not needed any more: it is to be cleaned up."""
        require(self.asked[p] == Asked.replica, "it is a replica, not on transfer")
        self.replicas.discard(p)
        self.asked[p] = Asked.nothing

    @action(by=MANAGER, spends=requests)
    def fail_over(self, p: Term[Partition]) -> None:
        """The node with the active partition is not available: from now on the replica is queried."""
        require(self.asked[p] == Asked.replica, "it is a replica, not on transfer")
        self.on_transfer.add(p)
        self.asked[p] = Asked.active

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """A partition on transfer is to be passive: it is so in the main index, which goes on with it."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.requested[p] != Role.none, "the main index has it")
        self.on_transfer.discard(p)
        self.replicas.discard(p)
        self.asked[p] = Asked.passive

    @action(by=MANAGER, spends=requests)
    def set_cleanup(self, p: Term[Partition]) -> None:
        """The main index is to remove the partition; a replica stays, unless it is on transfer."""
        stays = self.asked[p] == Asked.replica
        self.on_transfer.discard(p)
        self.replicas.put(p, stays)
        self.asked[p] = choose(stays, Asked.replica, Asked.nothing)
        self.main.set_cleanup(p)

    # -- the group processes of the two indexes ------------------------------------------------------------

    @action(fair=WEAK)
    def index_main(self, p: Term[Partition]) -> None:
        """The updater of the main index indexes a mutation."""
        require(self.main.group[p].content.seq < self.kv[p], "a mutation is left")
        self.main.index(p)

    @action
    def index_replica(self, p: Term[Partition]) -> None:
        """The updater of the replica index does so, unless the replica is unindexable."""
        require(self.replica.group[p].content.seq < self.kv[p], "a mutation is left")
        self.replica.index(p)

    @action(fair=WEAK)
    def activate_replica(self, p: Term[Partition]) -> None:
        """The replica index learns that its copy is queried: at once, or after a restart in between."""
        require(self.on_transfer.has(p), "it is on transfer")
        unheard = self.replica.requested[p] != Role.active
        require(unheard, "the replica index has not heard of it")
        self.replica.set_active(p)

    @action(fair=WEAK)
    def pause_replica(self, p: Term[Partition]) -> None:
        """The replica is unindexable: the main index has to come as far as it is now."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.replica.requested[p] == Role.active, "the replica index has heard of it")
        require(~self.replica.paused.has(p), "it is indexable")
        self.target[p] = self.replica.group[p].content.seq
        self._mark_unindexable(p)

    @action(fair=WEAK)
    def start_transfer(self, p: Term[Partition]) -> None:
        """The partition is added to the main index as a passive one, which is indexed from the beginning."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.requested[p] == Role.none, "the main index does not have it")
        self.main.set_passive(p)

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up: the partition becomes active there, and is a replica no more."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.group[p].pbit, "the main index has it")
        require(self._is_frozen(p), "the replica is unindexable")
        require(self._has_caught_up(p), "the main index has caught up")
        self.on_transfer.discard(p)
        self.replicas.discard(p)
        self.main.set_active(p)

    @action(fair=WEAK)
    def resume_replica(self, p: Term[Partition]) -> None:
        """What is to be cleaned up in the replica index is made indexable first."""
        require(~self.on_transfer.has(p), "it is not on transfer")
        self.replica.mark_indexable(p)

    @action(fair=WEAK)
    def clean_up_replica(self, p: Term[Partition]) -> None:
        """The replica index removes a copy that is not needed any more: at once, or after a restart."""
        there = self.replica.requested[p] != Role.none
        require(there, "it is in the replica index")
        require(~self.replicas.has(p), "it is no replica")
        self.replica.set_cleanup(p)

    @action(fair=WEAK)
    def apply_pending_in_main(self) -> None:
        """The main index adds what it has cleaned up."""
        self.main.apply_pending_transition()

    @action(fair=WEAK)
    def apply_pending_in_replica(self) -> None:
        """The replica index adds what it has cleaned up."""
        self.replica.apply_pending_transition()

    # -- helpers -----------------------------------------------------------------------------------------

    def _mark_unindexable(self, p: Term[Partition]) -> None:
        self.replica.mark_unindexable(p)

    def _is_frozen(self, p: Term[Partition]) -> Bool:
        return self.replica.paused.has(p)

    def _has_caught_up(self, p: Term[Partition]) -> Bool:
        return self.main.group[p].content.seq >= self.target[p]

    def _is_row(self, p: Term[Partition], row: Failover) -> Bool:
        """The two indexes have the partition as a row of the table says."""
        return self.main.is_in(p, row.main) & self.replica.is_in(p, row.replica)

    def _is_wanted(self, p: Term[Partition]) -> Bool:
        return self.asked[p] == Asked.active

    def _waits(self, p: Term[Partition]) -> Bool:
        """A query waits for what is still in cleanup in the replica index."""
        return self.replica.group[p].pending_active | self.replica.group[p].pending_passive

    def _rows_found(self, p: Term[Partition]) -> Number:
        """What a query finds of the partition: in the replica index, as long as it is on transfer."""
        main = choose(self.main.group[p].abit, self.main.group[p].content.rows, 0)
        return choose(self.on_transfer.has(p), self.replica.group[p].content.rows, main)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(fail_over)
    def partitions_fail_over_at_once(self, p: Term[Partition]) -> Bool:
        """004: when a node is "not available", its replicas are queried from then on: all of them, not one by one."""
        return self.asked[p] == Asked.replica

    @accepts(add_replica)
    def replicas_are_added_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: "The view engine supports optional replica partitions": of what the server has nothing else, whichever
        partition is on transfer, and whatever an earlier copy of this one has left to clean up.
        """
        unused = self.asked[p].any_of(Asked.nothing, Asked.replica)
        return unused & ~self.replica.paused.has(p)

    @accepts(remove_replica)
    def replicas_are_given_up_at_any_time(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just follows the instructions it gets from the cluster manager": a replica may be needed
        elsewhere, however much of it is indexed.
        """
        return self.asked[p] == Asked.replica

    @accepts(set_passive)
    def partitions_on_transfer_are_handed_over(self, p: Term[Partition]) -> Bool:
        """The same of a partition that moves away while it is transferred: from the moment at which it is in the main index."""
        there = self.main.group[p].pbit | self.main.group[p].pending_passive
        return self.on_transfer.has(p) & there

    @accepts(set_cleanup)
    def partitions_are_removed_during_a_transfer(self, p: Term[Partition]) -> Bool:
        """The same of one that is to be removed, whichever of the two indexes is queried, if it is indexable."""
        wanted = self.asked[p].any_of(Asked.active, Asked.passive)
        return wanted & ~self.main.paused.has(p)

    @accepts(start_transfer)
    def transfers_start_at_once(self, p: Term[Partition]) -> Bool:
        """004: "Started indexing partition on main index" follows "Failover initiated", with "replica index: active,
        unindexable": whatever the replica index has to clean up before, and however many partitions are on transfer.
        """
        initiated = (self.replica.requested[p] == Role.active) & self.replica.paused.has(p)
        return self.on_transfer.has(p) & initiated & (self.main.requested[p] == Role.none)

    @accepts(finish_transfer)
    def transfers_end_with_what_the_replica_has(self, p: Term[Partition]) -> Bool:
        """004: "Once the indexing is completed it will be switched to active": what has come since the failover, to which
        there may be no end, is not waited for.
        """
        main, replica = self.main.group[p], self.replica.group[p]
        indexed = main.pbit & (main.content.seq >= replica.content.seq)
        return self.on_transfer.has(p) & self.replica.paused.has(p) & indexed

    @accepts(write)
    def documents_change_while_partitions_are_transferred(self, p: Term[Partition]) -> Bool:
        """004: the main index has caught up when it has what the replica had: documents need not stay what they are."""
        return self.on_transfer.has(p)

    @accepts(clean_up_replica)
    def copies_are_cleaned_up_during_other_transfers(self, p: Term[Partition]) -> Bool:
        """004, the last row of the table of a failover: "replica index: not-present", as soon as the main index of that
        partition has it, or the manager has given it up: whatever else is on transfer.
        """
        there = self.replica.requested[p] != Role.none
        unused = ~self.on_transfer.has(p) & (self.asked[p] != Asked.replica)
        return there & unused & ~self.replica.paused.has(p)

    @accepts(resume_replica)
    def copies_are_indexable_before_they_are_cleaned_up(self, p: Term[Partition]) -> Bool:
        """The same of the mark of a transfer that has ended: it is taken back, so that the copy can be cleaned up, whatever else
        is on transfer.
        """
        return self.replica.paused.has(p) & ~self.on_transfer.has(p)

    @accepts(activate_replica)
    def replicas_are_active_as_soon_as_they_are_wanted(self, p: Term[Partition]) -> Bool:
        """004: "Failover initiated", "replica index: active": the manager "will tell the view engine to use those replica
        partitions from now on", whatever the main index has to clean up, or others to transfer.
        """
        return self.on_transfer.has(p) & (self.replica.requested[p] != Role.active)

    @accepts(pause_replica)
    def replicas_are_unindexable_as_soon_as_they_are_active(self, p: Term[Partition]) -> Bool:
        """004, "Failover initiated": "replica index: active, unindexable": that of each partition, not one transfer after the
        other, and whether or not the replica has all documents.
        """
        heard = self.replica.requested[p] == Role.active
        return self.on_transfer.has(p) & heard & ~self.replica.paused.has(p)

    @accepts(index_main)
    def the_main_index_is_updated_during_transfers(self, p: Term[Partition]) -> Bool:
        """004: the active partitions are "indexed", and what is on transfer is so as "passive partition": while others are on
        transfer, too.
        """
        entry = self.main.group[p]
        return (entry.abit | entry.pbit) & (entry.content.seq < self.kv[p])

    @accepts(apply_pending_in_main)
    def partitions_are_added_as_soon_as_they_are_clean(self, p: Term[Partition]) -> Bool:
        """004: "The partition is added to the main index as passive partition": when rows of an earlier time are removed, and
        not when some worker has come to its end.
        """
        only_when(self.release.pending_transition)
        entry = self.main.group[p]
        return (entry.pending_active | entry.pending_passive) & ~entry.content.cbit

    @accepts(apply_pending_in_replica)
    def replicas_are_added_as_soon_as_they_are_clean(self, p: Term[Partition]) -> Bool:
        """004: "replica partitions have the same semantics as the main partitions": one that was here before is added when
        its rows are removed, whatever is on transfer.
        """
        only_when(self.release.pending_transition)
        entry = self.replica.group[p]
        return (entry.pending_active | entry.pending_passive) & ~entry.content.cbit

    @accepts(index_replica)
    def replicas_are_indexed_before_they_are_queried(self, p: Term[Partition]) -> Bool:
        """004: "everything written above also applies to the replica partitions": what is passive "is indexed", so that a
        failover finds its rows.
        """
        entry = self.replica.group[p]
        behind = entry.content.seq < self.kv[p]
        return (entry.abit | entry.pbit) & behind & ~self.replica.paused.has(p)

    @invariant
    def each_partition_is_served_once(self, p: Term[Partition]) -> Bool:
        """004: "This means that all queries will still contain all the data the end user would expect to be
        returned", from one of the two indexes.
        """
        replica = self.replica.group[p]
        has = replica.abit | replica.pbit | self._waits(p)
        there = self.on_transfer.has(p) & has
        main = self.main.group[p].abit
        return (self._is_wanted(p) == (there | main)) & ~(there & main)

    @lemma
    @invariant
    def the_indexes_are_as_the_table_says(self, p: Term[Partition]) -> Bool:
        """004, the table of a failover: on transfer the replica is "active, unindexable", and the main index
        does not have the partition yet, or as passive; what either still cleans up is pending there. A lemma: the
        promises about each index and about rows notice what it does.
        """
        row = self._is_row(p, Failover.initiated) | self._is_row(p, Failover.started)
        cleans = self.main.group[p].content.cbit | self.replica.group[p].content.cbit
        queried = self.on_transfer.has(p) & self._is_frozen(p)
        return queried.implies(row | cleans | self._is_ready(p))

    def _is_ready(self, p: Term[Partition]) -> Bool:
        """What was pending in one of the indexes is about to happen."""
        main, replica = self.main.group[p], self.replica.group[p]
        return main.pending_passive | replica.pending_active | replica.pending_passive

    @lemma
    @sometimes
    def a_transfer_is_started(self, p: Term[Partition]) -> Bool:
        """004: "Started indexing partition on main index": "passive, indexable" there. A lemma: transfers start at once."""
        return self.on_transfer.has(p) & self._is_row(p, Failover.started)

    @lemma
    @sometimes
    def a_transfer_is_completed(self, p: Term[Partition]) -> Bool:
        """004: "Indexing on main index completed": "active, indexable" there, and "replica index:
        not-present". A lemma: transfers end, and copies are cleaned up.
        """
        return self._is_wanted(p) & self._is_row(p, Failover.completed)

    @invariant
    def the_main_index_has_what_is_asked_for(self, p: Term[Partition]) -> Bool:
        """004: the view engine "just follows the instructions it gets from the cluster manager": a partition
        that is to be passive is in the main index, and nothing is that is not to be there.
        """
        there = self.main.requested[p] != Role.none
        wanted = self.asked[p].any_of(Asked.active, Asked.passive)
        return there.implies(wanted) & (self.asked[p] == Asked.passive).implies(there)

    @invariant
    def a_replica_is_one(self, p: Term[Partition]) -> Bool:
        """The replicas of the cluster manager are in the list, and what is on transfer is, too."""
        replica = (self.asked[p] == Asked.replica) | self.on_transfer.has(p)
        return self.replicas.has(p) == replica

    @step_property
    def a_replica_that_is_queried_is_not_indexed(self, after: Self, p: Term[Partition]) -> Bool:
        """004, unindexable: "the indexing is stopped. A view query will return the results that are currently
        indexed": those of the main index go on from them.
        """
        stays = self._is_frozen(p) & after._is_frozen(p) & self.on_transfer.has(p)
        there, then = self.replica.group[p].content.seq, after.replica.group[p].content.seq
        return (stays & after.on_transfer.has(p)).implies(there == then)

    @step_property
    def no_row_is_lost(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "Once the indexing is completed it will be switched to active": a query finds what one
        before it has found, also when the other index answers.
        """
        both = self._is_wanted(p) & ~self._waits(p) & after._is_wanted(p) & ~after._waits(p)
        return both.implies(after._rows_found(p) >= self._rows_found(p))

    @step_property
    def indexes_go_on_from_where_they_are(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "from last indexed sequence": a partition that is handed over during its transfer is indexed no second time in
        the main index, nor is a replica that is announced once more in the other.
        """
        main = self.main.only_grows(after.main, p)
        return main & self.replica.only_grows(after.replica, p)

    @invariant
    def the_index_in_which_a_partition_is_active_is_queried(self, p: Term[Partition]) -> Bool:
        """004: the view engine "will now dynamically query those now active replica partitions in addition to the active
        main partitions": a query finds all that is indexed where the partition is active, and nothing elsewhere.
        """
        main, replica = self.main.group[p], self.replica.group[p]
        transferred = self.on_transfer.has(p) & replica.abit
        there = transferred.implies(self._rows_found(p) == replica.content.rows)
        here = main.abit.implies(self._rows_found(p) == main.content.rows)
        return there & here

    @final
    def nothing_is_left_to_do(self) -> Bool:
        """A server may stay as it is when nothing is on transfer."""
        return self.on_transfer.is_empty()

    @liveness
    def transfers_end(self, p: Term[Partition]) -> LeadsTo:
        """004: the partition is "removed from the list of replicas on transfer" in the end."""
        return leads_to(self.on_transfer.has(p), ~self.on_transfer.has(p))

    @liveness
    def copies_are_cleaned_up(self, p: Term[Partition]) -> LeadsTo:
        """004, the last row of the table of a failover: "replica index: not-present"; the same of one that was never queried:
        the view engine "just follows the instructions it gets from the cluster manager", who has given it up.
        """
        entry = self.replica.group[p]
        left = entry.abit & ~self.on_transfer.has(p) | entry.pbit & ~self.replicas.has(p)
        return leads_to(left, ~left)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            no_row_is_lost,
            under=SEED,
            because="there is no pending transition: a query finds rows of an earlier time in the replica index that the "
            "main index does not have",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(write, kv, because="what clients write is theirs"),
        equivalent_replacement(write, "kv[p] becomes", because="what clients write is theirs"),
        equivalent_loss(
            start_transfer, Content.cbit, Entry.pending_active, Entry.abit, because=OF_THE_GROUP
        ),
        equivalent_drop(
            start_transfer, "the main index does not have it", because="what is passive stays so"
        ),
        equivalent_drop(
            add_replica,
            "a copy of an earlier transfer is indexable",
            because="the code refuses it in the replica index, too",
        ),
        equivalent_drop(pause_replica, "it is indexable", because="what is marked stays so"),
        equivalent_drop(
            pause_replica, "partition is active, passive, or will be", because=OF_THE_GROUP
        ),
        equivalent_drop(set_cleanup, "partition is indexable", because=OF_THE_GROUP),
        equivalent_loss(
            set_cleanup,
            Entry.pending_active,
            Content.in_unindexable_seqs,
            PartitionGroup.paused,
            because=OF_THE_GROUP,
        ),
        equivalent_drop(
            activate_replica,
            "the replica index has not heard of it",
            because="what is active stays so",
        ),
        equivalent_loss(
            activate_replica,
            Content.in_seqs,
            Content.has_version,
            Content.cbit,
            because=OF_THE_GROUP,
        ),
        equivalent_loss(
            finish_transfer,
            Content.in_seqs,
            Content.has_version,
            Content.cbit,
            Entry.pending_active,
            Entry.pending_passive,
            because=OF_THE_GROUP,
        ),
        equivalent_drop(
            clean_up_replica,
            "it is in the replica index",
            because="what is not there is not cleaned up",
        ),
        equivalent_loss(
            clean_up_replica,
            Content.in_unindexable_seqs,
            PartitionGroup.paused,
            because=OF_THE_GROUP,
        ),
        equivalent_loss(
            apply_pending_in_main,
            Entry.abit,
            Content.in_unindexable_seqs,
            Entry.pending_active,
            Entry.pending_unindexable,
            because=OF_THE_GROUP,
        ),
    )
