"""Mistakes by which what is asked of a tablet, or decided about it, is refused until something else is over."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, Node, Tablet
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.stream_session import FOLLOWER, StreamSession
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_resize import (
    BALANCER,
    Node as ResizedNode,
    TabletResize,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.spec import Fairness, Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_FAULTS = {TabletCluster.crashes: 0, TabletMigration.failures: 0}
NO_CLIENTS = {**NO_FAULTS, TabletCluster.writes: 0, TabletCluster.reads: 0}
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
ALIVE = 'design document 001: "streamed to nodes that took over from still alive owners"'


@known_bug(
    "001-199",
    'design document 001: a plan is persisted "by moving tablets into transitional states"',
    breaks=TabletMigration.tablets_at_rest_can_be_moved,
)
class OnlyWhatLeavesIsReplaced(TabletMigration):
    """A transition had to have a replica that leaves: a tablet that had lost one got no other."""

    @action(by=COORDINATOR)
    def start(self, kind: Term[Kind]) -> None:
        """A tablet is moved."""
        super().start(kind)
        require(kind.any_of(Kind.migration, Kind.intranode_migration), "a replica leaves")


@known_bug(
    "001-200",
    'design document 001: a plan is persisted "by moving tablets into transitional states"',
    breaks=TabletMigration.tablets_at_rest_can_be_repaired,
)
class RepairsWaitForASession(TabletMigration):
    """A repair began where a session was open, which the repair itself was to open."""

    @action(by=COORDINATOR)
    def start_repair(self) -> None:
        """A repair was requested, and has its session."""
        require(self.session, "a session is open")
        super().start_repair()


@known_bug("001-201", ALIVE, breaks=TabletMigration.dead_replicas_are_given_up_in_any_stage)
class OneReplicaIsGivenUp(TabletMigration):
    """Of a transition one replica could be given up: when a second one died, its barriers failed for ever."""

    @action(by=OPERATOR, spends=TabletMigration.exclusions)
    def exclude(self, role: Term[Role]) -> None:
        """A replica's node is gone for good, and no other one's."""
        require(self.excluded.is_empty(), "no replica is excluded")
        super().exclude(role)


@known_bug(
    "001-202",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TabletMigration.streams_can_lose_their_point,
)
class WhoHasFailedIsNotUnwanted(TabletMigration):
    """Whether the migration was still wanted was asked while it streamed well: what had failed was tried for ever."""

    @action(by=OPERATOR)
    def make_unwanted(self) -> None:
        """The migration has no point any more, and streams."""
        super().make_unwanted()
        require(self.operation != Progress.failed, "the stream goes on")


@known_bug(
    "001-203",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_are_repaired_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.repairs: 1},
)
class RepairsWaitForRest(TabletCluster):
    """A tablet was repaired when all others had come to rest: under a balancer, never."""

    @action(by=OPERATOR, spends=TabletCluster.repairs)
    def start_repair(self, t: Term[Tablet]) -> None:
        """The operator asks for a repair, when no tablet is in transition."""
        super().start_repair(t)
        at_rest = every(self.tablets[u].stage == Stage.none for u in Tablet)
        require(at_rest, "no tablet is in transition")


@known_bug(
    "001-204",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletCluster.backups_are_loaded_while_tablets_move,
    budgets={**NO_CLIENTS, TabletCluster.loads: 1},
)
class BackupsAreLoadedAtRest(TabletCluster):
    """Rows of a backup were refused by a node that knew the tablet to be in transition."""

    @action(by=CLIENT, spends=TabletCluster.loads)
    def begin_load(self, n: Term[Node], t: Term[Tablet]) -> None:
        """Load-and-stream, into a tablet at rest."""
        super().begin_load(n, t)
        require(self.view[n][t].stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-205",
    INDEPENDENTLY,
    breaks=TabletCluster.rows_are_rewritten_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0, TabletCluster.compactions: 1},
)
class NothingIsRewrittenWhileItStreams(TabletCluster):
    """A replica that knew its tablet to be streamed rewrote nothing: a split of it waited for the end."""

    @action(spends=TabletCluster.compactions)
    def begin_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A node rewrites what does not stream."""
        super().begin_compaction(t, n)
        require(self.view[n][t].stage != Stage.streaming, "the tablet does not stream")


@known_bug(
    "001-206",
    ALIVE,
    breaks=TabletCluster.dead_nodes_are_given_up_at_any_time,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0},
)
class TheDeadAreGivenUpAtRest(TabletCluster):
    """A dead node was given up when no tablet was streamed: those that were had to wait for it."""

    @action(by=OPERATOR)
    def exclude(self, n: Term[Node]) -> None:
        """The node is gone for good, and no tablet is streamed."""
        super().exclude(n)
        streamed = some(self.tablets[t].stage == Stage.streaming for t in Tablet)
        require(~streamed, "nothing is streamed")


@known_bug(
    "001-207",
    'design document 001: "it means that expected invariants about cluster-wide state … hold"',
    breaks=TabletCluster.barriers_fail_where_a_node_is_down,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0},
    sizes={Node: 3},
)
class OnlyReplicasFailABarrier(TabletCluster):
    """A barrier was taken for failed if a replica was down: of any other node that was, it waited for ever."""

    @action(by=COORDINATOR)
    def fail_barrier(self, t: Term[Tablet]) -> None:
        """A replica does not answer the barrier."""
        super().fail_barrier(t)
        replicas = some(self.down.has(n) for n in self.replicas[t] | self.next[t])
        require(replicas, "a replica is down")


@known_bug(
    "001-208",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.failures_are_told_at_once,
)
class WhoHasSentNothingSaysNothing(StreamSession):
    """A follower whose session failed before it had sent anything told nobody: its master waited for its timeout."""

    @action(by=FOLLOWER, fair=Fairness.WEAK)
    def send_failure(self) -> None:
        """The follower says so, of what it has begun to send."""
        super().send_failure()
        require(self.sent > 0, "it has sent something")


@known_bug(
    "001-209",
    'design document 001: "incrementally make decision", beside active migrations',
    breaks=TabletResize.splits_are_decided_at_any_time,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 1},
)
class SplitsAreDecidedAtRest(TabletResize):
    """No split was decided while a tablet of the table migrated: it grew on meanwhile."""

    @action(by=BALANCER, spends=TabletResize.decisions)
    def decide_split(self) -> None:
        """The tablets have become too large, and are at rest."""
        super().decide_split()
        require(every(self.pending[half].is_none() for half in list(Half)), "no tablet migrates")


@known_bug(
    "001-210",
    'design document 001: "incrementally make decision", beside active migrations',
    breaks=TabletResize.merges_are_decided_at_any_time,
    budgets={TabletResize.decisions: 1, TabletResize.migrations: 0},
)
class OnlyNeighboursAreMerged(TabletResize):
    """Tablets were to be merged if they had the same replicas already: others were never moved together."""

    @action(by=BALANCER, spends=TabletResize.decisions)
    def decide_merge(self) -> None:
        """The tablets have become too small, and lie together."""
        super().decide_merge()
        together = every(
            self.replicas[Half.left].has(n) == self.replicas[Half.right].has(n) for n in ResizedNode
        )
        require(together, "their replicas are on the same nodes")


BUGS = known_bugs_in(globals())
