"""Mistakes about views whose tablets move and split, which no machine of one operation shows."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, Node
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_destinations import Destination
from stagewright.machines.scylladb.views.view_resize import Type
from stagewright.machines.scylladb.views.view_task import TOPOLOGY, Life
from stagewright.machines.systems.tablet_views import WEAK, Row, Tablet, TabletViews
from stagewright.spec import Bool, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "000-11",
    "design document 000, Tablet operations",
    breaks=(TabletViews.built_views_are_complete, TabletViews.staged_rows_have_a_task),
    budgets={TabletViews.migrations: 0, TabletViews.leader_changes: 0},
)
class StagingDoesNotSplit(TabletViews):
    """When a tablet splits only its build_range tasks become two: a staging sstable of the upper half has no task
    any more, and the view is built without its row.
    """

    def _task_of_second_half(self, k: Type) -> Term[Life]:
        if k is Type.process_staging:
            return Term.of(Life.absent)
        return super()._task_of_second_half(k)


@known_bug(
    "000-12",
    "design document 000, Staging sstables",
    breaks=(TabletViews.built_views_are_complete, TabletViews.missing_rows_have_a_task),
    budgets={TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagedRowsMoveToTheBaseDirectory(TabletViews):
    """A repaired row waits in staging, its tablet migrates, and its copy goes to the base directory: the task that
    comes with the tablet finds nothing, and the view, whose range was built before, is built without the row.
    """

    def _stays_staged(self) -> Bool:
        return super()._stays_staged() & (self.status == ViewStatus.none)


@known_bug(
    "000-173",
    "design document 000, Staging sstables: use normal directory, or use staging directory",
    breaks=TabletViews.sstables_go_to_one_directory,
    budgets={
        TabletViews.migrations: 0,
        TabletViews.splits: 0,
        TabletViews.leader_changes: 0,
    },
)
class RepairedSstablesAreLinkedIntoStaging(TabletViews):
    """A repair wrote its sstable to the base directory, and a link to it to the staging directory: a batch that built the
    range made the same view updates as the one that processed what is staged.
    """

    @action(by=TOPOLOGY, spends=TabletViews.repairs)
    def repair(self, r: Term[Row], n: Term[Node]) -> None:
        """A repair brings a row, which is staged as well where a view is being built."""
        require(self._is_new(r), "a new row")
        t = self._owner(r)
        require(self._is_at_rest(t) & (self.host[t] == n), "the tablet's replica, at rest")
        require(self.status != ViewStatus.success, "the view is not built")
        self.written.add(r)
        self.base[n].add(r)
        staged = self._destination() != Destination.normal_directory
        self.staged[n].put(r, staged)
        self._register(t, staged)


@known_bug(
    "000-13",
    "design document 000, Tablet operations",
    breaks=TabletViews.built_views_are_complete,
    budgets={TabletViews.repairs: 2, TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class NewTasksHaveTheOldIds(TabletViews):
    """A task that takes the place of an aborted one keeps its id: what the old replica's worker has finished counts for
    the new replica, where another sstable has been staged meanwhile.
    """

    def _is_batch(self, n: Term[Node], t: Term[Tablet], k: Term[Type]) -> Bool:
        return (self.batch[n].tablet == t) & (self.batch[n].type == k)


@known_bug(
    "000-61",
    "design document 001: a tablet is in the storage layer of its replicas only",
    breaks=TabletViews.tablets_are_stored_by_their_replicas,
    budgets={TabletViews.splits: 0, TabletViews.leader_changes: 0},
)
class StagingFilesStayBehind(TabletViews):
    """Cleanup removes the base directory of the replica that a tablet has left, and not what waits in staging."""

    @action(by=TOPOLOGY, fair=WEAK)
    def finish_operation(self, t: Term[Tablet], old: Term[Node]) -> None:
        """What is streamed has arrived; or the base directory of the leaving replica is empty."""
        require(self.host[t] == old, "the leaving node")
        streams = self.tablets[t].stage == Stage.streaming
        self.tablets[t].finish_operation()
        for n in Node:
            comes, goes = streams & (self.pending[t] == n), ~streams & (n == old)
            for r in Row:
                own = self._owner(Term.of(r)) == t
                base, staged = own & self.base[old].has(r), own & self.staged[old].has(r)
                self.base[n].put(r, (self.base[n].has(r) & ~(goes & own)) | (comes & base))
                self.staged[n].put(r, self.staged[n].has(r) | (comes & staged))


@known_bug(
    "000-62",
    "design document 000: this cannot be revoked",
    breaks=TabletViews.aborts_are_not_revoked,
    budgets={TabletViews.splits: 0, TabletViews.repairs: 0},
)
class NewLeadersReviveTasks(TabletViews):
    """A view building coordinator that takes over takes aborted tasks for tasks that nobody has done."""

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader, and begins with all tasks."""
        super().change_leader()
        for t in Tablet:
            for k in Type:
                aborted = self.tasks[t][k] == Life.aborted
                self.tasks[t][k] = choose(aborted, Life.normal, self.tasks[t][k])


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


BUGS = known_bugs_in(globals())
