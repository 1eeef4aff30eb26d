"""Mistakes put back into `ClusterViews`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Stage, Task
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import Call, Life, Work
from stagewright.machines.systems.cluster_views import (
    BALANCER,
    LEADER,
    OPERATOR,
    WEAK,
    ClusterViews,
)
from stagewright.spec import (
    BudgetName,
    FlagVar,
    Term,
    action,
    choose,
    flag,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ROLLED_BACK = "design document 000: in case of failure, new copies of aborted tasks are created during rollback"
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
ROLLBACK = "design document 000, In case of failure, new copies of aborted tasks are created during rollback"


# -- what goes wrong -------------------------------------------------------------------------------


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


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "000-240",
    "design document 000: a keyspace/view was dropped",
    breaks="topology.every_request_ends",
    sizes={Task: 3},
    budgets={ClusterViews.failures: 1, ClusterViews.drops: 1, ClusterViews.leader_changes: 0},
)
class DropsKeepTheTopologyBusy(ClusterViews):
    """A migration that was undone ended with the copy of its task: where the view had been dropped on the way back, its node
    never left.
    """

    @action(by=LEADER, fair=WEAK)
    def finish_revert(self) -> None:
        """The tablet stays where it was; the topology has work until a task is rolled back, if there was a view."""
        self.tablet.finish_revert()
        self.views.finish_revert()
        dropped = self.views.status == ViewStatus.dropped
        work = self.topology.tablet_work
        self.topology.tablet_work = choose(dropped, work, None)


# -- who is refused, or waits ----------------------------------------------------------------------


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
    "000-202",
    "design document 000: the tasks are aborted at the start of the operation; 001, cleanup",
    breaks=ClusterViews.leaving_replicas_are_cleaned_up_whatever_is_executed,
    budgets={ClusterViews.leader_changes: 0},
)
class CleanedUpReplicasAreWaitedFor(ClusterViews):
    """A replica that had been cleaned up kept its stage until the batch of the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def end(self) -> None:
        """It has removed its rows, and no batch runs."""
        super().end()
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")


@known_bug(
    "000-203",
    "design document 000: new tasks are created at the end of the operation",
    breaks=ClusterViews.migrations_end_whatever_is_executed,
    budgets={ClusterViews.requests: 0, ClusterViews.migrations: 1},
)
class MigrationsWaitForTheAnswer(ClusterViews):
    """A migration ended when the coordinator's call for the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def finish_with_task(self, t: Term[Task], new: Term[Task], pending: Term[Node]) -> None:
        """No call for the task is under way: the migration ends."""
        called = self.views.tasks[t].call.any_of(Call.sent, Call.attached)
        require(~called, "no call is under way")
        super().finish_with_task(t, new, pending)


@known_bug(
    "000-204",
    ROLLBACK,
    breaks=ClusterViews.rollbacks_end_whatever_is_executed,
    sizes={Task: 3},
    budgets={ClusterViews.failures: 1, ClusterViews.leader_changes: 0},
)
class RollbacksWaitForTheAnswer(ClusterViews):
    """A migration that had failed was undone when the coordinator's call for the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def finish_revert_with_task(self, t: Term[Task], new: Term[Task], n: Term[Node]) -> None:
        """No call for the task is under way: it comes back with a new id."""
        called = self.views.tasks[t].call.any_of(Call.sent, Call.attached)
        require(~called, "no call is under way")
        super().finish_revert_with_task(t, new, n)


@known_bug(
    "000-218",
    "design document 000: the tasks are aborted at the start of the operation",
    breaks=ClusterViews.aborts_wait_for_the_barrier_alone,
    budgets={ClusterViews.leader_changes: 0},
)
class AbortsWaitForTheBatch(ClusterViews):
    """A migration whose first barrier had passed waited for the batch of the task that it was to abort."""

    @action(by=LEADER, fair=WEAK)
    def write_both(self) -> None:
        """Writes go to both replicas, and no batch runs."""
        super().write_both()
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")


@known_bug(
    "000-219",
    "design document 000: the tasks are aborted at the start of the operation",
    breaks=ClusterViews.streaming_waits_for_the_barrier_alone,
    budgets={ClusterViews.leader_changes: 0},
)
class StreamsWaitForTheBatchOfTheOther(ClusterViews):
    """Nothing was streamed before the batch of the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both replicas, and no batch runs."""
        super().begin_streaming()
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")


@known_bug(
    "000-220",
    ROLLBACK,
    breaks=ClusterViews.targets_are_cleaned_up_whatever_is_executed,
    sizes={Task: 3},
    budgets={ClusterViews.failures: 1, ClusterViews.leader_changes: 0},
)
class RollbacksWaitForTheBatch(ClusterViews):
    """On the way back a pending replica that was cleaned up kept its stage until the batch of the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def revert(self) -> None:
        """The pending replica has removed its rows, and no batch runs."""
        super().revert()
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")


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


@known_bug(
    "000-271",
    "design document 001: if draining fails, the node is rolled back to normal",
    profile="scylla-2025.4",
    breaks=ClusterViews.the_track_is_left_when_draining_has_failed,
    budgets={ClusterViews.faults: 1, ClusterViews.leader_changes: 0},
)
class TheTrackIsLeftForTheView(ClusterViews):
    """When draining had failed, the topology stayed in the track until the tablet's view was built."""

    @action(by=LEADER, fair=WEAK)
    def settle_tablets(self) -> None:
        """The node stays, and so does the track."""
        super().settle_tablets()
        require(self.views.status != ViewStatus.started, "no view is being built")


@known_bug(
    "000-317",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ClusterViews.stages_wait_for_no_task,
    budgets={ClusterViews.leader_changes: 0},
)
class CleanupWaitsForTheBatch(ClusterViews):
    """A replica that nobody wrote or read any more was cleaned up when the batch of the aborted task was over."""

    @action(by=LEADER, fair=WEAK)
    def begin_cleanup(self) -> None:
        """Nobody reads or writes the leaving replica any more, and no batch does."""
        super().begin_cleanup()
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")


@known_bug(
    "000-330",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ClusterViews.operations_wait_for_no_worker,
    budgets={ClusterViews.leader_changes: 0},
)
class StreamsWaitForTheBatch(ClusterViews):
    """The pending replica was sent no row while a worker executed a batch of the tablet."""

    @action(fair=WEAK)
    def stream(self, n: Term[Node]) -> None:
        """The pending replica gets the row when no batch runs."""
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")
        super().stream(n)


@known_bug(
    "000-331",
    "design document 000, Tablet operations: the tasks are aborted at the start of the operation",
    breaks=ClusterViews.operations_wait_for_no_worker,
    budgets={ClusterViews.leader_changes: 0},
)
class StreamsAreAnsweredAfterTheBatch(ClusterViews):
    """A stream that had brought all rows was taken for under way until no worker executed a batch."""

    @action(by=LEADER, fair=WEAK)
    def finish_operation(self) -> None:
        """The replica answers when no batch runs."""
        executed = some(self.views.tasks[t].work == Work.executing for t in Task)
        require(~executed, "no batch runs")
        super().finish_operation()


BUGS = known_bugs_in(globals())
