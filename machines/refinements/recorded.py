"""What the executable system records of itself, as views of the machines that its parts take their steps from."""

from __future__ import annotations

from stagewright.machines.recorded.barriers import NodeBarrier
from stagewright.machines.recorded.replicas import Known, RecordedReplica, RecordedSession
from stagewright.machines.recorded.resizes import RecordedResize, RecordedShard
from stagewright.machines.recorded.writes import RecordedWrite
from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.load_balancer import (
    LoadBalancer,
    Shard,
    Tablet as MovedTablet,
)
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_resize import (
    Node as ResizedNode,
    Resize,
    TabletResize,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.fencing import Fencing, Node as SeenNode, Phase
from stagewright.spec import Term, alike, choose, count, refinement, some
from stagewright.spec.declarations.exercised import Choice

WRITES: Choice = {TabletCluster.reads: 0, TabletCluster.crashes: 0}
QUIET: Choice = {TabletCluster.writes: 0, TabletCluster.reads: 0}


@refinement(
    profiles={"scylla-2026.2": ""},
    from_start=False,
    at=(WRITES,),
    steps={
        TabletCluster.store_write: (RecordedReplica.write, None),
        TabletCluster.receive_chunk: (RecordedReplica.store_streamed, None),
        TabletCluster.clean_up: [RecordedReplica.delete_rows, RecordedReplica.answer_cleanup],
    },
)
def a_replica_of_a_tablet(
    cluster: TabletCluster, seen: RecordedReplica, t: Term[Tablet], n: Term[Node]
) -> None:
    """What a node records of a tablet: whether there is storage for it, and rows in it."""
    seen.storage = cluster.storage[t].has(n)
    seen.rows = cluster.data[t][n] > 0


@refinement(
    profiles={"scylla-2026.2": ""},
    anew=(TabletCluster.learn,),
    at=(QUIET,),
)
def a_session_of_a_tablet(
    cluster: TabletCluster, seen: RecordedSession, t: Term[Tablet], n: Term[Node]
) -> None:
    """A node learns of a session once, and of its end; the next one is another."""
    alike(seen.session == Known.open, cluster.view[n][t].session)


@refinement(
    profiles={"scylla-2026.2": ""},
    anew=(
        TabletCluster.begin_write,
        TabletCluster.begin_read,
        TabletCluster.acknowledge_write,
        TabletCluster.lose_messages,
        TabletCluster.time_out,
        TabletCluster.crash,
        TabletCluster.pass_barrier,
    ),
    at=(WRITES,),
)
def a_write_of_a_node(cluster: TabletCluster, seen: RecordedWrite, n: Term[Node]) -> None:
    """A write goes to the replicas that its stage names, and no more of them answer; then comes the next one."""
    request = cluster.request[n]
    seen.stage = request.stage
    seen.answers = request.reached.size()


@refinement(
    profiles={"": "scylla-2026.2"},
    seen_at={
        SeenNode: 1,
        Fencing.writes: 0,
        Fencing.transactions: 0,
        Fencing.streams: 0,
        Fencing.bumps: 0,
        Fencing.failures: 0,
        Fencing.cleanups: 0,
        Fencing.decommissions: 0,
        Fencing.exclusions: 0,
        Fencing.failovers: 0,
    },
)
def a_barrier_at_a_node(barrier: NodeBarrier, seen: Fencing) -> None:
    """What the executable system records of a barrier is stricter than `fencing`: the node has answered twice.

    So it is this one that is seen as a barrier of the other.
    """
    alike(seen.phase.any_of(Phase.fencing, Phase.done), barrier.drain_answered)
    alike(seen.phase == Phase.done, barrier.passed)


PLANS = {LoadBalancer.persist_plan: (RecordedShard.plan, None)}


@refinement(steps=PLANS)
def what_streams_from_a_shard(balancer: LoadBalancer, seen: RecordedShard, s: Term[Shard]) -> None:
    """A plan begins one migration that streams from a shard, and none while another one does."""
    seen.streams = count(
        (balancer.stage[t] == Stage.streaming) & (balancer.leaving[t] == s) for t in MovedTablet
    )


@refinement(steps=PLANS)
def what_streams_to_a_shard(balancer: LoadBalancer, seen: RecordedShard, s: Term[Shard]) -> None:
    """The same of those that stream to it."""
    seen.streams = count(
        (balancer.stage[t] == Stage.streaming) & (balancer.pending[t] == s) for t in MovedTablet
    )


@refinement(
    from_start=False,
    steps={
        TabletResize.finalize_split: RecordedResize.finish,
        TabletResize.finalize_merge: RecordedResize.finish,
        TabletResize.collect_stats: (RecordedResize.prepare, RecordedResize.hold_up, None),
        TabletResize.finish_migration: [
            (RecordedResize.release, RecordedResize.hold_up, None),
            (RecordedResize.release, RecordedResize.hold_up, None),
            (RecordedResize.end_move, None),
        ],
    },
    anew=(
        TabletResize.decide_split,
        TabletResize.decide_merge,
        TabletResize.revoke,
        TabletResize.fail_over,
    ),
)
def a_resize_of_a_tablet(table: TabletResize, seen: RecordedResize) -> None:
    """What holds up a decision: replicas that have not reported, or lie where the other tablet has none."""
    left, right = table.replicas[Half.left], table.replicas[Half.right]
    unready = count(left.has(n) & (table.reported[n] != table.sequence) for n in ResizedNode)
    apart = count(left.has(n) != right.has(n) for n in ResizedNode)
    merges = choose(table.decision == Resize.merge, apart, 0)
    seen.awaited = choose(table.decision == Resize.split, unready, merges)
    seen.moving = some(table.pending[half].is_some() for half in list(Half))
