"""Chain replication: the head takes writes, each server hands them to the next, the tail answers.

After van Renesse and Schneider's "Chain Replication for Supporting High Throughput and Availability"; the master that
notices crashes is perfect, as there.
"""

from __future__ import annotations

from enum import Enum, auto

import stagewright.spec as sw

LENGTH = 2  # writes that a check goes through


class Server(sw.Entity, scope=3, ordered=True):
    """Its place in the chain: the first one alive is the head, the last one alive the tail."""


class Value(Enum):
    """What is written."""

    red = auto()
    blue = auto()


CLIENT, MASTER = sw.Actor("client"), sw.Actor("master")


class ChainReplication(sw.Machine):
    """A write is acknowledged once the tail has it; then all have it."""

    crashes = sw.fault_budget(2, doc="servers that fail for good")

    alive = sw.per(Server, sw.flag(init=True))
    log = sw.per(Server, sw.queue(sw.one_of(Value), LENGTH))
    acknowledged: sw.NumberVar = sw.number(0, LENGTH)  # writes that the client knows to be stored

    def is_head(self, s: sw.Term[Server]) -> sw.Bool:
        """Whether nobody alive stands before it."""
        return self.alive[s] & sw.every(~self.alive[t] | (s <= t) for t in Server)

    def is_tail(self, s: sw.Term[Server]) -> sw.Bool:
        """Whether nobody alive stands after it."""
        return self.alive[s] & sw.every(~self.alive[t] | (t <= s) for t in Server)

    def follows(self, s: sw.Term[Server], t: sw.Term[Server]) -> sw.Bool:
        """Whether `t` is the next one alive after `s`."""
        between = sw.some(self.alive[u] & (s < u) & (u < t) for u in Server)
        return self.alive[s] & self.alive[t] & (s < t) & ~between

    @sw.action(by=CLIENT)
    def write(self, s: sw.Term[Server], value: sw.Term[Value]) -> None:
        """The head stores a write."""
        sw.require(self.is_head(s), "it is the head")
        sw.bounded(~self.log[s].is_full())
        self.log[s].append(value)

    @sw.action(fair=sw.Fairness.WEAK)
    def hand_on(self, s: sw.Term[Server], t: sw.Term[Server]) -> None:
        """A server sends the next one the first write that it lacks."""
        sw.require(self.follows(s, t), "it is the next one")
        sw.require(self.log[t].length < self.log[s].length, "it lacks a write")
        self.log[t].append(self.log[s][self.log[t].length])

    @sw.action(fair=sw.Fairness.WEAK)
    def acknowledge(self, s: sw.Term[Server]) -> None:
        """The tail tells the client of a write that it has stored."""
        sw.require(self.is_tail(s), "it is the tail")
        sw.require(self.acknowledged < self.log[s].length, "the client does not know of it")
        self.acknowledged = self.acknowledged + 1

    @sw.action(by=MASTER, spends=crashes)
    def crash(self, s: sw.Term[Server]) -> None:
        """A server fails; the master takes it out of the chain."""
        sw.require(self.alive[s], "it is alive")
        sw.require(sw.some(self.alive[t] & (t != s) for t in Server), "another one is alive")
        self.alive[s] = False

    @sw.final
    def everything_is_acknowledged(self) -> sw.Bool:
        """The client is done."""
        return self.acknowledged == LENGTH

    @sw.invariant
    def update_propagation(self, s: sw.Term[Server], t: sw.Term[Server]) -> sw.Bool:
        """What a server has stored, all before it have stored, in the same order."""
        equal = sw.every(
            (i < self.log[t].length).implies(self.log[s][i] == self.log[t][i])
            for i in sw.numbers(0, LENGTH - 1)
        )
        fewer = self.log[t].length <= self.log[s].length
        return (self.alive[s] & self.alive[t] & (s < t)).implies(fewer & equal)

    @sw.invariant
    def acknowledged_writes_survive(self, s: sw.Term[Server]) -> sw.Bool:
        """Every server that is alive has all writes that the client knows to be stored."""
        return self.alive[s].implies(self.acknowledged <= self.log[s].length)

    @sw.liveness
    def what_the_head_has_is_acknowledged(self, s: sw.Term[Server]) -> sw.LeadsTo:
        """A write at the head is acknowledged, unless the head fails."""
        written = self.is_head(s) & self.log[s].is_full()
        return sw.leads_to(written, (self.acknowledged == LENGTH) | ~self.alive[s])


class HastyHead(ChainReplication):
    """The bug: the head acknowledges a write, which is lost if it fails then."""

    @sw.action(fair=sw.Fairness.WEAK)
    def acknowledge(self, s: sw.Term[Server]) -> None:
        """The head tells the client of a write that it has stored."""
        sw.require(self.is_head(s), "it is the head")
        sw.require(self.acknowledged < self.log[s].length, "the client does not know of it")
        self.acknowledged = self.acknowledged + 1
