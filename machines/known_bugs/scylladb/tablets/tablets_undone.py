"""Mistakes by which what goes on with a tablet is undone, or given up, for what happens beside it."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Tablet
from stagewright.machines.scylladb.tablets.intranode_migration import (
    CLIENT,
    IntranodeMigration,
    Stage as ShardStage,
)
from stagewright.machines.scylladb.tablets.load_balancer import (
    COORDINATOR,
    OPERATOR,
    LoadBalancer,
    Tablet as BalancedTablet,
)
from stagewright.machines.scylladb.tablets.resize_guards import Node as GuardNode, ResizeGuards
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_repair import (
    OPERATOR as REPAIR_OPERATOR,
    Stage as RepairStage,
    TabletRepair,
)
from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage as ReplicaStage
from stagewright.machines.scylladb.tablets.tablet_replicas import (
    Client as ReplicaClient,
    Node as ReplicaNode,
    TabletReplicas,
)
from stagewright.machines.scylladb.tablets.tablet_resize import (
    BALANCER,
    Node as ResizeNode,
    Resize,
    TabletResize,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Fairness, Term, action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
DRAIN = 'design document 001: a pending request is "to allow for current migrations to drain"'


@known_bug(
    "001-330",
    DRAIN,
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={BalancedTablet: 2},
    budgets={LoadBalancer.disturbances: 1},
)
class RequestsUndoMigrations(LoadBalancer):
    """That a topology change need not wait, what streamed when it was asked for was undone, and streamed again later."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested: all that streams is given up."""
        self.request_pending = True
        for t in BalancedTablet:
            streams = self.stage[t] == Stage.streaming
            self.stage[t] = choose(streams, Stage.cleanup_target, self.stage[t])
        self._commit()


@known_bug(
    "001-331",
    'design document 001: "Each tablet has its own migration state machine stored in group0"',
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={BalancedTablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class AnotherCoordinatorUndoesMigrations(LoadBalancer):
    """A new coordinator, which had not begun what streamed, undid all of it."""

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and begins anew."""
        self._forget_plan()
        self.outdated = False
        self.invoked = True
        for t in BalancedTablet:
            streams = self.stage[t] == Stage.streaming
            self.stage[t] = choose(streams, Stage.cleanup_target, self.stage[t])


@known_bug(
    "001-332",
    INDEPENDENTLY,
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={BalancedTablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class OneFailureUndoesAll(LoadBalancer):
    """The migrations of a plan were one job: when one of them failed, all were undone."""

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_streaming(self, t: Term[BalancedTablet]) -> None:
        """A tablet could not be streamed: whatever streams is undone."""
        require(self.stage[t] == Stage.streaming, "the tablet streams")
        for other in BalancedTablet:
            streams = self.stage[other] == Stage.streaming
            self.stage[other] = choose(streams, Stage.cleanup_target, self.stage[other])
        self._commit()
        self.invoked = True


@known_bug("001-333", INDEPENDENTLY, breaks=ResizeGuards.requests_outlive_changes_of_other_tablets)
class GuardsAreOfOneMap(ResizeGuards):
    """A guard was as good as its map: when any tablet of the table changed, all requests began anew, and no guard was refreshed."""

    @action(fair=WEAK)
    def refresh(self, n: Term[GuardNode]) -> None:
        """No guard takes another map."""
        require(self.guard[n].outdated & self.guard[n].key.is_none(), "nobody holds it")

    @action(fair=WEAK)
    def begin_anew(self, n: Term[GuardNode]) -> None:
        """A request whose map is not the newest lets go of its guard."""
        require(self.guard[n].outdated, "its map is not the newest")
        require(self._is_current(n), "the node has learned of the newest")
        self._release(n)


@known_bug(
    "001-334",
    'design document 001: "to incrementally make decision", beside "active migrations"',
    breaks=TabletResize.nothing_else_revokes_a_decision,
    budgets={TabletResize.decisions: 1},
)
class MigrationsRevokeDecisions(TabletResize):
    """A migration that began took the decision to split or merge back: the next one began the preparation anew."""

    @action(by=BALANCER, spends=TabletResize.migrations)
    def migrate(self, h: Term[Half], leaving: Term[ResizeNode], pending: Term[ResizeNode]) -> None:
        """A tablet is moved, and nothing else is decided."""
        super().migrate(h, leaving, pending)
        self.decision = Resize.none


@known_bug(
    "001-335",
    'design document 001: "to incrementally make decision"',
    breaks=TabletResize.nothing_else_revokes_a_decision,
    budgets={
        TabletResize.decisions: 1,
        TabletResize.migrations: 0,
        TabletResize.failovers: 1,
    },
)
class AnotherCoordinatorRevokesDecisions(TabletResize):
    """A new coordinator, which had not heard of any replica that is ready, gave the decision up."""

    @action(by=COORDINATOR, spends=TabletResize.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and decides anew."""
        super().fail_over()
        self.decision = Resize.none


@known_bug(
    "001-336",
    DRAIN,
    breaks=TabletCluster.requests_let_migrations_drain,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletCluster.topology_changes: 1,
        TabletMigration.failures: 0,
    },
)
class RequestsMakeMigrationsPointless(TabletCluster):
    """With a topology change that was asked for, what streamed was unwanted: where it failed it was undone."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave: no migration is worth another attempt."""
        self.request_pending = True
        for t in Tablet:
            tablet = self.tablets[t]
            tablet.unwanted = tablet.unwanted | (tablet.stage == Stage.streaming)


@known_bug(
    "001-344",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=IntranodeMigration.what_is_done_stays_done,
    budgets={IntranodeMigration.writes: 1, IntranodeMigration.reads: 0},
)
class WritesAreStreamedAgain(IntranodeMigration):
    """A write that came after the rows had been streamed had them streamed again, though it goes to both shards: as long as
    clients wrote, the tablet did not move.
    """

    @action(by=CLIENT, spends=IntranodeMigration.writes)
    def begin_write(self) -> None:
        """A write reaches the node: what was streamed is out of date."""
        super().begin_write()
        self.operated = self.operated & (self.stage != ShardStage.streaming)


@known_bug(
    "001-345",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletReplicas.what_is_done_stays_done,
    sizes={ReplicaNode: 2},
    budgets={
        TabletReplicas.writes: 1,
        TabletReplicas.removals: 0,
        TabletReplicas.additions: 0,
        TabletReplicas.failures: 0,
    },
)
class StreamsFollowWrites(TabletReplicas):
    """The same between nodes: a write had the replicas streamed anew."""

    @action(by=CLIENT, spends=TabletReplicas.writes)
    def begin_write(self, c: Term[ReplicaClient]) -> None:
        """A client writes: what was streamed is out of date."""
        super().begin_write(c)
        self.operated = self.operated & (self.stage != ReplicaStage.streaming)


@known_bug(
    "001-346",
    "design document 001: a tablet's request to repair is a field of its own beside its stage",
    breaks=TabletRepair.repairs_are_asked_for_while_one_ends,
    budgets={TabletRepair.failures: 0, TabletRepair.failovers: 0, TabletRepair.restarts: 0},
)
class RequestsJoinARepairThatIsDone(TabletRepair):
    """A request that came while a repair was in transition was taken for a part of it, also when that had run: nothing came
    of it, and the operator was told that it was done.
    """

    @action(by=REPAIR_OPERATOR, spends=TabletRepair.requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of the tablet, if none goes on."""
        self.requested = self.requested | (self.stage == RepairStage.none)


BUGS = known_bugs_in(globals())
