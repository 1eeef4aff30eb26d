"""Mistakes by which a migration waits for a worker, in a cluster whose topology waits for the migration."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import Task
from stagewright.machines.scylladb.views.view_task import Call, Work
from stagewright.machines.systems.cluster_views import LEADER, WEAK, ClusterViews
from stagewright.spec import Term, action, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ROLLBACK = "design document 000, In case of failure, new copies of aborted tasks are created during rollback"


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


BUGS = known_bugs_in(globals())
