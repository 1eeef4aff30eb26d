"""A saga: a transaction over several services, each with a step that undoes its own.

After Garcia-Molina and Salem's "Sagas", with calls that are repeated when their answer is late.
"""

from __future__ import annotations

from enum import Enum, auto

import stagewright.spec as sw


class Service(sw.Entity, scope=3, ordered=True):
    """The services in the order in which they are called: say, reserve, charge, ship."""


class Entry(Enum):
    """What the coordinator's log says of a service."""

    open = auto()
    done = auto()
    undone = auto()


class Phase(Enum):
    """What the coordinator is at."""

    running = auto()
    undoing = auto()
    succeeded = auto()
    failed = auto()


COORDINATOR, SERVICE = sw.Actor("coordinator"), sw.Actor("service")


class Saga(sw.Machine):
    """The coordinator calls one service after the other; if one refuses, it undoes what was done, backwards."""

    repeats = sw.fault_budget(2, doc="calls whose answer is late, so that they are made again")

    phase: sw.OneVar[Phase] = sw.one_of(Phase, init=Phase.running)
    log = sw.per(Service, sw.one_of(Entry, init=Entry.open))
    effects = sw.per(Service, sw.number(0, 3))  # how many times a service has done it

    def is_next(self, s: sw.Term[Service]) -> sw.Bool:
        """Whether a service's turn has come."""
        before = sw.every(~(t < s) | (self.log[t] == Entry.done) for t in Service)
        return (self.phase == Phase.running) & (self.log[s] == Entry.open) & before

    @sw.action(by=SERVICE, fair=sw.Fairness.WEAK)
    def execute(self, s: sw.Term[Service]) -> None:
        """A service does what it is asked."""
        sw.require(self.is_next(s), "its turn has come")
        sw.require(self.effects[s] == 0, "it has not done it yet")
        self.effects[s] = 1

    @sw.action(by=SERVICE, spends=repeats)
    def execute_again(self, s: sw.Term[Service]) -> None:
        """The same call arrives once more: it has the same key, and changes nothing."""
        sw.require(self.is_next(s), "its turn has come")
        sw.require(self.effects[s] > 0, "it has done it")
        self.effects[s] = 1

    @sw.action(by=SERVICE)
    def refuse(self, s: sw.Term[Service]) -> None:
        """A service cannot do it, say for lack of money."""
        sw.require(self.is_next(s), "its turn has come")
        sw.require(self.effects[s] == 0, "it has not done it")
        self.phase = Phase.undoing

    @sw.action(by=COORDINATOR, fair=sw.Fairness.WEAK)
    def note(self, s: sw.Term[Service]) -> None:
        """The answer arrives: the coordinator writes it to its log."""
        sw.require(self.is_next(s), "its turn has come")
        sw.require(self.effects[s] > 0, "it has done it")
        self.log[s] = Entry.done

    @sw.action(by=COORDINATOR, fair=sw.Fairness.WEAK)
    def undo(self, s: sw.Term[Service]) -> None:
        """The last service that has done its part undoes it."""
        sw.require(self.phase == Phase.undoing, "the saga is undone")
        sw.require(self.log[s] == Entry.done, "it was done")
        later = sw.every(~(s < t) | (self.log[t] != Entry.done) for t in Service)
        sw.require(later, "what came later is undone")
        self.log[s] = Entry.undone
        self.effects[s] = 0

    @sw.action(by=COORDINATOR, fair=sw.Fairness.WEAK)
    def succeed(self) -> None:
        """All services have done their part."""
        sw.require(self.phase == Phase.running, "the saga runs")
        sw.require(sw.every(self.log[s] == Entry.done for s in Service), "all is done")
        self.phase = Phase.succeeded

    @sw.action(by=COORDINATOR, fair=sw.Fairness.WEAK)
    def fail(self) -> None:
        """Nothing is left to undo."""
        sw.require(self.phase == Phase.undoing, "the saga is undone")
        sw.require(sw.every(self.log[s] != Entry.done for s in Service), "nothing is done")
        self.phase = Phase.failed

    @sw.final
    def over(self) -> sw.Bool:
        return self.phase.any_of(Phase.succeeded, Phase.failed)

    @sw.invariant
    def nothing_happens_twice(self, s: sw.Term[Service]) -> sw.Bool:
        """No service does its part twice."""
        return self.effects[s] <= 1

    @sw.invariant
    def all_or_nothing(self, s: sw.Term[Service]) -> sw.Bool:
        """In the end, all services have done their part, or none has."""
        all_done = (self.phase == Phase.succeeded).implies(self.effects[s] == 1)
        return all_done & (self.phase == Phase.failed).implies(self.effects[s] == 0)

    @sw.liveness
    def every_saga_ends(self) -> sw.LeadsTo:
        return sw.leads_to(self.phase == Phase.running, self.over())


class ServiceWithoutKeys(Saga):
    """The bug: calls have no key, and a repeated one is a new one."""

    @sw.action(by=SERVICE, spends=Saga.repeats)
    def execute_again(self, s: sw.Term[Service]) -> None:
        """The same call arrives once more, and is taken for another one."""
        sw.require(self.is_next(s), "its turn has come")
        sw.require(self.effects[s] > 0, "it has done it")
        self.effects[s] = self.effects[s] + 1
