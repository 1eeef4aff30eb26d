"""Mistakes that design document 000 invites in the view building coordinator."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import (
    WEAK,
    Base,
    Shard,
    Tablet,
    ViewCoordinator,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "000-8",
    "design document 000, Schema",
    breaks=ViewCoordinator.bases_are_left_when_done,
)
class ProcessedTableIsNotStored(ViewCoordinator):
    """The coordinator keeps in memory which base table it processes: a new one chooses another, in the midst."""

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        super().change_leader()
        self.processed = None


@known_bug(
    "000-9",
    "design document 000, Lifetime of a task",
    breaks=(ViewCoordinator.views_are_built, ViewCoordinator.batches_end),
)
class ResultsAreForTheCallerOnly(ViewCoordinator):
    """The worker answers the call that has started a batch, and no later one for tasks that it has completed: when
    the leader changes in between, they stay in group0 for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        super().attach(s, t, b)
        require(~self.batch[s].done, "the batch is executed")


@known_bug(
    "000-10",
    "design document 000, View building worker",
    breaks=(ViewCoordinator.views_are_built, ViewCoordinator.batches_end),
)
class DeletionsAreNotObserved(ViewCoordinator):
    """The worker does not look at group0 once a batch has begun: that of a table which was dropped stays on its shard,
    as nobody calls for it again, and no other batch comes.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        require(self.called.has(s), "a coordinator waits for it")
        super().observe_deletion(s, t, b)


BUGS = known_bugs_in(globals())
