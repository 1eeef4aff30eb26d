"""Mistakes that show after a fault: on the way back of an operation, or where what a restart excuses is taken for ever."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import (
    CLIENT,
    Stage as SeenStage,
    Task,
    ViewBuilding,
)
from stagewright.machines.scylladb.views.view_coordinator import (
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_range import ViewRange
from stagewright.machines.scylladb.views.view_staging import Place, Sstable, ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    NETWORK,
    TOPOLOGY,
    WORKER,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.systems.tablet_views import Row, TabletViews
from stagewright.spec import (
    Bool,
    BudgetName,
    FlagVar,
    NumberVar,
    SetVar,
    Term,
    action,
    choose,
    fault_budget,
    flag,
    least,
    number,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ROLLBACK = "design document 000, In case of failure, new copies of aborted tasks are created during rollback"
REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


# -- the way back ------------------------------------------------------------------------------------


@known_bug(
    "000-200",
    ROLLBACK,
    breaks=ViewBuilding.targets_are_cleaned_up_whatever_is_executed,
    budgets=CALM,
)
class TargetsAreKeptForTheBatch(ViewBuilding):
    """On the way back the pending replica was kept until the batch of the aborted task was over."""

    @ViewBuilding.stage.step(
        SeenStage.cleanup_target, SeenStage.revert_migration, by=TOPOLOGY, fair=WEAK
    )
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
    "000-206",
    "design document 000: not prematurely, before the writes are directed to the new replica",
    breaks=(TabletViews.built_views_are_complete, TabletViews.missing_rows_have_a_task),
    budgets={TabletViews.migrations: 2, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class BatchesOutliveTheirReplica(TabletViews):
    """A batch of staging sstables went on when its tablet had left and was cleaned up: when that came back, it processed what was
    streamed, on a replica that is not paired yet, and the task that came with it found nothing.
    """

    def _leave_batch(self, n: Term[Node], r: Row, gone: Bool) -> None:
        """The batch looks into the staging directory when it processes it."""


@known_bug(
    "000-217",
    "design document 000: is any view started but not finished yet?",
    breaks=ViewCoordinator.views_that_were_started_are_built,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class NewLeadersStartViewsAnew(ViewCoordinator):
    """A coordinator that took over found the processed table's views CREATED, and started them: to the eyes of who asked they
    had not begun, and what was streamed meanwhile went to the normal directory.
    """

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes: views that are being built are to be started."""
        super().change_leader()
        for v in View:
            started = self.status[v] == ViewStatus.started
            self.status[v] = choose(started, ViewStatus.created, self.status[v])


# -- after a restart ---------------------------------------------------------------------------------


@known_bug(
    "000-207",
    REMEMBERED,
    breaks=ViewTask.completed_tasks_are_not_executed_again,
    budgets={ViewTask.lost_calls: 0},
)
class NotesOfRestartedWorkersAreOfATerm(ViewTask):
    """A worker that had restarted kept its list of completed tasks for the coordinator of that time alone."""

    unsafe: FlagVar = flag()

    @action(by=WORKER, spends=ViewTask.restarts)
    def restart(self) -> None:
        """The worker's node restarts, which is noted."""
        super().restart()
        self.unsafe = True

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """A new coordinator finds the list of a worker that has restarted empty."""
        super().change_leader()
        forgets = self.unsafe & (self.work == Work.done)
        self.work = choose(forgets, Work.none, self.work)


@known_bug(
    "000-208",
    REMEMBERED,
    breaks=ViewCoordinator.work_goes_on_for_whoever_asks,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.restarts: 1, ViewCoordinator.staging_sstables: 0},
)
class RestartedShardsAreInterrupted(ViewCoordinator):
    """A shard whose node had once restarted gave its batch up for each new coordinator."""

    unsafe: SetVar[Shard] = set_of(Shard)

    @action(by=WORKER, spends=ViewCoordinator.restarts)
    def restart(self, s: Term[Shard]) -> None:
        """The shard's node restarts, which is noted."""
        super().restart(s)
        self.unsafe.add(s)

    @action(by=COORDINATOR, spends=ViewCoordinator.leader_changes)
    def change_leader(self) -> None:
        """The new coordinator interrupts shards whose node has restarted."""
        super().change_leader()
        for s in Shard:
            batch, lost = self.batch[s], self.unsafe.has(s)
            batch.base = choose(lost, None, batch.base)
            batch.tablet = choose(lost, None, batch.tablet)
            for v in View:
                batch.views.put(v, batch.views.has(v) & ~lost)
            batch.done = batch.done & ~lost


@known_bug(
    "000-209",
    REMEMBERED,
    breaks=TabletViews.work_goes_on_for_whoever_asks,
    budgets={TabletViews.restarts: 1, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class RestartedNodesAreInterrupted(TabletViews):
    """The same of a node whose tablets move."""

    unsafe: SetVar[Node] = set_of(Node)

    @action(by=WORKER, spends=TabletViews.restarts)
    def restart(self, n: Term[Node]) -> None:
        """The node restarts, which is noted."""
        super().restart(n)
        self.unsafe.add(n)

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """The new coordinator interrupts nodes that have restarted."""
        super().change_leader()
        for n in Node:
            batch, lost = self.batch[n], self.unsafe.has(n)
            batch.tablet = choose(lost, None, batch.tablet)
            batch.type = choose(lost, None, batch.type)
            for r in Row:
                batch.rows.put(r, batch.rows.has(r) & ~lost)
            batch.done = batch.done & ~lost
            batch.stale = batch.stale & ~lost


@known_bug(
    "000-210",
    REMEMBERED,
    breaks=ViewStaging.completed_tasks_are_not_executed_again,
)
class NewLeadersHaveStagingProcessedAgain(ViewStaging):
    """A new coordinator did not know that the tasks of a batch were done, and its worker did not say so: they were executed
    again, for nothing.
    """

    leader_changes = fault_budget(1, doc="changes of the view building coordinator")

    @action(by=COORDINATOR, spends=leader_changes)
    def change_leader(self) -> None:
        """The tasks of a batch that is done wait to be executed."""
        require(self.batch == Work.done, "a batch is done")
        self.batch = Work.none
        self.waiting = choose(self.started, self._one_more(), self.waiting)
        self.started = False


@known_bug(
    "000-211",
    "design document 000: vnode-based views are built by node-local view builder",
    breaks=ViewRange.progress_is_saved_on_the_way,
)
class ProgressIsSavedUntilTheRingEnds(ViewRange):
    """Progress was saved up to the end of the ring: a restart after that cost all that had been read since."""

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """Before the end of the ring, or when it is passed, the progress is written."""
        require(~self.saved.wrapped, "the end was not passed by then")
        require(~self.scan.wrapped | (self.scan.next == 0), "nothing was read since")
        super().save_progress()


@known_bug(
    "000-212",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewCoordinator.running_batches_are_not_replaced,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class ALaterViewJoinsTheBatch(ViewCoordinator):
    """A view that was started while a batch of its table ran joined that: what the batch had read by then was never in it."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """The view is started, and its tasks join the batches that run."""
        super().start_view(v)
        for s in Shard:
            batch = self.batch[s]
            of_table = some((batch.base == self.table[v]) & (batch.tablet == t) for t in Tablet)
            joins = of_table & ~batch.views.is_empty() & ~batch.done
            batch.views.put(v, batch.views.has(v) | joins)


# -- after the second fault --------------------------------------------------------------------------


@known_bug(
    "000-213",
    "design document 000: a task is stored in group0 state to be processed in the future",
    breaks=(ViewTask.tasks_are_processed, ViewTask.tasks_are_called_for_whoever_did_before),
    budgets={ViewTask.aborts: 0, ViewTask.deletions: 0, ViewTask.lost_calls: 2},
)
class CallsThatFailTwiceAreGivenUp(ViewTask):
    """A coordinator called for a task once more when its call had failed, and no third time."""

    failures: NumberVar = number(0, 2)

    @action(by=NETWORK, spends=ViewTask.lost_calls)
    def lose_call(self) -> None:
        """The call fails, which is counted."""
        super().lose_call()
        self.failures = least(self.failures + 1, 2)

    @action(by=COORDINATOR, fair=WEAK)
    def send(self) -> None:
        """The coordinator calls for a task that did not fail twice."""
        super().send()
        require(self.failures < 2, "it did not fail twice")


@known_bug(
    "000-214",
    "design document 000, Staging sstables: create view building tasks for this sstable",
    breaks=(ViewStaging.staging_sstables_are_known, ViewStaging.staging_sstables_are_processed),
    budgets={ViewStaging.restarts: 2},
)
class StagingIsDiscoveredOnce(ViewStaging):
    """What a restart had left in the staging directory was looked for once, as it was when a node was upgraded."""

    upgraded: FlagVar = flag()

    @action(by=WORKER, fair=WEAK)
    def discover(self) -> None:
        """The worker looks for staging sstables if it has never done so."""
        require(~self.discovered, "not discovered yet")
        self._is_loaded()
        for s in Sstable:
            found = ~self.upgraded & (self.place[s] == Place.staging)
            self.to_register.put(s, found)
        self.upgraded = True
        self.discovered = True


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


BUGS = known_bugs_in(globals())
