"""Lamport's mutual exclusion with logical clocks and a FIFO channel between each two processes.

`tla/lamport_mutex.tla` is the same written by hand.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Number,
    Record,
    Term,
    action,
    choose,
    every,
    final,
    invariant,
    number,
    one_of,
    per,
    queue,
    require,
    set_of,
    some,
)

LATEST = 5  # time to which the check goes


class Process(Entity, scope=2, ordered=True):
    """Of two that asked at the same time the lesser goes first."""


class Kind(Enum):
    """What a message says."""

    REQUEST = auto()
    ACKNOWLEDGE = auto()
    RELEASE = auto()


class Message(Record):
    """`time` of a request: when it was made."""

    kind = one_of(Kind)
    time = number(0, LATEST)


class LamportMutex(Machine):
    """A process enters when all have acknowledged its request and no earlier request is known to it."""

    clock = per(Process, number(1, LATEST))
    asked = per(Process, per(Process, number(0, LATEST)))
    acknowledged = per(Process, set_of(Process))
    channel = per(Process, per(Process, queue(Message, 3)))
    inside = set_of(Process)

    def beats(self, p: Term[Process], q: Term[Process]) -> Bool:
        """Whether p's request goes before q's, as far as p knows."""
        mine, other = self.asked[p][p], self.asked[p][q]
        return (other == 0) | (mine < other) | ((mine == other) & (p < q))

    @action
    def ask(self, p: Term[Process]) -> None:
        """A process asks all others."""
        require(self.asked[p][p] == 0, "it has not asked")
        require(every(~self.channel[p][q].is_full() for q in Process), "there is room")
        self.asked[p][p] = self.clock[p]
        request = Message(kind=Kind.REQUEST, time=self.clock[p])
        for q in Process:
            sent = self.channel[p][q]
            self.channel[p][q] = choose(q == p, sent, sent.appended(request))
            self.acknowledged[p].put(q, q == p)

    @action
    def hear_request(self, p: Term[Process], q: Term[Process]) -> None:
        """A process hears a request and acknowledges it."""
        require(p != q, "it is another's")
        require(~self.channel[q][p].is_empty(), "there is a message")
        message = self.channel[q][p].head
        require(message.kind == Kind.REQUEST, "it is a request")
        require(~self.channel[p][q].is_full(), "there is room")
        later = self.later(p, message.time)
        require(later <= LATEST, "time goes on")
        self.clock[p] = later
        self.asked[p][q] = message.time
        self.channel[q][p].drop_head()
        self.channel[p][q].append(Message(kind=Kind.ACKNOWLEDGE, time=0))

    def later(self, p: Term[Process], time: Number) -> Number:
        """A time after what the clock shows and after another time."""
        return choose(self.clock[p] < time, time, self.clock[p]) + 1

    @action
    def hear_acknowledgement(self, p: Term[Process], q: Term[Process]) -> None:
        """A process hears that its request is known."""
        require(p != q, "it is another's")
        require(~self.channel[q][p].is_empty(), "there is a message")
        require(self.channel[q][p].head.kind == Kind.ACKNOWLEDGE, "it is an acknowledgement")
        self.acknowledged[p].add(q)
        self.channel[q][p].drop_head()

    @action
    def enter(self, p: Term[Process]) -> None:
        """A process enters the critical section."""
        require(self.asked[p][p] > 0, "it has asked")
        require(every(self.acknowledged[p].has(q) for q in Process), "all have acknowledged")
        require(every((q == p) | self.beats(p, q) for q in Process), "it goes first")
        require(~self.inside.has(p), "it is outside")
        self.inside.add(p)

    @action
    def leave(self, p: Term[Process]) -> None:
        """A process leaves, and tells all others."""
        require(self.inside.has(p), "it is inside")
        require(every(~self.channel[p][q].is_full() for q in Process), "there is room")
        self.inside.discard(p)
        self.asked[p][p] = 0
        for q in Process:
            sent = self.channel[p][q]
            release = Message(kind=Kind.RELEASE, time=0)
            self.channel[p][q] = choose(q == p, sent, sent.appended(release))
            self.acknowledged[p].discard(q)

    @action
    def hear_release(self, p: Term[Process], q: Term[Process]) -> None:
        """A process hears that another has left."""
        require(p != q, "it is another's")
        require(~self.channel[q][p].is_empty(), "there is a message")
        require(self.channel[q][p].head.kind == Kind.RELEASE, "it is a release")
        self.asked[p][q] = 0
        self.channel[q][p].drop_head()

    @final
    def the_time_is_up(self) -> Bool:
        """Nobody goes on once a clock has reached its end."""
        return some(self.clock[p] == LATEST for p in Process)

    @invariant
    def one_at_most(self, p: Term[Process], q: Term[Process]) -> Bool:
        """No two are inside."""
        return (self.inside.has(p) & self.inside.has(q)).implies(p == q)
