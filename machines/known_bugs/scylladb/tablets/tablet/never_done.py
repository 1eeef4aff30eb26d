"""Mistakes put back into `TabletCluster`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Fairness, Term, action, count, flag, per, require
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
WEAK = Fairness.WEAK
A_DEAD_NODE: dict[BudgetName, int | None] = {
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletMigration.failures: 0,
    TabletCluster.topology_changes: 1,
}


@known_bug(
    "001-361",
    INDEPENDENTLY,
    breaks=TabletCluster.migrations_end,
    sizes={Tablet: 2},
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class OneOfTwoIsTakenUp(TabletCluster):
    """A new coordinator took up the one tablet in transition, and nothing where it found two of them."""

    unknown = per(Tablet, flag())  # to the coordinator

    @action(by=COORDINATOR, spends=TabletCluster.coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        two = count(self.tablets[t].stage != Stage.none for t in Tablet) >= 2
        for t in Tablet:
            self.unknown[t] = two

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has answered, for a tablet that the coordinator knows."""
        super().pass_barrier(t)
        require(~self.unknown[t], "the coordinator knows the tablet")


@known_bug(
    "T14",
    "scylladb #19752",
    breaks=TabletCluster.migrations_end,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0, TabletCluster.crashes: 0},
)
class CleanupCannotBeRepeated(TabletCluster):
    """The cleanup succeeds, but its answer is lost or the coordinator restarts. The cleanup that is asked for
    again finds no storage, which the first one deallocated, and fails for ever.
    """

    def _remove_rows(self, t: Term[Tablet], n: Term[Node]) -> None:
        super()._remove_rows(t, n)
        require(self.storage[t].has(n), "storage was found")
        self.storage[t].discard(n)


@known_bug(
    "001-520",
    'design document 001: migrations drain "and allow pending topology operation to start"',
    breaks=TabletCluster.topology_changes_happen,
    budgets=A_DEAD_NODE,
)
class TopologyChangesWaitForDeadNodes(TabletCluster):
    """A topology change began when all nodes were up: a dead one was never removed, which was what had been asked
    for.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def change_topology(self) -> None:
        """The pending topology change begins, if all nodes are up."""
        super().change_topology()
        require(self.down.is_empty(), "no node is down")


@known_bug(
    "001-521",
    'design document 001: migrations drain "and allow pending topology operation to start"',
    breaks=TabletCluster.topology_changes_happen,
    budgets=A_DEAD_NODE,
)
class WhoIsGivenUpTakesTheRequestAlong(TabletCluster):
    """When an operator gave a dead node up, whatever topology change was pending was dropped with it."""

    @action(by=OPERATOR)
    def exclude(self, n: Term[Node]) -> None:
        """The node is gone for good, and so is what was requested."""
        super().exclude(n)
        self.request_pending = False


@known_bug(
    "001-522",
    'design document 001: "will exit the tablet migration track"',
    breaks=TabletCluster.topology_changes_happen,
    budgets=A_DEAD_NODE,
)
class TheTrackIsKeptForDeadNodes(TabletCluster):
    """The tablet migration track was left when all nodes were up, for one might come back and take part in a
    migration.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """No tablet is in transition, and no node is down."""
        super().leave_track()
        require(self.down.is_empty(), "no node is down")


BUGS = known_bugs_in(globals())
