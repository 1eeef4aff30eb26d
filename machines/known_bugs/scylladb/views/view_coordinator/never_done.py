"""Mistakes put back into `ViewCoordinator`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_coordinator import (
    CLIENT,
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
)
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER
from stagewright.spec import Bool, NumberVar, Term, action, choose, number, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in


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


@known_bug(
    "000-43",
    "design document 000: the worker observes the group0 state to notice when tasks are aborted",
    breaks=ViewCoordinator.batches_end,
)
class TheNextCallEndsTheBatch(ViewCoordinator):
    """The worker looked whether the tasks of its batch were still stored when the next call came: with none to come, it
    stayed in the batch of a view that had been dropped.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The coordinator waits for the batch, or has a task for the shard."""
        waits = some((self.shard[other] == s) & self._waits(other) for other in Tablet)
        require(self.called.has(s) | waits, "a call comes, or waits")
        super().observe_deletion(s, t, b)

    def _waits(self, t: Term[Tablet]) -> Bool:
        """A task of the tablet is to be called for."""
        builds = some(self._is_to_build(v, t) for v in View)
        return builds | some(self.staging[b].has(t) for b in self.processed)


@known_bug(
    "000-234",
    "design document 000: a keyspace/view was dropped",
    breaks=(ViewCoordinator.views_are_built, "no deadlock"),
    sizes={Base: 1, View: 3, Tablet: 1, Shard: 1},
    budgets={
        ViewCoordinator.drops: 2,
        ViewCoordinator.staging_sstables: 0,
        ViewCoordinator.leader_changes: 0,
    },
)
class TheSecondDropEndsTheLoop(ViewCoordinator):
    """The coordinator's loop was started anew after an error once: the second view that was dropped under it ended it."""

    errors: NumberVar = number(0, 2)

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, which is an error to the loop."""
        super().drop_view(v)
        self.errors = choose(self.errors < 2, self.errors + 1, self.errors)

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The loop runs: it chooses a base table."""
        require(self.errors < 2, "the loop runs")
        super().choose_base(b)


@known_bug(
    "000-323",
    "design document 000: the worker observes the group0 state to notice when tasks are aborted",
    breaks=ViewCoordinator.batches_end,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class DeletedRangesAreNoticed(ViewCoordinator):
    """The worker looked which ranges of its batch had been deleted: a batch of staging sstables, whose task is of no view,
    stayed on its shard when the table had been dropped.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that no range of its batch is in group0 any more."""
        require(~self.batch[s].views.is_empty(), "the batch builds ranges")
        super().observe_deletion(s, t, b)


BUGS = known_bugs_in(globals())
