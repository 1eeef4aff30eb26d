"""Mistakes put back into `ViewBuilding`: what goes wrong."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import (
    CLIENT,
    REPLICAS,
    WEAK,
    Stage,
    Task,
    ViewBuilding,
)
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.spec import (
    Bool,
    BudgetName,
    SetVar,
    Term,
    action,
    choose,
    observed,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

STORED = "design document 000: group0 state stores only tasks that haven't been completed yet"
CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}
OPERATIONS = "design document 000, Tablet operations"
ROLLBACK = "design document 000, In case of failure, new copies of aborted tasks are created during rollback"
EACH_TASK = (
    "design document 000, Tablet operations: a new task is created for each that was aborted"
)
BUILT = "design document 000, Schema: once the view is built, an entry is created"
TWO_REPLICAS = {
    ViewBuilding.replica_changes: 1,
    ViewBuilding.migrations: 0,
    ViewBuilding.failures: 0,
    ViewTask.lost_calls: 0,
}
LOCALLY = "design document 000: each view building worker keeps track of finished tasks locally"


@known_bug(
    "000-6",
    "design document 000, View building worker",
    breaks=ViewBuilding.one_batch_on_a_shard,
    budgets={ViewTask.lost_calls: 0, ViewTask.leader_changes: 0, ViewTask.restarts: 0},
)
class OneBatchIsLeftToTheCoordinator(ViewBuilding):
    """The worker starts a batch for whatever call comes, as the text has it: while a task is executed that was
    aborted meanwhile, the coordinator calls for the one that has taken its place.
    """

    def _has_no_batch(self, t: Term[Task], n: Term[Node]) -> None:
        require(self.replica[t] == n, "the task is the replica's")


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


@known_bug(
    "000-90",
    EACH_TASK,
    breaks=ViewBuilding.new_tasks_take_the_place_of_others,
    budgets=CALM,
)
class EveryMoveMakesATask(ViewBuilding):
    """A tablet that moved while a view was built got a task on its new replica, also where the old one's was finished and
    removed: the whole tablet was read again after each move.
    """

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_new_task(self, new: Term[Task], pending: Term[Node]) -> None:
        """A view is being built: the new replica gets a task."""
        concerned = some(self.is_stored(t) & (self._is_of_leaving(t) | self._grows()) for t in Task)
        require(~concerned & (self.status == ViewStatus.started), "no task to adjust")
        require(self._is_pending(pending), "a replica is pending")
        self._adopt()
        self._create(new, pending)


@known_bug("000-94", BUILT, breaks=ViewBuilding.built_views_stay_built, budgets=CALM)
class AMoveStartsTheView(ViewBuilding):
    """A view was STARTED again when its tablet had moved, until the coordinator found that it has no task."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas, and the view is looked at again."""
        super().finish()
        built = self.status == ViewStatus.success
        self.status = choose(built, ViewStatus.started, self.status)


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
    "000-106",
    "design document 000: the coordinator's responsibility to schedule only one batch per tablet replica",
    breaks=ViewBuilding.one_call_for_a_replica,
)
class ReplicasAreIdleWhenTheyHaveBegun(ViewBuilding):
    """A call that waits for its result was not counted: the coordinator called for another task of the replica."""

    def _is_called(self, t: Term[Task]) -> Bool:
        return self.tasks[t].call == Call.sent


@known_bug(
    "000-171",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewBuilding.built_views_get_their_entry,
    budgets={**CALM, ViewBuilding.failures: 0},
)
class ViewsWithoutTasksAreTakenForDropped(ViewBuilding):
    """Of a dropped view no task is stored: a view whose last task was removed was taken for one, and got no entry."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task any more: it is forgotten."""
        require(self.status == ViewStatus.started, "there is a view")
        require(~some(self.is_stored(t) for t in Task), "it has no task")
        self.status = ViewStatus.dropped


@known_bug(
    "000-205",
    "design document 000, Tablet operations: aborted are tasks on the source replica, or on abandoning replicas",
    breaks=ViewBuilding.tasks_of_replicas_that_stay_are_kept,
    sizes={Task: 3},
    budgets={
        **CALM,
        ViewBuilding.replica_changes: 1,
        ViewBuilding.migrations: 0,
        ViewBuilding.failures: 0,
    },
)
class EveryTaskOfTheTabletIsAborted(ViewBuilding):
    """The start of any operation aborted all tasks of the tablet: a keyspace that got a replica more had the old one, which
    stays, read anew from its beginning.
    """

    @action(by=TOPOLOGY, spends=ViewBuilding.replica_changes)
    def add_replica(self, pending: Term[Node]) -> None:
        """The keyspace's RF grows: the tablet's tasks are aborted."""
        super().add_replica(pending)
        self._abort(self.replicas.has)

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_copy(  # type: ignore[override]  # for another task, too
        self,
        t: Term[Task],
        new: Term[Task],
        pending: Term[Node],
        again: Term[Task],
        n: Term[Node],
    ) -> None:
        """The old replica's task is replaced by a duplicate, and the new one gets a copy of it."""
        require(self.is_stored(t) & (self.replica[t] == n), "the view has a task")
        require(self._is_pending(pending) & self._grows(), "a replica is pending, none is leaving")
        require((new != t) & (new != again), "another id is new")
        self._adopt()
        self._create(new, pending)
        self._replace(t, again, n)


@known_bug(
    "000-215",
    "design document 000: in the first case we simply delete relevant view building tasks",
    breaks=ViewBuilding.dropped_views_have_no_tasks,
    budgets={
        **CALM,
        ViewBuilding.drops: 1,
        ViewBuilding.replica_changes: 1,
        ViewBuilding.migrations: 0,
        ViewBuilding.failures: 0,
    },
)
class OneTaskIsDroppedWithItsView(ViewBuilding):
    """With a view the task of one replica was deleted, and those of the others left."""

    @action(by=CLIENT, spends=ViewBuilding.drops)
    def drop_view(self, n: Term[Node]) -> None:  # type: ignore[override]  # of one replica
        """The view is dropped, and a replica's task."""
        there = self.status.any_of(ViewStatus.started, ViewStatus.success)
        require(there & self.replicas.has(n), "there is a view, and a replica")
        self.status = ViewStatus.dropped
        for t in Task:
            deleted = self.is_stored(t) & (self.replica[t] == n)
            self.tasks[t].life = choose(deleted, Life.dropped, self.tasks[t].life)


@known_bug(
    "000-216",
    ROLLBACK,
    breaks=ViewBuilding.tasks_are_of_replicas,
    sizes={Task: 3},
    budgets={**CALM, ViewBuilding.replica_changes: 1, ViewBuilding.migrations: 0},
)
class FailedReplicasGetATask(ViewBuilding):
    """The task of a new replica was created at the end of the operation, also where that had failed."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert_with_copy(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The old replicas stay, and the pending one gets its task."""
        require(self.is_stored(t), "the view has a task")
        require(self._is_pending(pending) & self._grows(), "a replica is pending, none is leaving")
        self._stay()
        self._create(new, pending)


@known_bug(
    "000-231",
    "design document 000, RPC: the handler attaches to the tasks and waits for the result",
    breaks="tasks.work_goes_on_for_whoever_asks",
    budgets={**TWO_REPLICAS, ViewTask.restarts: 0},
)
class NewLeadersTakeOneOfTwoBatches(ViewBuilding):
    """A coordinator that took over found the batches of two replicas, where its list had one for a tablet: it gave both up."""

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: what both replicas execute is given up."""
        super().change_leader()
        both = some(
            (t != u)
            & (self.tasks[t].work == Work.executing)
            & (self.tasks[u].work == Work.executing)
            for t in Task
            for u in Task
        )
        for t in Task:
            given_up = both & (self.tasks[t].work == Work.executing)
            self.tasks[t].work = choose(given_up, Work.none, self.tasks[t].work)


@known_bug(
    "000-232",
    LOCALLY,
    breaks=ViewBuilding.workers_forget_their_own_tasks_alone,
    budgets={**TWO_REPLICAS, ViewTask.leader_changes: 0},
)
class OneRestartIsTakenForAll(ViewBuilding):
    """The list of completed tasks was of the tablet: where the node of one replica restarted, the other one began anew, too."""

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self, n: Term[Node]) -> None:
        """A node restarts, and what the tablet's workers know is lost."""
        known = some((self.replica[t] == n) & (self.tasks[t].work != Work.none) for t in Task)
        require(known, "the worker knows of a task")
        for t in Task:
            task = self.tasks[t]
            task.forgotten = task.forgotten | (task.work != Work.none)
            task.work = Work.none


@known_bug(
    "000-242",
    'design document 000: "Each task is associated with particular tablet replica"',
    breaks=ViewBuilding.one_task_for_a_replica,
    budgets={ViewBuilding.migrations: 0, ViewBuilding.failures: 0, ViewTask.lost_calls: 0},
)
class TasksAreCreatedAgain(ViewBuilding):
    """CREATE that is sent again, as its answer was lost, creates a second task of a replica that waits for its first."""

    @action(by=COORDINATOR)
    def create_again(self, t: Term[Task], u: Term[Task], n: Term[Node]) -> None:
        """Another task of a replica whose task is not sent yet."""
        waits = self.tasks[t].life == Life.normal
        require((t != u) & (self.replica[t] == n) & waits, "the replica has a task")
        self._create(u, n)


@known_bug(
    "V04",
    "scylladb #26691",
    breaks=(ViewBuilding.aborted_tasks_are_of_tablets_in_transition, ViewBuilding.views_are_built),
    budgets={ViewTask.lost_calls: 0, ViewTask.leader_changes: 0, ViewTask.restarts: 0},
)
class RollbackOfThePendingReplica(ViewBuilding):
    """A migration that is undone rolls back the tasks of the pending replica, which has none. Those of the
    leaving replica stay aborted, and the view is never built.
    """

    def _is_rolled_back(self, t: Term[Task]) -> Bool:
        of_pending = some(self._is_pending(n) & (self.replica[t] == n) for n in Node)
        return (self.tasks[t].life == Life.aborted) & of_pending


@known_bug("000-281", STORED, breaks=ViewBuilding.built_views_have_no_task, budgets=CALM)
class AnsweredViewsAreBuilt(ViewBuilding):
    """A coordinator marked a view built when all its tasks were answered, and not when they were removed: a migration
    that began in between had a task of a built view to move.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task that is not known to be finished."""
        require(self.status == ViewStatus.started, "the view is being built")

        def is_finished(t: Term[Task]) -> Bool:
            task = self.tasks[t]
            return (task.call == Call.answered) & (task.life == Life.normal)

        left = some(self.is_stored(t) & ~is_finished(t) for t in Task)
        require(~left, "it has no other task")
        self.status = ViewStatus.success


@known_bug(
    "000-346",
    "design document 000: in case of RF decrease tasks on abandoning replicas are aborted",
    breaks=ViewBuilding.new_tasks_take_the_place_of_others,
    sizes={Task: 3},
    budgets={ViewBuilding.replica_changes: 2, ViewBuilding.migrations: 0, **CALM},
)
class AbandonedTasksAreTakenOver(ViewBuilding):
    """The task of an abandoned replica was taken for one that had moved: the replica that stayed, and had built its part, got
    another.
    """

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_heir(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The RF has shrunk: the task of the replica that is abandoned becomes one of a replica that stays."""
        require(self._is_of_leaving(t), "the task is the leaving replica's")
        require(self.next <= self.replicas, "no replica is pending")
        require(self.next.has(n), "the other one stays")
        idle = ~some(self.is_stored(u) & (self.replica[u] == n) for u in Task)
        require(idle, "it has no task")
        self._adopt()
        self._replace(t, new, n)


BUGS = known_bugs_in(globals())
