"""Mistakes about what is given up, and has to go on: a view is dropped while sstables wait in staging, a coordinator or a
worker fails while tablets are resized, and a migration is undone.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Stage, Task
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import (
    CLIENT,
    Place,
    Replica,
    Sstable,
    View,
    ViewDestinations,
    Views,
)
from stagewright.machines.scylladb.views.view_resize import LAST, Id, Slot, Type, ViewResize
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER, Life, Work
from stagewright.machines.systems.cluster_views import BALANCER, LEADER, ClusterViews
from stagewright.spec import (
    BudgetName,
    Fairness,
    FlagVar,
    NumberVar,
    SetVar,
    Term,
    action,
    choose,
    every,
    flag,
    number,
    numbers,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
DROPPED = "design document 000: we simply delete relevant view building tasks"
ATTACHES = "design document 000, RPC: attaches to the tasks and waits for the result"
ALL_STAGING = "design document 000: process all staging sstables associated with the tablet replica"


@known_bug("000-250", DROPPED, breaks=ViewDestinations.views_are_dropped_at_any_time)
class DropsWaitForStagedRows(ViewDestinations):
    """A view was not dropped while an sstable of its table waited in staging, which was there to update it."""

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped when nothing of its table waits."""
        super().drop_view(v)
        require(every(~self._waits_anywhere(s) for s in Sstable), "no sstable is staged")


@known_bug("000-251", ALL_STAGING, breaks=ViewDestinations.staging_sstables_are_processed)
class TablesWithoutViewsAreNotProcessed(ViewDestinations):
    """The coordinator chose among tables that have views: what waited in staging when the last one was dropped was read by
    nobody, and never came into the base directory.
    """

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, as the table has a view."""
        super().process_staging(r, s)
        require(some(self._exists(v) for v in View), "the table has a view")


@known_bug(
    "000-252",
    "design document 000: Does the table have any views?",
    breaks=ViewDestinations.sstables_without_need_are_not_staged,
)
class DroppedViewsAreCounted(ViewDestinations):
    """The decision asked whether a view had been created, and counted those that were dropped since: a table whose views
    were all dropped was one whose views are built, and its repaired sstables were staged.
    """

    def how_far(self) -> Term[Views]:
        """The questions of 000, of every view that there ever was."""
        none = every(self.status[v] == ViewStatus.none for v in View)
        exists = some(self._exists(v) for v in View)
        return choose(none | exists, super().how_far(), Views.built)


@known_bug("000-253", DROPPED, breaks=ViewDestinations.staging_sstables_are_processed)
class AllTasksGoWithAView(ViewDestinations):
    """Whoever dropped a view deleted the tasks of its table, of either type: sstables that waited for the sake of another
    view had no task any more.
    """

    without_task: SetVar[Sstable] = set_of(Sstable)

    @action(by=CLIENT, spends=ViewDestinations.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, with all process_staging tasks of its table."""
        super().drop_view(v)
        for s in Sstable:
            waits = some(self.place[r][s] == Place.with_task for r in Replica)
            self.without_task.put(s, self.without_task.has(s) | waits)

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed, if there is one."""
        super().process_staging(r, s)
        require(~self.without_task.has(s), "there is a task")

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task left, and the table none in group0."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        require(self.scanned.has(v), "the range is built")
        waits = some(
            (self.place[r][s] == Place.with_task) & ~self.without_task.has(s)
            for r in Replica
            for s in Sstable
        )
        require(~waits, "no staging task is left")
        self.status[v] = ViewStatus.success


# -- resizes, where a coordinator or a worker fails -----------------------------------------------------

FAILOVER = {
    ViewResize.resizes: 1,
    ViewResize.staging_sstables: 0,
    ViewResize.leader_changes: 1,
}
RESTART = {ViewResize.resizes: 1, ViewResize.staging_sstables: 0, ViewResize.restarts: 1}


@known_bug(
    "000-254",
    ATTACHES,
    breaks=ViewResize.a_new_coordinator_waits_for_a_running_batch,
    budgets=FAILOVER,
)
class RunningBatchesAreNotAttachedTo(ViewResize):
    """A worker answered a new coordinator for what it had completed, and refused the call for what it was executing."""

    @action(by=COORDINATOR, fair=WEAK)
    def attach(self) -> None:
        """A coordinator that does not know of the batch has its result, when there is one."""
        super().attach()
        require(self.batch == Work.done, "the batch is done")


@known_bug(
    "000-255",
    ATTACHES,
    breaks=ViewResize.work_goes_on_for_whoever_asks,
    budgets={**FAILOVER, ViewResize.staging_sstables: 1},
)
class NewCoordinatorsBeginAnew(ViewResize):
    """The call that a deposed coordinator had made was cancelled, and its batch with it, however much of the tablet it had
    read.
    """

    @action(by=COORDINATOR, spends=ViewResize.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader: what is executed is given up."""
        super().change_leader()
        executing = self.batch == Work.executing
        processing = executing & (self.type == Type.process_staging) & ~self.stale
        t = self.tablet
        self.staging[t] = self.staging[t] | processing
        self.batch = choose(executing, Work.none, self.batch)
        self.type = choose(executing, None, self.type)
        for s in Slot:
            self.reads.put(s, self.reads.has(s) & ~executing)
        self.stale = self.stale & ~executing


@known_bug(
    "000-256",
    "design document 000, tablet resize: abort the task and create new tasks",
    breaks=ViewResize.splits_do_not_wait_for_views,
    budgets=FAILOVER,
)
class SplitsWaitForTheNewCoordinator(ViewResize):
    """After a failover no tablet was split until the new coordinator had asked the worker for what it was doing."""

    @action(by=TOPOLOGY, spends=ViewResize.resizes)
    def split(self, s: Term[Slot]) -> None:
        """A tablet splits, whose coordinator knows of the batch."""
        super().split(s)
        require((self.batch == Work.none) | self.called, "the coordinator knows of the batch")


@known_bug(
    "000-257",
    "design document 000: after the coordinator gets the response from the worker",
    breaks=ViewResize.tasks_are_finished_by_answers,
    budgets=FAILOVER,
)
class NobodyNeedAsk(ViewResize):
    """A worker whose coordinator was gone removed the finished task itself."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self) -> None:
        """The finished task is removed from group0, whoever waits for it."""
        require(self.batch == Work.done, "the batch is done")
        require(~self.stale, "its task is still in group0")
        built = self.type == Type.build_range
        self.building[self.tablet] = self.building[self.tablet] & ~built
        self._end_batch()


@known_bug(
    "000-258",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=ViewResize.calls_are_to_shards_with_a_batch,
    budgets=RESTART,
)
class CallsOutliveTheNode(ViewResize):
    """A call to a node that had restarted was under way for the coordinator until it had another task for the shard."""

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts, which the coordinator does not notice."""
        require(self.batch != Work.none, "the worker has a batch")
        for t in numbers(0, LAST):
            self.staging[t] = self.staging[t] | self._started(t)
        self.batch = Work.none
        self.type = None
        self.tablet = 0
        self.reads = frozenset()
        self.stale = False
        self.restarted = True


@known_bug(
    "000-259",
    "design document 000: both are restarted, and we will have to redo the work",
    breaks=ViewResize.staging_sstables_have_a_task,
    budgets={**RESTART, ViewResize.staging_sstables: 1},
)
class StartedTasksAreNotStartedAgain(ViewResize):
    """A process_staging task that a worker had begun counted as started after the worker's restart, too: nobody had it
    executed.
    """

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts: its batch is lost, and its task is one that was started."""
        require(self.batch != Work.none, "the worker has a batch")
        self._end_batch()
        self.restarted = True


@known_bug(
    "000-260",
    "design document 000: both are restarted, and we will have to redo the work",
    breaks=ViewResize.ranges_are_built_in_any_order,
    budgets={**RESTART, ViewResize.restarts: 2},
)
class TwoRestartsAreEnough(ViewResize):
    """A worker that had restarted twice during the building of a view got no range to build any more."""

    lost: NumberVar = number(0, 2)

    @action(by=COORDINATOR, fair=WEAK)
    def start_building(self, t: Id) -> None:
        """The shard gets the task to build the view from a tablet, if its node keeps running."""
        super().start_building(t)
        require(self.lost < 2, "the node keeps running")

    @action(by=WORKER, spends=ViewResize.restarts)
    def restart(self) -> None:
        """The worker's node restarts."""
        super().restart()
        self.lost = self.lost + 1


# -- migrations that are undone, with another leader or twice -------------------------------------------

UNDONE: dict[BudgetName, int | None] = {
    ClusterViews.requests: 0,
    ClusterViews.migrations: 1,
    ClusterViews.failures: 1,
    ClusterViews.full_disks: 1,
}
UNDONE_TWICE: dict[BudgetName, int | None] = {
    ClusterViews.requests: 0,
    ClusterViews.migrations: 2,
    ClusterViews.failures: 2,
    ClusterViews.full_disks: 2,
    ClusterViews.leader_changes: 0,
}
ROLLED_BACK = "design document 000: in case of failure, new copies of aborted tasks are created during rollback"


@known_bug("000-261", ROLLED_BACK, breaks="views.missing_rows_have_a_task", budgets=UNDONE)
class AbortedTasksAreInMemory(ClusterViews):
    """The coordinator that aborted the tasks kept them in memory, to copy them when the operation ended: another one, which
    took over on the way back, undid the migration without.
    """

    knows: FlagVar = flag()

    @action(by=LEADER, fair=WEAK)
    def write_both(self) -> None:
        """The tasks of the leaving replica are aborted, and remembered."""
        super().write_both()
        self.knows = True

    @action(by=LEADER, spends=ClusterViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader, which has aborted nothing."""
        super().change_leader()
        self.knows = False

    @action(by=LEADER, fair=WEAK)
    def finish_revert_forgotten(self, t: Term[Task]) -> None:
        """The tablet stays where it was; the aborted task, of which nobody knows, is removed."""
        require(~self.knows, "no aborted task is remembered")
        self.tablet.finish_revert()
        reverted = self.views.stage == Stage.revert_migration
        require(reverted & (self.views.tasks[t].life == Life.aborted), "a task is aborted")
        self.views.tasks[t].life = Life.dropped
        self.views.stage = Stage.none
        self.views.next = self.views.replicas
        self._stay()


@known_bug(
    "000-262",
    "design document 001: if there is no work, the tablet load balancer is invoked",
    breaks=ClusterViews.tablets_are_balanced_while_views_are_built,
    sizes={Task: 3},
    budgets={**UNDONE_TWICE, ClusterViews.failures: 1, ClusterViews.full_disks: 1},
)
class TabletsThatCameBackStay(ClusterViews):
    """A tablet whose migration had been undone was not moved again before its view was built."""

    came_back: FlagVar = flag()

    def _stay(self) -> None:
        super()._stay()
        self.came_back = True

    @action(by=BALANCER, spends=ClusterViews.migrations)
    def start_balancing(self, leaving: Term[Node], pending: Term[Node]) -> None:
        """The load balancer's plan, if the tablet has not come back with its tasks."""
        super().start_balancing(leaving, pending)
        built = self.views.status == ViewStatus.success
        require(~self.came_back | built, "the tablet has not come back")


@known_bug(
    "000-263",
    ROLLED_BACK,
    breaks=ClusterViews.rollbacks_end_whatever_is_executed,
    sizes={Task: 3},
    budgets=UNDONE_TWICE,
)
class CopiesAreNotCopied(ClusterViews):
    """A task that was a copy already was not copied when the next migration failed: its operation did not end."""

    copied: FlagVar = flag()

    @action(by=LEADER, fair=WEAK)
    def finish_revert_with_task(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """The tablet stays, and its task comes back, the first time."""
        super().finish_revert_with_task(t, new, n)
        require(~self.copied, "the task is none that came back")
        self.copied = True


BUGS = known_bugs_in(globals())
