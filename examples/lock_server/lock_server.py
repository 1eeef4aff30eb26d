"""A lock server: clients ask by message, wait in the order in which the server hears them, and give the lock back.

The protocol of Verdi's lock server, with clients that ask again once their release has arrived.
"""

from __future__ import annotations

from enum import Enum, auto

import stagewright.spec as sw


class Client(sw.Entity, scope=3):
    """Wants the lock from time to time."""


class Phase(Enum):
    """What a client is at."""

    idle = auto()
    waiting = auto()
    holding = auto()


SERVER = sw.Actor("server")


class LockServer(sw.Machine):
    """The first of the queue holds the lock, or is about to hear that it does."""

    phase = sw.per(Client, sw.one_of(Phase, init=Phase.idle))
    queue = sw.queue(sw.one_of(Client), 3)
    requests = sw.set_of(Client)  # messages under way
    grants = sw.set_of(Client)
    releases = sw.set_of(Client)

    @sw.action
    def ask(self, c: sw.Term[Client]) -> None:
        """A client sends a request."""
        sw.require(self.phase[c] == Phase.idle, "client is idle")
        sw.require(~self.releases.has(c), "its release has arrived")
        self.phase[c] = Phase.waiting
        self.requests.add(c)

    @sw.action(by=SERVER, fair=sw.Fairness.STRONG)
    def grant(self, c: sw.Term[Client]) -> None:
        """The server hears a request while the lock is free."""
        sw.require(self.requests.has(c), "the request is under way")
        sw.require(self.queue.is_empty(), "the lock is free")
        self.requests.discard(c)
        self.queue.append(c)
        self.grants.add(c)

    @sw.action(by=SERVER, fair=sw.Fairness.STRONG)
    def enqueue(self, c: sw.Term[Client]) -> None:
        """The server hears a request while another client has the lock."""
        sw.require(self.requests.has(c), "the request is under way")
        sw.require(~self.queue.is_empty(), "the lock is taken")
        self.requests.discard(c)
        self.queue.append(c)

    @sw.action(fair=sw.Fairness.WEAK)
    def hear_grant(self, c: sw.Term[Client]) -> None:
        """A client hears that it has the lock."""
        sw.require(self.grants.has(c), "the grant is under way")
        self.grants.discard(c)
        self.phase[c] = Phase.holding

    @sw.action(fair=sw.Fairness.WEAK)
    def release(self, c: sw.Term[Client]) -> None:
        """The holder gives the lock back."""
        sw.require(self.phase[c] == Phase.holding, "client holds the lock")
        self.phase[c] = Phase.idle
        self.releases.add(c)

    @sw.action(by=SERVER, fair=sw.Fairness.WEAK)
    def free(self, c: sw.Term[Client]) -> None:
        """The server hears a release, and nobody waits."""
        sw.require(self.releases.has(c), "the release is under way")
        sw.require(self.queue.length == 1, "nobody waits")
        self.releases.discard(c)
        self.queue.drop_head()

    @sw.action(by=SERVER, fair=sw.Fairness.WEAK)
    def pass_on(self, c: sw.Term[Client], following: sw.Term[Client]) -> None:
        """The server hears a release, and grants the lock to the one that has waited longest."""
        sw.require(self.releases.has(c), "the release is under way")
        sw.require(self.queue.length > 1, "somebody waits")
        sw.require(self.queue[1] == following, "it has waited longest")
        self.releases.discard(c)
        self.queue.drop_head()
        self.grants.add(following)

    @sw.invariant
    def one_holder(self) -> sw.Bool:
        """At most one client holds the lock."""
        return sw.count(self.phase[c] == Phase.holding for c in Client) <= 1

    @sw.invariant
    def the_holder_is_first(self, c: sw.Term[Client]) -> sw.Bool:
        """Who holds the lock, or has been granted it, is first in the queue."""
        has_it = (self.phase[c] == Phase.holding) | self.grants.has(c)
        return has_it.implies(~self.queue.is_empty() & (self.queue.head == c))

    @sw.liveness
    def who_waits_gets_it(self, c: sw.Term[Client]) -> sw.LeadsTo:
        """Every client that asks holds the lock at some time."""
        return sw.leads_to(self.phase[c] == Phase.waiting, self.phase[c] == Phase.holding)


class EagerServer(LockServer):
    """The bug: whoever asks while the lock is taken is told at once that it has it."""

    @sw.action(by=SERVER, fair=sw.Fairness.STRONG)
    def enqueue(self, c: sw.Term[Client]) -> None:
        """The server hears a request while another client has the lock."""
        sw.require(self.requests.has(c), "the request is under way")
        sw.require(~self.queue.is_empty(), "the lock is taken")
        self.requests.discard(c)
        self.queue.append(c)
        self.grants.add(c)
