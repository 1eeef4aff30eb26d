"""Mistakes put back into `PartitionMerge`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.couchbase.partitions.partition_merge import (
    WEAK,
    OnError,
    PartitionMerge,
    Producer,
    Row,
)
from stagewright.machines.couchbase.partitions.partition_rebalance import Node
from stagewright.spec import (
    Bool,
    Number,
    SetVar,
    Term,
    action,
    choose,
    count,
    greatest,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

# -- what goes wrong -------------------------------------------------------------------------------


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
    "004-63",
    "design document 004, view query operation: the results are sort ordered",
    breaks=PartitionMerge.rows_come_in_order,
    budgets={PartitionMerge.failures: 0},
)
class DescendingTurnsTheRangeAlone(PartitionMerge):
    """Of a query downwards nodes take the rows below the start key, and send and merge them upwards all the same."""

    def _comes_before(self, other: Row, row: Term[Row]) -> Bool:
        return row.column(lambda member: other.place < member.place)


@known_bug(
    "004-65",
    "design document 004, view query operation: each process enqueues one row, and waits",
    breaks=PartitionMerge.a_node_sends_no_more_than_may_be_needed,
    budgets={PartitionMerge.failures: 0},
)
class TheRowAtHandIsNotCounted(PartitionMerge):
    """A node counts what it had sent before the row at hand, so that it sends one more than may be needed."""

    def _sent_by(self, n: Term[Node]) -> Number:
        return greatest(self.sent[n].size() - 1, 0)


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
    "004-172",
    "design document 004, view query operation: results of all nodes",
    breaks=PartitionMerge.an_error_is_told,
    budgets={PartitionMerge.failures: 2},
)
class OneErrorIsListed(PartitionMerge):
    """The first error is listed with the rows; the other nodes that fail are taken for through."""

    @action(fair=WEAK)
    def list_error(self, n: Term[Node]) -> None:
        require(self.producer[n] == Producer.failed, "node has failed")
        require(self.errors.is_empty(), "no error is listed")
        self.errors.add(n)

    def _is_through(self, n: Term[Node]) -> Bool:
        listed = self._has_failed(n) & ~self.errors.is_empty() & (self.on_error == OnError.go_on)
        return (self.producer[n] == Producer.through) | listed


@known_bug(
    "004-203",
    'design document 004: results "are streamed to query response as they arrive"',
    breaks=PartitionMerge.total_rows_comes_with_the_first_row,
)
class RowsAreCountedWhenTheyAreThrough(PartitionMerge):
    """A node says how many rows it has when it has sent all: if it fails before, its rows are in the page, and not counted."""

    @action(fair=WEAK)
    def send_row_count(self, n: Term[Node]) -> None:
        require(self.producer[n] == Producer.counting, "node has said nothing yet")
        self.producer[n] = Producer.sending

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        super().end(n)
        self.total = self.total + self._rows_of(n)


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
    "K8-limit",
    "design document 004, view query operation",
    breaks=PartitionMerge.the_page_has_no_more_than_was_asked_for,
)
class ErrorsLiftTheLimit(PartitionMerge):
    """A node that failed made room for rows of the others, without an end."""

    def _has_room(self) -> Bool:
        return super()._has_room() | ~self._nobody_failed()


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
    "004-227",
    'design document 004: "streams the results from all the nodes and merge the results on-the-fly"',
    breaks=PartitionMerge.an_error_takes_no_rows_along,
)
class AnErrorTellsTheOthersToStop(PartitionMerge):
    """As soon as one error was listed, the nodes that were well were told to send no more."""

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        """A node has sent all its rows, or as many as may be needed, or is told to stop."""
        require(self.producer[n] == Producer.sending, "node is sending")
        enough = self._sent_by(n) >= self._limit_of_a_node()
        stopped = ~self.errors.is_empty()
        require(~self._has_more(n) | enough | stopped, "nothing is left, or enough is sent")
        self.producer[n] = Producer.through


@known_bug(
    "004-228",
    'design document 004: rows "are streamed to query response as they arrive"',
    breaks=PartitionMerge.an_answer_stays_as_it_is,
)
class AnAbortedQueryHasNoRows(PartitionMerge):
    """A query that an error stopped was answered without the rows that had gone to the client already."""

    @action(fair=WEAK)
    def abort(self) -> None:
        """A node has failed, and the query is one that stops then."""
        super().abort()
        self.page = frozenset()


@known_bug(
    "004-229",
    'design document 004: "The query initiator node streams the result as they arrive"',
    breaks=PartitionMerge.rows_are_streamed_as_they_arrive,
    budgets={PartitionMerge.failures: 0},
)
class TheAnswerIsSentAsAWhole(PartitionMerge):
    """The rows were merged on the node, and sent to the client when the last one was there."""

    merged: SetVar[Row] = set_of(Row)

    @action(fair=WEAK)
    def take(self, row: Term[Row]) -> None:
        """The first row of the queue, in the order of the query, is skipped, or kept until the end."""
        require(~self.done, "the answer is not at its end")
        require(self.queue.has(row), "the row is in the queue")
        require(self._every_producer_has_one(), "every node has sent one, or is through")
        earlier = some(self.queue.has(other) & self._is_taken_before(other, row) for other in Row)
        require(~earlier, "no other one comes before it")
        skips = self.skipped < self.skip
        self.skipped = choose(skips, self.skipped + 1, self.skipped)
        self.merged.put(row, ~skips & (self.merged.size() < self.limit))
        self.queue.discard(row)

    @action(fair=WEAK)
    def finish(self) -> None:
        """All nodes are through: the client has its page."""
        super().finish()
        self.page = self.merged


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "004-117",
    "design document 004, view query operation",
    breaks=PartitionMerge.an_error_stops_a_query_at_once,
)
class RowsOnTheWayAreMergedFirst(PartitionMerge):
    """A query that an error stops was answered when the rows that other nodes had sent were merged, for nothing."""

    @action(fair=WEAK)
    def abort(self) -> None:
        """A node has failed, and the query is one that stops then."""
        super().abort()
        require(self.queue.is_empty(), "all rows are taken")


BUGS = known_bugs_in(globals())
