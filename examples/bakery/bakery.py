"""Lamport's bakery: tickets are numbers, and who has the same one goes in the order of the processes.

Distinct states with two and three processes and four tickets: 88 and 790. `bakery.tla` is the same written by hand.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Term,
    action,
    count,
    every,
    final,
    greatest,
    invariant,
    number,
    one_of,
    per,
    require,
    some,
)

TICKETS = 4  # the machine that issues them has no more


class Process(Entity, scope=2, ordered=True):
    """Wants to be served."""


class At(Enum):
    """Where a process is."""

    home = auto()
    choosing = auto()
    waiting = auto()
    served = auto()


class Bakery(Machine):
    """A ticket is read while others choose theirs: two may have the same number."""

    at = per(Process, one_of(At, init=At.home))
    ticket = per(Process, number(0, TICKETS))
    seen = per(Process, number(0, TICKETS))

    def goes_first(self, p: Term[Process], q: Term[Process]) -> Bool:
        """Of two that have tickets."""
        lower = self.ticket[p] < self.ticket[q]
        return lower | ((self.ticket[p] == self.ticket[q]) & (p < q))

    @action
    def look(self, p: Term[Process]) -> None:
        """A process sees which number is the highest."""
        require(self.at[p] == At.home, "is at home")
        self.seen[p] = greatest(self.ticket[q] for q in Process)
        self.at[p] = At.choosing

    @action
    def take(self, p: Term[Process]) -> None:
        """It takes the next one, whatever happened since."""
        require(self.at[p] == At.choosing, "is choosing")
        require(self.seen[p] < TICKETS, "there are tickets left")
        self.ticket[p] = self.seen[p] + 1
        self.seen[p] = 0
        self.at[p] = At.waiting

    @action
    def enter(self, p: Term[Process]) -> None:
        """Nobody is choosing, and nobody with a ticket goes first."""
        require(self.at[p] == At.waiting, "is waiting")
        require(every(self.at[q] != At.choosing for q in Process), "nobody is choosing")
        others = every((self.ticket[q] == 0) | ~self.goes_first(q, p) for q in Process)
        require(others, "nobody goes first")
        self.at[p] = At.served

    @action
    def leave(self, p: Term[Process]) -> None:
        """The ticket is thrown away."""
        require(self.at[p] == At.served, "is served")
        self.ticket[p] = 0
        self.at[p] = At.home

    @final
    def out_of_tickets(self) -> Bool:
        """Somebody has seen the last number, and waits for ever."""
        return some((self.at[p] == At.choosing) & (self.seen[p] == TICKETS) for p in Process)

    @invariant
    def one_at_a_time(self) -> Bool:
        """Mutual exclusion."""
        return count(self.at[p] == At.served for p in Process) <= 1


class NobodyWaitsForTheChoosing(Bakery):
    """The bug: a process enters while another is choosing, which may come out with the same number, and go first."""

    @action
    def enter(self, p: Term[Process]) -> None:
        """Nobody with a ticket goes first."""
        require(self.at[p] == At.waiting, "is waiting")
        others = every((self.ticket[q] == 0) | ~self.goes_first(q, p) for q in Process)
        require(others, "nobody goes first")
        self.at[p] = At.served
