"""Mistakes by which a view waits for a tablet that moves, or a tablet for a view, which design document 000 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import CLIENT, Stage, Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import (
    Migration,
    Replica,
    Sstable as StagedRow,
    View as BuiltView,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_staging import Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WEAK,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.systems.cluster_views import OPERATOR, ClusterViews
from stagewright.machines.systems.tablet_views import Tablet as MovingTablet, TabletViews
from stagewright.spec import BudgetName, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
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


ABORTED = "design document 000, Tablet operations: it waits for no task that is aborted"
MARKED = "design document 000, Schema: once the view is built, an entry is created"
REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"


@known_bug(
    "000-121",
    REMOVED,
    breaks=ViewTask.finished_tasks_are_removed_at_any_time,
)
class RemovalWaitsForLateRequests(ViewTask):
    """A finished task was removed when no request for it could arrive late: a tablet that moved before had it done again."""

    @ViewTask.life.step(Life.normal, Life.finished, by=COORDINATOR, fair=WEAK)
    def remove(self) -> None:
        """The coordinator removes a finished task for which no request is under way."""
        require(self.call == Call.answered, "the worker has answered that it is finished")
        require(self.late.is_empty(), "no request is under way")
        self.call = Call.none


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
    "000-124",
    "design document 000: in case of failure, new copies are created during rollback",
    breaks=ViewStaging.operations_are_rolled_back_at_any_time,
)
class TabletsComeBackWhenTheirBatchHasEnded(ViewStaging):
    """A migration that had failed was undone when the batch of its aborted tasks was over."""

    @ViewStaging.standing.step(Standing.leaving, Standing.replica, by=TOPOLOGY)
    def give_up_leaving(self) -> None:
        """The migration is undone at an idle worker."""
        require(self.batch == Work.none, "no batch is executed")
        self.waiting = choose(self.aborted, self._one_more(), self.waiting)
        self.aborted = False


@known_bug(
    "000-125",
    "design document 000: in case of failure, new copies are created during rollback",
    breaks=ViewStaging.migrations_to_the_node_are_given_up_at_any_time,
)
class PendingReplicasAreKeptForTheirTasks(ViewStaging):
    """A migration was not given up once a task was stored for what had been streamed: it had to succeed."""

    @ViewStaging.standing.step(Standing.pending, Standing.absent, by=TOPOLOGY)
    def give_up_coming(self) -> None:
        """The migration is undone, before a task was stored."""
        require(self.staging.is_empty(), "nothing is registered")
        self._clean_up()


@known_bug(
    "000-126",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewStaging.tasks_are_stored_at_any_time,
)
class CommandsWaitForTheTablet(ViewStaging):
    """The command that stores a task was not applied while its tablet left: its sstable had no task to be aborted, and none
    to come back.
    """

    @action(by=WORKER, fair=WEAK)
    def register(self) -> None:
        """The command is applied, of a tablet that does not leave."""
        require(self.standing != Standing.leaving, "the tablet does not leave")
        super().register()


@known_bug("000-127", MARKED, breaks=ViewDestinations.views_are_built_while_the_tablet_moves)
class ViewsOfMovingTabletsAreNotMarked(ViewDestinations):
    """A view whose ranges were built was marked when the tablet had moved."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[BuiltView]) -> None:
        """The view has no task left, and no tablet moves."""
        super().mark_view_built(v)
        require(self.migration != Migration.under_way, "the tablet is not in transition")


@known_bug(
    "000-128",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewDestinations.views_are_started_at_any_time,
)
class ViewsStartWhenNothingMoves(ViewDestinations):
    """No view was started while a tablet moved: what it streamed went to the normal directory, as for a view not started."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[BuiltView]) -> None:
        """The coordinator starts to build the view, at rest."""
        super().start_view(v)
        require(self.migration != Migration.under_way, "the tablet is not in transition")


@known_bug(
    "000-129",
    'design document 000: build_range is to "generate view updates from the tablet replica"',
    breaks=ViewDestinations.ranges_are_built_whatever_is_staged,
)
class RangesWaitForStagedRows(ViewDestinations):
    """A range was built when all that was staged at its tablet had been processed, so that it was read once for all."""

    @action(by=WORKER, fair=WEAK)
    def build_range(self, r: Term[Replica], v: Term[BuiltView]) -> None:
        """The view's task is executed: no sstable is staged."""
        super().build_range(r, v)
        require(~some(self._waits_anywhere(s) for s in StagedRow), "nothing is staged")


@known_bug(
    "000-130",
    REMOVED,
    breaks=TabletViews.finished_tasks_are_removed_at_any_time,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class FinishedTasksAreRemovedAtRest(TabletViews):
    """Of a tablet that had begun to move no finished task was removed: it was aborted, and done again."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, n: Term[Node], t: Term[MovingTablet], k: Term[Type]) -> None:
        """The coordinator removes the task of a tablet at rest."""
        super().remove_finished(n, t, k)
        require(self._is_at_rest(t), "the tablet is not in transition")


@known_bug(
    "000-131",
    MARKED,
    breaks=TabletViews.views_are_built_while_their_tablets_move,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class ViewsOfTablesAtRestAreMarked(TabletViews):
    """A view was marked as built when no tablet of its table was in transition."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self) -> None:
        """No task is left, and no tablet is in transition."""
        super().mark_view_built()
        require(every(self._is_at_rest(Term.of(t)) for t in MovingTablet), "tablets are at rest")


@known_bug(
    "000-132",
    "design document 000: it is for the coordinator to react to tablet operations",
    breaks=ClusterViews.migrations_need_not_succeed_when_their_node_leaves,
    budgets={ClusterViews.leader_changes: 0},
)
class MigrationsWithTasksMustSucceed(ClusterViews):
    """A stream that had failed was tried for ever while an aborted task waited for the migration's end."""

    @action(by=OPERATOR)
    def make_unwanted(self, leaving: Term[Node]) -> None:
        """The node that the tablet leaves is itself to leave, and no view is built on it."""
        super().make_unwanted(leaving)
        tasks = some(self.views.is_stored(t) for t in Task)
        require(~tasks, "no view is being built")


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


@known_bug("000-150", ABORTED, breaks=ViewStaging.tablets_come_at_any_time)
class BusyWorkersGetNoTablet(ViewStaging):
    """No tablet came to a node whose worker still executed a batch, for what had left."""

    @ViewStaging.standing.step(
        Standing.absent, Standing.pending, by=TOPOLOGY, spends=ViewStaging.moves
    )
    def come(self) -> None:
        """The tablet migrates to this node, whose worker is idle."""
        require(self.batch == Work.none, "no batch is executed")


@known_bug("000-151", ABORTED, breaks=ViewStaging.tablets_arrive_at_any_time)
class TabletsArriveWhenAllIsRegistered(ViewStaging):
    """A migration did not end while an sstable that it had streamed waited for its task to be stored."""

    @ViewStaging.standing.step(Standing.pending, Standing.replica, by=TOPOLOGY, fair=WEAK)
    def arrive(self) -> None:
        """The migration ends: all that was streamed is registered."""
        require(self.to_register.is_empty(), "nothing is to be registered")


@known_bug("000-152", ABORTED, breaks=ViewStaging.tablets_are_gone_at_any_time)
class TabletsAreGoneWhenTheirBatchHasEnded(ViewStaging):
    """A replica was cleaned up when the batch of its aborted tasks was over."""

    @ViewStaging.standing.step(Standing.leaving, Standing.absent, by=TOPOLOGY, fair=WEAK)
    def end_leaving(self) -> None:
        """The replica, of which no batch is executed, is cleaned up."""
        require(self.batch == Work.none, "no batch is executed")
        self._clean_up()
        self.aborted = False
        self.waiting = 0


@known_bug(
    "000-153",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=ViewStaging.batches_wait_for_no_registration,
)
class BatchesWaitForTheQueue(ViewStaging):
    """A batch began when nothing was left to be registered: while a repair went on none did."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_batch(self) -> None:
        """The coordinator has the waiting tasks executed when all that is staged has one."""
        require(self.to_register.is_empty(), "nothing is to be registered")
        super().start_batch()


@known_bug(
    "000-154",
    ABORTED,
    breaks=TabletViews.migrations_end_whatever_is_executed,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class TheOldReplicaIsReadToTheEnd(TabletViews):
    """A migration did not end before the old replica's worker had left the batch of the aborted task."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[MovingTablet], new: Term[Node]) -> None:
        """No batch of the tablet is executed: the migration ends."""
        require(every(~(self.batch[n].tablet == t) for n in Node), "no batch is executed")
        super().finish(t, new)


@known_bug(
    "000-161",
    ABORTED,
    breaks=TabletViews.replicas_are_streamed_and_cleaned_up_whatever_is_executed,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class StreamsWaitForTheBatch(TabletViews):
    """A stream, or a cleanup, did not end while the old replica's worker executed the batch of the aborted task."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_operation(self, t: Term[MovingTablet], old: Term[Node]) -> None:
        """The old replica is read by no batch."""
        require(~(self.batch[old].tablet == t), "no batch is executed")
        super().finish_operation(t, old)


@known_bug(
    "000-162",
    "design document 000, RPC: it attaches to the tasks and waits for the result",
    breaks=TabletViews.a_new_coordinator_waits_for_a_running_batch,
    budgets={TabletViews.migrations: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class ANewLeaderIsRefusedWhileABatchRuns(TabletViews):
    """A coordinator that took over was refused until the batch was done."""

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, n: Term[Node], t: Term[MovingTablet], k: Term[Type]) -> None:
        """The call finds a batch that is done."""
        require(self.batch[n].done, "the batch is done")
        super().attach(n, t, k)


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


BUGS = known_bugs_in(globals())
