"""Mistakes by which a task, a row or a view waits for what design document 000 does not make it wait for."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import CLIENT, Stage, Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import (
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
)
from stagewright.machines.scylladb.views.view_destinations import (
    Sstable as StagedRow,
    View as RepairedView,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_staging import ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.scylladb.views.view_updates import ViewUpdates
from stagewright.machines.scylladb.views.view_wakeups import GROUP0, Loop, Registrator, ViewWakeups
from stagewright.machines.scylladb.views.view_worker import View as WorkerView, ViewWorker
from stagewright.machines.systems.tablet_views import Row, Tablet as MovingTablet, TabletViews
from stagewright.spec import BudgetName, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"
CREATED = "design document 000: tasks are created when a view or index is created"
BUILT = "design document 000, Schema: once the view is built, an entry is created"
CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


@known_bug(
    "000-70",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.shards_process_staging_at_once,
    sizes={Base: 1, View: 1},
    budgets={ViewCoordinator.staging_sstables: 2},
)
class OneStagingBatchInTheCluster(ViewCoordinator):
    """Ranges were built by all shards at once, and staging sstables processed by one after the other."""

    @action(by=COORDINATOR, fair=WEAK)
    def send_process_staging(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """A shard gets the process_staging tasks of one tablet when no shard has a batch."""
        super().send_process_staging(s, t, b)
        require(every(self.batch[o].tablet.is_none() for o in Shard), "no shard has a batch")


@known_bug(
    "000-71",
    REMOVED,
    breaks=ViewCoordinator.finished_tasks_are_removed_at_any_time,
    sizes={Base: 1, View: 1},
)
class RemovalWaitsForTheSlowestShard(ViewCoordinator):
    """Finished tasks were removed when all shards that had been called had answered: one long batch kept the others idle."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """Every worker has answered: the coordinator removes the batch's tasks from group0."""
        answered = every(self.batch[o].tablet.is_none() | self.batch[o].done for o in Shard)
        require(answered, "every shard has answered")
        super().remove_finished(s, t, b)


@known_bug(
    "000-72",
    BUILT,
    breaks=ViewCoordinator.views_are_built_one_by_one,
    sizes={Base: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class ViewsAreMarkedWithTheirTable(ViewCoordinator):
    """The views of a table were marked as built together, when the table had no task: the first one waited for any that
    was created meanwhile.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task, and neither has another one of its table."""
        super().mark_view_built(v)
        left = some((self.table[v] == b) & self._has_to_build(b) for b in Base)
        require(~left, "its table has no task")


@known_bug("000-73", REMOVED, breaks=ViewWorker.finished_tasks_are_removed_at_any_time)
class RemovalWaitsForTheCall(ViewWorker):
    """Finished tasks were removed while no call was under way, which for a large tablet takes hours."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The coordinator, which waits for no answer, removes the finished tasks."""
        require(self.asked.is_empty(), "no call is under way")
        super().remove_finished()


@known_bug("000-74", BUILT, breaks=ViewWorker.views_are_built_one_by_one)
class ViewsAreMarkedWhenNoTaskIsLeft(ViewWorker):
    """A view whose task was removed was marked as built when no other view had a task for the tablet."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[WorkerView]) -> None:
        """No view has a task any more."""
        require(self.tasks.is_empty(), "no view has a task")
        super().mark_view_built(v)


@known_bug(
    "000-75",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ViewTask.tasks_are_aborted_at_any_time,
)
class AbortsWaitForTheAnswer(ViewTask):
    """A task for which the coordinator had called was aborted when the worker had answered."""

    @ViewTask.life.step(Life.normal, Life.aborted, by=TOPOLOGY, spends=ViewTask.aborts)
    def abort(self) -> None:
        """A tablet operation sets the aborted flag of a task that nobody works on."""
        require(self.call == Call.none, "no call is under way")


@known_bug(
    "000-76",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewTask.tasks_are_deleted_at_any_time,
)
class DeletionsWaitForTheWorker(ViewTask):
    """The task of a view that is dropped was deleted when its worker did not execute it."""

    @ViewTask.life.step((Life.normal, Life.aborted), Life.dropped, spends=ViewTask.deletions)
    def drop(self) -> None:
        """The view is dropped, and its task, which is not executed."""
        require(self.work != Work.executing, "it is not executed")


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
    "000-80",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=TabletViews.tables_are_repaired_while_views_are_built,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class RepairsWaitForTheBatch(TabletViews):
    """A repair gave a replica no row while its worker executed a batch."""

    @action(by=TOPOLOGY, spends=TabletViews.repairs)
    def repair(self, r: Term[Row], n: Term[Node]) -> None:
        """A repair brings a row to a replica whose worker is idle."""
        super().repair(r, n)
        require(self.batch[n].tablet.is_none(), "the worker has no batch")


@known_bug(
    "000-81",
    "design document 000: only one batch per tablet replica",
    breaks=TabletViews.each_tablet_is_worked_on,
    budgets={TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class BuildingRestsWhileATabletMoves(TabletViews):
    """While one tablet of the table moved, no task of any was sent."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self, n: Term[Node], t: Term[MovingTablet], k: Term[Type]) -> None:
        """The coordinator has a task executed while no tablet is in transition."""
        super().send(n, t, k)
        rest = every(self._is_at_rest(Term.of(o)) for o in MovingTablet)
        require(rest, "no tablet is in transition")


@known_bug(
    "000-82",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.sstables_are_registered_at_any_time,
)
class PendingReplicasRegisterNothing(ViewStaging):
    """What was streamed to a pending replica was registered when the tablet had arrived: no task stood for it meanwhile."""

    @action(by=WORKER, fair=WEAK)
    def begin_registering(self) -> None:
        """The registrator takes what there is to register of a tablet at rest."""
        self._is_at_rest()
        super().begin_registering()


@known_bug("000-83", CREATED, breaks=ViewDestinations.views_are_created_at_any_time)
class CreatingWaitsForStagedRows(ViewDestinations):
    """CREATE MATERIALIZED VIEW waited until no sstable of the table was in the staging directory."""

    @action(by=CLIENT)
    def create_view(self, v: Term[RepairedView]) -> None:
        """A view is created of a table without staging sstables."""
        require(~some(self._waits_anywhere(s) for s in StagedRow), "nothing is staged")
        super().create_view(v)


@known_bug(
    "000-84",
    'design document 000: build_range is to "generate view updates from the tablet replica"',
    breaks=ViewUpdates.rows_are_deleted_while_views_are_built,
)
class DeletionsWaitForTheBatch(ViewUpdates):
    """A row was not deleted between its being read by a batch and the update that the batch made of it."""

    @action(by=CLIENT)
    def delete(self) -> None:
        """The base row is deleted, while no batch has read it."""
        super().delete()
        require(self.work != Work.executing, "no batch is executed")


@known_bug("000-85", CREATED, breaks=ViewUpdates.views_are_created_at_any_time)
class ViewsAreOfEmptyTables(ViewUpdates):
    """A view was created of a table without rows."""

    @action(by=CLIENT)
    def create_view(self) -> None:
        """A view is created of an empty table."""
        require(self.value.is_none(), "there is no row")
        super().create_view()


@known_bug(
    "000-86",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.sstables_are_queued_at_any_time,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0, ViewWakeups.creations: 0},
)
class QueueingWaitsForGroup0(ViewWakeups):
    """Whoever wrote a staging sstable waited until the command about the one before was applied."""

    @action(by=WORKER, spends=ViewWakeups.sstables)
    def queue_sstable(self) -> None:
        """A staging sstable is queued while none is being registered."""
        require(~self.taken, "none is being registered")
        super().queue_sstable()


@known_bug(
    "000-87",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewWakeups.tasks_are_created_at_any_time,
    budgets={ViewWakeups.batches: 0, ViewWakeups.changes: 0, ViewWakeups.sstables: 0},
)
class TasksAreCreatedWhenTheLoopSleeps(ViewWakeups):
    """Tasks were created only while the coordinator waited for them, so that no wake-up could be lost."""

    @action(by=GROUP0, spends=ViewWakeups.creations)
    def create_task(self) -> None:
        """A task is stored while the loop waits."""
        require(self.loop == Loop.asleep, "the loop waits")
        super().create_task()


GROWING: dict[BudgetName, int | None] = {
    ViewBuilding.migrations: 0,
    ViewBuilding.failures: 0,
    ViewBuilding.replica_changes: 2,
    **CALM,
}


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
    "000-187",
    "design document 000: a new coordinator will send an RPC with the same view building tasks",
    breaks=ViewTask.tasks_are_called_for_whoever_did_before,
    budgets={ViewTask.restarts: 0, ViewTask.lost_calls: 0},
)
class NewLeadersWaitForTheOldBatch(ViewTask):
    """A new coordinator called for no task that its predecessor had called for, until the worker was through."""

    @action(by=COORDINATOR, fair=WEAK)
    def send(self) -> None:
        """The coordinator calls for a task that nobody executes."""
        super().send()
        require(self.work != Work.executing, "it is not executed")


@known_bug(
    "000-188",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewWakeups.the_coordinator_waits_for_no_call,
)
class TheLoopWaitsForItsCall(ViewWakeups):
    """The loop called one worker, and looked for nothing else until that had answered and its tasks were removed."""

    @ViewWakeups.loop.step(Loop.drowsy, Loop.awake, by=COORDINATOR, fair=WEAK)
    def look_anew(self) -> None:
        """Something has happened in the meantime, and no call is under way."""
        require(self.news & (self.call == Work.none), "something has happened")


@known_bug(
    "000-189",
    "design document 000: tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.what_is_taken_gets_a_task,
    budgets={ViewWakeups.batches: 0, ViewWakeups.creations: 0},
)
class FailedCommandsAreLogged(ViewWakeups):
    """A command of the registrator failed, as commands of group0 may, which was logged; the sstables that it was about were in
    no queue any more, and no task was ever created for them.
    """

    @ViewWakeups.registrator.step(Registrator.adding, Registrator.awake, by=GROUP0)
    def fail_to_add(self) -> None:
        """The command is not applied, and the registrator goes on."""
        self.taken = False


BUGS = known_bugs_in(globals())
