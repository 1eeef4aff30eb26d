"""Mistakes by which a worker does not notice what group0 says, or forgets what it has done (design document 000)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_coordinator import (
    Base,
    Shard,
    Tablet,
    View as TableView,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_range import Token, ViewRange
from stagewright.machines.scylladb.views.view_resize import (
    LAST,
    Id,
    Type,
    ViewResize,
)
from stagewright.machines.scylladb.views.view_staging import Standing, ViewStaging
from stagewright.machines.scylladb.views.view_task import (
    COORDINATOR,
    TOPOLOGY,
    WEAK,
    WORKER,
    Life,
    ViewTask,
    Work,
)
from stagewright.machines.scylladb.views.view_wakeups import (
    GROUP0,
    Fiber,
    Observer,
    Registrator,
    ViewWakeups,
)
from stagewright.machines.scylladb.views.view_worker import CLIENT, Flush, View, ViewWorker
from stagewright.machines.systems.tablet_views import Tablet as MovingTablet, TabletViews
from stagewright.spec import (
    Term,
    action,
    choose,
    every,
    numbers,
    require,
    some,
)
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


@known_bug(
    "000-133",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.progress_is_saved_on_the_way,
)
class ProgressIsSavedWhenTheRingEnds(ViewRange):
    """Progress was saved once, when a scan had passed the end of the ring: a restart before that cost all of it."""

    @action(by=WORKER, fair=WEAK)
    def save_progress(self) -> None:
        """The scan has passed the end of the ring: that is written to the system table."""
        super().save_progress()
        require(self.scan.wrapped, "the scan has passed the end of the ring")


@known_bug(
    "000-134",
    "design document 000: vnode-based views are built by a node-local view builder",
    breaks=ViewRange.shards_are_added_at_any_time,
)
class ShardsStayWhileAViewIsBuilt(ViewRange):
    """A node with saved progress started with the number of shards of which that was, and with no other one."""

    @action(by=WORKER, spends=ViewRange.reshardings)
    def reshard(self, t: Term[Token]) -> None:
        """The node, which has no saved progress, restarts with another number of shards."""
        none = (self.saved.next == self.first) & ~self.saved.wrapped
        require(self.built | none, "no progress is saved")
        super().reshard(t)


@known_bug("000-135", OBSERVED, breaks=ViewCoordinator.workers_notice_deletions)
class ShardsExecuteWhatIsDeleted(ViewCoordinator):
    """A shard looked which tasks of its batch had been deleted when it had executed them."""

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The worker sees that no task of its batch, which is done, is in group0 any more."""
        require(self.batch[s].done, "the batch is done")
        super().observe_deletion(s, t, b)


@known_bug(
    "000-136",
    OBSERVED,
    breaks=ViewResize.workers_notice_deletions,
    budgets={ViewResize.staging_sstables: 0},
)
class BatchesOfOldTabletsAreExecuted(ViewResize):
    """The batch of a tablet that had split was executed to the end, for tasks that were gone."""

    @action(by=WORKER, fair=WEAK)
    def observe_deletion(self) -> None:
        """The worker sees that the task of its batch, which is done, is gone."""
        require(self.batch == Work.done, "the batch is done")
        super().observe_deletion()


@known_bug(
    "000-137",
    OBSERVED,
    breaks=TabletViews.workers_notice_aborts,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class TheLeavingReplicaReadsOn(TabletViews):
    """The batch of a tablet that had begun to move read its replica to the end, while that was streamed."""

    @action(by=WORKER, fair=WEAK)
    def observe_abort(self, n: Term[Node], t: Term[MovingTablet], k: Term[Type]) -> None:
        """The worker sees that the task of its batch is gone."""
        require(self.batch[n].stale | self.batch[n].done, "it is gone, or done")
        super().observe_abort(n, t, k)


@known_bug(
    "000-138",
    "design document 000: it is building all views for this base table",
    breaks=ViewCoordinator.views_of_the_table_are_started_at_any_time,
    sizes={Base: 1},
)
class ALaterViewWaitsForTheFirst(ViewCoordinator):
    """A view that was created of a table while another one was built was started when that was done: the table's tablets
    were read twice.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[TableView]) -> None:
        """A view was created on the table that is processed, of which no other is being built."""
        started = some(self.status[u] == ViewStatus.started for u in TableView)
        require(~started, "no other view is being built")
        super().start_view(v)


@known_bug(
    "000-139",
    "design document 000: the worker will immediately respond that those tasks were completed",
    breaks=ViewWorker.completed_tasks_are_answered_immediately,
)
class AnswersWaitForTheFlush(ViewWorker):
    """A call for a completed task and a new one waited until the table had been flushed for the view of the new one."""

    @action(by=WORKER, fair=WEAK)
    def answer(self) -> None:
        """Some of the tasks are completed, and for all the table was flushed."""
        super().answer()
        require(self.flush == Flush.none, "no flush goes on")


@known_bug(
    "000-140",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewWorker.views_are_built_whatever_the_worker_does,
)
class ViewsAreMarkedByAnIdleCoordinator(ViewWorker):
    """A view whose task was removed was marked as built when no call was under way: a large view held up a small one."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task any more, and no call is under way."""
        super().mark_view_built(v)
        require(self.asked.is_empty(), "no call is under way")


@known_bug(
    "000-141",
    "design document 000: it can execute only one batch per shard",
    breaks=ViewWakeups.batches_start_at_any_time,
)
class BatchesStartWhenTheRegistratorSleeps(ViewWakeups):
    """A batch was started when nothing was to be registered: a stream of staging sstables kept a view from being built."""

    @action(by=COORDINATOR, spends=ViewWakeups.batches)
    def start_batch(self) -> None:
        """The coordinator starts a batch while the registrator sleeps."""
        require(self.registrator == Registrator.asleep, "the registrator sleeps")
        super().start_batch()


@known_bug(
    "000-142",
    "design document 000: the state is loaded while group0 state is applied",
    breaks=ViewWakeups.group0_changes_at_any_time,
)
class CommandsWaitForTheRegistrator(ViewWakeups):
    """No command of another node was applied between a registrator's and the move of what that was about."""

    @action(by=GROUP0, spends=ViewWakeups.changes)
    def apply_change(self) -> None:
        """A command of another node is applied while nothing is being registered."""
        require(~self.taken, "nothing is being registered")
        super().apply_change()


@known_bug(
    "000-143",
    "design document 000: process_staging tasks are created when a staging sstable was registered",
    breaks=ViewWakeups.the_registrator_waits_for_no_batch,
)
class RegisteringWaitsForTheBatch(ViewWakeups):
    """The registrator looked at its queue while no batch was executed."""

    @ViewWakeups.registrator.step(Registrator.awake, Registrator.looking, by=WORKER, fair=WEAK)
    def look(self) -> None:
        """The registrator takes the staging mutex at an idle worker."""
        require(self.batch != Work.executing, "no batch is executed")
        self._take_staging(Fiber.registrator)


@known_bug("000-144", OBSERVED, breaks=ViewWakeups.the_observer_waits_for_no_batch)
class ObservingWaitsForTheBatch(ViewWakeups):
    """The observer looked at group0 when a batch was over: a task that was aborted meanwhile was executed to its end."""

    @ViewWakeups.observer.step(Observer.awake, Observer.waiting, by=WORKER, fair=WEAK)
    def begin_update(self) -> None:
        """The observer takes group0's read-apply mutex at an idle worker."""
        require(self.batch != Work.executing, "no batch is executed")
        require(self.apply_mutex.is_empty(), "read-apply mutex is free")
        self.apply_mutex.add(Fiber.observer)


@known_bug(
    "000-155",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewResize.ranges_are_built_in_any_order,
    budgets={ViewResize.resizes: 1},
)
class StagingComesFirst(ViewResize):
    """No range was built while a tablet whose range was built had staging sstables: a repair held up a new view."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets a range to build when nothing is staged that might be processed."""
        waits = some(self.staging[u] & ~self.building[u] for u in numbers(0, LAST))
        require(~waits, "nothing is staged")
        super().start_building(t)


@known_bug(
    "000-156",
    "design document 000: at some point, the coordinator will decide to process it",
    breaks=ViewResize.staging_waits_for_no_other_tablet,
    budgets={ViewResize.resizes: 1},
)
class AllRangesComeFirst(ViewResize):
    """Staging sstables were processed when all ranges of the table were built, which takes days."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_processing(self, t: Id) -> None:
        """The shard gets the task to process staging sstables of a table whose ranges are built."""
        require(every(~self.building[u] for u in numbers(0, LAST)), "all ranges are built")
        super().start_processing(t)


@known_bug(
    "000-157",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewWorker.others_stay_in_their_batch,
)
class ADropEndsTheBatch(ViewWorker):
    """A batch was given up when one of its views was dropped: the others' tasks were executed anew."""

    @action(by=WORKER, fair=WEAK)
    def observe_drop(self, v: Term[View]) -> None:
        """The batch of a dropped view is aborted."""
        require(self.batch.has(v), "the task is in the batch")
        require(~self.tasks.has(v), "it is gone")
        self.batch = frozenset()


@known_bug(
    "000-158",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewCoordinator.others_stay_in_their_batch,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class TheBatchOfADroppedViewIsAborted(ViewCoordinator):
    """A batch was aborted with the view that was dropped: the tablet was read anew for the others."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[TableView]) -> None:
        """A view is dropped, and the batches that are for it are aborted."""
        super().drop_view(v)
        for s in Shard:
            mine = self.batch[s].views.has(v)
            self.batch[s].base = choose(mine, None, self.batch[s].base)
            self.batch[s].tablet = choose(mine, None, self.batch[s].tablet)
            self.batch[s].done = self.batch[s].done & ~mine
            self.called.put(s, self.called.has(s) & ~mine)
            for u in TableView:
                self.batch[s].views.put(u, self.batch[s].views.has(u) & ~mine)


@known_bug(
    "000-159",
    "design document 000, RPC: it attaches to the tasks and waits for the result",
    breaks=ViewCoordinator.a_new_coordinator_waits_for_a_running_batch,
    sizes={Base: 1, Tablet: 1, Shard: 1},
)
class OnlyResultsAreAskedFor(ViewCoordinator):
    """A coordinator that took over was refused by workers that executed a batch: it asked every second, all of them."""

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        """The call finds a batch that is done."""
        require(self.batch[s].done, "the batch is done")
        super().attach(s, t, b)


@known_bug(
    "000-160",
    "design document 000, Schema: once the view is built, an entry is created",
    breaks=ViewCoordinator.views_are_built_while_shards_work,
    sizes={Base: 1},
)
class ViewsAreMarkedWhenAllShardsRest(ViewCoordinator):
    """A view was marked as built when no shard had a batch, of whichever view."""

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[TableView]) -> None:
        """The view has no task, and no shard a batch."""
        require(every(self.batch[s].tablet.is_none() for s in Shard), "no shard has a batch")
        super().mark_view_built(v)


BUGS = known_bugs_in(globals())
