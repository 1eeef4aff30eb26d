"""Mistakes put back into `PartitionRebalance`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, Partition, Role
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    WEAK,
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_states import MANAGER, PartitionGroup
from stagewright.spec import Bool, Term, action, choose, every, many, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REBALANCE = 'design document 004, "Queries during rebalance"'


@known_bug(
    "004-7",
    "design document 004: the migration of one partition from one node to another",
    breaks=PartitionRebalance.the_nodes_are_as_the_table_says,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class TheMapIsChangedFirst(PartitionRebalance):
    """Queries are sent to the new node before the partition is active there, and again until it is."""

    @PartitionRebalance.move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """Clients and queries go to the new node."""
        require(self.destination[p] == new, "partition moves to the node")
        self.master[p] = new

    @PartitionRebalance.move.step(Move.activated, Move.mapped, by=MANAGER, fair=WEAK)
    def update_map(self, p: Term[Partition], new: Term[Node]) -> None:
        """The partition becomes active there."""
        require(self.destination[p] == new, "partition moves to the node")
        self.nodes[new].set_active(p)


@known_bug(
    "004-32",
    'design document 004, cleanup: "won\'t be returned on query time"',
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class RowsAreReturnedWhileTheyAreThere(PartitionRebalance):
    """A query that takes what is indexed, sent to the old node, gets the rows that this is about to clean up, unless it is
    sent again before.
    """

    @action(fair=WEAK)
    def answer(self, n: Term[Node]) -> None:
        """A node sends the rows that it has of the partitions that are wanted from it."""
        require(self.querying & ~self.answered.has(n), "a query waits for the node")
        there = every(
            (self.wanted_from[p] == n).implies(self.nodes[n].group[p].abit | self._is_left(n, p))
            for p in Partition
        )
        require(there, "node has the partitions that are wanted from it, or what is left of them")
        caught_up = every(self._may_be_read(n, p) for p in Partition)
        require(caught_up, "node has caught up, if it has to")
        self.answered.add(n)
        for p in Partition:
            sends = self._sends(n, p)
            self.times[p] = choose(sends & (self.times[p] < 2), self.times[p] + 1, self.times[p])
            self.found[p] = choose(sends, self.nodes[n].group[p].content.rows, self.found[p])

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | ((self.wanted_from[p] == n) & self._is_left(n, p))

    def _is_left(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].content.cbit & ~self.newest


@known_bug(
    "004-62",
    'design document 004: "after the migration from the new node"',
    breaks=PartitionRebalance.queries_are_sent_where_they_are_answered,
    profile=COUCHBASE.name,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1, PartitionRebalance.stops: 0},
)
class QueriesFollowTheDocuments(PartitionRebalance):
    """The map names the new node as it takes over the documents: queries are sent there again and again until the
    partition is active.
    """

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """Clients, too, go to the new node."""
        self._is_moving(p, old, new)
        self._index_has_caught_up(p, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new
        self.master[p] = new


@known_bug(
    "004-84",
    'design document 004: "the migration of one partition from one node to another"',
    breaks=PartitionRebalance.nodes_have_what_the_map_names_or_what_moves,
    sizes={Node: 3, Partition: 1},
    budgets={PartitionRebalance.stops: 0, PartitionRebalance.queries: 0},
)
class TheMoveIsPlannedAnew(PartitionRebalance):
    """A rebalance that was planned anew sent a partition to a third node: the second one kept what it had of it."""

    @PartitionRebalance.move.step(
        (Move.none, Move.indexing), Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the node that is to have it now."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        require(self.destination[p] != new, "it does not move there yet")
        self.origin[p] = old
        self.destination[p] = new
        self.nodes[new].set_passive(p)


@known_bug(
    "004-154",
    "design document 004, queries during rebalance: fully indexed",
    breaks=PartitionRebalance.writes_wait_for_no_index,
    sizes={Partition: 1},
)
class TheIndexCatchesUpAfterTheTakeover(PartitionRebalance):
    """The new node took the documents over as soon as it had them, and its index caught up then: meanwhile no node took writes."""

    @PartitionRebalance.move.step(Move.paused, Move.taken_over, by=MANAGER, fair=WEAK)
    def take_over(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The new node has all documents."""
        self._is_moving(p, old, new)
        require(self.kv[new][p] == self.kv[old][p], "new node has all documents")
        self.documents_at[p] = new

    @PartitionRebalance.move.step(Move.taken_over, Move.activated, by=MANAGER, fair=WEAK)
    def activate(self, p: Term[Partition], new: Term[Node]) -> None:
        """The new index has caught up."""
        require(self.destination[p] == new, "partition moves to the node")
        self._index_has_caught_up(p, new)
        self.nodes[new].set_active(p)


@known_bug(
    "004-158",
    "design document 004, queries during rebalance: no matter when a query happens",
    breaks=PartitionRebalance.moves_do_not_disturb_queries,
    sizes={Partition: 1},
)
class PausesRestartQueries(PartitionRebalance):
    """Each index that was paused began all queries anew: a rebalance of many partitions had none answered."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The backfill is done, and what was answered is forgotten."""
        self._is_moving(p, old, new)
        self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)
        self._forget_answers()


@known_bug(
    "004-178",
    'design document 004, "Queries during rebalance"',
    breaks=PartitionRebalance.an_answer_is_complete,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 2, PartitionRebalance.stops: 0},
)
class DueIsWhatWasDueBefore(PartitionRebalance):
    """How far the new index has to come is noted once: when a partition moves again, what was due then is enough."""

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        self._is_moving(p, old, new)
        if self.release.pauses_after_backfill:
            self._backfill_is_done(p, old, new)
        self.due[p] = choose(self.due[p] > 0, self.due[p], self.kv[old][p])
        self.nodes[old].mark_unindexable(p)


@known_bug(
    "004-197",
    REBALANCE,
    breaks=PartitionRebalance.writes_wait_for_no_index,
    budgets={
        PartitionRebalance.writes: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class OneIndexIsDueForAll(PartitionRebalance):
    """The new node says that its index has caught up, and not for which partition: another one is taken over, too."""

    def _index_has_caught_up(self, p: Term[Partition], new: Term[Node]) -> None:
        due = some(
            (self.destination[q] == new) & (self.nodes[new].group[q].content.seq >= self.due[q])
            for q in Partition
        )
        require(due, "index of the new node is due")


@known_bug(
    "004-216",
    'design document 004: "passive (and indexable) on the new server"',
    breaks=PartitionRebalance.the_nodes_are_as_the_table_says,
    sizes={Partition: 1},
    budgets={
        PartitionRebalance.moves: 1,
        PartitionRebalance.stops: 0,
        PartitionRebalance.queries: 0,
    },
)
class TheNewIndexWaitsForItsDocuments(PartitionRebalance):
    """A partition was unindexable on the new node until its documents had come, and then indexed all at once."""

    nodes = many(PartitionGroup, over=Node, without=(PartitionGroup.set_passive,))

    @PartitionRebalance.move.step(
        Move.none, Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node, and unindexable."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        entry = self.nodes[new].group[p]
        require(~entry.content.cbit, "the new node has cleaned up")
        self.origin[p] = old
        self.destination[p] = new
        entry.pbit = True
        entry.content.in_unindexable_seqs = True
        entry.content.has_version = True
        self.nodes[new].requested[p] = Role.passive
        self.nodes[new].paused.add(p)

    @PartitionRebalance.move.step(Move.indexing, Move.paused, by=MANAGER, fair=WEAK)
    def pause(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The backfill is done: the new index begins."""
        require(old != new, "they are two")
        self._is_moving(p, old, new)
        self._backfill_is_done(p, old, new)
        self.due[p] = self.kv[old][p]
        self.nodes[old].mark_unindexable(p)
        self.nodes[new].mark_indexable(p)


@known_bug(
    "K9-cluster",
    "design document 004, queries during rebalance: a query won't take it into account",
    breaks=PartitionRebalance.only_active_partitions_are_returned,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class NewNodesReturnPassiveRows(PartitionRebalance):
    """The node to which a partition moves returned what it had of it so far."""

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return super()._sends(n, p) | self.nodes[n].group[p].pbit


@known_bug(
    "K9-pause",
    "design document 004, the table of a migration, as it stands",
    breaks=PartitionRebalance.an_index_is_paused_only_while_another_catches_up,
    sizes={Partition: 1},
    budgets={PartitionRebalance.queries: 0, PartitionRebalance.moves: 1},
)
class PausedBeforeTheBackfill(PartitionRebalance):
    """The old index was paused when the move began: stale=false waited until all documents were moved."""

    def _backfill_is_done(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        pass


@known_bug(
    "Z32",
    "MB-7082",
    breaks=PartitionRebalance.each_partition_is_served_once,
    sizes={Partition: 1},
    budgets={PartitionRebalance.writes: 0, PartitionRebalance.moves: 1},
)
class WantedPartitionsAreIgnored(PartitionRebalance):
    """Each node sent what was active there, whatever was wanted from it.

    Between the takeover and the cleanup a partition is active on two nodes: its rows came twice.
    """

    def _sends(self, n: Term[Node], p: Term[Partition]) -> Bool:
        return self.nodes[n].group[p].abit


BUGS = known_bugs_in(globals())
