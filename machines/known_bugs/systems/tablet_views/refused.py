"""Mistakes put back into `TabletViews`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, Node
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER
from stagewright.machines.systems.tablet_views import WEAK, Row, Tablet, TabletViews
from stagewright.spec import FlagVar, Term, action, every, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

REMOVED = "design document 000: it removes those tasks from group0 state in 200ms intervals"
MARKED = "design document 000, Schema: once the view is built, an entry is created"
ABORTED = "design document 000, Tablet operations: it waits for no task that is aborted"


@known_bug(
    "000-63",
    "design document 000, Tablet operations",
    breaks=TabletViews.tablets_migrate_while_views_are_built,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class MigrationsWaitForTheBatch(TabletViews):
    """A tablet does not move while a worker reads its replica."""

    @action(by=TOPOLOGY, spends=TabletViews.migrations)
    def migrate(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The load balancer moves a tablet that no worker reads."""
        super().migrate(t, n)
        read = some((self.host[t] == m) & (self.batch[m].tablet == t) for m in Node)
        require(~read, "no worker has a batch of it")


@known_bug(
    "000-64",
    "design document 000, Tablet operations",
    breaks=TabletViews.tablets_split_while_views_are_built,
    budgets={TabletViews.migrations: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class SplitsWaitForTheView(TabletViews):
    """A table that has grown does not split until its view is built."""

    @action(by=TOPOLOGY, spends=TabletViews.splits)
    def split_tablet(self) -> None:
        """A tablet splits while no view is built."""
        super().split_tablet()
        require(self.status != ViewStatus.started, "no view is being built")


@known_bug(
    "000-65",
    "design document 000: a view or index is created",
    breaks=TabletViews.views_are_created_while_tablets_change,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class ViewsAreCreatedAtRest(TabletViews):
    """CREATE MATERIALIZED VIEW is refused while a tablet of the table is in transition."""

    @action(by=CLIENT)
    def create_view(self) -> None:
        """A view is created of a table at rest."""
        super().create_view()
        require(every(self._is_at_rest(Term.of(t)) for t in Tablet), "no tablet is in transition")


@known_bug(
    "000-66",
    "design document 000, Tablet operations",
    breaks=TabletViews.rows_are_written_at_any_time,
    budgets={TabletViews.migrations: 0, TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class RowsWaitForTheWholeView(TabletViews):
    """No row is written while a view of the table is built, so that it need not be in both."""

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written while no view is built."""
        super().write(r)
        require(self.status != ViewStatus.started, "no view is being built")


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
    def send(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The coordinator has a task executed while no tablet is in transition."""
        super().send(n, t, k)
        rest = every(self._is_at_rest(Term.of(o)) for o in Tablet)
        require(rest, "no tablet is in transition")


@known_bug(
    "000-130",
    REMOVED,
    breaks=TabletViews.finished_tasks_are_removed_at_any_time,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class FinishedTasksAreRemovedAtRest(TabletViews):
    """Of a tablet that had begun to move no finished task was removed: it was aborted, and done again."""

    @action(by=COORDINATOR, fair=WEAK)
    def remove_finished(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
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
        require(every(self._is_at_rest(Term.of(t)) for t in Tablet), "tablets are at rest")


@known_bug(
    "000-154",
    ABORTED,
    breaks=TabletViews.migrations_end_whatever_is_executed,
    budgets={TabletViews.leader_changes: 0, TabletViews.splits: 0, TabletViews.repairs: 0},
)
class TheOldReplicaIsReadToTheEnd(TabletViews):
    """A migration did not end before the old replica's worker had left the batch of the aborted task."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish(self, t: Term[Tablet], new: Term[Node]) -> None:
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
    def finish_operation(self, t: Term[Tablet], old: Term[Node]) -> None:
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
    def attach(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> None:
        """The call finds a batch that is done."""
        require(self.batch[n].done, "the batch is done")
        super().attach(n, t, k)


@known_bug(
    "000-241",
    "design document 000: the tasks are aborted at the start of the operation",
    breaks=TabletViews.aborts_wait_for_the_barrier_alone,
    budgets={TabletViews.migrations: 2, TabletViews.splits: 1, TabletViews.repairs: 0},
)
class NewLeadersTakeOneMigrationAfterTheOther(TabletViews):
    """A leader that took over went on with one migration at a time: the other tablet waited until it was over."""

    taken_over: FlagVar = flag()

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader."""
        super().change_leader()
        self.taken_over = True

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Tablet]) -> None:
        """The second half's migration goes first."""
        first = (t == Tablet.t1) | self._is_at_rest(Term.of(Tablet.t1))
        require(~self.taken_over | first, "no other migration is under way")
        super().write_both(t)


@known_bug(
    "000-316",
    "design document 000: the worker will eventually reply that the task was finished",
    breaks=TabletViews.workers_wait_for_no_other,
    budgets={TabletViews.repairs: 0, TabletViews.leader_changes: 0},
)
class BatchesRestWhileATabletMoves(TabletViews):
    """No batch was through while a tablet of the table was in transition."""

    @action(by=WORKER, fair=WEAK)
    def finish_batch(self, n: Term[Node]) -> None:
        """The worker has read its replica, and no tablet is in transition."""
        super().finish_batch(n)
        require(every(self._is_at_rest(Term.of(t)) for t in Tablet), "no tablet is in transition")


BUGS = known_bugs_in(globals())
