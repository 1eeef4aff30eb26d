"""Rebalance with consistent views: partitions move from node to node while the cluster is queried.

The cluster manager moves the documents of a partition, and drives the states of its index on both nodes
(`partition_states.py`) in an order that lets every query find each partition once, and complete. A query
goes to all nodes.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.couchbase.partitions.group_states import (
    COUCHBASE,
    SEED,
    Partition,
    PartitionState,
    Seqs,
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
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
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
    equivalent_value,
    equivalents,
    every,
    final,
    flag,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    many,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class Node(Entity, scope=2):
    """A node of the cluster."""


class Move(States):
    """How far the move of a partition is; the columns are the document's table of a migration.

    It has no rows for the takeover, which it does in one: "the partition is changed to active on the new
    server and marked for cleanup on the old one".
    """

    # fmt: off
    #            old node                             new node
    none       = PartitionState.active,             PartitionState.not_present
    indexing   = PartitionState.active,             PartitionState.passive
    paused     = PartitionState.active_unindexable, PartitionState.passive
    taken_over = PartitionState.active_unindexable, PartitionState.passive  # it takes writes
    activated  = PartitionState.active_unindexable, PartitionState.active
    mapped     = PartitionState.active_unindexable, PartitionState.active  # queries are sent to it
    released   = PartitionState.active,             PartitionState.active  # cleaned up next
    # fmt: on

    def __init__(self, old: PartitionState, new: PartitionState) -> None:
        self.old = old
        self.new = new


class PartitionRebalance(Machine):
    """Moves of partitions between nodes, and queries of the cluster.

    Under `couchbase` a query comes to each node with a list of the partitions that are wanted from it; under `seed`
    every node returns what is active on it.
    """

    release = profiles(SEED, COUCHBASE)
    writes = budget(1, doc="mutations of documents")
    moves = budget(2, doc="moves of partitions")
    stops = budget(1, doc="moves that are stopped half-way")
    queries = budget(1, doc="queries of the cluster")

    exercised_at = scopes(
        {Partition: 1, writes: 3, moves: 1},
        {Partition: 1, queries: 2},
        {Partition: 1, writes: 2, stops: 0},
        {writes: 0, moves: 1, stops: 0},
        {writes: 1, moves: 2, stops: 0, queries: 0},
        {writes: 0, moves: 3, stops: 2, queries: 0},
        {Node: 3, Partition: 1, writes: 0, stops: 0, queries: 0},
    )

    # the cluster
    nodes = many(PartitionGroup, over=Node)
    master = per(Partition, optional(Node))  # the vBucket map: where clients and queries go
    documents_at = per(Partition, optional(Node))  # which node takes writes
    kv = per(Node, per(Partition, number(0, LAST_SEQ)))  # how many mutations its documents have
    acknowledged = per(Partition, number(0, LAST_SEQ))
    move = per(Partition, one_of(Move, init=Move.none))
    origin = per(Partition, optional(Node))
    destination = per(Partition, optional(Node))
    due = per(Partition, number(0, LAST_SEQ))  # what the new index has to reach before the takeover
    # the query
    querying: FlagVar = flag()
    newest: FlagVar = flag()  # it is one with stale=false
    wanted_from = per(Partition, optional(Node))  # by the map, when it was sent
    answered: SetVar[Node] = set_of(Node)
    times = per(Partition, number(0, 2))  # how many nodes have sent rows of the partition
    found = per(Partition, number(0, LAST_SEQ))  # the rows that were sent
    needed = per(Partition, number(0, LAST_SEQ))  # the rows that it has to find

    # -- documents ---------------------------------------------------------------------------------------

    @action(by=MANAGER, fair=WEAK)
    def create(self, p: Term[Partition], n: Term[Node]) -> None:
        """A node gets a partition when the bucket is made."""
        require(self.master[p].is_none(), "partition is new")
        self.master[p] = n
        self.documents_at[p] = n
        self.nodes[n].set_active(p)

    @action(by=CLIENT, spends=writes)
    def write(self, p: Term[Partition], n: Term[Node]) -> None:
        """A client changes a document on the node that the map names, if that has not handed it over."""
        require((self.master[p] == n) & (self.documents_at[p] == n), "the node takes writes")
        bounded(self.acknowledged[p] < LAST_SEQ, "a sequence number is left")
        self.kv[n][p] = self.kv[n][p] + 1
        self.acknowledged[p] = self.acknowledged[p] + 1

    @action(fair=WEAK)
    def replicate(self, p: Term[Partition], n: Term[Node]) -> None:
        """The documents stream to the node to which the partition moves."""
        require(self.destination[p] == n, "partition moves to the node")
        require(self.kv[n][p] < self.acknowledged[p], "a mutation is left")
        self.kv[n][p] = self.kv[n][p] + 1

    @action(fair=WEAK)
    def index(self, p: Term[Partition], n: Term[Node]) -> None:
        """The updater of a node indexes a mutation that the node has."""
        require(self.nodes[n].group[p].content.seq < self.kv[n][p], "the node has the mutation")
        self.nodes[n].index(p)

    @action(fair=WEAK)
    def clean(self, p: Term[Partition], n: Term[Node]) -> None:
        """The cleaner of a node has removed the rows of a partition."""
        self.nodes[n].clean(p)

    @action(fair=WEAK)
    def apply_pending_transition(self, n: Term[Node]) -> None:
        """A node adds what it has cleaned up."""
        self.nodes[n].apply_pending_transition()

    # -- a move ------------------------------------------------------------------------------------------

    @move.step(Move.none, Move.indexing, by=MANAGER, spends=moves)
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node: it is indexed there, but not queried."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        self.origin[p] = old
        self.destination[p] = new
        self.nodes[new].set_passive(p)

    @move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The backfill is done: the old index gets no more updates, the new one has to come as far."""
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)

    @move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The new index has caught up: the new node takes over the documents, when it has them all."""
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new

    @move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """The partition becomes active on the new node."""
        require(self.destination[p] == new, "partition moves to the node")
        self.nodes[new].set_active(p)

    @move.step(Move.activated, Move.mapped, by=MANAGER, fair=WEAK)
    def update_map(self, p: Term[Partition], new: Term[Node]) -> None:
        """Clients and queries go to the new node from now on."""
        require(self.destination[p] == new, "partition moves to the node")
        self.master[p] = new

    @move.step(Move.mapped, Move.released, by=MANAGER, fair=WEAK)
    def release_old(self, p: Term[Partition], old: Term[Node]) -> None:
        """What is to be cleaned up on the old node is made indexable first."""
        require(self.origin[p] == old, "partition moves from the node")
        self.nodes[old].mark_indexable(p)

    @move.step(Move.released, Move.none, by=MANAGER, fair=WEAK)
    def finish(self, p: Term[Partition], old: Term[Node]) -> None:
        """The partition is cleaned up on the old node."""
        require(self.origin[p] == old, "partition moves from the node")
        self._leave(p)
        self.nodes[old].set_cleanup(p)

    @move.step((Move.indexing, Move.paused), Move.none, by=MANAGER, spends=stops)
    def stop(self, p: Term[Partition], new: Term[Node]) -> None:
        """The rebalance is stopped: the new node drops the partition."""
        require(self.destination[p] == new, "partition moves to the node")
        self._leave(p)
        self.nodes[new].set_cleanup(p)

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """After a stop the partition is indexable again on the node that keeps it."""
        require(self.move[p] == Move.none, "the move is stopped")
        require(self.master[p] == n, "the node keeps the partition")
        self.nodes[n].mark_indexable(p)

    # -- a query of the cluster ----------------------------------------------------------------------------

    @action(by=CLIENT, spends=queries)
    def query(self, newest: Bool) -> None:
        """A node sends a query on to all nodes, with the partitions that are wanted from each by the map."""
        require(~self.querying, "the last query is answered")
        require(every(self.master[p].is_some() for p in Partition), "all partitions are assigned")
        self.querying = True
        self.newest = newest
        for p in Partition:
            self.wanted_from[p] = self.master[p]
            some_rows = choose(self._is_indexed_to(p, 1), 1, 0)
            rows = choose(self._is_indexed_to(p, LAST_SEQ), LAST_SEQ, some_rows)
            self.needed[p] = choose(newest, self.acknowledged[p], rows)

    @action(fair=WEAK)
    def answer(self, n: Term[Node]) -> None:
        """A node sends the rows of the partitions that are wanted from it, once it has them."""
        require(self.querying & ~self.answered.has(n), "a query waits for the node")
        require(~self._is_outdated(n), "node has the partitions that are wanted from it")
        require(
            every(self._may_be_read(n, p) for p in Partition), "node has caught up, if it has to"
        )
        self.answered.add(n)
        for p in Partition:
            sends = self._sends(n, p)
            self.times[p] = choose(sends & (self.times[p] < 2), self.times[p] + 1, self.times[p])
            self.found[p] = choose(sends, self.nodes[n].group[p].content.rows, self.found[p])

    @action(fair=WEAK)
    def send_again(self, n: Term[Node]) -> None:
        """A node does not have a partition that is wanted from it: the query starts again, with a new map."""
        require(self.querying & ~self.answered.has(n), "a query waits for the node")
        require(self._is_outdated(n), "a partition that is wanted from the node is not there")
        self._forget_answers()
        for p in Partition:
            self.wanted_from[p] = self.master[p]

    @action(fair=WEAK)
    def merge(self) -> None:
        """All nodes have answered: their rows are merged."""
        require(every(self.answered.has(n) for n in Node), "all nodes have answered")
        self.querying = False
        self._forget_answers()
        self.newest = False
        for p in Partition:
            self.needed[p] = 0
            self.wanted_from[p] = None
            self.found[p] = 0

    # -- helpers -----------------------------------------------------------------------------------------

    def _is_moving(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        moves = (self.origin[p] == old) & (self.destination[p] == new)
        require(moves, "partition moves between them")

    def _index_has_caught_up(self, p: Term[Partition], new: Term[Node]) -> None:
        require(self.nodes[new].group[p].content.seq >= self.due[p], "index of the new node is due")

    def _backfill_is_done(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        require(self.kv[new][p] == self.kv[old][p], "backfill is done")

    def _leave(self, p: Term[Partition]) -> None:
        self.origin[p] = None
        self.destination[p] = None

    def _has(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].abit | self.nodes[n].group[p].pbit

    def _is_indexed_to(self, p: Term[Partition], seq: int) -> Bool:
        """The node that the map names has indexed the partition that far."""
        return some(
            (self.master[p] == n) & (self.nodes[n].group[p].content.rows >= seq) for n in Node
        )

    def _forget_answers(self) -> None:
        self.answered = frozenset()
        for p in Partition:
            self.times[p] = 0

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        """The partition is queried on the node; of those that are, a list says which are wanted from it."""
        queried = self.nodes[n].is_queried(p)
        if self.release.lists_wanted_partitions:
            return queried & (self.wanted_from[p] == n)
        return queried

    def _is_outdated(self, n: Term[Node]) -> Bool:
        """A partition is wanted from the node that is not queried there, any more or yet."""
        wanted = some((self.wanted_from[p] == n) & ~self.nodes[n].group[p].abit for p in Partition)
        return wanted & self.release.lists_wanted_partitions

    def _may_be_read(self, n: Term[Node], p: Term[Partition]) -> Bool:
        """stale=false waits for what is active."""
        entry = self.nodes[n].group[p]
        waits = self.newest & entry.abit & (self.wanted_from[p] == n)
        return waits.implies(entry.content.seq >= self.kv[n][p])

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(query)
    def queries_come_during_a_rebalance(self, newest: Bool) -> Bool:
        """004: "No matter when a query happens": it is sent to the nodes, whatever moves, and whether or not it asks for the
        newest.
        """
        return ~self.querying & every(self.master[p].is_some() for p in Partition)

    @accepts(write)
    def documents_are_written_during_a_rebalance(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """A node takes writes of what it has until it hands that over, and the other one from then on."""
        return (self.master[p] == n) & (self.documents_at[p] == n)

    @accepts(start)
    def moves_begin_while_queries_go_on(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """004: "No matter when a query happens, it will always return the correct result": so no move waits for queries, of
        which there may always be one; nor for what is left to clean up of this partition, or of another. How many move at
        a time is left to the cluster manager, which "handles the details on which partition to move".
        """
        rests = every(self.origin[q].is_none() & self.destination[q].is_none() for q in Partition)
        indexable = ~self.nodes[old].paused.has(p) & ~self.nodes[new].paused.has(p)
        return rests & (self.master[p] == old) & (old != new) & indexable

    @accepts(answer)
    def queries_are_answered_during_a_rebalance(self, n: Term[Node]) -> Bool:
        """004: "No matter when a query happens": a node answers as soon as it has what is wanted from it, up to the last
        document if that is asked for, whatever moves.
        """
        has_it = every(
            (self.wanted_from[p] == n).implies(
                self.nodes[n].group[p].abit & (self.nodes[n].group[p].content.seq >= self.kv[n][p])
            )
            for p in Partition
        )
        return self.querying & ~self.answered.has(n) & has_it

    @accepts(answer)
    def what_is_indexed_is_returned_at_once(self, n: Term[Node]) -> Bool:
        """004, unindexable: "A view query will return the results that are currently indexed": one that does not ask for the
        newest waits neither for an index that is paused, nor for one that is behind.
        """
        there = every(
            (self.wanted_from[p] == n).implies(self.nodes[n].group[p].abit) for p in Partition
        )
        return self.querying & ~self.answered.has(n) & ~self.newest & there

    @accepts(replicate)
    def documents_move_whatever_the_index_does(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """004: "When a partition is handed over to a new server" its documents are: also where the index of the new one has
        yet to clean up, or to catch up.
        """
        return (self.destination[p] == n) & (self.kv[n][p] < self.acknowledged[p])

    @accepts(pause)
    def indexes_are_paused_as_soon_as_the_documents_are_there(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """004, the second event of a migration: "active, unindexable" on the old node: the documents are there, and queries,
        of which there may always be one, do not put it off.
        """
        moves = (self.origin[p] == old) & (self.destination[p] == new)
        there = self.kv[new][p] == self.kv[old][p]
        return moves & (self.move[p] == Move.indexing) & there

    @accepts(take_over)
    def partitions_are_taken_over_one_by_one(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """004: "Once the migration of the partition is complete and it is fully indexed": of this one, whatever other partitions
        have still to be moved, or indexed.
        """
        moves = (self.origin[p] == old) & (self.destination[p] == new)
        there = self.kv[new][p] == self.kv[old][p]
        indexed = self.nodes[new].group[p].content.seq >= self.due[p]
        return moves & (self.move[p] == Move.paused) & there & indexed

    @accepts(activate)
    def partitions_are_activated_one_by_one(self, p: Term[Partition], new: Term[Node]) -> Bool:
        """004: "Once the migration of the partition is complete": this one is "changed to active on the new server", which takes
        its documents by then, whatever other partitions have still to be indexed.
        """
        return (self.move[p] == Move.taken_over) & (self.destination[p] == new)

    @accepts(update_map)
    def clients_follow_each_partition(self, p: Term[Partition], new: Term[Node]) -> Bool:
        """The same for clients and queries: they are sent there, and not when all that moves has moved."""
        return (self.move[p] == Move.activated) & (self.destination[p] == new)

    @accepts(release_old)
    def old_indexes_are_released_one_by_one(self, p: Term[Partition], old: Term[Node]) -> Bool:
        """004: "changed to active on the new server and marked for cleanup on the old one": this one, whatever other partitions
        have still to be moved.
        """
        return (self.move[p] == Move.mapped) & (self.origin[p] == old)

    @accepts(send_again)
    def queries_start_again_at_once(self, n: Term[Node]) -> Bool:
        """004: the result comes "either from the old node, or after the migration from the new node": a query that has come
        to a node too late, or too early, waits for no end of a rebalance.
        """
        only_when(self.release.lists_wanted_partitions)
        lacks = some((self.wanted_from[p] == n) & ~self.nodes[n].group[p].abit for p in Partition)
        return self.querying & ~self.answered.has(n) & lacks

    @accepts(merge)
    def answers_are_merged_during_a_rebalance(self) -> Bool:
        """004: "No matter when a query happens": what all nodes have answered is the result, whatever moves."""
        return self.querying & every(self.answered.has(n) for n in Node)

    @accepts(finish)
    def old_partitions_are_cleaned_up_one_by_one(self, p: Term[Partition], old: Term[Node]) -> Bool:
        """004: "changed to active on the new server and marked for cleanup on the old one": whatever other partitions have still
        to be moved, or to be cleaned up.
        """
        return (self.move[p] == Move.released) & (self.origin[p] == old)

    @accepts(apply_pending_transition)
    def partitions_are_added_during_a_rebalance(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """004, passive and indexable "means that it will start indexing right away": on a node that had it before, when that
        has cleaned up, whatever is queried, or moves away from there.
        """
        only_when(self.release.pending_transition)
        entry = self.nodes[n].group[p]
        return (entry.pending_active | entry.pending_passive) & ~entry.content.cbit

    @accepts(stop)
    def moves_are_stopped_until_the_takeover(self, p: Term[Partition], new: Term[Node]) -> Bool:
        """004: the "cluster manager handles the details on which partition to move": it may think again as long as the old
        node has the documents, whatever the indexes have come to.
        """
        return (self.destination[p] == new) & ~(self.documents_at[p] == new)

    @accepts(resume)
    def indexes_go_on_when_a_move_is_stopped(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """004, indexable: "That's the default state": the index that stays goes on at once, whatever is left to clean up on the
        node to which the partition was to move.
        """
        keeps = (self.master[p] == n) & self.origin[p].is_none()
        return keeps & self.nodes[n].paused.has(p)

    @accepts(index)
    def the_new_index_is_built_right_away(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """004: passive and indexable "means that it will start indexing right away": from the first document that has come,
        and not when all have.
        """
        passive = self.nodes[n].group[p].pbit & ~self.nodes[n].paused.has(p)
        behind = self.nodes[n].group[p].content.seq < self.kv[n][p]
        return (self.destination[p] == n) & passive & behind

    @accepts(index)
    def what_is_queried_is_indexed(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """004, active: "Partition is indexed and the result will be returned": unless it is unindexable, at every time of a
        move, on the old node before it and on the new one after it.
        """
        active = self.nodes[n].group[p].abit & ~self.nodes[n].paused.has(p)
        return active & (self.nodes[n].group[p].content.seq < self.kv[n][p])

    @accepts(clean)
    def partitions_are_cleaned_up_during_a_rebalance(
        self, p: Term[Partition], n: Term[Node]
    ) -> Bool:
        """004: a partition in cleanup "will be removed during the next cleanup cycle", also one that moves here again."""
        return self.nodes[n].group[p].content.cbit

    @independent(
        create,
        replicate,
        index,
        clean,
        apply_pending_transition,
        start,
        pause,
        take_over,
        activate,
        update_map,
        release_old,
        finish,
        stop,
        resume,
        of=(querying, newest, wanted_from, answered, times, found, needed),
    )
    def rebalances_wait_for_no_query(self) -> None:
        """004: "No matter when a query happens, it will always return the correct result": so no step of a move waits until it is
        answered, nor do indexes and cleaners, however many partitions move, and whatever has been answered.
        """

    @step_property
    def each_partition_is_served_once(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "During the rebalance, the query results in the cluster are always consistent": each wanted
        partition is in the result, and no other node contributes it, too (MB-7082).
        """
        merged = self.querying & ~after.querying
        return merged.implies(self.times[p] == 1)

    @step_property
    def only_active_partitions_are_returned(
        self, after: Self, n: Term[Node], p: Term[Partition]
    ) -> Bool:
        """004: what is passive "will not be returned on query time", and what is in cleanup "won't be returned
        on query time": a node that answers adds rows of partitions that are active on it.
        """
        answered = after.answered.has(n) & ~self.answered.has(n)
        returned = answered & (after.times[p] > self.times[p])
        return returned.implies(self.nodes[n].group[p].abit)

    @step_property
    def moves_do_not_disturb_queries(self, after: Self) -> Bool:
        """004: "No matter when a query happens, it will always return the correct result": what a node has answered is kept,
        unless a partition that is wanted from some node is not active there, or not any more.
        """
        forgotten = some(self.answered.has(n) & ~after.answered.has(n) for n in Node)
        lacks = some(
            (self.wanted_from[p] == n) & ~self.nodes[n].group[p].abit
            for n in Node
            for p in Partition
        )
        return (self.querying & after.querying & forgotten).implies(lacks)

    @step_property
    def queries_are_sent_where_they_are_answered(
        self, after: Self, n: Term[Node], p: Term[Partition]
    ) -> Bool:
        """004: the result comes "either from the old node, or after the migration from the new node": as a query is sent, the
        partition is active on the node that is asked for it, or about to be once that has cleaned up.
        """
        sent = (after.wanted_from[p] == n) & ~(self.wanted_from[p] == n)
        entry = self.nodes[n].group[p]
        return sent.implies(entry.abit | entry.pending_active)

    @invariant
    def an_index_is_paused_only_while_another_catches_up(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """A query with stale=false on a paused index waits for the new one: while that is "fully indexed", but
        not for all the time in which the documents are moved.
        """
        paused = self.nodes[old].paused.has(p) & (self.origin[p] == old)
        return (paused & (self.destination[p] == new)).implies(self.kv[new][p] >= self.due[p])

    @invariant
    def writes_wait_for_no_index(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """004: "Once the migration of the partition is complete and it is fully indexed", the new server takes it over: as long
        as clients still go to the old one, which takes no more writes, there is nothing left to index on the new one.
        """
        refused = (self.master[p] == old) & (self.documents_at[p] == new) & (old != new)
        return refused.implies(self.nodes[new].group[p].content.seq >= self.due[p])

    @invariant
    def nodes_have_what_the_map_names_or_what_moves(
        self, p: Term[Partition], n: Term[Node]
    ) -> Bool:
        """004: "the partition is changed to active on the new server and marked for cleanup on the old
        one"; where a move was stopped, the new one drops it.
        """
        named = (self.master[p] == n) | (self.origin[p] == n) | (self.destination[p] == n)
        entry = self.nodes[n].group[p]
        return (self._has(n, p) | entry.pending_active | entry.pending_passive).implies(named)

    @step_property
    def an_answer_is_complete(self, after: Self, p: Term[Partition]) -> Bool:
        """004: "No matter when a query happens, it will always return the correct result, either from the
        old node, or after the migration from the new node": what was indexed when it came, and with
        stale=false what was acknowledged.
        """
        merged = self.querying & ~after.querying
        return merged.implies(self.found[p] >= self.needed[p])

    @invariant
    def the_nodes_are_as_the_table_says(
        self, p: Term[Partition], old: Term[Node], new: Term[Node]
    ) -> Bool:
        """004: "This diagram shows the migration of one partition from one node to another"; what is still
        in cleanup on a node from an earlier time is pending there.
        """
        moves = (self.origin[p] == old) & (self.destination[p] == new)
        was, will = self.nodes[old].group[p], self.nodes[new].group[p]
        paused = self.move[p].column(lambda m: m.old.seq is Seqs.unindexable_seqs)
        active = self.move[p].column(lambda m: m.new.abit)
        served = was.abit & (was.content.in_unindexable_seqs == paused)
        here = served | was.pending_active & (was.pending_unindexable == paused)
        there = (will.abit | will.pending_active) == active
        rests = self.move[p].column(lambda m: m.new.seq is Seqs.unindexable_seqs)
        marked = will.content.in_unindexable_seqs | will.pending_unindexable
        role = there & (active | will.pbit | will.pending_passive)
        return moves.implies(here & role & (marked == rests))

    @invariant
    def writes_reach_one_node(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """The node that takes writes has every document that was acknowledged."""
        return (self.documents_at[p] == n).implies(self.kv[n][p] == self.acknowledged[p])

    @invariant
    def a_move_has_two_nodes(self, p: Term[Partition]) -> Bool:
        """What moves, moves from one node to another; what does not, is on one."""
        rests = self.move[p] == Move.none
        return (self.origin[p].is_none() == rests) & (self.destination[p].is_none() == rests)

    @invariant
    def the_map_names_where_the_documents_are(self, p: Term[Partition], n: Term[Node]) -> Bool:
        """Clients find the node that takes their writes, but for the time of a takeover."""
        changes = self.move[p].any_of(Move.taken_over, Move.activated)
        return changes | ((self.master[p] == n) == (self.documents_at[p] == n))

    @final
    def nothing_moves(self) -> Bool:
        """A cluster may stay as it is when no partition moves and no query is going on."""
        return ~self.querying & every(self.move[p] == Move.none for p in Partition)

    @liveness
    def partitions_are_assigned(self, p: Term[Partition]) -> LeadsTo:
        """Every partition gets a node."""
        return leads_to(self.master[p].is_none(), self.master[p].is_some())

    @liveness
    def moves_end(self, p: Term[Partition]) -> LeadsTo:
        """Every move ends, done or stopped."""
        return leads_to(self.move[p] != Move.none, self.move[p] == Move.none)

    @lemma
    @liveness
    def indexes_go_on_when_nothing_moves(self, p: Term[Partition], n: Term[Node]) -> LeadsTo:
        """004, indexable: "That's the default state": what a move has paused is not left so when that is stopped. A lemma: it
        may go on at once.
        """
        paused = self.nodes[n].paused.has(p)
        return leads_to((self.move[p] == Move.none) & paused, (self.move[p] != Move.none) | ~paused)

    @liveness
    def queries_are_answered(self) -> LeadsTo:
        """Every query of the cluster is answered, also when the map changes under it."""
        return leads_to(self.querying, ~self.querying)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            each_partition_is_served_once,
            an_answer_is_complete,
            under=SEED,
            because="a partition moves in one event of the document's table, but on two nodes: a query that comes in "
            "between finds it twice, or not at all",
        ),
        violated(
            an_index_is_paused_only_while_another_catches_up,
            under=SEED,
            because="the old index is paused as soon as the new one starts",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_value(Move.none, lambda move: move.old, because="without a move nothing is old"),
        equivalent_value(Move.none, lambda move: move.new, because="without a move nothing is new"),
        equivalent_loss(
            create,
            Content.cbit,
            Entry.pending_active,
            Entry.pending_passive,
            Entry.pbit,
            because=OF_THE_GROUP,
        ),
        equivalent_drop(
            replicate,
            "partition moves to the node",
            because="documents may also be where nobody needs them",
        ),
        equivalent_loss(
            start, Content.cbit, Entry.pending_active, Entry.abit, because=OF_THE_GROUP
        ),
        equivalent_drop(pause, "partition is active, passive, or will be", because=OF_THE_GROUP),
        equivalent_loss(
            activate, Content.in_seqs, Content.has_version, Content.cbit, because=OF_THE_GROUP
        ),
        equivalent_drop(
            release_old, "partition moves from the node", because="the other one is indexable"
        ),
        equivalent_drop(release_old, "partition is unindexable", because=OF_THE_GROUP),
        equivalent_drop(finish, "partition is indexable", because=OF_THE_GROUP),
        equivalent_loss(
            finish,
            Entry.pending_passive,
            Entry.pbit,
            Content.in_unindexable_seqs,
            PartitionGroup.paused,
            because=OF_THE_GROUP,
        ),
        equivalent_drop(stop, "partition is indexable", because=OF_THE_GROUP),
        equivalent_loss(
            stop,
            Entry.pending_active,
            Entry.abit,
            Content.in_unindexable_seqs,
            PartitionGroup.paused,
            because=OF_THE_GROUP,
        ),
        equivalent_drop(
            resume, "the node keeps the partition", because="no other node has it unindexable"
        ),
        equivalent_loss(query, querying, because="a query that is not asked"),
        equivalent_replacement(query, "querying becomes", because="a query that is not asked"),
        equivalent_replacement(
            query,
            "needed[p] becomes",
            because="what it has to find is remembered for the promise alone",
        ),
        equivalent_loss(
            query, needed, because="what it has to find is remembered for the promise alone"
        ),
        equivalent_drop(
            send_again, "a query waits for the node", because="to send it again is never wrong"
        ),
        equivalent_loss(
            merge, newest, needed, wanted_from, found, because="the next query sets it anew"
        ),
        equivalent_replacement(
            merge,
            "newest becomes",
            "needed[p] becomes",
            "found[p] becomes",
            because="the next query sets it anew",
        ),
    )
