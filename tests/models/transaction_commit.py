"""What a commit protocol is for, and that two-phase commit does it: TCommit of "Consensus on Transaction Commit"."""

from tests.models.two_phase_commit import Decision, Manager, TwoPhaseCommit

from stagewright.spec import (
    Bool,
    Machine,
    Term,
    action,
    every,
    final,
    one_of,
    per,
    refinement,
    require,
)


class TransactionCommit(Machine):
    """Resource managers that commit or abort together. No messages, no transaction manager."""

    decision = per(Manager, one_of(Decision, init=Decision.WORKING))

    @action
    def prepare(self, m: Term[Manager]) -> None:
        """A resource manager is ready to commit."""
        require(self.decision[m] == Decision.WORKING, "it is working")
        self.decision[m] = Decision.PREPARED

    @action
    def commit(self, m: Term[Manager]) -> None:
        """A resource manager commits, once all are prepared."""
        ready = every(
            self.decision[n].any_of(Decision.PREPARED, Decision.COMMITTED) for n in Manager
        )
        require(ready, "all are prepared")
        self.decision[m] = Decision.COMMITTED

    @action
    def abort(self, m: Term[Manager]) -> None:
        """A resource manager aborts, unless one has committed."""
        require(
            every(self.decision[n] != Decision.COMMITTED for n in Manager), "none has committed"
        )
        self.decision[m] = Decision.ABORTED

    @final
    def decided(self) -> Bool:
        """All have come to an end."""
        return every(self.decision[m].any_of(Decision.COMMITTED, Decision.ABORTED) for m in Manager)


@refinement()
def commits_transactions(protocol: TwoPhaseCommit, seen: TransactionCommit) -> None:
    """Two-phase commit is a way to commit transactions: what managers decide shows, messages do not."""
    for m in Manager:
        seen.decision[m] = protocol.decision[m]
