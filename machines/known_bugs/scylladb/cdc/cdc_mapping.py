"""Mistakes about streams of vnodes and shards, and writes to a log, which design document 003 rules out."""

from __future__ import annotations

from typing import Annotated

from stagewright.machines.scylladb.cdc.cdc_log import CLIENT, LAST_TIMESTAMP, ROW, CdcLog, Row
from stagewright.machines.scylladb.cdc.cdc_mapping import (
    COORDINATOR,
    CdcMapping,
    Ends,
    Node,
    Shard,
    Token,
    owns,
    will_own,
)
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.spec import (
    Bool,
    Fairness,
    Number,
    Term,
    action,
    between,
    choose,
    every,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "003-20",
    "design document 003: a stream whose token falls into the same vnode",
    breaks=CdcMapping.base_and_log_rows_are_in_one_vnode,
)
class StreamsAreOfTheShardAlone(CdcMapping):
    """The token of a stream was the next one of its shard, whatever vnode that is in."""

    def _first_token(
        self, _ends: Ends, end: Token, shard: Shard, two_shards: Bool, /
    ) -> Term[Token]:
        first = Term.of(end)
        for token in reversed(end.around()[1:]):
            owns_of_two = two_shards & (token.shard(2) is shard)
            first = choose(owns_of_two | (~two_shards & (token.shard(1) is shard)), token, first)
        return first


@known_bug(
    "003-21",
    "design document 003: log table entries are also written to the jth shard",
    breaks=CdcMapping.base_and_log_rows_are_on_one_shard,
)
class StreamsAreOfTheVnodeAlone(CdcMapping):
    """Each stream of a range had the token at which the range ends, whatever shard that is of."""

    def _first_token(
        self, _ends: Ends, end: Token, _shard: Shard, _two_shards: Bool, /
    ) -> Term[Token]:
        return Term.of(end)


@known_bug(
    "003-22",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcMapping.ranges_refine_the_vnodes,
)
class TheGenerationFollowsTheToken(CdcMapping):
    """A generation was made in the command that inserted the token of the node that joins, and not before: there was none
    for writes that went to that node already.
    """

    @action(by=COORDINATOR, spends=CdcMapping.joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node is to join with a token."""
        require(self.joining.is_none(), "nobody joins")
        require(self.ring[t].is_none(), "the token is free")
        self.joining = t
        self.joining_node = n

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The token becomes part of the ring, and a generation is made for it."""
        self._make(n, t)
        super().insert_token(n, t)


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
    "003-50",
    'design document 003: the joining node "chooses tokens which will split them into smaller vnodes"',
    breaks=CdcMapping.nodes_join_with_any_token,
)
class NodesHaveOneToken(CdcMapping):
    """A node that had a token got no other one: its vnode could not be split by itself."""

    @action(by=COORDINATOR, spends=CdcMapping.joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node that has no token yet is to join with one."""
        super().make_generation(n, t)
        require(every(~(self.ring[other] == n) for other in Token), "the node has no token")


@known_bug(
    "003-60",
    'design document 003: streams "have their tokens in the ith range"',
    breaks=CdcMapping.streams_lie_in_their_range,
)
class TheNextTokenOfTheShard(CdcMapping):
    """Where a range had no token of the shard, its stream got the next one that the shard owns, in another range: rows of
    this one never went there, and clients that asked for the streams of a range looked elsewhere.
    """

    def _first_token(
        self, ends: Ends, end: Token, shard: Shard, two_shards: Bool, /
    ) -> Term[Token]:
        first = Term.of(end)
        if end.shard(2) is not shard:
            following = next(token for token in end.around() if token.shard(2) is shard)
            first = choose(two_shards, following, Term.of(end))
        for token in reversed(end.around()[1:]):
            in_range = ~some(ends[other] for other in token.until(end))
            is_owned = two_shards.implies(token.shard(2) is shard)
            first = choose(in_range & is_owned, token, first)
        return first


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


BUGS = known_bugs_in(globals())
