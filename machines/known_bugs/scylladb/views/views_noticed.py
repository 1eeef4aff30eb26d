"""Mistakes by which a worker does not notice what group0 says, or forgets what it has done (design document 000)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_staging import Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    TOPOLOGY,
    WEAK,
    WORKER,
    Life,
    ViewTask,
)
from stagewright.machines.scylladb.views.view_worker import CLIENT, View, ViewWorker
from stagewright.machines.systems.tablet_views import TabletViews
from stagewright.spec import Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

OBSERVED = (
    "design document 000: the worker observes the group0 state to notice when tasks are aborted"
)


@known_bug(
    "000-111",
    "design document 000: each view building worker keeps track of finished tasks locally",
    breaks=ViewWorker.finished_tasks_are_remembered,
)
class AnIdleWorkerForgets(ViewWorker):
    """A worker without a batch took its base table for left, and forgot which of its tasks were completed."""

    @action(by=WORKER, fair=WEAK)
    def leave_base(self) -> None:
        """No batch is executed: the worker's notes are cleared."""
        require(
            self.asked.is_empty() & ~self._executes(), "no call waits, and no batch is executed"
        )
        require(~(self.completed | self.flushed_views).is_empty(), "there are notes")
        self.completed = frozenset()
        self.flushed_views = frozenset()


@known_bug("000-113", OBSERVED, breaks=ViewTask.workers_notice_aborts)
class TheFlagIsNotLookedAt(ViewTask):
    """The worker noticed tasks that were deleted: those whose aborted flag was set it executed to the end."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The observer sees that the task is gone."""
        super().observe_abort()
        require(self.life != Life.aborted, "it is gone")


@known_bug("000-114", OBSERVED, breaks=ViewTask.workers_notice_deletions)
class DeletedTasksAreExecuted(ViewTask):
    """The worker looked for the aborted flag of the tasks that it finds in group0, and did not miss those that are gone."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The observer sees that the task is aborted."""
        super().observe_abort()
        require(self.life == Life.aborted, "it is aborted")


@known_bug(
    "000-115",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewWorker.dropped_views_are_not_built,
)
class TheEntryOutlivesItsView(ViewWorker):
    """A dropped view's entry stayed in system.built_views: another one of its name was built before it had a row."""

    @action(by=CLIENT, spends=ViewWorker.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped: its task is deleted."""
        require(self.created.has(v), "the view is there")
        self.dropped.add(v)
        self.tasks.discard(v)


@known_bug(
    "000-116",
    'design document 000: a new coordinator sends "the same view building tasks"',
    breaks=TabletViews.tasks_keep_their_ids,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0},
)
class ANewLeaderStoresTasksAnew(TabletViews):
    """A coordinator that took over gave the tasks new ids, so that no late request of the old one counts: what workers had
    executed for these was to be done again.
    """

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """All tasks get new ids."""
        super().change_leader()
        for n in Node:
            self.batch[n].stale = self.batch[n].stale | self.batch[n].tablet.is_some()


@known_bug("000-118", OBSERVED, breaks=ViewStaging.workers_notice_aborts)
class AbortedStagingTasksAreExecuted(ViewStaging):
    """A batch of staging sstables was executed to its end when its tasks were aborted: the node generated view updates from
    what it was about to remove.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self) -> None:
        """The worker sees that the batch's tasks are gone."""
        super().observe_abort()
        require(~self.aborted, "its tasks are gone")


@known_bug("000-119", OBSERVED, breaks=ViewWorker.workers_notice_deletions)
class DroppedViewsAreUpdatedToTheEnd(ViewWorker):
    """The worker looked which of its tasks had been deleted when it had executed them."""

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The task is completed."""
        super().observe_drop(v)
        require(self.completed.has(v), "it is completed")


@known_bug(
    "000-120",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewStaging.tablets_leave_at_any_time,
)
class TabletsLeaveWhenAllIsRegistered(ViewStaging):
    """A tablet was not moved while an sstable of it waited for its task to be stored."""

    @ViewStaging.standing.step(
        Standing.replica, Standing.leaving, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def leave(self) -> None:
        """The tablet migrates away when nothing waits to be registered."""
        require(self.to_register.is_empty(), "nothing is to be registered")
        self.aborted = self.started | (self.waiting > 0)
        self.started = False
        self.waiting = 0


BUGS = known_bugs_in(globals())
