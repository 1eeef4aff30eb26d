"""The merge of a cluster query: a page of rows from many nodes, in the order of their keys.

Every node walks its tree from the start key, upwards or downwards, and sends the rows one at a time, first how
many it has. The node that was asked takes the first of what the nodes have sent as soon as each of them has sent one,
or is through.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.couchbase.partitions.partition_rebalance import Node
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    invariant,
    leads_to,
    least,
    liveness,
    number,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
ROWS = 3


class Row(States):
    """A row of the view in the whole cluster, by the place of its key."""

    row1 = 1
    row2 = 2
    row3 = 3

    def __init__(self, place: int) -> None:
        self.place = place


class OnError(Enum):
    """What the query does about a node that fails (`on_error`)."""

    go_on = auto()  # "continue": the error is listed with the rows
    stop = auto()  # the query fails


class Producer(Enum):
    """How far a node is with its part of the query."""

    counting = auto()  # it has not sent its row count
    sending = auto()
    through = auto()
    failed = auto()


class PartitionMerge(Machine):
    """One query with a range, skip and limit over all nodes, each of which has some of the rows.

    There is no profile: of the merge, the document says that it is a k-way merge in order.
    """

    failures = fault_budget(1, doc="nodes that fail while they send")

    exercised_at = scopes({}, {failures: 2})

    # the node that has the row; none: there is no such row
    at = constant(per(Row, optional(Node, init=ANY)))
    skip = constant(number(0, 2, init=ANY))
    limit = constant(number(0, 2, init=ANY))
    descending = constant(flag(init=ANY))
    start_key = constant(number(1, ROWS, init=ANY))  # the place of the first row that is wanted
    on_error = constant(one_of(OnError))
    producer = per(Node, one_of(Producer, init=Producer.counting))
    sent = per(Node, set_of(Row))
    queue: SetVar[Row] = set_of(Row)  # rows that are sent and not taken, at most one of a node
    total: NumberVar = number(0, ROWS)  # total_rows: the sum of the row counts
    skipped: NumberVar = number(0, 2)
    page: SetVar[Row] = set_of(Row)
    failed: SetVar[Node] = history(set_of(Node))  # whatever their producers say
    errors: SetVar[Node] = set_of(Node)
    done: FlagVar = flag()
    aborted: FlagVar = flag()

    @action(fair=WEAK)
    def send_row_count(self, n: Term[Node]) -> None:
        """A node says how many rows it has, however few of them the query wants."""
        require(self.producer[n] == Producer.counting, "node has said nothing yet")
        self.producer[n] = Producer.sending
        self.total = self.total + self._rows_of(n)

    @action(fair=WEAK)
    def send_row(self, n: Term[Node], row: Term[Row]) -> None:
        """A node sends the next of its rows, when the last one is taken, and as many as may be needed."""
        require(self.producer[n] == Producer.sending, "node is sending")
        require(self._is_next_of(n, row), "it is the next row of the node")
        require(~self._is_queued(n), "the last one is taken")
        require(self._sent_by(n) < self._limit_of_a_node(), "the node has not sent enough")
        self.sent[n].add(row)
        self.queue.add(row)

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        """A node has sent all its rows, or as many as may be needed."""
        require(self.producer[n] == Producer.sending, "node is sending")
        enough = self._sent_by(n) >= self._limit_of_a_node()
        require(~self._has_more(n) | enough, "nothing is left, or enough is sent")
        self.producer[n] = Producer.through

    @action(spends=failures)
    def fail(self, n: Term[Node]) -> None:
        """A node fails: an error comes instead of its next row."""
        working = self.producer[n].any_of(Producer.counting, Producer.sending)
        require(working, "node is not through")
        self.producer[n] = Producer.failed
        self.failed.add(n)

    @action(fair=WEAK)
    def list_error(self, n: Term[Node]) -> None:
        """The error of a node comes to the client with the rows."""
        require(~self.done, "the answer is not at its end")
        require(self.producer[n] == Producer.failed, "node has failed")
        self.errors.add(n)

    @action(fair=WEAK)
    def take(self, row: Term[Row]) -> None:
        """The first row of the queue, in the order of the query, is skipped, or goes to the page."""
        require(~self.done, "the answer is not at its end")
        require(self.queue.has(row), "the row is in the queue")
        require(self._every_producer_has_one(), "every node has sent one, or is through")
        earlier = some(self.queue.has(other) & self._is_taken_before(other, row) for other in Row)
        require(~earlier, "no other one comes before it")
        skips, room = self.skipped < self.skip, self._has_room()
        self.skipped = choose(skips, self.skipped + 1, self.skipped)
        self.page.put(row, ~skips & room)
        self.queue.discard(row)

    @action(fair=WEAK)
    def finish(self) -> None:
        """All nodes are through: the client has its page."""
        require(self.queue.is_empty(), "all rows are taken")
        require(every(self._is_through(n) for n in Node), "all nodes are through")
        self.done = True

    @action(fair=WEAK)
    def abort(self) -> None:
        """A node has failed, and the query is one that stops then."""
        require(self.on_error == OnError.stop, "an error stops the query")
        require(some(self._has_failed(n) for n in Node), "a node has failed")
        self.done = True
        self.aborted = True

    # -- helpers -----------------------------------------------------------------------------------------

    def _has_failed(self, n: Term[Node]) -> Bool:
        return self.producer[n] == Producer.failed

    def _is_through(self, n: Term[Node]) -> Bool:
        """The node has sent all, or its error is listed with the rows."""
        listed = self.errors.has(n) & (self.on_error == OnError.go_on)
        return (self.producer[n] == Producer.through) | listed

    def _nobody_failed(self) -> Bool:
        return ~some(self._has_failed(n) for n in Node)

    def _limit_of_a_node(self) -> Number:
        """A node cannot know which of its rows are skipped: it sends as many as if all were its own."""
        return self.skip + self.limit

    def _has_room(self) -> Bool:
        return self.page.size() < self.limit

    def _every_producer_has_one(self) -> Bool:
        return every(
            ~self.producer[n].any_of(Producer.counting, Producer.sending) | self._is_queued(n)
            for n in Node
        )

    def _rows_of(self, n: Term[Node]) -> Number:
        return count(self.at[row] == n for row in Row)

    def _sent_by(self, n: Term[Node]) -> Number:
        return self.sent[n].size()

    def _is_queued(self, n: Term[Node]) -> Bool:
        return some(self.at[row] == n for row in self.queue)

    def _has_more(self, n: Term[Node]) -> Bool:
        return some(self._is_left(n, row) for row in Row)

    def _is_left(self, n: Term[Node], row: Row) -> Bool:
        """The node has the row, the query wants it, and it is not sent."""
        return (self.at[row] == n) & self._is_in_range(row) & ~self.sent[n].has(row)

    def _is_next_of(self, n: Term[Node], row: Term[Row]) -> Bool:
        own = some((row == other) & self._is_left(n, other) for other in Row)
        earlier = some(self._is_left(n, other) & self._comes_before(other, row) for other in Row)
        return own & ~earlier

    def _comes_before(self, other: Row, row: Term[Row]) -> Bool:
        """In the order of the query."""
        up = row.column(lambda member: other.place < member.place)
        down = row.column(lambda member: other.place > member.place)
        return choose(self.descending, down, up)

    def _is_taken_before(self, other: Row, row: Term[Row]) -> Bool:
        return self._comes_before(other, row)

    def _is_in_range(self, row: Row) -> Bool:
        """A walk from the start key comes to the row."""
        return choose(self.descending, self.start_key >= row.place, self.start_key <= row.place)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(abort)
    def an_error_stops_a_query_at_once(self) -> Bool:
        """on_error=stop: whatever is on its way from other nodes, nobody waits for it."""
        failed = some(self.producer[n] == Producer.failed for n in Node)
        return (self.on_error == OnError.stop) & failed & ~self.done

    @invariant
    def the_page_is_that_of_all_rows(self, row: Term[Row]) -> Bool:
        """004: the rows of all nodes are merged "to produce sorted result": the page is the one that a single
        sorted list of all rows would give (MB-6056), if no node has failed.
        """
        before = count(self._is_a_row(other) & self._precedes(other, row) for other in Row)
        on_page = (before >= self.skip) & (before < self.skip + self.limit)
        there = some((row == other) & self._is_a_row(other) for other in Row)
        right = self.page.has(row) == (there & on_page)
        return (self.done & self._nobody_failed()).implies(right)

    def _is_a_row(self, row: Row) -> Bool:
        """The row is there, and its key between the start key and the end of the view, whichever that is."""
        up, down = self.start_key <= row.place, self.start_key >= row.place
        return self.at[row].is_some() & choose(self.descending, down, up)

    @invariant
    def an_error_takes_no_rows_along(self) -> Bool:
        """on_error=continue: what the nodes have sent is merged all the same, and the others send what they have: the page is
        as full as that makes it.
        """
        there = count(
            some(
                self.sent[n].has(row)
                | (self._is_a_row(row) & (self.at[row] == n) & ~self.failed.has(n))
                for n in Node
            )
            for row in Row
        )
        left = choose(there > self.skip, there - self.skip, 0)
        answered = self.done & ~self.aborted
        return answered.implies(self.page.size() == least(left, self.limit))

    @step_property
    def rows_come_in_order(self, after: Self, row: Term[Row]) -> Bool:
        """004: rows "are sort ordered and they are streamed to query response as they arrive", also from the last one."""
        new = after.page.has(row) & ~self.page.has(row)
        late = some(self.page.has(other) & ~self._precedes(other, row) for other in Row)
        return new.implies(~late)

    @step_property
    def rows_are_streamed_as_they_arrive(self, after: Self, row: Term[Row]) -> Bool:
        """004: "The query initiator node streams the result as they arrive from internal query requests": a row that the merge
        has taken is on the page at once, whatever is still to come, if it is not one of those that are skipped.
        """
        taken = self.queue.has(row) & ~after.queue.has(row) & ~after.aborted
        sent = count(some(self.sent[n].has(other) for n in Node) for other in Row)
        skipped = sent - self.queue.size() < self.skip
        full = self.page.size() == self.limit
        return taken.implies(skipped | full | after.page.has(row))

    @step_property
    def an_answer_stays_as_it_is(self, after: Self, row: Term[Row]) -> Bool:
        """004: rows "are streamed to query response as they arrive": what the client has is not taken back, also if an
        error comes behind it, which ends the answer; and nothing comes behind its end.
        """
        taken_back = self.page.has(row) & ~after.page.has(row)
        new_row = after.page.has(row) & ~self.page.has(row)
        late = self.done & (new_row | ~(after.errors <= self.errors))
        return ~taken_back & ~late

    def _precedes(self, other: Row, row: Term[Row]) -> Bool:
        """What the client takes for the order: the lower key first, or the higher one if it asked for `descending`."""
        lower = some(row == one for one in Row if other.place < one.place)
        higher = some(row == one for one in Row if other.place > one.place)
        return (~self.descending & lower) | (self.descending & higher)

    @invariant
    def the_page_has_no_more_than_was_asked_for(self) -> Bool:
        """A page never has more rows than its limit, whoever fails."""
        return self.page.size() <= self.limit

    @invariant
    def total_rows_counts_all(self) -> Bool:
        """total_rows is the number of rows of all nodes, whatever range and limit the query has."""
        total = count(self.at[row].is_some() for row in Row)
        return (self.done & self._nobody_failed()).implies(self.total == total)

    @invariant
    def total_rows_comes_with_the_first_row(self) -> Bool:
        """004: rows "are streamed to query response as they arrive": behind total_rows, so that a client never has more rows
        than it was told of, nor does a query that ends with an error.
        """
        return self.page.size() <= self.total

    @step_property
    def an_error_is_told(self, after: Self, n: Term[Node]) -> Bool:
        """An answer without a word on errors is complete: a node that had failed is listed, or all is aborted."""
        told = (after.errors.has(n) & (self.on_error == OnError.go_on)) | after.aborted
        ends = ~self.done & after.done
        return (ends & self._has_failed(n)).implies(told)

    @invariant
    def only_errors_are_told(self, n: Term[Node]) -> Bool:
        """What is listed as an error is one, and not the end of a node's rows."""
        return self.errors.has(n).implies(self.failed.has(n))

    @invariant
    def only_an_error_stops_a_query(self) -> Bool:
        """on_error=continue: "errors" are appended, and the query goes on."""
        stopped = (self.on_error == OnError.stop) & ~self._nobody_failed()
        return self.aborted.implies(stopped)

    @invariant
    def a_node_has_one_row_on_the_way(self, n: Term[Node]) -> Bool:
        """004: the queue "blocks the enqueue operation by each process": the rows stay with the nodes."""
        return count(self.queue.has(row) & (self.at[row] == n) for row in Row) <= 1

    @invariant
    def a_node_sends_no_more_than_may_be_needed(self, n: Term[Node]) -> Bool:
        """A limit is one of the nodes, too: none sends all its rows for a page."""
        return count(self.sent[n].has(row) for row in Row) <= self.skip + self.limit

    @final
    def the_query_is_answered(self) -> Bool:
        """An answered query stays so."""
        return self.done

    @liveness
    def queries_are_answered(self) -> LeadsTo:
        """Every query ends: no node waits for the merge while the merge waits for it."""
        return leads_to(~self.done, self.done)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(fail, producer, because="what need not happen"),
        equivalent_drop(
            fail,
            "node is not through",
            because="an error that comes behind all rows of a node is listed with them, or stops the query",
        ),
        equivalent_weakening(
            send_row,
            "it is the next row of the node",
            because="the last row of a walk comes before no other, wherever the walk begins",
        ),
    )
