"""A tablet's stage in every machine that has one, as a view of the machine of a tablet's transition."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Tablet
from stagewright.machines.scylladb.tablets import (
    intranode_migration,
    load_balancer,
    tablet_repair,
    tablet_replica_stages,
)
from stagewright.machines.scylladb.tablets.intranode_migration import IntranodeMigration
from stagewright.machines.scylladb.tablets.load_balancer import LoadBalancer
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration as M
from stagewright.machines.scylladb.tablets.tablet_repair import TabletRepair
from stagewright.machines.scylladb.tablets.tablet_replicas import TabletReplicas
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology import fencing, shared_fence, topology_coordinator
from stagewright.machines.scylladb.topology.fencing import Fencing
from stagewright.machines.scylladb.topology.shared_fence import SharedFence
from stagewright.machines.scylladb.topology.topology_coordinator import TopologyCoordinator
from stagewright.machines.scylladb.views import view_building
from stagewright.machines.scylladb.views.view_building import ViewBuilding
from stagewright.spec import Term, refinement
from stagewright.spec.declarations.exercised import Choice

NEWEST = "scylla-2026.2"
# clients change nothing of a tablet's stage
QUIET: Choice = {TabletCluster.writes: 0, TabletCluster.reads: 0}
OF_FENCING = {
    fencing.Stage.old: Stage.none,
    fencing.Stage.both: Stage.streaming,
    fencing.Stage.new: Stage.use_new,
}


@refinement(at=(QUIET, {**QUIET, TabletCluster.repairs: 1, TabletCluster.migrations: 0}))
def a_tablet_among_nodes(cluster: TabletCluster, seen: M, t: Term[Tablet]) -> None:
    """In the system a tablet's transition is one of the machine by itself, though the system adds to its steps."""
    tablet = cluster.tablets[t]
    seen.stage = tablet.stage
    seen.kind = tablet.kind
    seen.session = tablet.session
    seen.excluded = tablet.excluded
    seen.unwanted = tablet.unwanted
    seen.barrier = tablet.barrier
    seen.operation = tablet.operation


@refinement(profiles={"": NEWEST})
def a_tablet_with_quorums(replicas: TabletReplicas, seen: M) -> None:
    """Replicas that are added, removed and moved under quorums: the stages are those of every transition."""
    seen.stage = replicas.stage.column(_stage_of_replicas)


def _stage_of_replicas(stage: tablet_replica_stages.Stage) -> Stage:
    return Stage[stage.name]


@refinement(profiles={"": NEWEST})
def a_tablet_within_a_node(node: IntranodeMigration, seen: M) -> None:
    """A migration between two shards; where it is done, the tablet is at rest."""
    seen.stage = node.stage.column(_stage_within_a_node)


def _stage_within_a_node(stage: intranode_migration.Stage) -> Stage:
    return Stage.none if stage is intranode_migration.Stage.moved else Stage[stage.name]


@refinement(
    steps={
        Fencing.advance: [
            (M.start, M.read_new),
            (M.write_both, M.use_new),
            (M.begin_streaming, None),
        ],
    },
)
def a_tablet_behind_a_fence(nodes: Fencing, seen: M) -> None:
    """Three stages stand for all: writes go to the old replicas, to both while data is streamed, to the new ones."""
    seen.stage = nodes.stage.column(_stage_behind_a_fence)
    seen.session = nodes.stage.column(lambda stage: stage.session)


def _stage_behind_a_fence(stage: fencing.Stage) -> Stage:
    return OF_FENCING[stage]


@refinement(
    profiles={"seed": "seed", "scylla-master": NEWEST},
    at=({SharedFence.writes: 0},),
    steps={
        SharedFence.advance: [
            (M.start, M.read_new, M.use_new, None),
            (M.write_both, None),
            (M.begin_streaming, None),
        ],
    },
)
def a_tablet_that_shares_its_fence(both: SharedFence, seen: M, k: Term[shared_fence.Kind]) -> None:
    """Its stages are named as those of the ring are: writes go to both replicas while rows are streamed."""
    seen.stage = both.stage[k].column(_stage_that_is_shared)


def _stage_that_is_shared(stage: shared_fence.Stage) -> Stage:
    streams = stage is shared_fence.Stage.write_both_read_old
    return Stage.streaming if streams else Stage[stage.name]


@refinement(profiles={"": NEWEST})
def a_tablet_under_repair(repair: TabletRepair, seen: M) -> None:
    """The stages of a repair, and what the coordinator knows of it."""
    seen.stage = repair.stage.column(_stage_of_repair)
    seen.operation = repair.operation.column(_progress_of_repair)
    seen.session = repair.open


def _stage_of_repair(stage: tablet_repair.Stage) -> Stage:
    return Stage[stage.name]


def _progress_of_repair(operation: tablet_repair.Operation) -> Progress:
    return Progress[operation.name]


@refinement(
    profiles={"seed": "scylla-2025.4", NEWEST: NEWEST},
    steps={ViewBuilding.read_new: [M.read_new, M.use_new, M.begin_cleanup]},
)
def a_tablet_with_views(views: ViewBuilding, seen: M) -> None:
    """View building tells no difference between the stages in which reads and writes move: they are one step."""
    seen.stage = views.stage.column(_stage_with_views)


def _stage_with_views(stage: view_building.Stage) -> Stage:
    return Stage[stage.name]


@refinement(
    profiles={"": NEWEST},
    steps={
        TopologyCoordinator.start_migration: [M.start, M.write_both],
        TopologyCoordinator.commit_plan: [
            (M.begin_streaming, M.read_new, M.end, None),
            (M.use_new, M.finish, None),
            (M.begin_cleanup, None),
        ],
    },
    anew=(TopologyCoordinator.drop_table,),
)
def a_tablet_that_is_committed(
    coordinator: TopologyCoordinator, seen: M, t: Term[topology_coordinator.Tablet]
) -> None:
    """Four stages stand for all. A table that is dropped takes its tablets along, in whatever stage they are."""
    seen.stage = coordinator.stage[t].column(_stage_that_is_committed)


def _stage_that_is_committed(stage: topology_coordinator.Stage) -> Stage:
    return Stage[stage.name]


@refinement(
    profiles={"": NEWEST},
    at=({load_balancer.Tablet: 2},),
    steps={
        LoadBalancer.persist_plan: [
            (M.start, None),
            (M.write_both, None),
            (M.begin_streaming, None),
        ],
        LoadBalancer.finish_migration: [M.use_new, M.begin_cleanup, M.end, M.finish],
        LoadBalancer.revert_migration: [M.revert, M.finish_revert],
    },
)
def a_tablet_that_is_balanced(
    balancer: LoadBalancer, seen: M, t: Term[load_balancer.Tablet]
) -> None:
    """The load balancer tells apart whether a tablet has yet to stream, has streamed, or is undone."""
    seen.stage = balancer.stage[t]
