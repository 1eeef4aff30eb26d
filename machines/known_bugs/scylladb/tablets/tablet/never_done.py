"""Mistakes put back into `TabletCluster`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import COORDINATOR, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Fairness, Term, action, count, flag, per, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
WEAK = Fairness.WEAK


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


BUGS = known_bugs_in(globals())
