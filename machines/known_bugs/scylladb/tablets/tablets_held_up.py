"""Mistakes by which a tablet waits for another one, or clients and operators for a tablet, who need not."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import Fairness, Term, action, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
Budgets = Mapping[BudgetName, int | None]
NO_FAULTS: Budgets = {TabletCluster.crashes: 0, TabletMigration.failures: 0}
NO_CLIENTS: Budgets = {**NO_FAULTS, TabletCluster.writes: 0, TabletCluster.reads: 0}
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'


@known_bug(
    "001-68",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.migrations: 2},
)
class TabletsAdvanceInStep(TabletCluster):
    """The coordinator moved its tablets on together: what had streamed waited for those that still did."""

    @action(by=COORDINATOR, fair=WEAK)
    def use_new(self, t: Term[Tablet]) -> None:
        """No read uses the old replicas, and no other tablet streams."""
        super().use_new(t)
        streamed = every(self.tablets[u].stage != Stage.streaming for u in Tablet)
        require(streamed, "no other tablet streams")


@known_bug(
    "001-69",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.migrations: 2},
)
class TheCoordinatorWaitsForAStream(TabletCluster):
    """The coordinator waited for the stream of one tablet before it ran the barrier of the others."""

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has answered, and nothing streams."""
        super().pass_barrier(t)
        streamed = every(self.tablets[u].stage != Stage.streaming for u in Tablet)
        require(streamed, "no tablet streams")


@known_bug(
    "001-70",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_are_rebuilt_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.rebuilds: 1},
)
class RebuildsWaitForRest(TabletCluster):
    """A tablet got no replica more before all others had come to rest."""

    @action(by=COORDINATOR, spends=TabletCluster.rebuilds)
    def start_rebuild(self, t: Term[Tablet], pending: Term[Node], kind: Term[Kind]) -> None:
        """The tablet gets one replica more, when no tablet is in transition."""
        super().start_rebuild(t, pending, kind)
        at_rest = every((u == t) | (self.tablets[u].stage == Stage.none) for u in Tablet)
        require(at_rest, "no other tablet is in transition")


@known_bug(
    "001-71",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TabletCluster.topology_changes_are_requested_at_any_time,
    budgets={**NO_CLIENTS, TabletCluster.topology_changes: 1},
)
class RequestsAreRefusedWhileTabletsMove(TabletCluster):
    """A node was refused while a tablet was streamed, and as it did not wait, the balancer moved the next one."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave in a cluster in which nothing is streamed."""
        super().request_topology_change()
        streamed = some(self.tablets[t].stage == Stage.streaming for t in Tablet)
        require(~streamed, "nothing is streamed")


@known_bug(
    "001-72",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletCluster.writes_are_stored_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class ThePendingReplicaTakesNoWrites(TabletCluster):
    """A replica took no writes while it streamed: each that came meanwhile timed out."""

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write, unless it streams."""
        super().store_write(n, r, t)
        streams = (self.view[r][t].stage == Stage.streaming) & ~self.view[r][t].replicas.has(r)
        require(~streams, "the replica does not stream")


@known_bug(
    "001-73",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletCluster.writes_succeed_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class WritesAreAcknowledgedAtRest(TabletCluster):
    """A write that all replicas had stored was acknowledged when the migration had ended: most had timed out by then."""

    @action(fair=WEAK)
    def acknowledge_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """All replicas have answered, and the tablet is at rest, as far as the node knows."""
        super().acknowledge_write(n, t)
        require(self.view[n][t].stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-74",
    "design document 001, stage 5: read requests complete successfully",
    breaks=TabletCluster.reads_succeed_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.writes: 0},
)
class ASourceAnswersNoReads(TabletCluster):
    """The replica that streams to another one answered no read before it had sent its rows."""

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read, unless it is streamed from."""
        super().answer_read(n, r, t)
        require(self.view[r][t].stage != Stage.streaming, "the replica sends no rows")


@known_bug(
    "001-75",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletCluster.stages_cut_nobody_off,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class WhoLearnsDropsItsRequests(TabletCluster):
    """A node that learned of a stage ended what it coordinated by the one before: clients saw timeouts at every stage."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed, and gives up what began before."""
        super().learn(n)
        self._abandon(n)


BUGS = known_bugs_in(globals())
