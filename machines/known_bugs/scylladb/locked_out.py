"""Mistakes by which somebody waits who need not: clients, operators, or one shard for another.

Nothing goes wrong then but time, and what waits is done in the end: only a promise that nobody is refused notices.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, Node, Tablet as ClusterTablet
from stagewright.machines.scylladb.tablets.intranode_migration import (
    IntranodeMigration,
    Stage as IntranodeStage,
)
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_repair import (
    OPERATOR as REPAIR_OPERATOR,
    Stage as RepairStage,
    TabletRepair,
)
from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage as ReplicaStage
from stagewright.machines.scylladb.tablets.tablet_replicas import Client, TabletReplicas
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.control.topology_record import OPERATOR
from stagewright.machines.scylladb.topology.shared_fence import (
    Kind,
    SharedFence,
    Stage as FenceStage,
)
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import Session, TopologySessions
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    Request,
    TransitionState as T,
)
from stagewright.machines.scylladb.views.view_coordinator import (
    Base,
    Shard,
    Tablet,
    View,
    ViewCoordinator,
    ViewStatus,
)
from stagewright.machines.scylladb.views.view_destinations import (
    Replica,
    Sstable,
    View as BuiltView,
    ViewDestinations,
)
from stagewright.machines.scylladb.views.view_task import TOPOLOGY, Work
from stagewright.machines.scylladb.views.view_updates import Key, ViewUpdates
from stagewright.machines.scylladb.views.view_worker import Row, View as WorkerView, ViewWorker
from stagewright.spec import Entity, Term, action, every, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

ONE_BASE: dict[type[Entity], int] = {Base: 1, View: 1}


@known_bug(
    "000-15",
    "design document 000: one batch per shard",
    breaks=ViewCoordinator.shards_work_at_once,
    sizes=ONE_BASE,
)
class OneBatchInTheCluster(ViewCoordinator):
    """The coordinator sends the next batch when the last one is done, wherever that was."""

    def _may_send(self, s: Term[Shard], t: Term[Tablet], b: Term[Base]) -> None:
        super()._may_send(s, t, b)
        free = every(self.batch[other].tablet.is_none() for other in Shard)
        require(free, "no shard has a batch")


@known_bug(
    "000-16",
    "design document 000: a view or index is created",
    breaks=ViewCoordinator.views_are_created_at_any_time,
    sizes={Base: 1},
)
class ViewsAreCreatedOneAfterTheOther(ViewCoordinator):
    """CREATE MATERIALIZED VIEW waits until no view is built."""

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created, unless one is built."""
        super().create_view(v)
        require(self.processed.is_none(), "no base table is processed")


@known_bug(
    "000-17",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewCoordinator.views_are_dropped_at_any_time,
    sizes=ONE_BASE,
)
class DropWaitsForTheBatch(ViewCoordinator):
    """DROP MATERIALIZED VIEW waits until no shard builds the view."""

    @action(by=CLIENT, spends=ViewCoordinator.drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped that no shard builds."""
        super().drop_view(v)
        require(every(~self.batch[s].views.has(v) for s in Shard), "no batch is for it")


@known_bug(
    "000-18",
    "design document 000: we simply delete relevant view building tasks",
    breaks=ViewWorker.views_are_dropped_at_any_time,
)
class DropWaitsForTheWorker(ViewWorker):
    """A task that is executed is not deleted."""

    @action(by=CLIENT, spends=ViewWorker.drops)
    def drop_view(self, v: Term[WorkerView]) -> None:
        """A view is dropped that is not built right now."""
        super().drop_view(v)
        require(~self.batch.has(v), "its task is not executed")


@known_bug(
    "000-19",
    "design document 000: the worker builds views from the base table, which lives on",
    breaks=ViewWorker.tables_are_written_while_views_are_built,
)
class TheBaseTableIsLocked(ViewWorker):
    """No row is written while a batch reads the table."""

    @action(by=CLIENT)
    def write(self, r: Term[Row]) -> None:
        """A row is written when no view is built."""
        super().write(r)
        require(self.batch.is_empty(), "no batch is executed")


@known_bug(
    "000-50",
    "design document 000: tasks are created when a view or index is created",
    breaks=ViewWorker.views_are_created_at_any_time,
)
class CreatingWaitsForTheBatch(ViewWorker):
    """CREATE MATERIALIZED VIEW waits until the worker has no batch of the table."""

    @action(by=CLIENT)
    def create_view(self, v: Term[WorkerView]) -> None:
        """A view is created when no batch is executed."""
        super().create_view(v)
        require(self.batch.is_empty(), "no batch is executed")


@known_bug(
    "001-55",
    "design document 001: a request is pending until it is its turn",
    breaks=TabletRepair.repairs_are_asked_for_at_any_time,
)
class RepairIsRefusedUntilTheTabletRests(TabletRepair):
    """A repair is refused while the last one of the tablet has not ended, instead of waiting for it."""

    @action(by=REPAIR_OPERATOR, spends=TabletRepair.requests)
    def request_repair(self) -> None:
        """The operator asks for a repair of a tablet at rest."""
        super().request_repair()
        require(self.stage == RepairStage.none, "the tablet is at rest")


@known_bug(
    "001-15",
    "design document 001: the entry is added to the map",
    breaks=TopologyControl.requests_are_issued_at_any_time,
    budgets={TopologyControl.faults: 0},
)
class OneRequestAtATime(TopologyControl):
    """A node operation is refused while another node asks for one, as if there were no map of them."""

    def _ask(self, n: Term[Node], request: Request | Term[Request]) -> None:
        super()._ask(n, request)
        require(every(self.topology_request[m].is_none() for m in Node), "no node asks")


@known_bug(
    "001-16",
    "design document 001: separately from the per-node requests, a global one",
    breaks=TopologyControl.global_requests_are_issued_at_any_time,
    budgets={TopologyControl.faults: 0},
)
class GlobalRequestsWaitForNodes(TopologyControl):
    """A global request is refused while a node operation goes on."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects the entire cluster, at rest."""
        super().ask_globally(request)
        require(self.is_at_rest(), "the topology is at rest")


@known_bug(
    "001-17",
    "design document 001: writes are going to both new and old replicas",
    breaks=TopologyCluster.clients_write_while_the_ring_changes,
)
class WritesWaitForTheRing(TopologyCluster):
    """No client may write while a node joins or leaves, once new replicas are read."""

    @action(by=CLIENT, spends=TopologyCluster.writes)
    def begin_write(self, n: Term[Node]) -> None:
        """A client writes to a ring in which old replicas are read."""
        super().begin_write(n)
        moved = self.topology.transition_state == T.write_both_read_new
        require(~moved, "reads have not moved")


@known_bug(
    "001-18",
    "design document 001: reads are using old replicas, then new replicas",
    breaks=TopologyCluster.clients_read_while_the_ring_changes,
)
class ReadsWaitForTheRing(TopologyCluster):
    """No client may read while a node joins or leaves."""

    @action(by=CLIENT, spends=TopologyCluster.reads)
    def begin_read(self, n: Term[Node]) -> None:
        """A client reads from a ring that stays as it is."""
        super().begin_read(n)
        require(self.topology.is_at_rest(), "the topology is at rest")


@known_bug(
    "001-19",
    "design document 001: write_both_read_old",
    breaks=TabletCluster.clients_write_while_tablets_move,
    budgets={TabletCluster.crashes: 0, TabletMigration.failures: 0, TabletCluster.reads: 0},
)
class WritesWaitForTheStream(TabletCluster):
    """A tablet that is streamed takes no writes."""

    @action(by=CLIENT, spends=TabletCluster.writes)
    def begin_write(self, n: Term[Node], t: Term[ClusterTablet]) -> None:
        """A client writes to a tablet that is not streamed, as far as the node knows."""
        super().begin_write(n, t)
        require(self.view[n][t].stage != Stage.streaming, "the tablet is not streamed")


@known_bug(
    "001-20",
    "design document 001: write_both_read_old",
    breaks=TabletReplicas.clients_write_while_replicas_change,
)
class WritesWaitForTheReplicas(TabletReplicas):
    """A tablet takes no writes while a replica is added, removed or moved."""

    @action(by=CLIENT, spends=TabletReplicas.writes)
    def begin_write(self, c: Term[Client]) -> None:
        """A client writes to a tablet at rest."""
        super().begin_write(c)
        require(self.view[c].stage == ReplicaStage.none, "the tablet is at rest")


@known_bug(
    "000-20",
    "design document 000: the worker builds views from the base table, which lives on",
    breaks=ViewUpdates.rows_are_written_while_views_are_built,
)
class TheBaseRowIsLocked(ViewUpdates):
    """A row is not written between a batch's read of it and the update of the view."""

    @action(by=CLIENT)
    def write(self, k: Term[Key]) -> None:
        """The base row is written when no batch has read it."""
        super().write(k)
        require(self.work != Work.executing, "no batch is executed")


@known_bug(
    "001-21",
    "design document 001: streaming data from other replicas",
    breaks=TopologyRebuild.clients_write_while_nodes_are_rebuilt,
)
class WritesWaitForTheRebuild(TopologyRebuild):
    """No client writes while a node is rebuilt."""

    @action(by=CLIENT)
    def send(self) -> None:
        """A client writes when no node is rebuilt."""
        super().send()
        require(self.rebuilding.is_none(), "no node is rebuilt")


@known_bug(
    "001-22",
    "design document 001: we want to share the infrastructure for fencing",
    breaks=SharedFence.clients_write_while_both_change,
)
class WritesWaitForTheOtherTrack(SharedFence):
    """A table takes no writes while data of the other kind is streamed."""

    @action(by=CLIENT, spends=SharedFence.writes)
    def begin_write(self, n: Term[Node], k: Term[Kind]) -> None:
        """A client writes while nothing is streamed."""
        super().begin_write(n, k)
        require(
            every(self.stage[o] != FenceStage.write_both_read_old for o in Kind), "nothing streams"
        )


@known_bug(
    "001-23",
    "design document 001: write_both_read_old",
    breaks=IntranodeMigration.writes_are_taken_in_every_stage,
)
class WritesWaitForTheOtherShard(IntranodeMigration):
    """A node takes no writes of a tablet that moves between its shards."""

    @action(by=CLIENT, spends=IntranodeMigration.writes)
    def begin_write(self) -> None:
        """A write reaches the node of a tablet that does not move."""
        super().begin_write()
        require(self.known == IntranodeStage.none, "the tablet is at rest")


@known_bug(
    "001-24",
    "design document 001: a global request, beside those of nodes",
    breaks=TopologySessions.tables_are_truncated_at_any_time,
    budgets={TopologySessions.failures: 0},
)
class TruncateIsRefusedWhileNodesStream(TopologySessions):
    """TRUNCATE finds the session of a decommission, and fails instead of waiting in the queue."""

    def _queue(self, s: Term[Session]) -> None:
        super()._queue(s)
        require(self.session.is_none(), "nothing streams")


@known_bug(
    "000-21",
    "design document 000: Is any view started but not finished yet?",
    breaks=ViewDestinations.tables_are_repaired_while_views_are_built,
)
class RepairWaitsForViews(ViewDestinations):
    """A table is not repaired until what builds one of its views has read it."""

    @action(by=TOPOLOGY)
    def repair(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """A repair brings rows, if no view is about to be built of them."""
        super().repair(r, s)
        read = every(
            (self.status[v] != ViewStatus.started) | self.scanned.has(v) for v in BuiltView
        )
        require(read, "no range is to be built")


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
