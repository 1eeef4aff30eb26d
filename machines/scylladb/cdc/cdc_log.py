"""CDC log writes: which stream a change goes to, and which replicas get the base write and the log write.

Source: design document 003 (cdc), "Generations", "The generation's mapping" and "Generation switching". How
tokens map to streams is `cdc_mapping.py`, which is a part of this; clocks that differ, and nodes that learn of a
generation late, are in `cdc_generations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Self

from stagewright.machines.scylladb.cdc.cdc_mapping import (
    CdcMapping,
    Node,
    Shard,
    Token,
    owns,
    will_own,
)
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Maybe,
    Number,
    NumberVar,
    OptionalVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    between,
    bounded,
    budget,
    checked_alone,
    choose,
    count,
    equivalent_drop,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    initially,
    invariant,
    known_violations,
    leads_to,
    liveness,
    number,
    only_when,
    optional,
    part,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
    violated,
)

# In ticks of the one clock that there is here.
LEEWAY = 2  # `generation_leeway`
DELAY = 2  # from the commit of a generation until it operates
LAST_COMMIT = 1
END = LAST_COMMIT + DELAY + LEEWAY
LAST_TIMESTAMP = END
ROW = Token.t1  # of the row that is followed: as nodes join with any token, it is as good as any
WEAK = Fairness.WEAK
CLIENT = Actor("client")
COORDINATOR = Actor("topology coordinator")
NETWORK = Actor("network")
TIME = Actor("time")


Ring = dict[Token, Maybe[Node]]
"""Of each token the node whose vnode ends there."""


class Row(Enum):
    """What a replica gets of a change."""

    base = auto()
    log = auto()


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does while a node joins."""

    previous: bool  # recent timestamps are let through, whichever generation operated then
    ring_waits: bool  # writes go to the joining node when its generation operates


SEED = Release("seed", previous=False, ring_waits=False)
SCYLLA_2026_2 = Release("scylla-2026.2", previous=True, ring_waits=False)
TWO_PHASE = Release("two-phase", previous=False, ring_waits=True)


class CdcLog(Machine):
    """A row of a base table is written, and with it its CDC log, while nodes join the ring.

    `two-phase` is what 003 announces: "Future patches will make the solution safe". The release
    takes writes to the previous generation, too, which 003 forbids since they "would not necessarily be colocated".
    """

    release = profiles(SEED, SCYLLA_2026_2, TWO_PHASE)
    joins = budget(2, doc="nodes that join; the first one is the cluster's first")
    losses = fault_budget(1, doc="messages that are lost")

    exercised_at = scopes({}, {joins: 1, losses: 2})

    mapping = part(CdcMapping)
    each_alone = checked_alone(mapping)

    now: NumberVar = number(0, END)
    # the generations that have a timestamp: when they start to operate, and the followed row's stream in each
    committed: SetVar[Generation] = set_of(Generation)
    start = per(Generation, number(0, LAST_COMMIT + DELAY))
    stream = per(Generation, optional(Token))
    pending: FlagVar = flag()  # writes go to the joining node, too
    # the write that is followed
    timestamp: NumberVar = number(0, LAST_TIMESTAMP)
    logged: OptionalVar[Generation] = optional(Generation)  # whose stream the log write uses
    under_way = per(Row, set_of(Node))  # messages
    stored = per(Row, set_of(Node))

    @initially
    def nodes_have_one_shard(self) -> Bool:
        """What is colocated is a vnode; `cdc-mapping` has the shards, too."""
        return every(~self.mapping.two_shards[n] for n in Node)

    @action(by=TIME, fair=WEAK)
    def tick(self) -> None:
        """Time passes."""
        bounded(self.now < END, "there is time left")
        bounded(self._is_a_cluster(), "there is a cluster")
        bounded(self._has_timestamp(), "a generation gets its timestamp at once")
        self.now = self.now + 1

    # -- generations -------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node is to join: a generation is made for the vnodes that there will be."""
        bounded(self.now <= LAST_COMMIT, "time is left for it to operate")
        self.mapping.make_generation(n, t)

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self, g: Term[Generation]) -> None:
        """It gets a timestamp, some time ahead, but for the first; every node learns of it and of the tokens."""
        require(self.mapping.joining.is_some(), "a node joins")
        require(self._is_for_the_join(g) & ~self.committed.has(g), "it is made for the join")
        self.start[g] = self._start()
        self.committed.add(g)
        self.stream[g] = self.mapping.stream_of(ROW)
        if not self.release.ring_waits:
            self.pending = True

    @action(by=COORDINATOR, fair=WEAK)
    def write_to_both(self, g: Term[Generation]) -> None:
        """The generation operates: from now on writes go to the joining node, too."""
        only_when(self.release.ring_waits)
        require(self._is_for_the_join(g) & self.committed.has(g), "it is made for the join")
        require(self.start[g] <= self.now, "it operates")
        require(~self.pending, "writes do not go there yet")
        self.pending = True

    @action(by=COORDINATOR, fair=WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The joining node has streamed what is to be its own; the token becomes part of the ring."""
        require(self.pending, "writes go to it")
        require(self._nothing_is_under_way(), "writes that were under way have ended")
        for row in Row:
            moves = self._joins_for(n, row) & ~self.stored[row].is_empty()
            for m in Node:
                self.stored[row].put(m, choose(moves, m == n, self.stored[row].has(m)))
        self.pending = False
        self.mapping.insert_token(n, t)

    # -- a write -----------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def write_row(
        self, g: Term[Generation], timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)]
    ) -> None:
        """The row is changed; the change goes to its stream in the generation that operates at its timestamp."""
        bounded(self.logged.is_none(), "one write is followed")
        require(self._is_a_cluster(), "there is a cluster")
        require(self._accepts(timestamp), "the timestamp is in the window")
        require(self._takes(g, timestamp), "the generation operates at the timestamp")
        self.timestamp = timestamp
        self.logged = g
        for n in Node:
            self.under_way[Row.base].put(n, self._is_written(n, ROW))
            log = some((self.stream[g] == t) & self._is_written(n, t) for t in list(Token))
            self.under_way[Row.log].put(n, log)

    @action(fair=WEAK)
    def receive(self, n: Term[Node]) -> None:
        """A replica receives what is for it: base write and log write in one message, if it gets both."""
        require(self._is_under_way(n), "a message is on its way to it")
        for row in Row:
            self.stored[row].put(n, self.stored[row].has(n) | self.under_way[row].has(n))
            self.under_way[row].discard(n)

    @action(by=NETWORK, spends=losses)
    def lose(self, n: Term[Node]) -> None:
        """The message to a replica is lost."""
        require(self._is_under_way(n), "a message is on its way to it")
        for row in Row:
            self.under_way[row].discard(n)

    # -- which timestamps, which generation --------------------------------------------------------------

    def operates(self, g: Term[Generation], at: Number) -> Bool:
        """003: from its own timestamp until "the following generation's timestamp"."""
        followed = some(
            (self.start[g] < self.start[h]) & (self.start[h] <= at) for h in self.committed
        )
        return self.committed.has(g) & (self.start[g] <= at) & ~followed

    def _takes(self, g: Term[Generation], timestamp: Number, /) -> Bool:
        """003: "The stream ID is taken from the generation operating at this timestamp"."""
        return self.operates(g, timestamp)

    def _accepts(self, timestamp: Number) -> Bool:
        """003: in [T, C + generation_leeway), T being the start of the generation that operates at C, now.

        The release lets through what is after C - generation_leeway, too.
        """
        early = timestamp < self.now + LEEWAY
        if self.release.previous:
            return early & (self.now - LEEWAY < timestamp)
        return early & some(
            self.operates(g, self.now) & (self.start[g] <= timestamp) for g in self.committed
        )

    def _start(self) -> Number:
        """003: "taking the node's local time and adding a minute or two"; the first one operates at once."""
        return choose(self.committed.is_empty(), self.now, self.now + DELAY)

    # -- helpers -----------------------------------------------------------------------------------------

    def _is_for_the_join(self, g: Term[Generation]) -> Bool:
        """There are as many generations before it as tokens in the ring."""
        return g.number_column(lambda generation: generation.number) == self._tokens()

    def _has_timestamp(self) -> Bool:
        """The generation for the join is committed, if a node joins."""
        return self.mapping.joining.is_none() | (self.committed.size() > self._tokens())

    def _tokens(self) -> Number:
        return count(self.mapping.ring[t].is_some() for t in Token)

    def _is_written(self, n: Term[Node], token: Token) -> Bool:
        """The node is a replica of the token, or is about to be and gets the writes already."""
        return owns(self.mapping, n, token) | (self.pending & will_own(self.mapping, n, token))

    def _is_at(self, row: Row, t: Token) -> Bool | bool:
        """The token is that of the base row, or of its log row."""
        if row is Row.base:
            return t is ROW
        return some((self.logged == g) & (self.stream[g] == t) for g in Generation)

    def _joins_for(self, n: Term[Node], row: Row) -> Bool:
        """The row is of the vnode with which the node joins."""
        return some(self._is_at(row, t) & will_own(self.mapping, n, t) for t in list(Token))

    def _is_a_cluster(self) -> Bool:
        return some(self.mapping.ring[t].is_some() for t in Token)

    def _is_under_way(self, n: Term[Node]) -> Bool:
        return some(self.under_way[row].has(n) for row in Row)

    def _nothing_is_under_way(self) -> Bool:
        return every(self.under_way[row].is_empty() for row in Row)

    def _has_begun_last(self, g: Term[Generation], at: Number) -> Bool:
        """As a reader finds it in the table of generations: none of those that began by then began after it."""
        none_later = every(
            (self.start[h] <= self.start[g]) | (at < self.start[h]) for h in self.committed
        )
        return (self.start[g] <= at) & none_later

    # -- promises ----------------------------------------------------------------------------------------

    def _owner(self, token: Token, ring: Ring) -> Maybe[Node]:
        """Whom a client asks for the token: of all vnodes, around the ring, the first that does not end before it."""
        last, *others = reversed(token.around())
        owner = ring[last]
        for end in others:
            owner = choose(ring[end].is_some(), ring[end], owner)
        return owner

    def _ring(self) -> Ring:
        return {end: self.mapping.ring[end] for end in Token}

    def _ring_to_be(self) -> Ring:
        """The ring once the node that joins has joined."""
        joining, node = self.mapping.joining, self.mapping.joining_node
        return {end: choose(joining == end, node, owner) for end, owner in self._ring().items()}

    def _is_replica(self, n: Term[Node], row: Row, ring: Ring) -> Bool:
        """A client asks the node for the base row; for the changes, where the stream is that has its log row."""
        if row is Row.base:
            return self._owner(ROW, ring) == n
        return some(
            (self.logged == g) & (self.stream[g] == t) & (self._owner(t, ring) == n)
            for g in Generation
            for t in list(Token)
        )

    def _is_read(self, row: Row) -> Bool:
        return some(self._is_replica(n, row, self._ring()) & self.stored[row].has(n) for n in Node)

    def _has_replicas(self) -> Bool:
        return self._owner(ROW, self._ring()).is_some()

    @step_property
    def writes_go_to_the_replicas_of_their_tokens(self, after: Self, n: Term[Node]) -> Bool:
        """003: the log write "will fall into the same vnode, thus it will have the same set of replicas as the base write":
        for each of the two they are those that own its token, and at most a node that is about to.
        """
        written = self.logged.is_none() & after.logged.is_some()
        sent = {row: after.under_way[row].has(n) for row in Row}
        is_one = {row: after._is_replica(n, row, after._ring()) for row in Row}
        is_to_be = {row: after._is_replica(n, row, after._ring_to_be()) for row in Row}
        return written.implies(
            every(
                is_one[row].implies(sent[row]) & sent[row].implies(is_one[row] | is_to_be[row])
                for row in Row
            )
        )

    @step_property
    def joins_leave_rows_readable(self, after: Self) -> Bool:
        """003: a node that joins refines "existing vnodes into smaller vnodes", and nothing else: what was read before, a row
        or a change, is read after it.
        """
        return every(self._is_read(row).implies(after._is_read(row)) for row in Row)

    @step_property
    def replicas_receive_both_writes_or_none(self, after: Self, n: Term[Node]) -> Bool:
        """003: "it is possible to make sure that each replica either receives both writes or none of them"."""
        received = {row: ~self.stored[row].has(n) & after.stored[row].has(n) for row in Row}
        writes = self.mapping.joining == after.mapping.joining  # what a node streams is no write
        return writes.implies(received[Row.base] == received[Row.log])

    @step_property
    def log_rows_go_to_streams_of_their_generation(self, after: Self, g: Term[Generation]) -> Bool:
        """003: "the partition key for these log writes is chosen from some set of stream IDs", those of the generation: who
        reads the streams that are described finds every change.
        """
        commits = ~self.committed.has(g) & after.committed.has(g)
        of_the_generation = some(
            (after.stream[g] == t) & (self.mapping.streams[end][shard] == t)
            for end in Token
            for shard in Shard
            for t in Token
        )
        return commits.implies(of_the_generation)

    @invariant
    def nodes_join_after_their_generations(self) -> Bool:
        """003: before a node "modifies the token ring", also where no row and no change would come apart, "it will introduce a
        new CDC generation".
        """
        return count(self.mapping.ring[t].is_some() for t in Token) <= self.committed.size()

    @invariant
    def changes_are_read_with_the_rows(self) -> Bool:
        """003: "Thus the CDC log will be able to truly reflect what happened in the base table". A client reads
        the streams of each generation "and the time intervals they are operating at".
        """
        in_its_time = some(self._has_begun_last(g, self.timestamp) for g in self.logged)
        change = self._is_read(Row.log) & in_its_time
        return self._nothing_is_under_way().implies(self._is_read(Row.base) == change)

    @accepts(write_row)
    def writes_are_accepted_while_nodes_join(
        self, timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)]
    ) -> Bool:
        """003: only writes with "arbitrary timestamps" are not allowed: those "in the interval [T, C +
        generation_leeway)" are, also where another generation is about to operate.
        """
        recent = (self.now - LEEWAY < timestamp) & (timestamp < self.now + LEEWAY)
        started = some(
            (self.start[g] <= timestamp) & self._has_begun_last(g, self.now) for g in self.committed
        )
        return self._has_replicas() & recent & started

    @accepts(write_to_both)
    def new_nodes_are_written_to_at_once(self, g: Term[Generation]) -> Bool:
        """003: "they'll immediately start sending writes to the new node", when its generation operates: those that are
        under way are waited for by whoever streams.
        """
        only_when(self.release.ring_waits)
        tokens = count(self.mapping.ring[t].is_some() for t in Token)
        number = g.number_column(lambda generation: generation.number)
        operates = self.committed.has(g) & (self.start[g] <= self.now)
        return self.mapping.joining.is_some() & ~self.pending & (number == tokens) & operates

    @accepts(commit_generation)
    def generations_get_their_timestamp_at_once(self, g: Term[Generation]) -> Bool:
        """003: the timestamp is chosen "by taking the node's local time and adding a minute or two": no write that is under
        way is waited for.
        """
        is_next = g.number_column(lambda generation: generation.number) == self.committed.size()
        fresh = self.committed.size() == count(self.mapping.ring[t].is_some() for t in Token)
        return self.mapping.joining.is_some() & is_next & fresh

    @independent(insert_token, of=(stored, logged, timestamp))
    def nodes_join_whatever_is_written(self) -> None:
        """003: a node "modifies the token ring" when the writes that were under way have ended, whatever their timestamps are, and
        whichever generation took them.
        """

    @independent(
        receive, of=(now, committed, start, stream, pending, timestamp, logged, mapping, Node)
    )
    def writes_are_received_while_nodes_join(self) -> None:
        """003: "each replica either receives both writes or none of them": whatever the others receive, whichever generation
        operates, and whoever joins.
        """

    @sometimes
    def a_row_moves_to_the_node_that_joins(self) -> Bool:
        """A row that was written before a join is read at the joined node, and so is its change."""
        read = self._is_read(Row.base) & self._is_read(Row.log)
        return read & (self.logged == Generation.first) & (self._tokens() == 2)

    @sometimes(at={losses: 1})
    def a_write_may_be_lost(self) -> Bool:
        """Neither row nor change is read, where the message to the only replica was lost."""
        lost = every(self.stored[row].is_empty() for row in Row)
        return self.logged.is_some() & self._nothing_is_under_way() & lost

    @liveness
    def nodes_join(self) -> LeadsTo:
        """003: a node that "modifies the token ring" waits for its generation, and for no write for ever."""
        return leads_to(self.mapping.joining.is_some(), self.mapping.joining.is_none())

    @final
    def time_is_up(self) -> Bool:
        """The run is as long as it was to be, or there is nothing to write to."""
        return (self.now == END) | ~self._has_replicas()

    # -- what older versions break -----------------------------------------------------------------------

    left_open = known_violations(
        violated(
            replicas_receive_both_writes_or_none,
            changes_are_read_with_the_rows,
            under=(SEED, SCYLLA_2026_2),
            because='nodes send writes to the joining node as soon as they know its tokens, "but the old generation '
            'will still be operating for a minute or two. Thus colocation will be lost for a while" (003)',
        ),
    )

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            write_to_both,
            "writes do not go there yet",
            because="what goes there goes on going there",
        ),
        equivalent_weakening(
            insert_token,
            "writes that were under way have ended",
            because="where both writes go to the same replicas, both are under way or neither is",
        ),
        equivalent_drop(
            write_row,
            "there is a cluster",
            because="the first node alone joins, and gets both writes",
        ),
        equivalent_weakening(
            write_row,
            "the timestamp is in the window",
            because="what the start of a later generation lets through, that of an earlier one does",
        ),
        equivalent_weakening(
            write_row,
            "the generation operates at the timestamp",
            because="generations start more than one tick after each other",
        ),
        equivalent_drop(
            receive, "a message is on its way to it", because="else nothing is received"
        ),
        equivalent_drop(lose, "a message is on its way to it", because="else nothing is lost"),
    )

    beyond_the_default_scope = unexercised(
        vacuous(
            CdcMapping.base_and_log_rows_are_on_one_shard,
            because="nodes have one shard here: cdc-mapping has several",
        ),
    )
