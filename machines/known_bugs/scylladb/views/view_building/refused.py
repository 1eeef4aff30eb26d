"""Mistakes put back into `ViewBuilding`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import (
    CLIENT,
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
from stagewright.spec import BudgetName, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}
MARKED = "design document 000, Schema: once the view is built, an entry is created"
ABORTED = "design document 000, Tablet operations: it waits for no task that is aborted"
ROLLBACK = "design document 000, In case of failure, new copies of aborted tasks are created during rollback"
CREATED = "design document 000: tasks are created when a view or index is created"
GROWING: dict[BudgetName, int | None] = {
    ViewBuilding.migrations: 0,
    ViewBuilding.failures: 0,
    ViewBuilding.replica_changes: 2,
    **CALM,
}


@known_bug(
    "000-29",
    "design document 000: tasks are created when a view or index is created",
    breaks=ViewBuilding.views_are_created_at_any_time,
    budgets=CALM,
)
class CreatingWaitsForTheMigration(ViewBuilding):
    """CREATE MATERIALIZED VIEW waits until no tablet of its table moves."""

    @action(by=CLIENT)
    def create_view(self, t: Term[Task], n: Term[Node]) -> None:
        """A view is created of a table whose tablet is at rest."""
        require(self.stage == Stage.none, "the tablet is not in transition")
        super().create_view(t, n)


@known_bug(
    "000-30",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewBuilding.views_are_dropped_at_any_time,
    budgets={**CALM, ViewBuilding.drops: 1},
)
class DroppingWaitsForTheMigration(ViewBuilding):
    """DROP MATERIALIZED VIEW waits until no tablet of its table moves."""

    @action(by=CLIENT, spends=ViewBuilding.drops)
    def drop_view(self) -> None:
        """A view is dropped of a table whose tablet is at rest."""
        require(self.stage == Stage.none, "the tablet is not in transition")
        super().drop_view()


@known_bug(
    "000-31",
    'design document 000: the coordinator needs "to react to following tablet operations"',
    breaks=ViewBuilding.tablets_are_moved_at_any_time,
    budgets=CALM,
)
class MigrationsWaitForTheView(ViewBuilding):
    """No tablet of a table moves while a view of it is built."""

    @action(by=TOPOLOGY, spends=ViewBuilding.migrations)
    def migrate(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves a tablet of which no view is being built."""
        require(self.status != ViewStatus.started, "no view is built")
        super().migrate(leaving, pending)


@known_bug(
    "000-51",
    "design document 000: keyspace RF change / add_tablet_replica REST API",
    breaks=ViewBuilding.replicas_are_added_at_any_time,
    budgets={**CALM, ViewBuilding.replica_changes: 1},
)
class ReplicasAreAddedWhenNoViewIsBuilt(ViewBuilding):
    """The replication factor of a keyspace is not raised while a view is built."""

    @action(by=TOPOLOGY, spends=ViewBuilding.replica_changes)
    def add_replica(self, pending: Term[Node]) -> None:
        """A tablet of which no view is being built gets a replica more."""
        require(self.status != ViewStatus.started, "no view is built")
        super().add_replica(pending)


@known_bug(
    "000-52",
    "design document 000: in case of RF decrease, abort tasks on abandoning replicas",
    breaks=ViewBuilding.replicas_are_removed_at_any_time,
    budgets={**CALM, ViewBuilding.replica_changes: 2},
)
class ReplicasWithTasksStay(ViewBuilding):
    """A replica is not removed before its task is done."""

    @action(by=TOPOLOGY, spends=ViewBuilding.replica_changes)
    def remove_replica(self, leaving: Term[Node]) -> None:
        """A tablet loses a replica of which no view is being built."""
        require(self.status != ViewStatus.started, "no view is built")
        super().remove_replica(leaving)


@known_bug(
    "000-77",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewBuilding.aborts_wait_for_no_batch,
    budgets=CALM,
)
class OperationsWaitForTheAnswer(ViewBuilding):
    """A migration was begun at any time, and waited before its first step for the leaving replica's task, so that none had
    to be aborted.
    """

    @ViewBuilding.stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=TOPOLOGY, fair=WEAK
    )
    def write_both(self) -> None:
        """The replicas are ready for writes; the leaving one's worker has answered."""
        called = some(self._is_called(t) & self._is_of_leaving(t) for t in Task)
        require(~called, "no call is under way")
        self._abort(lambda n: ~self.next.has(n))


@known_bug(
    "000-78",
    "design document 000: only one batch per tablet replica",
    breaks=ViewBuilding.each_replica_works,
    budgets={
        **CALM,
        ViewBuilding.replica_changes: 1,
        ViewBuilding.migrations: 0,
        ViewBuilding.failures: 0,
    },
)
class OneReplicaAfterTheOther(ViewBuilding):
    """The replicas of a tablet built the view one after the other."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, t: Term[Task], n: Term[Node]) -> None:
        """The coordinator, which waits for no worker, sends a task to its replica's."""
        require(~some(self._is_called(u) for u in Task), "no call is under way")
        super().send(t, n)


@known_bug(
    "000-79",
    CREATED,
    breaks=ViewBuilding.views_are_created_on_two_at_any_time,
    sizes={Task: 3},
    budgets={**CALM, ViewBuilding.replica_changes: 2},
)
class TwoReplicasAreWaitedFor(ViewBuilding):
    """CREATE MATERIALIZED VIEW waited for a tablet in transition where the keyspace has several replicas."""

    @action(by=CLIENT)
    def create_view_on_two(
        self, t: Term[Task], u: Term[Task], n: Term[Node], m: Term[Node]
    ) -> None:
        """A view is created of a table whose tablet is at rest."""
        require(self.stage == Stage.none, "the tablet is not in transition")
        super().create_view_on_two(t, u, n, m)


@known_bug(
    "000-122",
    MARKED,
    breaks=ViewBuilding.views_are_built_while_their_tablet_moves,
    budgets=CALM,
)
class ViewsAreMarkedAtRest(ViewBuilding):
    """A view was marked as built when no tablet of its table was in transition, which for a large table may never be."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """The view has no task any more, and its tablet is at rest."""
        require(self.stage == Stage.none, "the tablet is not in transition")
        super().mark_view_built()


@known_bug(
    "000-123",
    "design document 000: in case of failure, new copies are created during rollback",
    breaks=ViewBuilding.operations_are_undone_at_any_time,
    budgets={**CALM, ViewBuilding.failures: 1},
)
class RollbackWaitsForTheAbort(ViewBuilding):
    """An operation that had failed was undone when the worker had left the batch of the task that was aborted."""

    @ViewBuilding.stage.step(
        (Stage.allow_write_both_read_old, Stage.write_both_read_old, Stage.streaming),
        Stage.cleanup_target,
        by=TOPOLOGY,
        spends=ViewBuilding.failures,
    )
    def give_up(self) -> None:
        """The operation failed, and nothing is executed for what was aborted."""
        executed = some(
            (self.tasks[t].life == Life.aborted) & (self.tasks[t].work == Work.executing)
            for t in Task
        )
        require(~executed, "no aborted task is executed")


@known_bug(
    "000-145",
    'design document 000: the coordinator needs "to react to following tablet operations"',
    breaks=ViewBuilding.tablets_are_moved_at_any_time,
    budgets=CALM,
)
class MigrationsWaitForTheRemoval(ViewBuilding):
    """No tablet moved between a worker's answer and the removal of its task, so that none was executed twice: with a batch
    every few milliseconds that was never.
    """

    @action(by=TOPOLOGY, spends=ViewBuilding.migrations)
    def migrate(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer moves a tablet of which no finished task is to be removed."""
        require(every(self.tasks[t].call != Call.answered for t in Task), "none is to be removed")
        super().migrate(leaving, pending)


@known_bug("000-146", ABORTED, breaks=ViewBuilding.streaming_waits_for_no_batch, budgets=CALM)
class StreamingWaitsForTheBatch(ViewBuilding):
    """Nothing was streamed while the leaving replica's worker executed a batch."""

    @ViewBuilding.stage.step(Stage.write_both_read_old, Stage.streaming, by=TOPOLOGY, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both replica sets, and no batch reads one of them."""
        require(every(self.tasks[t].work != Work.executing for t in Task), "no batch is executed")


@known_bug("000-147", ABORTED, breaks=ViewBuilding.cleanup_waits_for_no_batch, budgets=CALM)
class CleanupWaitsForTheBatch(ViewBuilding):
    """The leaving replica's rows were kept while its worker executed a batch, which was for nothing."""

    @ViewBuilding.stage.step(Stage.cleanup, Stage.end_migration, by=TOPOLOGY, fair=WEAK)
    def end(self) -> None:
        """The leaving replica, which no batch reads, has removed its rows."""
        require(every(self.tasks[t].work != Work.executing for t in Task), "no batch is executed")
        self.base = self.base & self.next


@known_bug(
    "000-148", ABORTED, breaks=ViewBuilding.operations_end_whatever_is_executed, budgets=CALM
)
class TheOldBatchEndsFirst(ViewBuilding):
    """An aborted task was replaced when its batch was over."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_task(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The leaving replica's task, which is not executed any more, gives way to its copy."""
        require(self.tasks[t].work != Work.executing, "it is not executed")
        super().finish_with_task(t, new, pending)


@known_bug(
    "000-149",
    "design document 000: only one batch per tablet replica",
    breaks=ViewBuilding.each_worker_starts_its_batch,
    budgets={
        **CALM,
        ViewBuilding.replica_changes: 1,
        ViewBuilding.migrations: 0,
        ViewBuilding.failures: 0,
    },
)
class OneWorkerAfterTheOther(ViewBuilding):
    """A worker that was called began when no other replica of the tablet was read."""

    @action(by=WORKER, fair=WEAK)
    def start(self, t: Term[Task], n: Term[Node]) -> None:
        """The replica's worker starts a batch, the only one."""
        require(every(self.tasks[u].work != Work.executing for u in Task), "no batch is executed")
        super().start(t, n)


@known_bug(
    "000-185",
    "design document 000, In case of RF increase: create tasks for new replica",
    breaks=ViewBuilding.replicas_are_added_whatever_is_executed,
    budgets=GROWING,
)
class NewReplicasWaitForTheOldOnes(ViewBuilding):
    """A keyspace got its new replica when the old one's batch was over, as its view rows were to be inherited."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_copy(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """The RF has grown, and no batch runs."""
        super().finish_with_copy(t, new, pending)
        require(self.tasks[t].work != Work.executing, "its batch is over")


@known_bug(
    "000-186",
    "design document 000, In case of RF decrease: abort tasks on abandoning replicas",
    breaks=ViewBuilding.replicas_are_abandoned_whatever_is_executed,
    sizes={Task: 3},
    budgets=GROWING,
)
class AbandonedReplicasAreWaitedFor(ViewBuilding):
    """A replica that was abandoned was kept until its worker had built what nobody needs any more."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_without_replica(self, t: Term[Task]) -> None:
        """The RF has shrunk, and the abandoned replica's batch is over."""
        super().finish_without_replica(t)
        require(self.tasks[t].work != Work.executing, "its batch is over")


@known_bug(
    "000-200",
    ROLLBACK,
    breaks=ViewBuilding.targets_are_cleaned_up_whatever_is_executed,
    budgets=CALM,
)
class TargetsAreKeptForTheBatch(ViewBuilding):
    """On the way back the pending replica was kept until the batch of the aborted task was over."""

    @ViewBuilding.stage.step(Stage.cleanup_target, Stage.revert_migration, by=TOPOLOGY, fair=WEAK)
    def revert(self) -> None:
        """The pending replica has removed its rows, and no batch runs."""
        require(~some(self.tasks[t].work == Work.executing for t in Task), "no batch runs")
        self.base = self.base & self.replicas


@known_bug(
    "000-201",
    ROLLBACK,
    breaks=ViewBuilding.rollbacks_end_whatever_is_executed,
    budgets=CALM,
)
class RollbacksEndWithTheBatch(ViewBuilding):
    """An aborted task was rolled back when its batch was over."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert_with_task(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The task's batch is over: its duplicate takes its place."""
        require(self.tasks[t].work != Work.executing, "its batch is over")
        super().finish_revert_with_task(t, new, n)


@known_bug(
    "000-268",
    ABORTED,
    breaks=ViewBuilding.replicas_are_left_whatever_is_executed,
)
class ReadsMoveWhenNoBatchRuns(ViewBuilding):
    """Reads went on at the old replica until no worker executed a batch, though the new one had all rows."""

    @ViewBuilding.stage.step(Stage.streaming, Stage.cleanup, by=TOPOLOGY, fair=WEAK)
    def read_new(self) -> None:
        """All is streamed, and no batch runs."""
        require(self.next <= self.base, "all is streamed")
        require(~some(self.tasks[t].work == Work.executing for t in Task), "no batch runs")


@known_bug(
    "000-269",
    ABORTED,
    breaks=ViewBuilding.operations_without_tasks_end_whatever_is_executed,
)
class OperationsWithoutTasksWaitForBatches(ViewBuilding):
    """A migration of a table whose view was dropped on the way ended when its worker had noticed it."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas; no task is concerned, and no batch runs."""
        super().finish()
        require(~some(self.tasks[t].work == Work.executing for t in Task), "no batch runs")


@known_bug(
    "000-270",
    ABORTED,
    breaks=ViewBuilding.rollbacks_without_tasks_end_whatever_is_executed,
)
class RollbacksWithoutTasksWaitForBatches(ViewBuilding):
    """A migration that was undone before it had aborted anything ended when the batch that went on was over."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_revert(self) -> None:
        """The old replicas stay; no task was aborted, and no batch runs."""
        super().finish_revert()
        require(~some(self.tasks[t].work == Work.executing for t in Task), "no batch runs")


@known_bug(
    "000-303", ABORTED, breaks=ViewBuilding.rows_are_streamed_whatever_is_executed, budgets=CALM
)
class RowsAreStreamedWhenNoBatchRuns(ViewBuilding):
    """The pending replica got no row while a worker executed a batch of the tablet."""

    @action(by=TOPOLOGY, fair=WEAK)
    def stream(self, n: Term[Node]) -> None:
        """The pending replica gets the row, and no batch reads it."""
        require(every(self.tasks[t].work != Work.executing for t in Task), "no batch is executed")
        super().stream(n)


@known_bug(
    "000-304",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewBuilding.batches_end_whatever_the_tablet_does,
    budgets=CALM,
)
class BatchesRestWhileTheTabletMoves(ViewBuilding):
    """A batch that ran when its tablet began to move was through when that was over."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, t: Term[Task], n: Term[Node]) -> None:
        """The batch has read its replica, and the tablet is at rest."""
        require(self.stage == Stage.none, "the tablet is not in transition")
        super().finish_batch(t, n)


BUGS = known_bugs_in(globals())
