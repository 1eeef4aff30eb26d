"""Mistakes by which work is done again, or a built view is none any more, which design document 000 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import (
    WEAK,
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_range import Token, ViewRange
from stagewright.machines.scylladb.views.view_resize import (
    LAST,
    Becomes,
    Ids,
    Slot,
    Type,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WORKER,
    Call,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.scylladb.views.view_worker import CLIENT, View as WorkerView, ViewWorker
from stagewright.machines.systems.tablet_views import Tablet as MovingTablet, TabletViews
from stagewright.spec import (
    BudgetName,
    Term,
    action,
    choose,
    numbers,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REMEMBERED = "design document 000: each view building worker keeps track of finished tasks locally"
BUILT = "design document 000, Schema: once the view is built, an entry is created"
EACH_TASK = (
    "design document 000, Tablet operations: a new task is created for each that was aborted"
)
CALM: dict[BudgetName, int | None] = {
    ViewTask.lost_calls: 0,
    ViewTask.leader_changes: 0,
    ViewTask.restarts: 0,
}


@known_bug(
    "000-88",
    REMEMBERED,
    breaks=ViewWorker.finished_tasks_are_remembered,
    budgets={ViewWorker.restarts: 0},
)
class WhatIsAnsweredIsForgotten(ViewWorker):
    """A worker forgot a task when it had answered that it is finished: the coordinator lost the answer with its
    leadership, and the next one had the tablet read once more.
    """

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed: the worker returns those, and keeps the others."""
        done = self.asked & self.completed
        require(~done.is_empty(), "some are completed")
        self.finished = self.finished | done
        self.asked = frozenset()
        self.completed = self.completed - done


@known_bug(
    "000-89",
    REMEMBERED,
    breaks=ViewTask.completed_tasks_are_not_executed_again,
    budgets={ViewTask.restarts: 0},
)
class CompletedTasksAreOfATerm(ViewTask):
    """A worker that heard of a new coordinator forgot which tasks it had completed for the one before."""

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and its workers begin anew."""
        super().change_leader()
        self.work = choose(self.work == Work.done, Work.none, self.work)


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
    def finish(self) -> None:
        """The new replicas are the replicas; there is no view to build."""
        same = self.next <= self.replicas
        require(same | (self.status != ViewStatus.started), "no replica is new, or no view")
        super().finish()

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_with_new_task(self, new: Term[Task], pending: Term[Node]) -> None:
        """A view is being built: the new replica gets a task."""
        concerned = some(self.is_stored(t) & (self._is_of_leaving(t) | self._grows()) for t in Task)
        require(~concerned & (self.status == ViewStatus.started), "no task to adjust")
        require(self._is_pending(pending), "a replica is pending")
        self._adopt()
        self._create(new, pending)


@known_bug(
    "000-91",
    EACH_TASK,
    breaks=TabletViews.ranges_are_built_once,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class BothHalvesAreBuiltAgain(TabletViews):
    """A tablet that split while a view was built had its upper half built, whether it was done or not."""

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        if k is Type.process_staging:
            return super()._task_of_second_half(k)
        return choose(self.status == ViewStatus.started, Life.normal, Term.of(Life.absent))


@known_bug(
    "000-92",
    EACH_TASK,
    breaks=ViewResize.ranges_are_built_once,
    budgets={ViewResize.resizes: 1, ViewResize.staging_sstables: 0},
)
class AResizeMakesTasksForAllTablets(ViewResize):
    """After a resize every tablet of a table whose view was not built got a task, as if the view had been created then."""

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        """One command deletes the tasks of the old tablets, and stores one for each new one."""
        for new in numbers(0, LAST):
            self.building[new] = ~self.built & some(after(s) == new for s in Slot)
        for new in numbers(0, LAST):
            self.staging[new] = self._is_to_process(new, becomes)
        self.stale = self.batch != Work.none
        self._find_anew(after)
        for s in Slot:
            self.id[s] = after(s)


@known_bug(
    "000-93",
    BUILT,
    breaks=ViewCoordinator.built_views_stay_built,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class ProcessedTablesHaveStartedViews(ViewCoordinator):
    """When a table was chosen for a staging sstable all its views were STARTED, also those that had been built."""

    @action(by=COORDINATOR, fair=WEAK)
    def choose_base(self, b: Term[Base]) -> None:
        """The coordinator chooses a base table with tasks."""
        require(self.processed.is_none(), "no base table is processed")
        require(self._has_tasks(b), "the table has tasks")
        self.processed = b
        for v in View:
            starts = (self.table[v] == b) & self._exists(v)
            self.status[v] = choose(starts, ViewStatus.started, self.status[v])


@known_bug("000-94", BUILT, breaks=ViewBuilding.built_views_stay_built, budgets=CALM)
class AMoveStartsTheView(ViewBuilding):
    """A view was STARTED again when its tablet had moved, until the coordinator found that it has no task."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas, and the view is looked at again."""
        super().finish()
        built = self.status == ViewStatus.success
        self.status = choose(built, ViewStatus.started, self.status)


@known_bug("000-95", BUILT, breaks=ViewWorker.built_views_stay_built)
class ANewViewReplacesTheEntry(ViewWorker):
    """system.built_views had an entry for a table and not for each view: a new one took it from the others."""

    @action(by=CLIENT)
    def create_view(self, v: Term[WorkerView]) -> None:
        """A view is created, with its task."""
        super().create_view(v)
        self.built = frozenset()


@known_bug(
    "000-96",
    BUILT,
    breaks=TabletViews.built_views_stay_built,
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class ASplitStartsTheView(TabletViews):
    """The view of a table whose tablet had split counted as started."""

    @action(by=TOPOLOGY, spends=TabletViews.splits)
    def split_tablet(self) -> None:
        """The tablet splits, and the view is looked at again."""
        super().split_tablet()
        built = self.status == ViewStatus.success
        self.status = choose(built, ViewStatus.started, self.status)


@known_bug(
    "000-97",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.built_views_stay_built,
)
class ReshardingScansBuiltViews(ViewRange):
    """A node that started with another number of shards scanned for views that were built."""

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The shard's scan begins anew, at its own token, and the view is not built yet."""
        super().reshard(t)
        self.built = False


@known_bug(
    "000-98",
    BUILT,
    breaks=ViewResize.built_views_stay_built,
    budgets={ViewResize.resizes: 1, ViewResize.staging_sstables: 0},
)
class AResizeStartsTheView(ViewResize):
    """The view of a table whose tablets were resized counted as started until somebody found no task for it."""

    def _adjust(self, after: Ids, becomes: Becomes) -> None:
        super()._adjust(after, becomes)
        self.built = False


@known_bug(
    "000-170",
    "design document 000: those tasks are removed from group0 state (permanently marking them as finished)",
    breaks=ViewTask.finished_tasks_are_marked_so,
)
class FinishedTasksAreDropped(ViewTask):
    """The coordinator removed a finished task by the path of a dropped view's: no log said of any that it was done."""

    @ViewTask.life.step(Life.normal, Life.dropped, by=COORDINATOR, fair=WEAK)
    def remove(self) -> None:
        """The coordinator deletes the tasks that it knows to be finished."""
        require(self.call == Call.answered, "the worker has answered that it is finished")
        self.call = Call.none


ATTACHED = "design document 000, RPC: the handler attaches to the tasks and waits for the result"


@known_bug(
    "000-180",
    ATTACHED,
    breaks=ViewTask.work_goes_on_for_whoever_asks,
    budgets={ViewTask.restarts: 0, ViewTask.lost_calls: 0},
)
class NewLeadersInterruptTasks(ViewTask):
    """A worker gave up what the coordinator before had asked for, and began it anew for the next one: a large tablet was never
    through where leaders changed.
    """

    @action(by=COORDINATOR, spends=ViewTask.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and its worker has nothing left to execute."""
        super().change_leader()
        self.work = choose(self.work == Work.executing, Work.none, self.work)


@known_bug(
    "000-181",
    ATTACHED,
    breaks=ViewWorker.work_goes_on_for_whoever_asks,
    budgets={ViewWorker.restarts: 0},
)
class NewLeadersInterruptBatches(ViewWorker):
    """The same of a batch for several views."""

    @action(by=COORDINATOR, spends=ViewWorker.leader_changes)
    def change_leader(self) -> None:
        """The raft leader changes, and the batch of its worker ends."""
        super().change_leader()
        self.batch = frozenset()


@known_bug(
    "000-182",
    ATTACHED,
    breaks=ViewCoordinator.work_goes_on_for_whoever_asks,
    sizes={Base: 1, Tablet: 1, Shard: 1},
    budgets={ViewCoordinator.staging_sstables: 0},
)
class OneDroppedViewEndsTheBatch(ViewCoordinator):
    """When one view of a batch was dropped the batch was given up, and begun anew for the others: who dropped one view a day
    never had the others built.
    """

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that a task of its batch is not in group0 any more."""
        require(self._is_batch(s, t, b), "the shard has a batch")
        gone = some(~self.building[v].has(t) for v in self.batch[s].views)
        require(gone | ~self._is_still_wanted(s, t, b), "a task of it is not in group0")
        self._end_batch(s)


@known_bug(
    "000-183",
    ATTACHED,
    breaks=TabletViews.work_goes_on_for_whoever_asks,
    budgets={TabletViews.repairs: 0, TabletViews.splits: 0, TabletViews.migrations: 0},
)
class NewLeadersBeginAnew(TabletViews):
    """A new leader had all workers forget their batches, those that were done among them."""

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: no worker has a batch."""
        for t in MovingTablet:
            self.tablets[t].fail_over()
        for n in Node:
            self._end_batch(n)


@known_bug(
    "000-184",
    "design document 000: vnode-based views are built by node-local view builder",
    breaks=ViewRange.saved_progress_is_taken_up,
    budgets={ViewRange.reshardings: 0},
)
class RestartsBeginTheRoundAnew(ViewRange):
    """A node that restarted before its scan had passed the end of the ring read all of it again: one that restarted each night
    built no large view.
    """

    @action(by=WORKER, spends=ViewRange.restarts)
    def restart(self) -> None:
        """The node restarts: the scan goes on from where it began, or from the beginning of the ring."""
        self.scan.next = choose(self.saved.wrapped, self.saved.next, self.first)
        self.scan.wrapped = self.saved.wrapped


BUGS = known_bugs_in(globals())
