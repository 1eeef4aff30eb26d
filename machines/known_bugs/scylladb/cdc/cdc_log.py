"""Mistakes put back into `CdcLog`: a property breaks with each."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_log import (
    CLIENT,
    COORDINATOR,
    END,
    LAST_TIMESTAMP,
    LEEWAY,
    ROW,
    WEAK,
    CdcLog,
    Row,
)
from stagewright.machines.scylladb.cdc.cdc_mapping import Node, Token, owns, will_own
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.spec import Bool, Fairness, Number, Term, action, between, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in, released_bug

# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "003-1",
    "design document 003, Generations",
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class TheNewestGenerationTakesTheWrite(CdcLog):
    """A change goes to a stream of the generation that was committed last, which does not operate yet: clients
    look for it in the streams of the one that operated at its timestamp.
    """

    def _takes(self, g: Term[Generation], _timestamp: Number, /) -> Bool:
        return self.committed.has(g) & ~some(self.start[g] < self.start[h] for h in self.committed)


@known_bug(
    "003-2",
    "design document 003, The generation's mapping",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    budgets={CdcLog.losses: 0},
)
class BaseAndLogWriteAreSentApart(CdcLog):
    """The two writes are messages of their own also where a replica is to get both."""

    @action
    def receive_base_write(self, n: Term[Node]) -> None:
        """The replica receives the base write alone."""
        require(self.under_way[Row.base].has(n), "the base write is on its way to it")
        self.under_way[Row.base].discard(n)
        self.stored[Row.base].add(n)


@known_bug(
    "003-3",
    "design document 003, Generation switching",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    budgets={CdcLog.losses: 0},
)
class WritesBeforeTheGenerationAreAllowed(CdcLog):
    """A write with a timestamp before the start of the generation that operates is let through.

    "They belong to the old generation whose token ranges might no longer refine the current vnodes."
    """

    def _accepts(self, timestamp: Number) -> Bool:
        return (timestamp < self.now + LEEWAY) & (self.now - LEEWAY < timestamp)


@known_bug(
    "003-4",
    "design document 003, Generation switching",
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class GenerationOperatesAtOnce(CdcLog):
    """The timestamp of a generation is the time at which it is committed: writes with a timestamp a little
    ahead have gone to the generation before it.
    """

    def _start(self) -> Number:
        return self.now


COLOCATION_IS_LOST_FOR_A_WHILE = released_bug(
    "003-6",
    "design document 003, Generation switching",
    "Nodes write to a joining node as soon as they know its tokens, while the old generation still operates: "
    "a log row of that one may belong to another vnode than its base row, and other replicas.",
    machine=CdcLog,
    profile="scylla-2026.2",
    breaks=CdcLog.replicas_receive_both_writes_or_none,
    mended_in="two-phase",
)


@known_bug(
    "003-34",
    'design document 003: "chosen from some set of stream IDs"',
    breaks=CdcLog.log_rows_go_to_streams_of_their_generation,
    budgets={CdcLog.losses: 0},
)
class LogRowsHaveTheTokenOfTheirRow(CdcLog):
    """A log row has the token of its base row, so that it is at the same replicas: in a stream that no client knows of."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def commit_generation(self, g: Term[Generation]) -> None:
        """The generation says who owns what, and nobody looks at its streams."""
        require(self.mapping.joining.is_some(), "a node joins")
        require(self._is_for_the_join(g) & ~self.committed.has(g), "it is made for the join")
        self.start[g] = self._start()
        self.committed.add(g)
        self.stream[g] = ROW
        if not self.release.ring_waits:
            self.pending = True


@known_bug(
    "003-35",
    'design document 003: "from the generation operating at this timestamp"',
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class GenerationsOperateAsTheyAreCommitted(CdcLog):
    """A generation was taken to operate before its timestamp: its streams got changes of an interval in which nobody reads
    them.
    """

    def operates(self, g: Term[Generation], at: Number) -> Bool:
        """Until the following generation's timestamp; nobody compares with its own."""
        followed = some(
            (self.start[g] < self.start[h]) & (self.start[h] <= at) for h in self.committed
        )
        return self.committed.has(g) & ~followed


@known_bug(
    "003-36",
    'design document 003: "each replica either receives both writes or none of them"',
    breaks=CdcLog.changes_are_read_with_the_rows,
    budgets={CdcLog.losses: 0},
)
class LogRowsMoveWithAnyRange(CdcLog):
    """The log row of a change was streamed with every range, and left behind by who had it: its own owner lost it."""

    def _is_at(self, row: Row, t: Token) -> Bool | bool:
        """The token is that of the base row; a log row is at any."""
        return t is ROW if row is Row.base else self.logged.is_some()


@known_bug(
    "003-37",
    "design document 003: in the case of bootstrapping, it will become a pending replica",
    breaks=CdcLog.writes_go_to_the_replicas_of_their_tokens,
    budgets={CdcLog.losses: 0},
)
class WritesGoToTheJoiningNodeAlone(CdcLog):
    """Once a node joined, both writes to its range went there, and not to the replica that is read until it has joined."""

    def _is_written(self, n: Term[Node], token: Token) -> Bool:
        joins = some(will_own(self.mapping, other, token) for other in Node) & self.pending
        return choose(joins, will_own(self.mapping, n, token), owns(self.mapping, n, token))


@known_bug(
    "003-38",
    "design document 003: the same set of replicas as the base write",
    breaks=CdcLog.writes_go_to_the_replicas_of_their_tokens,
    budgets={CdcLog.losses: 0},
)
class BothWritesGoToAllNodes(CdcLog):
    """Base write and log write went to every node of the ring, so that they were colocated whatever the stream."""

    def _is_written(self, n: Term[Node], token: Token) -> Bool:
        in_the_ring = some(self.mapping.ring[end] == n for end in Token)
        return in_the_ring | super()._is_written(n, token)


@known_bug(
    "003-39",
    "design document 003: it modifies the token ring by refining existing vnodes",
    breaks=CdcLog.joins_leave_rows_readable,
    budgets={CdcLog.losses: 0},
)
class WhatIsAheadIsNotStreamed(CdcLog):
    """A node that joined streamed what had the timestamps of earlier generations: a write that was ahead of its time, and
    came before writes went to both, was left to a replica that nobody reads, and so was its log row.
    """

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The joining node gets what it lacks of earlier generations."""
        require(self.pending, "writes go to it")
        require(self._nothing_is_under_way(), "writes that were under way have ended")
        own = some(self._is_for_the_join(g) for g in self.logged)
        for row in Row:
            moves = some(self._joins_for(m, row) for m in Node)
            streamed = ~self.stored[row].is_empty() & ~own
            for m in Node:
                gets = self._joins_for(m, row) & (streamed | self.stored[row].has(m))
                self.stored[row].put(m, choose(moves, gets, self.stored[row].has(m)))
        self.pending = False
        self.mapping.insert_token(n, t)


@known_bug(
    "003-62",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcLog.nodes_join_after_their_generations,
)
class OneGenerationForSeveralRings(CdcLog):
    """A node joined without a generation of its own if the one that operated had the same stream for the rows that were
    written just then.
    """

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def write_to_both_at_once(self) -> None:
        """The stream of the row stays what it is: nothing need be committed."""
        require(self.mapping.joining.is_some() & ~self._has_timestamp(), "a node is to join")
        stays = some(
            (self.stream[g] == t) & (self.mapping.stream_of(ROW) == t)
            for g in self.committed
            for t in list(Token)
        )
        require(stays & ~self.pending, "the row keeps its stream")
        self.pending = True


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "003-23",
    "design document 003: only writes with arbitrary timestamps are not allowed",
    breaks=CdcLog.writes_are_accepted_while_nodes_join,
    budgets={CdcLog.losses: 0},
)
class WritesWaitForTheJoin(CdcLog):
    """A table with a log took no writes while a node joined, so that no log row could be in another vnode."""

    @action(by=CLIENT)
    def write_row(
        self, g: Term[Generation], timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)]
    ) -> None:
        """The row is changed while nobody joins."""
        super().write_row(g, timestamp)
        require(self.mapping.joining.is_none(), "nobody joins")


@known_bug(
    "003-24",
    'design document 003: "in the interval [T, C + generation_leeway)"',
    breaks=CdcLog.writes_are_accepted_while_nodes_join,
    budgets={CdcLog.losses: 0},
)
class NothingIsAheadOfASwitch(CdcLog):
    """Before a generation operated, no timestamp was let through that is ahead of the coordinator's clock."""

    def _accepts(self, timestamp: Number) -> Bool:
        switches = some(self.now < self.start[g] for g in self.committed)
        return super()._accepts(timestamp) & ~(switches & (self.now < timestamp))


@known_bug(
    "003-53",
    "design document 003: the timestamp is the node's local time and a minute or two",
    breaks=CdcLog.generations_get_their_timestamp_at_once,
)
class CommitsWaitForWrites(CdcLog):
    """A generation got its timestamp when no write was under way, though it was to operate after them."""

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self, g: Term[Generation]) -> None:
        """It gets a timestamp when writes that were under way have ended."""
        require(self._nothing_is_under_way(), "nothing is under way")
        super().commit_generation(g)


@known_bug(
    "003-103",
    "design document 003: they'll immediately start sending writes to the new node",
    breaks=CdcLog.new_nodes_are_written_to_at_once,
)
class NewNodesWaitForWrites(CdcLog):
    """Writes went to a joining node when those that had been sent to the old replicas alone had ended."""

    @action(by=COORDINATOR, fair=WEAK)
    def write_to_both(self, g: Term[Generation]) -> None:
        """Writes go to the joining node, too, when none is under way."""
        super().write_to_both(g)
        require(self._nothing_is_under_way(), "nothing is under way")


@known_bug(
    "003-114",
    "design document 003: when a new node joins the cluster, it will introduce a new CDC generation",
    breaks="mapping.nodes_join_with_any_token",
)
class JoinsBeginWhenNothingIsWritten(CdcLog):
    """No generation was made for a node that was to join while a write was under way: under load that was never."""

    @action(by=COORDINATOR, spends=CdcLog.joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node is to join while nothing is under way."""
        super().make_generation(n, t)
        require(self._nothing_is_under_way(), "nothing is under way")


@known_bug(
    "003-115",
    "design document 003: each replica either receives both writes or none of them",
    breaks=CdcLog.writes_are_received_while_nodes_join,
)
class WritesWaitForTheNewReplica(CdcLog):
    """Replicas kept writes in a queue from the time when a generation was made until they went to the joining node, too."""

    @action(fair=WEAK)
    def receive(self, n: Term[Node]) -> None:
        """A replica receives what is for it, unless a node is about to be written to."""
        super().receive(n)
        require(self.mapping.joining.is_none() | self.pending, "no node is about to be one")


@known_bug(
    "003-123",
    "design document 003: when a new node joins the cluster it modifies the token ring",
    breaks=CdcLog.nodes_join_whatever_is_written,
)
class JoinsEndWhenWritesAreOfThePast(CdcLog):
    """A node had joined when the clocks had passed the timestamp of what was written last, though that had long arrived."""

    @action(by=COORDINATOR, fair=WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The joining node has streamed, and no write is ahead of the clock."""
        past = self.logged.is_none() | (self.timestamp < self.now) | (self.now == END)
        require(past, "no write is ahead of the clock")
        super().insert_token(n, t)


BUGS = known_bugs_in(globals())
