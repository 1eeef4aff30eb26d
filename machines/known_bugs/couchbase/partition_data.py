"""Bugs of Couchbase's view engine: rollback, the merge of queries, and what a move, or who waits for it, comes to."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.group_states import Partition, Role
from stagewright.machines.couchbase.partitions.partition_merge import (
    WEAK,
    PartitionMerge,
    Producer,
    Row,
)
from stagewright.machines.couchbase.partitions.partition_queries import PartitionQueries
from stagewright.machines.couchbase.partitions.partition_rebalance import (
    Move,
    Node,
    PartitionRebalance,
)
from stagewright.machines.couchbase.partitions.partition_rollback import PartitionRollback
from stagewright.machines.couchbase.partitions.partition_states import MANAGER
from stagewright.spec import Bool, Number, Term, action, count, require, some
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in


@known_bug(
    "Z61",
    "MB-6056",
    breaks=PartitionMerge.the_page_is_that_of_all_rows,
    budgets={PartitionMerge.failures: 0},
)
class NodesAreGivenTheLimitAsItIs(PartitionMerge):
    """A node sent no more rows than the page has, although some of them were to be skipped."""

    def _limit_of_a_node(self) -> Number:
        return self.limit + 0


@known_bug(
    "K8-descending",
    "design document 004, view query operation",
    breaks=PartitionMerge.rows_come_in_order,
    budgets={PartitionMerge.failures: 0},
)
class TheSmallestRowIsTaken(PartitionMerge):
    """The merge takes the smallest row, also of a query whose nodes send the largest first."""

    def _is_taken_before(self, other: Row, row: Term[Row]) -> Bool:
        return row.column(lambda member: other.place < member.place)


@known_bug(
    "K8-range",
    "design document 004, view query operation",
    breaks=PartitionMerge.the_page_is_that_of_all_rows,
    budgets={PartitionMerge.failures: 0},
)
class StartKeyIsTheLeast(PartitionMerge):
    """The start key is taken for the least key of the range; a walk downwards begins with it, and is left with nothing else."""

    def _is_in_range(self, row: Row) -> Bool:
        return self.start_key <= row.place


@known_bug(
    "K8-total",
    "design document 004, view query operation",
    breaks=PartitionMerge.total_rows_counts_all,
    budgets={PartitionMerge.failures: 0},
)
class RowCountIsThatOfTheRange(PartitionMerge):
    """A node counts the rows that it is going to send."""

    def _rows_of(self, n: Term[Node]) -> Number:
        return count((self.at[row] == n) & self._is_in_range(row) for row in Row)


@known_bug(
    "004-141",
    "design document 004, view query operation: rows are read on arrival from the response of a node",
    breaks=PartitionMerge.only_errors_are_told,
    budgets={PartitionMerge.failures: 0},
)
class TheEndOfAResponseIsAnError(PartitionMerge):
    """A connection that is closed was taken for an error: every answer listed one of each node, with all their rows."""

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        """Nothing comes from the node any more."""
        require(self.producer[n] == Producer.sending, "node is sending")
        enough = self._sent_by(n) >= self._limit_of_a_node()
        require(~self._has_more(n) | enough, "nothing is left, or enough is sent")
        self.producer[n] = Producer.failed


@known_bug(
    "Z63", "MB-8689, MB-32420", breaks=PartitionRollback.an_index_that_has_caught_up_is_right
)
class PurgedDeletionsAreMissed(PartitionRollback):
    """An index that was behind when deletions were purged went on from where it was.

    It never learns of them, and keeps the rows of deleted documents.
    """

    def _has_missed_deletions(self) -> Bool:
        return self.index.seq < 0  # never


@known_bug(
    "004-212",
    'design document 004: an index is "up to date with the KV server"',
    breaks=PartitionRollback.an_index_that_has_caught_up_is_right,
)
class OnlyTheLastFailoverCounts(PartitionRollback):
    """An index that had missed two failovers was compared with the last one alone: what the first one lost stayed in it."""

    def _is_common(self, seq: Number, branch: Number) -> Bool:
        log = self.failover_log
        return (log.length <= branch) | (seq <= log.last.seq)


@known_bug(
    "K8-limit",
    "design document 004, view query operation",
    breaks=PartitionMerge.the_page_has_no_more_than_was_asked_for,
)
class ErrorsLiftTheLimit(PartitionMerge):
    """A node that failed made room for rows of the others, without an end."""

    def _has_room(self) -> Bool:
        return super()._has_room() | ~self._nobody_failed()


@known_bug(
    "K8-continue",
    "design document 004, view query operation: on_error=continue",
    breaks=PartitionMerge.an_error_takes_no_rows_along,
)
class RowsAfterAnErrorAreDropped(PartitionMerge):
    """Once an error was listed, the rows that other nodes sent were taken off the queue, and not put on the page."""

    def _has_room(self) -> Bool:
        return super()._has_room() & self.errors.is_empty()


@known_bug(
    "004-5",
    "design document 004, view query operation",
    breaks=PartitionMerge.rows_come_in_order,
    budgets={PartitionMerge.failures: 0},
)
class WhatFitsIsNotMerged(PartitionMerge):
    """Where all rows fit on the page they were put there as they came."""

    def _is_taken_before(self, other: Row, row: Term[Row]) -> Bool:
        fits = (self.skip == 0) & (self.total <= self.limit)
        return super()._is_taken_before(other, row) & ~fits


@known_bug(
    "004-6",
    'design document 004: the queue "blocks the enqueue operation by each process"',
    breaks=PartitionMerge.a_node_has_one_row_on_the_way,
    budgets={PartitionMerge.failures: 0},
)
class NobodyBlocks(PartitionMerge):
    """A node sent its rows without a look at whether the last one was taken."""

    @action(fair=WEAK)
    def send_row(self, n: Term[Node], row: Term[Row]) -> None:
        """A node sends the next of its rows, as many as may be needed."""
        require(self.producer[n] == Producer.sending, "node is sending")
        require(self._is_next_of(n, row), "it is the next row of the node")
        require(self._sent_by(n) < self._limit_of_a_node(), "the node has not sent enough")
        self.sent[n].add(row)
        self.queue.add(row)


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
    "004-71",
    "design document 004: the default state of a partition is indexable",
    breaks=PartitionRebalance.indexes_go_on_when_nothing_moves,
    sizes={Partition: 1},
    budgets={PartitionRebalance.moves: 1},
)
class AStopLeavesItPaused(PartitionRebalance):
    """Where a rebalance was stopped, the index of the node that kept the partition stayed paused until the next query."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """A query finds the partition unindexable."""
        super().resume(p, n)
        require(self.querying, "a query asks for it")


@known_bug(
    "004-72",
    "design document 004: no matter when a query happens",
    breaks=PartitionRebalance.moves_begin_while_queries_go_on,
    sizes={Partition: 1},
)
class MovesWaitForQueries(PartitionRebalance):
    """No partition began to move while a query of the cluster was going on, and one always was."""

    @PartitionRebalance.move.step(
        Move.none, Move.indexing, by=MANAGER, spends=PartitionRebalance.moves
    )
    def start(self, p: Term[Partition], old: Term[Node], new: Term[Node]) -> None:
        """The partition becomes passive on the new node, when nobody queries it."""
        require((self.master[p] == old) & (old != new), "the other node has the partition")
        require(~self.nodes[old].paused.has(p), "its index goes on after an earlier move")
        require(~self.querying, "no query is going on")
        self.origin[p] = old
        self.destination[p] = new
        self.nodes[new].set_passive(p)


@known_bug(
    "004-73",
    "design document 004: once the migration is complete and it is fully indexed, the partition is changed to active",
    breaks=PartitionQueries.what_is_not_queried_yet_can_be_waited_for,
    sizes={Partition: 1},
)
class OnlyActiveOnesAreMonitored(PartitionQueries):
    """Whoever moved a partition could not wait for its new index, of which nobody was told as long as it is passive."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager waits until an active partition is indexed up to its last document."""
        super().monitor(p)
        require(self.index.requested[p] == Role.active, "partition is active, or will be")


@known_bug(
    "004-77",
    "design document 004: once the migration is complete and it is fully indexed, the partition is changed to active",
    breaks=PartitionQueries.who_asks_too_early_waits,
    sizes={Partition: 1},
)
class WhoAsksIsToldAtOnce(PartitionQueries):
    """Who waits for a partition was told at once, whether or not it was indexed: it was activated too early."""

    @action(by=MANAGER, spends=PartitionQueries.monitors)
    def monitor(self, p: Term[Partition]) -> None:
        """The cluster manager asks for a partition, and is answered."""
        require(self.index.requested[p] != Role.none, "partition is active or passive, or will be")


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
    "004-157",
    "design document 004, queries during rebalance: indexable is the default state",
    breaks=PartitionRebalance.indexes_go_on_when_a_move_is_stopped,
    sizes={Partition: 1},
)
class IndexableWhenTheOtherIsClean(PartitionRebalance):
    """After a stop the old index was paused until the new node had cleaned up, and queries for the newest waited."""

    @action(by=MANAGER, fair=WEAK)
    def resume(self, p: Term[Partition], n: Term[Node]) -> None:
        """Nothing is left of the move."""
        super().resume(p, n)
        cleans = some(self.nodes[o].group[p].content.cbit for o in Node)
        require(~cleans, "no node cleans it up")


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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
