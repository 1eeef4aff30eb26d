"""Mistakes about the tasks of a tablet that moves (design document 000)."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.tablets.tablet_stages import Stage as TabletStage
from stagewright.machines.scylladb.views.view_building import Stage, Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, Life, ViewTask
from stagewright.machines.systems.cluster_views import BALANCER, LEADER, ClusterViews
from stagewright.machines.systems.tablet_views import Row, Tablet, TabletViews
from stagewright.spec import (
    Bool,
    BudgetName,
    Fairness,
    Term,
    action,
    choose,
    every,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
OPERATIONS = "design document 000, Tablet operations"
CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


@known_bug(
    "000-22",
    'design document 000: "we need the task information to create new adjusted tasks"',
    breaks=ViewBuilding.missing_rows_have_a_task,
    budgets={**CALM, ViewBuilding.failures: 0},
)
class TasksAreDeletedAtTheStart(ViewBuilding):
    """The tasks of the leaving replica were deleted when writes went to both; the coordinator kept in mind that one is
    to be made at the end, and called no view built meanwhile.
    """

    def _abort(self, leaving: Callable[[Term[Node]], Bool]) -> None:
        for t in Task:
            task = self.tasks[t]
            meant = some(leaving(n) & (self.replica[t] == n) for n in Node)
            task.life = choose(meant & (task.life == Life.normal), Life.dropped, task.life)

    def _is_owed(self, t: Term[Task]) -> Bool:
        return (self.tasks[t].life == Life.dropped) & self._is_of_leaving(t)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self) -> None:
        """The migration ends; no task is owed."""
        super().finish()
        require(~some(self._is_owed(t) for t in Task), "no task is owed")

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_owed(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The migration ends, and the task that is owed is created."""
        require(self._is_owed(t), "a task of the leaving replica was deleted")
        require(self._is_pending(pending), "a replica is pending")
        self._adopt()
        self._create(new, pending)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task, and no tablet is on its way."""
        super().mark_view_built()
        require(self.stage == Stage.none, "the tablet is not in transition")


@known_bug(
    "000-23",
    OPERATIONS,
    breaks=ViewBuilding.aborted_tasks_are_of_tablets_in_transition,
    budgets=CALM,
)
class TasksAreRolledBackLater(ViewBuilding):
    """An operation that failed ended with a commit of its own; copies of its aborted tasks came in a later one."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert(self) -> None:
        """The old replicas stay."""
        self._stay()

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The coordinator finds an aborted task of a tablet at rest."""
        aborted = self.tasks[t].life == Life.aborted
        require(aborted & (self.stage == Stage.none), "an aborted task is left")
        require(self.replica[t] == n, "the task is the replica's")
        self._replace(t, new, n)


@known_bug(
    "000-24",
    'design document 000: "it\'s the coordinator responsibility to schedule only batch per tablet replica"',
    breaks=ViewBuilding.one_call_for_a_replica,
    budgets=CALM,
)
class CallsOfAbortedTasksDoNotCount(ViewBuilding):
    """A task was aborted while its call waited; the coordinator called the same worker for the task's copy."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, t: Term[Task], n: Term[Node]) -> None:
        """The coordinator sends a task to a worker that works for no other that is alive."""
        require(self.replica[t] == n, "the task is the replica's")
        require(self.stage == Stage.none, "the tablet is not in transition")
        called = some(
            self._is_called(u) & (self.replica[u] == n) & (self.tasks[u].life == Life.normal)
            for u in Task
        )
        require(~called, "replica is idle")
        self.tasks[t].send()


@known_bug(
    "000-25",
    'design document 000: "the tasks are aborted at the start of the operation"',
    breaks=ViewBuilding.tasks_under_way_are_aborted,
    budgets=CALM,
)
class TasksAreAbortedWhenReadsMove(ViewBuilding):
    """The leaving replica's tasks went on until the new one was read."""

    @ViewBuilding.stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=TOPOLOGY, fair=WEAK
    )
    def write_both(self) -> None:
        """The replicas are ready for writes."""

    @ViewBuilding.stage.step(Stage.streaming, Stage.cleanup, by=TOPOLOGY, fair=WEAK)
    def read_new(self) -> None:
        """All is streamed; from now on tasks of the leaving replica are aborted."""
        require(self.next <= self.base, "all is streamed")
        self._abort(lambda n: ~self.next.has(n))


ONE_MOVE: dict[BudgetName, int | None] = {
    TabletViews.splits: 0,
    TabletViews.repairs: 0,
    TabletViews.leader_changes: 0,
}


@known_bug(
    "000-26",
    OPERATIONS,
    breaks=TabletViews.aborted_tasks_are_of_tablets_in_transition,
    budgets=ONE_MOVE,
)
class NewTasksComeLater(TabletViews):
    """The migration ended with a commit of its own, and its tasks stayed aborted until a later one."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
        """The tablet is where it was to go."""
        self.tablets[t].finish()
        require(self.pending[t] == new, "the pending node")
        self.host[t] = new
        self.pending[t] = None
        self._replace_batches(t)

    @action(by=COORDINATOR, fair=WEAK)
    def create_new_task(self, t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator finds an aborted task of a tablet at rest."""
        aborted = self.tasks[t][k] == Life.aborted
        require(aborted & self._is_at_rest(t), "an aborted task is left")
        self.tasks[t][k] = Life.normal


@known_bug(
    "000-69",
    "design document 000: the worker can execute only one batch per shard",
    breaks=TabletViews.one_batch_on_a_shard,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 1, TabletViews.restarts: 0},
)
class AnotherBatchTakesThePlace(TabletViews):
    """A worker that was called for another task by a new coordinator left the batch that it had begun."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator has a task executed where its tablet is."""
        self._may_call(n, t, k)
        built = self.tasks[t][Type.build_range] == Life.absent
        require((k == Type.build_range) | built, "ranges are built first")
        self.batch[n].tablet = t
        self.batch[n].type = k
        self.batch[n].done = False
        self.batch[n].stale = False
        for r in Row:
            self.batch[n].rows.put(r, self._owner(Term.of(r)) == t)


@known_bug(
    "000-27",
    'design document 000: not "prematurely, before the writes are directed to the new replica"',
    breaks=TabletViews.batches_begin_at_rest,
    budgets=ONE_MOVE,
)
class BatchesBeginUntilWritesMove(TabletViews):
    """A tablet was taken to be in transition when its tasks were aborted, one stage after the transition began."""

    def _may_call(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        early = (TabletStage.none, TabletStage.allow_write_both_read_old)
        require(self.tasks[t][k] == Life.normal, "the task is alive")
        require(self.host[t] == n, "the tablet is on the node")
        require(self.tablets[t].stage.any_of(*early), "no task of the tablet is aborted")
        require(~self.called.has(n), "no call to the node is under way")
        self.called.add(n)


@known_bug(
    "000-28",
    'design document 000: "we need the task information to create new adjusted tasks"',
    breaks=TabletViews.missing_rows_have_a_task,
    budgets=ONE_MOVE,
)
class TheCoordinatorKeepsTasksInMind(TabletViews):
    """Tasks of a tablet that moves were deleted, and the coordinator remembered that they are to be made again."""

    owed = set_of(Tablet)

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Tablet]) -> None:
        """The replicas are ready for writes; the task of the leaving one is deleted."""
        kind = Type.build_range
        self.tablets[t].write_both()
        self.owed.put(t, self.tasks[t][kind] != Life.absent)
        self.tasks[t][kind] = Life.absent
        self._replace_batches(t)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
        """The migration ends, and the task that is owed is created."""
        self.tablets[t].finish()
        require(self.pending[t] == new, "the pending node")
        self.host[t] = new
        self.pending[t] = None
        owed = self.owed.has(t) | (self.tasks[t][Type.build_range] != Life.absent)
        self.tasks[t][Type.build_range] = choose(owed, Life.normal, Term.of(Life.absent))
        self.owed.discard(t)
        self._replace_batches(t)

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left, and no tablet is on its way."""
        super().mark_view_built()
        require(every(self._is_at_rest(Term.of(t)) for t in Tablet), "no tablet is in transition")


@known_bug(
    "001-46",
    "design document 001, stage streaming: the coordinator starts the stream",
    breaks=ClusterViews.rows_are_streamed_when_asked_for,
)
class ReplicasStreamUnasked(ClusterViews):
    """A pending replica streamed as soon as it had learned the stage."""

    @action(fair=WEAK)
    def stream(self, n: Term[Node]) -> None:
        """The pending replica gets the row."""
        self.views.stream(n)


@known_bug(
    "001-47",
    'design document 001: when not in the track, "there are no tablet transitions in the system"',
    breaks=ClusterViews.tablets_move_only_in_their_track,
    budgets={
        ClusterViews.requests: 0,
        ClusterViews.migrations: 1,
        ClusterViews.leader_changes: 0,
    },
)
class TheTrackIsLeftBeforeTheCleanup(ClusterViews):
    """A tablet that only has to be cleaned up counted as moved: the topology left the track while it was in transition."""

    @action(by=LEADER, fair=WEAK)
    def begin_cleanup(self) -> None:
        """Nobody uses the leaving replica any more, and the topology need not wait for the rest."""
        super().begin_cleanup()
        self._settle_where_it_went()


@known_bug(
    "000-67",
    'design document 000: the coordinator is "to react to following tablet operations"',
    breaks=ClusterViews.tablets_are_balanced_while_views_are_built,
    budgets={ClusterViews.requests: 0, ClusterViews.migrations: 1, ClusterViews.leader_changes: 0},
)
class BalancingWaitsForTheView(ClusterViews):
    """While a view is built, the load balancer moves no tablet."""

    @action(by=BALANCER, spends=ClusterViews.migrations)
    def start_balancing(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """No view is under way."""
        super().start_balancing(leaving, pending)
        require(self.views.status != ViewStatus.started, "no view is being built")


@known_bug(
    "000-68",
    'design document 000: the coordinator is "to react to following tablet operations"',
    breaks=ClusterViews.nodes_are_drained_while_views_are_built,
    budgets={ClusterViews.leader_changes: 0},
)
class DrainingWaitsForTheView(ClusterViews):
    """A node that wants to leave keeps its tablet until the view is built."""

    @action(by=BALANCER, fair=WEAK)
    def start_draining(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """No view is under way."""
        super().start_draining(leaving, pending)
        require(self.views.status != ViewStatus.started, "no view is being built")


BUGS = known_bugs_in(globals())
