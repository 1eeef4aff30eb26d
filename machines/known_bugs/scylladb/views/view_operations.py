"""Mistakes by which a view waits for a tablet that moves, or a tablet for a view, which design document 000 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.views.view_building import CLIENT, Stage, Task, ViewBuilding
from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import TOPOLOGY, ViewTask
from stagewright.spec import BudgetName, Term, action, require
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


BUGS = known_bugs_in(globals())
