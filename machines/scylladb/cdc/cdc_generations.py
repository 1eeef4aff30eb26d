"""CDC generations in a cluster: introduced, learned, used by writes, published and cleared.

Source: design document 003 (cdc), "Generations" and "Generation switching"; `commit_cdc_generation` of design
document 001, and ScyllaDB's `cdc::metadata` and publisher for the releases. Nodes have clocks of their own. The
states of the topology state machine are in `cdc_publication.py`, how tokens map to streams
in `cdc_mapping.py`, and which replicas get base write and log write in `cdc_log.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, Self

from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OptionalVar,
    Profile,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    assume,
    between,
    bounded,
    budget,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    independent,
    initially,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    never_happens,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    record,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    violated,
)

# In ticks of the model's clock. A message reaches every node that is not cut off within a tick.
SKEW = 2  # how far a node's clock may be ahead of another's
RING_DELAY = 2  # at least the skew
LEEWAY = 2  # `generation_leeway`
DELAY = 2 * RING_DELAY + LEEWAY  # from a generation's introduction until it operates
LAST_COMMIT = 1
END = LAST_COMMIT + DELAY + LEEWAY + RING_DELAY + 1
LAST_TIMESTAMP = END + SKEW + LEEWAY
WEAK = Fairness.WEAK
CLIENT = Actor("client")
COORDINATOR = Actor("topology coordinator")
NETWORK = Actor("network")
TIME = Actor("time")


class Window(Enum):
    """Which timestamps a node lets a write to a CDC-enabled table have."""

    half_open = auto()  # from the operating generation's start until C + leeway, without it
    closed = auto()  # the same, with C + leeway
    with_previous = auto()  # also C - leeway and later, whichever generation operated then


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does about CDC generations."""

    window: Window
    group0: bool  # generations are committed to group0, after a barrier, and published by one fiber
    prepares: bool = False  # nodes have the timestamp of a generation before it is committed


SEED = Release("seed", Window.half_open, group0=False)
SEED_CODE = Release("seed-code", Window.closed, group0=False)
SCYLLA_2026_2 = Release("scylla-2026.2", Window.with_previous, group0=True)
TWO_PHASE = Release("two-phase", Window.with_previous, group0=True, prepares=True)


class Node(Entity, scope=1):
    """A node that coordinates writes."""


class Generation(Entity, scope=2):
    """A CDC generation; each but the one that the cluster begins with is made for a join."""


class Known(Enum):
    """What a node knows of a generation."""

    unknown = auto()  # or forgotten
    prepared = auto()  # its timestamp only: writes that need it are rejected
    usable = auto()


class Fate(Enum):
    """What became of the write that is followed."""

    none = auto()
    decided = auto()  # committed by Paxos, its timestamp fixed for ever, and not applied yet
    accepted = auto()


class Write(Record):
    """A write to a base table that has a CDC log."""

    fate = one_of(Fate, init=Fate.none)
    timestamp = number(0, LAST_TIMESTAMP)
    coordinator = optional(Node)  # through which it was accepted
    generation = optional(Generation)  # whose stream the log write uses
    waited = flag()  # a tick has passed since Paxos decided it


class CdcGenerations(Machine):
    """Nodes join, each with a new CDC generation, while clients write to tables with a CDC log.

    The documents' two assumptions are the machine's: clocks differ by at most SKEW, and a node that is not
    cut off learns of a generation before a tick has passed.

    `two-phase` is what 003 announces, "a two-phase-commit approach" after which "the need for this assumption
    will be gone" that nodes learn in time: they have a generation's timestamp before it is committed, and reject
    writes that may need it until they know. `scylla-2026.2` is right as long as nobody is cut off between the
    phases, which it assumes. `seed-code` is `seed` with a window that is closed.
    """

    release = profiles(SEED, SEED_CODE, SCYLLA_2026_2, TWO_PHASE)
    joins = budget(1, doc="nodes that join, each with a new generation")
    writes = budget(1, doc="writes that are followed")
    partitions = fault_budget(1, doc="nodes that are cut off")
    restarts = fault_budget(0, doc="nodes that start again, or are new")

    exercised_at = scopes(
        {},
        {partitions: 0, restarts: 1},
        {restarts: 1},
        {Node: 2, writes: 0, partitions: 0, restarts: 1},
        {Node: 2, writes: 0},
        {partitions: 2, restarts: 2},
        {Node: 2, partitions: 0},
        {Generation: 3, joins: 2},
        {Node: 2, joins: 3, writes: 0, partitions: 0},
    )

    # time
    now: NumberVar = number(0, END)
    fast = constant(per(Node, flag(init=ANY)))  # its clock is ahead of the others
    # generations
    start = per(Generation, number(0, LAST_COMMIT + 1 + SKEW + DELAY))  # their timestamps
    introduced: SetVar[Generation] = set_of(Generation, init=ANY)
    stored: SetVar[Generation] = set_of(Generation, init=ANY)  # their data is there
    unpublished: SetVar[Generation] = set_of(Generation)
    described: SetVar[Generation] = set_of(Generation, init=ANY)  # to CDC clients
    on_its_way: OptionalVar[Generation] = optional(Generation)  # written, without a timestamp yet
    given_up: NumberVar = history(number(0, 2))  # changes that were abandoned, two or more
    # nodes
    known = per(Node, per(Generation, one_of(Known)))
    lacks = per(Node, set_of(Generation))  # the data that a node has not stored itself yet
    unreachable: SetVar[Node] = set_of(Node)
    # clients
    write = record(Write)

    # == what nodes know =================================================================================

    @initially
    def one_clock_is_right(self) -> Bool:
        """Time counts from the slowest clock."""
        return some(~self.fast[n] for n in Node)

    @initially
    def one_generation_is_known(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """Every node has the generation that the cluster begins with."""
        one = self.introduced.size() == 1
        known = choose(self.introduced.has(g), Known.usable, Known.unknown)
        return one & (self.known[n][g] == known)

    def clock(self, n: Term[Node]) -> Number:
        """The local time of a node, which the document calls C."""
        return self.now + choose(self.fast[n], SKEW, 0)

    # -- generations --------------------------------------------------------------------------------------

    def follows(self, later: Term[Generation], g: Term[Generation]) -> Bool:
        """A generation starts to operate after another one."""
        return self.start[g] < self.start[later]

    def is_over(self, g: Term[Generation], at: Number) -> Bool:
        """Another generation has been introduced that operates at a time instead of this one."""
        return some(
            self.introduced.has(h) & self.follows(h, g) & (self.start[h] <= at) for h in Generation
        )

    def knows(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """A node knows at least the timestamp of a generation."""
        return self.known[n][g] != Known.unknown

    def operates(self, n: Term[Node], g: Term[Generation], at: Number) -> Bool:
        """For all that a node knows a generation operates at a time: it is the last one that has started."""
        superseded = some(
            self.knows(n, h) & self.follows(h, g) & (self.start[h] <= at) for h in Generation
        )
        return self.knows(n, g) & (self.start[g] <= at) & ~superseded

    def is_obsolete(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """No write that the node accepts can need the generation any more, for all that it knows."""
        return some(
            self._is_sure_of(n, h)
            & self.follows(h, g)
            & (self.start[h] <= self._no_writes_since(n))
            for h in Generation
        )

    def _is_sure_of(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """The node knows that the generation is committed: what it is prepared for may be abandoned."""
        if self.release.prepares:
            return self.known[n][g] == Known.usable
        return self.knows(n, g)

    def _no_writes_since(self, n: Term[Node]) -> Number:
        """A generation may be forgotten once another one has operated since then."""
        if self.release.window is Window.with_previous:
            return self.clock(n) - LEEWAY
        return self.clock(n)

    def _oldest_accepted(self, n: Term[Node]) -> Number:
        """No write before that gets its stream from a generation that is over by then."""
        if self.release.window is Window.with_previous:
            return self.clock(n) - (LEEWAY - 1)
        return self.clock(n)

    # -- the window of accepted timestamps -------------------------------------------------------------------

    def lets_through(self, n: Term[Node], timestamp: Number) -> Bool:
        """A node lets a write have that timestamp."""
        if self.release.window is Window.with_previous:
            return self._accepts_with_previous(n, timestamp)
        return self._accepts_from_the_start(n, timestamp)

    def _accepts_from_the_start(self, n: Term[Node], timestamp: Number) -> Bool:
        """From the start of the generation that operates now, and not too far into the future."""
        now = self.clock(n)
        started = some(self.operates(n, g, now) & (self.start[g] <= timestamp) for g in Generation)
        if self.release.window is Window.half_open:
            return started & (timestamp < now + LEEWAY)
        return started & (timestamp <= now + LEEWAY)

    def _accepts_with_previous(self, n: Term[Node], timestamp: Number) -> Bool:
        """Recent timestamps whichever generation operated then; older ones only in the current one."""
        now = self.clock(n)
        recent = now - LEEWAY < timestamp
        current = some(self.operates(n, g, now) & (self.start[g] <= timestamp) for g in Generation)
        return (recent | current) & (timestamp <= now + LEEWAY)

    def allows(self, n: Term[Node], timestamp: Number) -> Bool:
        """The documents let a node, whose local time is C, accept that timestamp of a write.

        003: "in the interval [T, C + generation_leeway)", T being the timestamp of "the generation operating at
        time C"; the newer document adds "writes to the previous generations" after C - generation_leeway.
        """
        now = self.clock(n)
        started = some(
            (self.start[g] <= timestamp) & self._has_begun_last(g, now) for g in self.introduced
        )
        if self.release.window is Window.with_previous:
            started = started | (now - LEEWAY < timestamp)
        return self._is_not_far_ahead(n, timestamp) & started

    def _is_not_far_ahead(self, n: Term[Node], timestamp: Number) -> Bool:
        """003: before C + generation_leeway; the code lets that time itself through, too."""
        if self.release.window is Window.half_open:
            return timestamp < self.clock(n) + LEEWAY
        return timestamp <= self.clock(n) + LEEWAY

    def _has_begun_last(self, g: Term[Generation], at: Number) -> Bool:
        """As a reader finds it among all that were introduced: it has begun, and none after it has."""
        return (self.start[g] <= at) & self._has_no_successor(g, at)

    def _has_no_successor(self, g: Term[Generation], at: Number) -> Bool:
        """None of those that have begun by then begins after it."""
        return every(
            (self.start[h] <= self.start[g]) | (at < self.start[h]) for h in self.introduced
        )

    def uses(self, n: Term[Node], g: Term[Generation], timestamp: Number) -> Bool:
        """A write with that timestamp gets its stream from a generation of which the node has the data."""
        return self.operates(n, g, timestamp) & (self.known[n][g] == Known.usable)

    # -- promises ------------------------------------------------------------------------------------------------

    @invariant
    def writes_without_a_timestamp_are_accepted(self, n: Term[Node]) -> Bool:
        """003: of writes only those are refused that are in the past or too far in the future."""
        return self.lets_through(n, self.clock(n))

    @lemma
    def accepted_writes_are_not_far_ahead(self) -> Bool:
        """The timestamp of an accepted write is before the start of what is yet to be introduced."""
        ahead = self.write.timestamp > self.now + SKEW + LEEWAY
        known = some((self.write.generation == g) for g in self.introduced)
        return (self.write.fate == Fate.accepted).implies(known & ~ahead)

    # == generations that are committed ==================================================================

    @initially
    def one_generation_is_in_use(self) -> Bool:
        """The generation that the cluster begins with is stored, and described to clients."""
        return (self.stored == self.introduced) & (self.described == self.introduced)

    # -- time and the network ------------------------------------------------------------------------------

    @action(by=TIME, fair=WEAK)
    def tick(self) -> None:
        """Time passes; by then whoever is reached has learned, and what Paxos decided is tried again."""
        bounded(self.now < END, "there is time left")
        if not self.release.prepares:
            in_time = self.on_its_way.is_none() | (self.now <= LAST_COMMIT)
            bounded(in_time, "time is left for what is on its way to operate")
            learned = every(self.unreachable.has(n) | ~self._is_behind(n) for n in Node)
            require(learned, "every node that can be reached has learned of each generation")
        waits = (self.write.fate == Fate.decided) & self.write.waited
        possible = some(self._can_apply_soon(n, self.write.timestamp) for n in Node)
        require(~(waits & possible), "what Paxos decided is applied within a tick, if possible")
        self.now = self.now + 1
        self.write.waited = self.write.fate == Fate.decided

    @action(by=NETWORK, spends=partitions)
    def cut_off(self, n: Term[Node]) -> None:
        """A node is cut off: at any time where nodes prepare, else not while a generation is on its way."""
        if not self.release.prepares:
            assume(
                self.on_its_way.is_none() & ~self._is_behind(n),
                "no generation is on its way to it",
                because="003 has the two phases commit only what all have stored, and the code (a FIXME) applies "
                "a commit after that at each node by itself: nobody may be cut off in between",
            )
        self.unreachable.add(n)

    @action(by=NETWORK, fair=WEAK)
    def heal(self, n: Term[Node]) -> None:
        """The node is reached again."""
        require(self.unreachable.has(n), "it is cut off")
        self.unreachable.discard(n)

    # -- a generation is introduced ------------------------------------------------------------------------

    @action(spends=joins)
    def gossip_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """A joining node stores a generation and gossips its timestamp, some time ahead, with its tokens.

        Its own clock is that of node `n`.
        """
        only_when(not self.release.group0)
        self._is_new(g)
        self.stored.add(g)
        self._introduce(n, g)

    @action(by=COORDINATOR, spends=joins)
    def write_data(self, g: Term[Generation]) -> None:
        """The topology coordinator writes the data of a generation for a joining node to group0."""
        only_when(self.release.group0 and not self.release.prepares)
        self._put_on_its_way(g)

    @action(by=COORDINATOR, spends=joins)
    def prepare_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """The first phase: the data goes to every node together with a timestamp, by the coordinator's clock."""
        only_when(self.release.prepares)
        self._put_on_its_way(g)
        self._give_timestamp(n, g)

    @action(fair=WEAK)
    def store_data(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node applies the command: it stores the data of the generation, and is prepared for it."""
        only_when(self.release.group0)
        require(self.lacks[n].has(g), "data is on its way to it")
        require(~self.unreachable.has(n), "it is reached")
        self.lacks[n].discard(g)
        if self.release.prepares:
            self._prepare(n, g)

    @action(by=COORDINATOR, fair=WEAK)
    def commit_generation(self, n: Term[Node], g: Term[Generation]) -> None:
        """After a barrier the coordinator gives the generation a timestamp, by the clock of its node `n`."""
        only_when(self.release.group0 and not self.release.prepares)
        self._every_node_has_it(g)
        self._introduce(n, g)
        self.unpublished.add(g)
        self.on_its_way = None

    @action(by=COORDINATOR, fair=WEAK)
    def commit_prepared(self, n: Term[Node], g: Term[Generation]) -> None:
        """The second phase: every node is prepared, and none has taken a write that was for the generation."""
        only_when(self.release.prepares)
        self._every_node_has_it(g)
        require(self._is_in_time(n, g), "its timestamp is far enough ahead")
        self.introduced.add(g)
        self.unpublished.add(g)
        self.on_its_way = None

    @action(by=COORDINATOR, fair=WEAK)
    def abandon(self, n: Term[Node], g: Term[Generation]) -> None:
        """Not every node was prepared in time: the generation is given up, and so is the join. It may be asked for again."""
        only_when(self.release.prepares)
        require((self.on_its_way == g) & ~self._is_in_time(n, g), "it is too late to commit it")
        self.stored.discard(g)
        self.on_its_way = None
        self.given_up = choose(self.given_up < 2, self.given_up + 1, 2)
        for m in Node:
            self.lacks[m].discard(g)

    # -- nodes ---------------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node learns of a generation, with the tokens for which it was made."""
        require(~self.unreachable.has(n), "it is reached")
        require(self._is_missing(n, g), "it is new to it, and may be needed")
        self.known[n][g] = self._as_loaded(n, g)

    @action(fair=WEAK)
    def read_data(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node reads the data of a generation of which it had the timestamp only, or learns of its commit."""
        only_when(not self.release.group0 or self.release.prepares)
        require(self.known[n][g] == Known.prepared, "it knows the timestamp only")
        require(self._reads(n, g), "the data can be read")
        self.known[n][g] = Known.usable

    @action(fair=WEAK)
    def learn_that_it_is_abandoned(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node need no longer reject writes for the sake of a generation that is given up."""
        only_when(self.release.prepares)
        require(self.known[n][g] == Known.prepared, "it is prepared for it")
        require(~self.stored.has(g), "it is given up")
        require(~self.unreachable.has(n), "it is reached")
        self.known[n][g] = Known.unknown

    @action(fair=WEAK)
    def forget(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node frees the memory of a generation that it needs no more."""
        require(self.knows(n, g) & self.is_obsolete(n, g), "it is obsolete")
        self.known[n][g] = Known.unknown

    @action(spends=restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node starts, maybe as a new one, and loads the generations that it may need."""
        require(~self.unreachable.has(n), "it is reached")
        for g in Generation:
            loaded = choose(self._loads(n, g), self._as_loaded(n, g), Known.unknown)
            self.known[n][g] = loaded

    # -- writes --------------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def write_row(
        self,
        n: Term[Node],
        g: Term[Generation],
        timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)],
    ) -> None:
        """A client writes, with a timestamp of its own choice, through node `n`."""
        bounded(self.write.fate == Fate.none, "one write is followed")
        require(self.lets_through(n, timestamp), "the node accepts the timestamp")
        self._write(n, g, timestamp)
        self.write.timestamp = timestamp

    @action(by=CLIENT, spends=writes)
    def decide_by_paxos(self, n: Term[Node]) -> None:
        """Paxos decides a conditional write: its timestamp, the coordinator's time, is fixed for ever."""
        bounded(self.write.fate == Fate.none, "one write is followed")
        self.write.fate = Fate.decided
        self.write.timestamp = self.clock(n)

    @action(fair=WEAK)
    def apply_decision(self, n: Term[Node], g: Term[Generation]) -> None:
        """A node applies what Paxos decided: a base write and a log write."""
        require(self.write.fate == Fate.decided, "a decision is to be applied")
        require(self.lets_through(n, self.write.timestamp), "the node accepts the timestamp")
        self._write(n, g, self.write.timestamp)

    # -- publication and the end of a generation -----------------------------------------------------------

    @action(fair=WEAK)
    def describe(self, n: Term[Node], g: Term[Generation]) -> None:
        """Nodes race to insert a generation into the table for CDC clients; twice does no harm.

        They keep trying, also when they need it no more.
        """
        only_when(not self.release.group0)
        learned = self.introduced.has(g) & ~self._is_missing(n, g)
        require(learned & (self.known[n][g] != Known.prepared), "it has learned of the generation")
        require(~self.described.has(g), "not there yet")
        self.described.add(g)

    @action(by=COORDINATOR, fair=WEAK)
    def publish(self, g: Term[Generation]) -> None:
        """The publisher describes the oldest generation that is not published yet."""
        only_when(self.release.group0)
        require(self.unpublished.has(g), "it is not published yet")
        older = some(self.unpublished.has(h) & self.follows(g, h) for h in Generation)
        require(~older, "it is the oldest")
        self.unpublished.discard(g)
        self.described.add(g)

    @action(by=COORDINATOR, fair=WEAK)
    def clear(self, n: Term[Node], g: Term[Generation], kept: Term[Generation]) -> None:
        """The publisher, by the clock of its node, removes a generation that none needs any more."""
        only_when(self.release.group0)
        require(self.stored.has(g), "it is in group0")
        following = self.introduced.has(kept) & self.follows(kept, g)
        require(following, "there is one after it")
        require(~self.unpublished.has(g), "it is published")
        require(self._may_be_the_oldest(n, kept), "that one has operated for long enough")
        self.stored.discard(g)

    # -- helpers ---------------------------------------------------------------------------------------------

    def _is_new(self, g: Term[Generation]) -> None:
        require(~self.introduced.has(g), "it is a new one")
        bounded(self.now <= LAST_COMMIT, "time is left for it to operate")

    def _put_on_its_way(self, g: Term[Generation]) -> None:
        self._is_new(g)
        require(self.on_its_way.is_none(), "no other one is on its way")
        self.stored.add(g)
        self.on_its_way = g
        for n in Node:
            self.lacks[n].add(g)

    def _prepare(self, n: Term[Node], g: Term[Generation]) -> None:
        """`cdc::metadata::prepare`: from its timestamp on the node rejects writes, until it knows more."""
        self.known[n][g] = Known.prepared

    def _every_node_has_it(self, g: Term[Generation]) -> None:
        require(self.on_its_way == g, "its data is written")
        require(every(~self.lacks[m].has(g) for m in Node), "every node has stored its data")

    def _is_in_time(self, n: Term[Node], g: Term[Generation], /) -> Bool:
        """No node, however fast its clock, has let a write through that is of the generation."""
        return self.clock(n) + (SKEW + LEEWAY) < self.start[g]

    def _introduce(self, n: Term[Node], g: Term[Generation]) -> None:
        self._give_timestamp(n, g)
        self.introduced.add(g)

    def _give_timestamp(self, n: Term[Node], g: Term[Generation]) -> None:
        start = self.clock(n) + DELAY
        last = every(self.introduced.has(h).implies(self.start[h] < start) for h in Generation)
        require(last, "it starts after the others")
        self.start[g] = start

    def _is_committed(self, g: Term[Generation]) -> Bool:
        """It has a timestamp, and was not cleared (`committed_cdc_generations`)."""
        return self.stored.has(g) & self.introduced.has(g)

    def _loads(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """A node that looks at what was introduced takes the generation: it may be needed."""
        there = self._is_committed(g) if self.release.group0 else self.introduced.has(g)
        if self.release.prepares:
            there = there | ((self.on_its_way == g) & ~self.lacks[n].has(g))
        return there & ~self.is_over(g, self._no_writes_since(n))

    def _as_loaded(self, n: Term[Node], g: Term[Generation]) -> Term[Known]:
        """From group0 a node has the data together with the timestamp; after gossip it must be read."""
        if self.release.prepares:
            return choose(self.introduced.has(g), Known.usable, Term.of(Known.prepared))
        if self.release.group0:
            return choose(self.lacks[n].has(g), Known.prepared, Known.usable)
        return Term.of(Known.prepared)

    def _is_missing(self, n: Term[Node], g: Term[Generation]) -> Bool:
        return self._loads(n, g) & ~self.knows(n, g)

    def _is_behind(self, n: Term[Node]) -> Bool:
        return some(self._is_missing(n, g) for g in Generation)

    def _write(self, n: Term[Node], g: Term[Generation], timestamp: Number) -> None:
        """Base write and log write: the log's stream is of the generation that operates at the timestamp."""
        require(self.uses(n, g, timestamp), "it has the generation that operates then")
        self.write.fate = Fate.accepted
        self.write.coordinator = n
        self.write.generation = g

    def _can_apply_soon(self, n: Term[Node], timestamp: Number) -> Bool:
        """At once, or as soon as the node has read the data that it is prepared for."""
        found = some(
            self.operates(n, g, timestamp)
            & ((self.known[n][g] == Known.usable) | self._reads(n, g))
            for g in Generation
        )
        return self.lets_through(n, timestamp) & found

    def _reads(self, n: Term[Node], g: Term[Generation], /) -> Bool:
        return self._is_committed(g) & ~self.unreachable.has(n)

    def _may_be_the_oldest(self, n: Term[Node], kept: Term[Generation]) -> Bool:
        """No node accepts writes to earlier generations any more."""
        return self.start[kept] <= self.clock(n) - (LEEWAY + RING_DELAY)

    # -- promises --------------------------------------------------------------------------------------------

    @step_property
    def generations_start_in_the_order_of_their_introduction(
        self, after: Self, g: Term[Generation]
    ) -> Bool:
        """003: a generation operates from its timestamp until "the following generation's timestamp"."""
        new = ~self.introduced.has(g) & after.introduced.has(g)
        last = every(self.start[h] < after.start[g] for h in self.introduced)
        return new.implies(last)

    @step_property
    def timestamps_are_kept(self, after: Self, g: Term[Generation]) -> Bool:
        """003: the timestamp is "the time point from which this generation "starts operating"": nodes and clients that have it
        are told of no other one, whoever commits it, and neither are nodes that are prepared for it.
        """
        known = self.introduced.has(g)
        if self.release.prepares:
            known = known | (self.on_its_way == g)
        return known.implies(after.start[g] == self.start[g])

    @invariant
    def log_writes_use_the_generation_that_operates(self) -> Bool:
        """003: "The stream ID is taken from the generation operating at this timestamp", which is the same
        for the whole cluster.
        """
        accepted = self.write.fate == Fate.accepted
        return every(
            (accepted & (self.write.generation == g)).implies(
                self._has_begun_last(g, self.write.timestamp)
            )
            for g in Generation
        )

    @accepts(write_row)
    def timestamps_in_the_window_are_accepted(
        self,
        n: Term[Node],
        g: Term[Generation],
        timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)],
    ) -> Bool:
        """003: those "in the interval [T, C + generation_leeway)", T being the start of what operates at C; to be rejected
        are "writes … that are supposed to use this new generation" which the node cannot read, and no others.
        """
        return self._is_in_the_window(n, timestamp) & self.uses(n, g, timestamp)

    @accepts(apply_decision)
    def decisions_in_the_window_are_applied(self, n: Term[Node]) -> Bool:
        """003, the same: "Then we only allow the write if its timestamp is in the interval", by the clock of the node that
        applies it, whichever node decided it.
        """
        decided, timestamp = self.write.fate == Fate.decided, self.write.timestamp
        found = some(self.uses(n, g, timestamp) for g in Generation)
        return decided & self._is_in_the_window(n, timestamp) & found

    def _is_in_the_window(self, n: Term[Node], timestamp: Number) -> Bool:
        """In what operates at the node's time, or recent where the previous generations are written to, and not far ahead."""
        now = self.clock(n)
        started = some(self.operates(n, h, now) & (self.start[h] <= timestamp) for h in Generation)
        if self.release.window is Window.with_previous:
            started = started | (now - LEEWAY < timestamp)
        return started & self._is_not_far_ahead(n, timestamp)

    @accepts(prepare_generation)
    def nodes_join_whatever_is_published(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003: "When a new node joins the cluster", "before it does it, it will introduce a new CDC generation": one at a time,
        and no join waits until clients can see the last one, nor is one refused as those before it were given up.
        """
        only_when(self.release.prepares)
        later = every(self.start[h] < self.clock(n) + DELAY for h in self.introduced)
        return ~self.introduced.has(g) & self.on_its_way.is_none() & later

    @accepts(gossip_generation)
    def nodes_gossip_whatever_is_published(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003, the same: "Next, the node starts gossiping the timestamp of the new generation together with its set of
        chosen tokens".
        """
        only_when(not self.release.group0)
        later = every(self.start[h] < self.clock(n) + DELAY for h in self.introduced)
        return ~self.introduced.has(g) & later

    @accepts(write_data)
    def data_is_written_whatever_is_published(self, g: Term[Generation]) -> Bool:
        """The same where the data goes to group0."""
        only_when(self.release.group0 and not self.release.prepares)
        return ~self.introduced.has(g) & self.on_its_way.is_none()

    @accepts(commit_generation)
    def generations_are_committed_whatever_is_published(
        self, n: Term[Node], g: Term[Generation]
    ) -> Bool:
        """The same where every node has it: 003 has the timestamp chosen "by taking the node's local time"."""
        only_when(self.release.group0 and not self.release.prepares)
        later = every(self.start[h] < self.clock(n) + DELAY for h in self.introduced)
        return (self.on_its_way == g) & every(~self.lacks[m].has(g) for m in Node) & later

    @accepts(read_data)
    def data_is_read_whoever_is_cut_off(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003: "The node will keep trying to read the generation's data in background until it succeeds": as soon as
        it can be read there, which no other node keeps it from.
        """
        only_when(not self.release.group0 or self.release.prepares)
        there = self.introduced.has(g) & self.stored.has(g)
        return (self.known[n][g] == Known.prepared) & there & ~self.unreachable.has(n)

    @accepts(restart)
    def nodes_start_without_the_data(self, n: Term[Node]) -> Bool:
        """003, the same: "in background": a node starts, and rejects the writes that need what it has not read yet."""
        return ~self.unreachable.has(n)

    @accepts(describe)
    def whoever_has_learned_describes(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003: "When nodes learn about a CDC generation through gossip, they race to update the description table":
        none waits for another.
        """
        only_when(not self.release.group0)
        learned = self.introduced.has(g) & (self.known[n][g] == Known.usable)
        return learned & ~self.described.has(g)

    @accepts(store_data)
    def nodes_are_prepared_when_they_are_reached(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003: the node is to "keep trying to read the generation's data in background until it succeeds": however often it was
        cut off.
        """
        only_when(self.release.group0)
        return self.lacks[n].has(g) & ~self.unreachable.has(n)

    @accepts(learn_that_it_is_abandoned)
    def what_is_given_up_is_refused_no_longer(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003: a node goes on until it "sees that it's not necessary anymore": then it takes writes again, and does not wait for
        another generation.
        """
        only_when(self.release.prepares)
        prepared = self.known[n][g] == Known.prepared
        return prepared & ~self.stored.has(g) & ~self.unreachable.has(n)

    @accepts(commit_prepared)
    def prepared_generations_are_committed(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """003, "a two-phase-commit approach": once all nodes have stored the data, none need be reached any more."""
        only_when(self.release.prepares)
        prepared = every(~self.lacks[m].has(g) for m in Node)
        return (self.on_its_way == g) & prepared & self._is_in_time(n, g)

    @accepts(publish)
    def generations_are_described_whatever_is_on_its_way(self, g: Term[Generation]) -> Bool:
        """003, "Streams description table": clients "learn about available sets of streams", one after the other, and wait for
        no node that is cut off, nor for what is to be committed.
        """
        only_when(self.release.group0)
        oldest = every(self.start[g] <= self.start[h] for h in self.unpublished)
        return self.unpublished.has(g) & oldest

    @accepts(clear)
    def old_generations_are_cleared_whoever_is_cut_off(
        self, n: Term[Node], g: Term[Generation], kept: Term[Generation]
    ) -> Bool:
        """Old generations go from group0 (scylladb #15163) when another one has operated for long enough, though a node that
        is cut off may still have them in memory.
        """
        only_when(self.release.group0)
        long_ago = self.start[kept] <= self.clock(n) - (LEEWAY + RING_DELAY)
        later = self.introduced.has(kept) & (self.start[g] < self.start[kept]) & long_ago
        published = self.introduced.has(g) & ~self.unpublished.has(g)
        return published & self.stored.has(g) & later

    @accepts(decide_by_paxos)
    def conditional_writes_are_decided_at_any_time(self, n: Term[Node]) -> Bool:
        """003: to be rejected are the writes "that are supposed to use this new generation" which the node cannot read: one
        with the node's own time is not, if it has what operates then.
        """
        return some(self.uses(n, g, self.clock(n)) for g in Generation)

    @independent(
        gossip_generation,
        write_data,
        prepare_generation,
        store_data,
        commit_generation,
        commit_prepared,
        abandon,
        learn,
        read_data,
        learn_that_it_is_abandoned,
        publish,
        describe,
        of=write,
    )
    def generations_wait_for_no_write(self) -> None:
        """003: nodes "reject writes … that are supposed to use this new generation", and so "give up availability for
        safety": writes wait for generations, and no generation for a write.
        """

    @independent(
        store_data,
        abandon,
        learn,
        read_data,
        learn_that_it_is_abandoned,
        forget,
        of=(unpublished, described),
    )
    def nodes_learn_whatever_is_published(self) -> None:
        """003: "The node will keep trying to read the generation's data in background until it succeeds or sees that it's not
        necessary anymore": the table for CDC clients is "in contrast" to the one which nodes use.
        """

    @independent(store_data, abandon, learn, read_data, learn_that_it_is_abandoned, forget, of=Node)
    def nodes_learn_whoever_else_does(self) -> None:
        """003: "When other nodes learn about the generation, they'll extract it … and save it", or hear that it is given up:
        each for itself, whichever of the others is cut off.
        """

    @step_property
    def timestamps_are_in_the_window(self, after: Self) -> Bool:
        """Clients cannot "send writes with arbitrary timestamps" (003), but within the window of "the write coordinator's
        local clock"; what Paxos decided is no exception.
        """
        accepted = (self.write.fate != Fate.accepted) & (after.write.fate == Fate.accepted)
        return accepted.implies(
            some(self.allows(n, after.write.timestamp) for n in after.write.coordinator)
        )

    @step_property
    def decided_timestamps_are_kept(self, after: Self) -> Bool:
        """003: a write "is translated to a mutation, which holds a timestamp": what Paxos decided is applied with its own,
        by whichever node and however late.
        """
        decided = self.write.fate == Fate.decided
        return decided.implies(after.write.timestamp == self.write.timestamp)

    @step_property
    def old_generations_are_not_prepared_again(
        self, after: Self, n: Term[Node], g: Term[Generation]
    ) -> Bool:
        """003: a node that is prepared "will remember that there is a new generation even though it doesn't yet know what it
        is": of what it knew, and is over, it keeps no timestamp without the data. One that starts may read all data anew.
        """
        only_when(self.release.group0)
        over = ~self._has_no_successor(g, self.clock(n) - LEEWAY)
        known = self.knows(n, g) & over
        prepared = self.known[n][g] == Known.prepared
        return known.implies(prepared | (after.known[n][g] != Known.prepared))

    @invariant
    def accepted_timestamps_find_a_stream(
        self, n: Term[Node], timestamp: Annotated[Number, between(0, LAST_TIMESTAMP)]
    ) -> Bool:
        """A node has what it needs for the writes that it lets through, but for what it could not read yet
        (scylladb #17184).
        """
        prepared = some(self.known[n][g] == Known.prepared for g in Generation)
        found = some(self.uses(n, g, timestamp) for g in Generation)
        return self.lets_through(n, timestamp).implies(found | prepared)

    @invariant
    def data_is_kept_while_it_may_be_needed(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """Any node may still accept a write to the generation, or have to load it (scylladb PR #17374)."""
        needed = self.introduced.has(g) & self._has_no_successor(g, self._oldest_accepted(n))
        return needed.implies(self.stored.has(g))

    @invariant
    def clients_can_read_what_is_cleared(self, g: Term[Generation]) -> Bool:
        """A generation is described to CDC clients before its data goes."""
        return (self.introduced.has(g) & ~self.stored.has(g)).implies(self.described.has(g))

    @invariant
    def clients_see_introduced_generations_only(self, g: Term[Generation]) -> Bool:
        """003: nodes describe a generation "when nodes learn about a CDC generation"."""
        return self.described.has(g).implies(self.introduced.has(g))

    @step_property
    def descriptions_are_kept(self, after: Self) -> Bool:
        """003, "TODO: expired generations": that a description goes "is yet to be implemented", so clients who come
        later find every generation there was.
        """
        return self.described <= after.described

    @step_property
    def descriptions_have_streams(self, after: Self, g: Term[Generation]) -> Bool:
        """003: the table "simply contains each generation's timestamp (as partition key) and the set of stream IDs": a
        node that knows "just the timestamp" cannot describe it.
        """
        only_when(not self.release.group0)
        new = ~self.described.has(g) & after.described.has(g)
        return new.implies(some(self.known[n][g] != Known.prepared for n in Node))

    @invariant
    def generations_are_described_in_their_order(self) -> Bool:
        """A client that has seen a generation misses none before it (scylladb PR #15281)."""
        only_when(self.release.group0)
        return every(
            self.described.has(g) | (self.start[h] <= self.start[g])
            for h in self.described
            for g in self.introduced
        )

    @lemma
    def generations_take_one_way(self, g: Term[Generation]) -> Bool:
        """A generation is written, introduced when every node has stored it, and then published."""
        only_when(self.release.group0)
        waits, introduced = self.on_its_way == g, self.introduced.has(g)
        unpublished, described = self.unpublished.has(g), self.described.has(g)
        queued = unpublished.implies(introduced) & introduced.implies(unpublished | described)
        on_its_way = self.stored.has(g) & ~introduced
        if self.release.prepares:
            lacked = some(self.lacks[n].has(g) for n in Node)
            return queued & waits.implies(on_its_way) & ~(lacked & introduced)
        on_its_way = on_its_way & (self.now <= LAST_COMMIT + 1)
        lacked = every(
            choose(waits, self.lacks[n].has(g) | ~self.unreachable.has(n), ~self.lacks[n].has(g))
            for n in Node
        )
        return queued & waits.implies(on_its_way) & lacked

    @lemma
    def nodes_know_what_they_need(self, n: Term[Node], g: Term[Generation]) -> Bool:
        """What a node does not know, or is cleared, is over for it, or starts a long time ahead."""
        only_when(self.release.group0)
        over = ~self._has_no_successor(g, self._oldest_accepted(n))
        unknown = self.introduced.has(g) & ~self.knows(n, g)
        cleared = self.introduced.has(g) & ~self.stored.has(g)
        if self.release.prepares:
            usable = self.known[n][g] == Known.usable
            prepared = self.known[n][g] == Known.prepared
            last = every(self.start[h] < self.start[g] for h in self.introduced)
            waits = (self.on_its_way == g).implies(last & (self.lacks[n].has(g) | prepared))
            known = usable.implies(self.introduced.has(g)) & waits
            first = some(self.start[h] == 0 for h in self.introduced)
            return first & known & (unknown | cleared).implies(over)
        known = self.knows(n, g).implies(self.introduced.has(g))
        ahead = (self.start[g] >= self.now + DELAY) & ~self.unreachable.has(n)
        return known & unknown.implies(over | ahead) & cleared.implies(over)

    @sometimes
    def clients_see_a_generation_before_it_operates(self, g: Term[Generation]) -> Bool:
        """003: nodes describe a generation "when nodes learn about a CDC generation", some time before its timestamp."""
        return self.described.has(g) & every(self.clock(n) < self.start[g] for n in Node)

    @sometimes(at={writes: 1})
    def changes_are_written_ahead_of_their_generation(self) -> Bool:
        """003: timestamps are let through until "C + generation_leeway": a client's write has a stream of the generation that
        is about to operate.
        """
        ahead = every(self.clock(n) < self.write.timestamp for n in Node)
        next_one = some(
            every(self.clock(n) < self.start[g] for n in Node) for g in self.write.generation
        )
        return (self.write.fate == Fate.accepted) & ahead & next_one

    @lemma
    @sometimes(at={Generation: 3, joins: 2})
    def generations_do_not_wait_for_each_other(self) -> Bool:
        """003: the timestamp of a generation is "a minute or two" ahead, and the next one has one after it: the node for
        which that is made does not wait until the other operates. A lemma: it waits for no other node's, once that is
        committed.
        """
        return (
            count(
                self.introduced.has(g) & every(self.clock(n) < self.start[g] for n in Node)
                for g in Generation
            )
            > 1
        )

    @sometimes
    def a_generation_operates_after_the_first(self, n: Term[Node]) -> Bool:
        """003: a generation operates from its timestamp on, and the one before it no longer."""
        now = self.clock(n)
        return some(self.uses(n, g, now) & (self.start[g] > 0) for g in self.described)

    @lemma
    @sometimes(at={Node: 2, joins: 3, writes: 0, partitions: 0})
    def nodes_join_after_others_were_given_up(self) -> Bool:
        """003: "When a new node joins the cluster", it introduces a generation: one comes into use, and its changes can be read,
        though the two before it were given up. A lemma: no request is refused for their sake, and what all nodes have stored in
        time is committed.
        """
        only_when(self.release.prepares)
        described = some((self.start[g] > 0) for g in self.described)
        return (self.given_up == 2) & described

    @lemma
    @liveness
    def generations_are_introduced(self, g: Term[Generation]) -> LeadsTo:
        """001: "we need to commit the generation - create a timestamp for it and tell every node". A lemma: nodes that are reached
        store it, and what they are prepared for becomes usable, or is given up.
        """
        return leads_to(self.stored.has(g), self.introduced.has(g) | ~self.stored.has(g))

    @liveness
    def nodes_learn_of_generations(self, n: Term[Node], g: Term[Generation]) -> LeadsTo:
        """001, the same: every node starts "using it for CDC log table writes", if no other one has begun by then."""
        over = ~self._has_no_successor(g, self.clock(n))
        return leads_to(self.introduced.has(g), (self.known[n][g] == Known.usable) | over)

    @liveness
    def obsolete_generations_are_forgotten(self, n: Term[Node], g: Term[Generation]) -> LeadsTo:
        """Old writes are refused "to reduce the number of generations that must be stored in memory": when a later one has
        begun, and no write before that is recent.
        """
        later = some(
            (self.known[n][h] == Known.usable)
            & (self.start[g] < self.start[h])
            & (self.start[h] <= self.clock(n) - LEEWAY)
            for h in Generation
        )
        return leads_to(self.knows(n, g) & later, ~self.knows(n, g))

    @liveness
    def old_generations_are_cleared(self, n: Term[Node], g: Term[Generation]) -> LeadsTo:
        """Snapshots of group0 do not grow "endlessly" with obsolete generations (scylladb #15163)."""
        only_when(self.release.group0)
        long_ago = self.clock(n) - (LEEWAY + RING_DELAY)
        old = some(
            (self.start[g] < self.start[h]) & (self.start[h] <= long_ago) for h in self.introduced
        )
        return leads_to(self.introduced.has(g) & old, ~self.stored.has(g))

    @liveness
    def generations_are_described(self, g: Term[Generation]) -> LeadsTo:
        """003, "Streams description table": clients learn "about available sets of streams"."""
        return leads_to(self.introduced.has(g), self.described.has(g))

    @liveness
    def decisions_of_paxos_are_applied(self) -> LeadsTo:
        """A conditional write is applied in the end once Paxos has committed it (scylladb PR #17134), unless every
        node that might apply it is cut off meanwhile.
        """
        decided = (self.write.fate == Fate.decided) & ~self.write.waited
        nobody = every(self.unreachable.has(n) for n in Node)
        return leads_to(decided, (self.write.fate == Fate.accepted) | nobody)

    @liveness
    def prepared_generations_become_usable(self, n: Term[Node], g: Term[Generation]) -> LeadsTo:
        """003: "The node will keep trying to read the generation's data in background until it succeeds"."""
        prepared = self.known[n][g] == Known.prepared
        return leads_to(prepared, self.known[n][g] != Known.prepared)

    @final
    def time_is_up(self) -> Bool:
        """The run is as long as it was to be."""
        return self.now == END

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            log_writes_use_the_generation_that_operates,
            timestamps_are_in_the_window,
            under=(SEED, SEED_CODE),
            because="\"if gossip doesn't reach the node in time, some writes might be sent to the wrong (old) "
            'generation" (003); that node takes timestamps from before the switch, too',
        ),
        violated(
            decisions_of_paxos_are_applied,
            under=(SEED, SEED_CODE),
            because="a timestamp that was fixed before the switch, and is used after it, is refused for ever",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            tick,
            "every node that can be reached has learned of each generation",
            because="the documents assume it; whoever is behind has all that was committed",
        ),
        equivalent_weakening(
            tick,
            "what Paxos decided is applied within a tick, if possible",
            because="for the coordinator of the decision it is always possible",
        ),
        equivalent_weakening(
            cut_off,
            "no generation is on its way to it",
            because="whoever is behind has all that was committed",
        ),
        equivalent_drop(heal, "it is cut off", because="a node that is reached stays so"),
        equivalent_drop(
            store_data,
            "it is reached",
            because="whoever stores it while cut off is prepared all the earlier",
        ),
        equivalent_loss(
            abandon,
            lacks,
            because="what arrives when it is given up prepares a node that soon learns of that",
        ),
        equivalent_drop(
            read_data,
            "it knows the timestamp only",
            because="what is loaded in vain is forgotten again",
        ),
        equivalent_weakening(
            read_data,
            "the data can be read",
            because="a node that learns while it is cut off knows all the more, and what is cleared is over",
        ),
        equivalent_drop(
            learn_that_it_is_abandoned,
            "it is prepared for it",
            because="what is given up is not known in any other way",
        ),
        equivalent_drop(
            learn_that_it_is_abandoned,
            "it is reached",
            because="whoever hears of it while cut off only takes writes again",
        ),
        equivalent_drop(
            apply_decision,
            "a decision is to be applied",
            because="what is applied without a decision is a write like a client's",
        ),
        equivalent_loss(cut_off, unreachable, because="a network that works does no harm"),
        equivalent_drop(
            learn,
            "it is reached",
            because="a node that is cut off has stored no data, so nothing is committed",
        ),
        equivalent_weakening(
            learn,
            "it is new to it, and may be needed",
            because="what is loaded in vain is forgotten again",
        ),
        equivalent_loss(learn, known, because="after the barrier every node has the data"),
        equivalent_weakening(
            forget,
            "it is obsolete",
            because="in whole ticks, and for a node that has learned, less is the same",
        ),
        equivalent_drop(
            restart,
            "it is reached",
            because="what a node can load when it is cut off is what it had",
        ),
        equivalent_loss(
            restart, known, because="a node that remembers more than it needs does no harm"
        ),
        equivalent_weakening(
            write_row,
            "the node accepts the timestamp",
            because="a node that has learned knows what the cluster knows",
        ),
        equivalent_loss(
            decide_by_paxos, Write.fate, because="a client that writes nothing does no harm"
        ),
        equivalent_weakening(
            apply_decision,
            "the node accepts the timestamp",
            because="what Paxos decides is the time of a clock, which none is far behind",
        ),
        equivalent_drop(clear, "it is in group0", because="otherwise nothing happens"),
        equivalent_weakening(
            clear,
            "that one has operated for long enough",
            because="in whole ticks, no write needs it a tick earlier, either",
        ),
        equivalent_weakening(
            _write,
            "it has the generation that operates then",
            because="after the barrier a node has the data of what it knows",
        ),
        equivalent_replacement(
            tick,
            "if possible: every",
            "if possible: prepared for unknown",
            "if possible: unknown for usable",
            because="what is decided is recent, and a node that is reached can read what operates then",
        ),
        equivalent_replacement(
            _give_timestamp,
            "becomes: 1 for 2",
            "becomes: 3 for 2",
            because="any time ahead will do, if it is committed in time",
        ),
        equivalent_replacement(
            commit_prepared,
            "is far enough ahead: 1 for 2",
            because="no clock is ahead of one that is fast: that one need not count its own skew",
        ),
        equivalent_loss(
            abandon, given_up, because="how many were given up is counted for a witness alone"
        ),
        equivalent_replacement(
            abandon,
            "given_up becomes",
            because="how many were given up is counted for a witness alone",
        ),
        equivalent_replacement(
            abandon,
            "it is too late to commit it",
            because="it may be given up a tick earlier, or when that was possible for a tick",
        ),
        equivalent_replacement(
            abandon,
            "becomes: yes for no",
            because="what arrives when it is given up prepares a node that soon learns of that",
        ),
        equivalent_replacement(
            forget,
            "it is obsolete: prepared for unknown",
            because="what a node is prepared for it reads first, or learns that it is not there",
        ),
        equivalent_replacement(
            forget,
            "it is obsolete: 1 for",
            "it is obsolete: 3 for",
            because="in whole ticks, no timestamp that is let through needs it a tick earlier; later it is forgotten as well",
        ),
        equivalent_replacement(
            decide_by_paxos,
            "timestamp becomes",
            because="a decision whose timestamp is a tick off is applied as well",
        ),
        equivalent_replacement(
            clear,
            "has operated for long enough",
            because="in whole ticks, no write needs it a tick earlier, and it may be cleared later",
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            learn,
            because="every node that was prepared knows of it, also when it starts again",
        ),
    )
