"""Replica partitions: a failover makes the replica index answer, until the main index has its partitions.

A design document has two indexes on a server, each with its partitions (`partition_states.py`): the main one
and one of replicas. After a failover a replica is queried where it is, and transferred: it is indexed in the
main index from the beginning, as passive, and becomes active there.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition, Role
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
    Term,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    final,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    part,
    per,
    profiles,
    require,
    scopes,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
MARKS = (PartitionGroup.mark_unindexable, PartitionGroup.mark_indexable)  # of other machines


class Asked(Enum):
    """What the cluster manager has asked for last, of a partition."""

    nothing = auto()
    replica = auto()
    passive = auto()
    active = auto()


class PartitionReplicas(Machine):
    """The main and the replica index of one server, through failovers.

    Under `couchbase` every promise holds. Two things are as the document has them and, as far as we see,
    not as the code does: a replica that is queried is not indexed any more, so that its transfer never loses
    a row (the code activates it, and marks nothing); and what a restart cleans up in the replica index are
    the partitions that are no longer on transfer (the code cleans up those that are).

    Under `seed` there is no pending transition: `main.content_is_that_of_the_sequence_number` and
    `replica.content_is_that_of_the_sequence_number` fail.
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(2, doc="mutations of documents")
    requests = budget(5, doc="requests of the cluster manager")

    exercised_at = scopes({}, {Partition: 1, writes: 3, requests: 6})

    main = part(PartitionGroup, without=MARKS)
    replica = part(PartitionGroup, without=MARKS)
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
        """The partition is to be active: its replica is queried, and the main index starts with it."""
        require(self.asked[p] == Asked.replica, "it is a replica, not on transfer")
        self.on_transfer.add(p)
        self.asked[p] = Asked.active
        self.target[p] = self.kv[p]
        self.main.set_passive(p)

    @action(by=MANAGER, spends=requests)
    def set_passive(self, p: Term[Partition]) -> None:
        """A partition on transfer is to be passive: it is so in the main index, which goes on with it."""
        require(self.on_transfer.has(p), "it is on transfer")
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
        """The updater of the replica index does so; not while the replica is queried (unindexable)."""
        require(self.replica.group[p].content.seq < self.kv[p], "a mutation is left")
        require(self._may_be_indexed(p), "the replica is not on transfer")
        self.replica.index(p)

    @action(fair=WEAK)
    def activate_replica(self, p: Term[Partition]) -> None:
        """The replica index learns that its copy is queried: at once, or after a restart in between."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(~self.replica.group[p].abit, "it is passive in the replica index")
        self.replica.set_active(p)

    @action(fair=WEAK)
    def finish_transfer(self, p: Term[Partition]) -> None:
        """The main index has caught up: the partition becomes active there, and is a replica no more."""
        require(self.on_transfer.has(p), "it is on transfer")
        require(self.main.group[p].pbit, "the main index has it")
        require(self.main.group[p].content.seq >= self.target[p], "the main index has caught up")
        self.on_transfer.discard(p)
        self.replicas.discard(p)
        self.main.set_active(p)

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

    # -- what recurs -------------------------------------------------------------------------------------

    def _may_be_indexed(self, p: Term[Partition]) -> Bool:
        """004: "replica index: active, unindexable"."""
        return ~self.on_transfer.has(p)

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

    @invariant
    def what_is_on_transfer_is_passive(self, p: Term[Partition]) -> Bool:
        """004: "The partition is added to the main index as passive partition"."""
        entry = self.main.group[p]
        passive = (entry.pbit | entry.pending_passive) & self.replicas.has(p)
        return self.on_transfer.has(p).implies(passive)

    @invariant
    def a_replica_is_one(self, p: Term[Partition]) -> Bool:
        """The replicas of the cluster manager are in the list, and what is on transfer is, too."""
        replica = (self.asked[p] == Asked.replica) | self.on_transfer.has(p)
        return self.replicas.has(p) == replica

    @step_property
    def no_row_is_lost(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "Once the indexing is completed it will be switched to active": a query finds what one
        before it has found, also when the other index answers.
        """
        both = self._is_wanted(p) & ~self._waits(p) & after._is_wanted(p) & ~after._waits(p)
        return both.implies(after._rows_found(p) >= self._rows_found(p))

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
        """004, the last row of the table of a failover: "replica index: not-present"."""
        return leads_to(
            self.replica.group[p].abit & ~self.on_transfer.has(p), ~self.replica.group[p].abit
        )

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(write, kv, because="what clients write is theirs"),
        equivalent_loss(
            fail_over, Content.cbit, Entry.pending_active, Entry.abit, because=OF_THE_GROUP
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
            "it is passive in the replica index",
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
        equivalent_drop(clean_up_replica, "partition is indexable", because=OF_THE_GROUP),
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
        equivalent_loss(
            apply_pending_in_replica,
            Content.in_unindexable_seqs,
            Entry.pending_unindexable,
            because=OF_THE_GROUP,
        ),
    )
