"""CDC: nodes with clocks of their own, the generations that they know, and the writes that they accept.

Source: design document 003 (cdc), "Generations" and "Generation switching"; `cdc::metadata` of ScyllaDB for
the releases. `cdc_generations.py` adds the cluster: how generations come and go, and the promises.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import (
    ANY,
    Bool,
    Entity,
    Machine,
    Number,
    NumberVar,
    Profile,
    Record,
    SetVar,
    Term,
    choose,
    constant,
    flag,
    initially,
    invariant,
    number,
    one_of,
    optional,
    per,
    profiles,
    record,
    set_of,
    some,
)

# In ticks of the model's clock. A message reaches every node that is not cut off within a tick.
SKEW = 2  # how far a node's clock may be ahead of another's
RING_DELAY = 2  # at least the skew
LEEWAY = 2  # `generation_leeway`
DELAY = 2 * RING_DELAY + LEEWAY  # from a generation's introduction until it operates
LAST_COMMIT = 1
END = LAST_COMMIT + DELAY + LEEWAY + RING_DELAY + 1
LAST_TIMESTAMP = END + SKEW + LEEWAY


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


SEED = Release("seed", Window.half_open, False)
SEED_CODE = Release("seed-code", Window.closed, False)
SCYLLA_2026_2 = Release("scylla-2026.2", Window.with_previous, True)


class Node(Entity, scope=2):
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
    generation = optional(Generation)  # whose stream the log write uses
    colocated = flag(init=True)  # its generation is that of the last join, as far as was promised
    waited = flag()  # a tick has passed since Paxos decided it


class CdcNodes(Machine):
    """Nodes that know generations and choose streams for writes, each by its own clock."""

    release = profiles(SEED, SEED_CODE, SCYLLA_2026_2)

    now: NumberVar = number(0, END)
    fast = constant(per(Node, flag(init=ANY)))  # its clock is ahead of the others
    start = per(Generation, number(0, LAST_COMMIT + 1 + SKEW + DELAY))  # their timestamps
    introduced: SetVar[Generation] = set_of(Generation, init=ANY)
    known = per(Node, per(Generation, one_of(Known)))
    write = record(Write)

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
            self.knows(n, h) & self.follows(h, g) & (self.start[h] <= self._no_writes_since(n))
            for h in Generation
        )

    def _no_writes_since(self, n: Term[Node]) -> Number:
        """A generation may be forgotten once another one has operated since then."""
        if self.release.window is Window.with_previous:
            return self.clock(n) - LEEWAY
        return self.clock(n)

    # -- the window of accepted timestamps -------------------------------------------------------------------

    def accepts(self, n: Term[Node], timestamp: Number) -> Bool:
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
        if self.release.window is Window.half_open:
            early = timestamp < now + LEEWAY
        else:
            early = timestamp <= now + LEEWAY
        started = some(
            (self.start[g] <= timestamp) & (self.start[g] <= now) & ~self.is_over(g, now)
            for g in self.introduced
        )
        if self.release.window is Window.with_previous:
            started = started | (now - LEEWAY < timestamp)
        return early & started

    def uses(self, n: Term[Node], g: Term[Generation], timestamp: Number) -> Bool:
        """A write with that timestamp gets its stream from a generation of which the node has the data."""
        return self.operates(n, g, timestamp) & (self.known[n][g] == Known.usable)

    # -- promises ------------------------------------------------------------------------------------------------

    @invariant
    def writes_without_a_timestamp_are_accepted(self, n: Term[Node]) -> Bool:
        """003: of writes only those are refused that are in the past or too far in the future."""
        return self.accepts(n, self.clock(n))

    @invariant
    def accepted_writes_are_not_far_ahead(self) -> Bool:
        """Lemma: the timestamp of an accepted write is before the start of what is yet to be introduced."""
        ahead = self.write.timestamp > self.now + SKEW + LEEWAY
        known = some((self.write.generation == g) for g in self.introduced)
        return (self.write.fate == Fate.accepted).implies(known & ~ahead)
