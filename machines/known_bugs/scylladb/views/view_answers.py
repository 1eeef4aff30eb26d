"""Mistakes by which a worker answers before its task is done, or does again what it has answered (design document 000)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import REPLICAS, Task, ViewBuilding
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import COORDINATOR, WORKER, ViewTask
from stagewright.machines.scylladb.views.view_worker import WEAK, View, ViewWorker
from stagewright.machines.systems.tablet_views import Row, TabletViews
from stagewright.spec import SetVar, Term, action, choose, observed, require, set_of
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STORED = "design document 000: group0 state stores only tasks that haven't been completed yet"


@known_bug(
    "000-99",
    STORED,
    breaks=ViewBuilding.missing_rows_have_a_task,
    budgets={
        ViewTask.lost_calls: 0,
        ViewTask.leader_changes: 0,
        ViewTask.restarts: 0,
        ViewBuilding.migrations: 0,
        ViewBuilding.failures: 0,
    },
)
class TasksEndBeforeTheirUpdates(ViewBuilding):
    """A worker answered when it had read its replica, with view updates on their way that no task stood for any more:
    the coordinator waited for them before it called the view built, and nobody would have sent them again.
    """

    on_the_way: SetVar[Node] = observed(set_of(Node), of=REPLICAS)  # updates of which replicas

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, t: Term[Task], n: Term[Node]) -> None:
        """The batch has read its replica, and sent the updates."""
        require(self.replica[t] == n, "the task is the replica's")
        self.tasks[t].finish()
        self.on_the_way.put(n, self.base.has(n) & self.replicas.has(n))

    @action(by=REPLICAS, fair=WEAK)
    def update_view(self, n: Term[Node]) -> None:
        """The updates arrive."""
        require(self.on_the_way.has(n), "updates are on their way")
        self.on_the_way.discard(n)
        self.view.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task any more, and no update is on its way."""
        super().mark_view_built()
        require(self.on_the_way.is_empty(), "no update is on its way")


@known_bug(
    "000-100",
    STORED,
    breaks=TabletViews.missing_rows_have_a_task,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagingTasksEndBeforeTheirUpdates(TabletViews):
    """The same of a worker that had moved what was staged to the base directory, and had not updated the view yet."""

    on_the_way: SetVar[Row] = set_of(Row)  # rows of which the view gets updates

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, n: Term[Node]) -> None:
        """The worker has read its replica, and sent the updates."""
        batch = self.batch[n]
        require(batch.tablet.is_some() & ~batch.done, "a batch is executed")
        batch.done = True
        processes = batch.type == Type.process_staging
        for r in Row:
            base, staged = self.base[n].has(r), self.staged[n].has(r)
            read = batch.rows.has(r) & choose(processes, staged, base)
            paired = self.host[self._owner(Term.of(r))] == n
            sent = read & paired & ~self.view.has(r)
            later = sent & processes
            self.on_the_way.put(r, self.on_the_way.has(r) | later)
            self.view.put(r, self.view.has(r) | (sent & ~later))
            self.base[n].put(r, base | (read & processes))
            self.staged[n].put(r, staged & ~(read & processes))

    @action(by=WORKER, fair=WEAK)
    def update_view(self) -> None:
        """The updates arrive."""
        require(~self.on_the_way.is_empty(), "updates are on their way")
        self.view = self.view | self.on_the_way
        self.on_the_way = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left, and no update is on its way."""
        super().mark_view_built()
        require(self.on_the_way.is_empty(), "no update is on its way")


@known_bug(
    "000-101",
    "design document 000: the worker will immediately response that those tasks were completed",
    breaks=ViewWorker.completed_tasks_are_not_executed_again,
)
class WhatIsToBeRepeatedStaysSo(ViewWorker):
    """A worker that restarts finds which tasks it had finished, and that they are to be executed once more: it executed
    them at every call, however often it had done so since.
    """

    to_repeat: SetVar[View] = set_of(View)

    @action(by=WORKER, spends=ViewWorker.restarts)
    def restart(self) -> None:
        """The worker's node restarts."""
        self.to_repeat = self.to_repeat | self.completed
        super().restart()

    @action(by=WORKER, fair=WEAK)
    def start_batch(self) -> None:
        """None is completed, unless it is to be repeated."""
        require(~self.asked.is_empty(), "a call is under way")
        completed = self.asked & self.completed
        require(completed <= self.to_repeat, "none is completed, unless it is to be repeated")
        require(~self._executes(), "no batch is executed")
        require(self.asked <= self.tasks, "every id is found in group0")
        require(self.asked <= self.flushed_views, "the table was flushed for the views")
        self.batch = self.asked


BUGS = known_bugs_in(globals())
