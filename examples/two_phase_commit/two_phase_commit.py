"""Two-phase commit, as in Gray and Lamport's "Consensus on Transaction Commit": messages are a set that only grows.

Distinct states with 3, 4, 5 and 7 managers: 288, 1,568, 8,832 and 296,448, as TLC finds.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    Record,
    Term,
    action,
    every,
    final,
    flag,
    invariant,
    one_of,
    optional,
    per,
    require,
    set_of,
    some,
)


class Manager(Entity, scope=3):
    """A resource manager."""


class Decision(Enum):
    """What one resource manager has come to."""

    WORKING = auto()
    PREPARED = auto()
    COMMITTED = auto()
    ABORTED = auto()


class Kind(Enum):
    """What a message says."""

    PREPARED = auto()
    COMMIT = auto()
    ABORT = auto()


class Message(Record):
    """`sender` of those that a manager sends."""

    kind = one_of(Kind)
    sender = optional(Manager)


class TwoPhaseCommit(Machine):
    """A coordinator and its managers; messages are never lost and never removed."""

    decision = per(Manager, one_of(Decision, init=Decision.WORKING))
    deciding: FlagVar = flag(init=True)
    prepared = set_of(Manager)
    sent = set_of(Message)

    @action
    def hear_prepared(self, m: Term[Manager]) -> None:
        """The transaction manager hears that a manager is prepared."""
        require(self.deciding, "no decision has been taken")
        require(self.sent.has(Message(kind=Kind.PREPARED, sender=m)), "it has said so")
        self.prepared.add(m)

    @action
    def commit(self) -> None:
        """The transaction manager commits."""
        require(self.deciding, "no decision has been taken")
        require(every(self.prepared.has(m) for m in Manager), "all are prepared")
        self.deciding = False
        self.sent.add(Message(kind=Kind.COMMIT))

    @action
    def abort(self) -> None:
        """The transaction manager aborts of its own accord."""
        require(self.deciding, "no decision has been taken")
        self.deciding = False
        self.sent.add(Message(kind=Kind.ABORT))

    @action
    def prepare(self, m: Term[Manager]) -> None:
        """A resource manager prepares."""
        require(self.decision[m] == Decision.WORKING, "it is working")
        self.decision[m] = Decision.PREPARED
        self.sent.add(Message(kind=Kind.PREPARED, sender=m))

    @action
    def choose_to_abort(self, m: Term[Manager]) -> None:
        """A resource manager aborts of its own accord."""
        require(self.decision[m] == Decision.WORKING, "it is working")
        self.decision[m] = Decision.ABORTED

    @action
    def hear_commit(self, m: Term[Manager]) -> None:
        """A resource manager hears the decision."""
        require(self.sent.has(Message(kind=Kind.COMMIT)), "commit was sent")
        self.decision[m] = Decision.COMMITTED

    @action
    def hear_abort(self, m: Term[Manager]) -> None:
        """A resource manager hears the decision."""
        require(self.sent.has(Message(kind=Kind.ABORT)), "abort was sent")
        self.decision[m] = Decision.ABORTED

    @final
    def decided(self) -> Bool:
        """All have come to an end."""
        return every(self.decision[m].any_of(Decision.COMMITTED, Decision.ABORTED) for m in Manager)

    @invariant
    def consistent(self, m: Term[Manager], other: Term[Manager]) -> Bool:
        """No two managers decide differently."""
        both = (self.decision[m] == Decision.COMMITTED) & (self.decision[other] == Decision.ABORTED)
        return ~both

    @invariant
    def only_managers_are_prepared(self) -> Bool:
        """What the coordinator sends names nobody."""
        return every((m.kind == Kind.PREPARED) == m.sender.is_some() for m in self.sent)


class HastyCommit(TwoPhaseCommit):
    """The bug: the coordinator commits as soon as one manager is prepared."""

    @action
    def commit(self) -> None:
        """The transaction manager commits."""
        require(self.deciding, "no decision has been taken")
        require(some(self.prepared.has(m) for m in Manager), "one is prepared")
        self.deciding = False
        self.sent.add(Message(kind=Kind.COMMIT))
