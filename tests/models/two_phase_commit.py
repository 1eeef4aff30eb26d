"""Two-phase commit with a set of messages, as in Lamport's "Consensus on Transaction Commit".

Known numbers of distinct states for 3, 5, 7 and 8 resource managers: 288, 8,832, 296,448, 1,745,408.
"""

from enum import Enum, auto

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    Term,
    action,
    always_reachable,
    every,
    final,
    flag,
    invariant,
    one_of,
    per,
    require,
    set_of,
)


class Manager(Entity, scope=3):
    """A resource manager."""


class Decision(Enum):
    """What one resource manager has come to."""

    WORKING = auto()
    PREPARED = auto()
    COMMITTED = auto()
    ABORTED = auto()


class TwoPhaseCommit(Machine):
    """Messages are never lost and never removed: having been sent is a set that only grows."""

    decision = per(Manager, one_of(Decision, init=Decision.WORKING))
    deciding: FlagVar = flag(init=True)
    prepared = set_of(Manager)
    prepared_sent = set_of(Manager)
    commit_sent: FlagVar = flag()
    abort_sent: FlagVar = flag()

    @action
    def hear_prepared(self, m: Term[Manager]) -> None:
        """The transaction manager receives a Prepared message."""
        require(self.deciding, "no decision has been taken")
        require(self.prepared_sent.has(m), "it has said that it is prepared")
        self.prepared.add(m)

    @action
    def commit(self) -> None:
        """The transaction manager commits."""
        require(self.deciding, "no decision has been taken")
        require(every(self.prepared.has(m) for m in Manager), "all are prepared")
        self.deciding = False
        self.commit_sent = True

    @action
    def abort(self) -> None:
        """The transaction manager aborts of its own accord."""
        require(self.deciding, "no decision has been taken")
        self.deciding = False
        self.abort_sent = True

    @action
    def prepare(self, m: Term[Manager]) -> None:
        """A resource manager prepares."""
        require(self.decision[m] == Decision.WORKING, "it is working")
        self.decision[m] = Decision.PREPARED
        self.prepared_sent.add(m)

    @action
    def choose_to_abort(self, m: Term[Manager]) -> None:
        """A resource manager aborts of its own accord."""
        require(self.decision[m] == Decision.WORKING, "it is working")
        self.decision[m] = Decision.ABORTED

    @action
    def hear_commit(self, m: Term[Manager]) -> None:
        """A resource manager is told to commit."""
        require(self.commit_sent, "commit was sent")
        self.decision[m] = Decision.COMMITTED

    @action
    def hear_abort(self, m: Term[Manager]) -> None:
        """A resource manager is told to abort."""
        require(self.abort_sent, "abort was sent")
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

    @always_reachable
    def an_end(self) -> Bool:
        """All can come to an end."""
        return every(self.decision[m].any_of(Decision.COMMITTED, Decision.ABORTED) for m in Manager)
