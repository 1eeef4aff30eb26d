"""Mistakes by which what was asked of a tablet, or begun with it, is taken for done, and nothing comes of it."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet, Track
from stagewright.machines.scylladb.tablets.intranode_migration import (
    CLIENT,
    COORDINATOR,
    LEAVING,
    IntranodeMigration,
    Stage,
)
from stagewright.machines.scylladb.tablets.resize_guards import (
    COORDINATOR as RESIZER,
    Node as GuardNode,
    ResizeGuards,
)
from stagewright.machines.scylladb.tablets.resize_layout import Layout
from stagewright.machines.scylladb.tablets.stream_session import MASTER, Message, StreamSession
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage as TabletStage
from stagewright.spec import Bool, Fairness, Term, action, choose, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
NO_FAULTS: dict[BudgetName, int | None] = {TabletCluster.crashes: 0, TabletMigration.failures: 0}
SUCCESSFUL = "design document 001, stage 3: writes are executed on behalf of successful requests"


@known_bug(
    "001-246",
    "design document 001, in the releases: the last stage of the way back deletes the transition",
    breaks=IntranodeMigration.what_is_undone_stays_where_it_was,
    budgets={IntranodeMigration.writes: 0, IntranodeMigration.reads: 0},
)
class WhatIsUndoneBeginsAgain(IntranodeMigration):
    """A migration that had been undone was begun again, to the same shard: the balancer was not asked whether it should."""

    @IntranodeMigration.stage.step(
        Stage.revert_migration, Stage.allow_write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def finish_revert(self) -> None:
        """The pending shard is clean: try again."""
        self._barrier()


@known_bug(
    "001-247",
    'design document 001, stage 5: read requests "which complete successfully, use the new replica set"',
    breaks=IntranodeMigration.reads_succeed_at_the_pending_shard,
    budgets={IntranodeMigration.writes: 1},
)
class ReadsOfAnotherShardAreDropped(IntranodeMigration):
    """A node dropped each read for a shard that the tablet map did not name yet: clients saw timeouts until it did."""

    @action(by=CLIENT, spends=IntranodeMigration.reads)
    def begin_read(self) -> None:
        """A read reaches the node, which knows its shard by the tablet map."""
        require(~self.reading, "no read is under way")
        mapped = self.known.column(lambda stage: stage.reads) == LEAVING
        self.reading = mapped
        self.read_stage = choose(mapped, self.known, Stage.none)
        self.expected = choose(mapped, self.acknowledged, 0)


@known_bug(
    "001-248",
    'design document 001: migrations go on "to keep the cluster saturated with streaming"',
    breaks=StreamSession.failures_are_heard_at_once,
)
class MastersHearOfNoFailure(StreamSession):
    """A master took the failure of its follower for the end of the stream's messages, and waited until it timed out."""

    @action(by=MASTER, fair=WEAK)
    def receive_failure(self) -> None:
        """The follower says that its session has failed: nothing more will come."""
        self._arrives(Message.failed)
        self._take_off_the_wire()


@known_bug(
    "001-249",
    "design document 001: requests use the replicas that the stage names",
    breaks=ResizeGuards.tablets_change_under_requests,
    budgets={ResizeGuards.migrations: 0},
)
class ResizesAreGivenUpUnderRequests(ResizeGuards):
    """A split that found a guard in use was given up without a word: of a busy table no tablet was ever split."""

    @action(by=RESIZER, spends=ResizeGuards.resizes)
    def split(self) -> None:
        """The table gets two tablets, if no request runs."""
        require(self.layout == Layout.one_tablet, "the table has one tablet")
        self._resize()
        busy = some(self.guard[n].key.is_some() for n in GuardNode)
        self.layout = choose(busy, Layout.one_tablet, Layout.two_tablets)


@known_bug(
    "001-253",
    SUCCESSFUL,
    breaks=TabletCluster.replicas_answer_that_they_stored,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class OnlyItsOwnRowsAreAnswered(TabletCluster):
    """Whoever coordinated a write counted what it had stored itself, and the answer of no other node."""

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write; its answer counts if it coordinates it."""
        request = self.request[n]
        require((request.tablet == t) & request.write, "a write is on its way")
        require(request.targets.has(r) & ~request.reached.has(r), "it is sent to the replica")
        require(~self.down.has(r) & self.storage[t].has(r), "replica is up, and has storage")
        newer = self.data[t][r] < request.value
        self.data[t][r] = choose(newer, request.value, self.data[t][r])
        request.reached.put(r, n == r)


@known_bug(
    "001-254",
    SUCCESSFUL,
    breaks=TabletCluster.nothing_is_remembered_of_a_request,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class TheNextRequestIsGivenUp(TabletCluster):
    """What was known of a write that had timed out was kept for the next one: it was taken for given up as it began."""

    def _forget(self, n: Term[Node], where: Bool | None = None) -> None:
        request = self.request[n]
        over = where if where is not None else request.tablet.is_some()
        request.tablet = choose(over, None, request.tablet)
        request.write = request.write & ~over
        request.stage = choose(over, TabletStage.none, request.stage)
        request.targets = choose(over, frozenset(), request.targets)
        request.reached = choose(over, frozenset(), request.reached)
        request.value = choose(over, 0, request.value)


@known_bug(
    "001-255",
    SUCCESSFUL,
    breaks=TabletCluster.requests_end_as_they_began,
    budgets=NO_FAULTS,
)
class AnAnswerEndsWhatItsReplicaCoordinates(TabletCluster):
    """A replica that had answered a read forgot its own request with it: a write that it coordinated was never told of."""

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read that node `n` coordinates, and is done."""
        request = self.request[n]
        require((request.tablet == t) & ~request.write, "a read is on its way")
        require(request.targets.has(r), "it is sent to the replica")
        require(~self.down.has(r), "replica is up")
        self.stale_read = self.stale_read | (self.data[t][r] < request.value)
        for m in Node:
            self._forget(m, where=(m == n) | (m == r))


@known_bug(
    "001-256",
    'design document 001: "node operations will have to wait for tablet migration track to finish"',
    breaks=TabletCluster.requests_wait_until_migrations_have_drained,
    budgets={
        **NO_FAULTS,
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.topology_changes: 1,
    },
)
class RequestsAreForgottenWhileTabletsMove(TabletCluster):
    """A request that came while a tablet moved was taken, and not noted: its node waited for an operation that never began."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave: noted where the state machine is not busy with tablets."""
        self.request_pending = self.request_pending | (self.track != Track.tablet_migration)


@known_bug(
    "001-257",
    "design document 001, in the releases: a migration whose barrier fails for good is undone",
    breaks=TabletCluster.migrations_are_undone_where_a_node_is_lost,
    budgets={
        TabletMigration.failures: 0,
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
    },
)
class BarriersOfTheDeadAreTriedAgain(TabletCluster):
    """A barrier that a dead node did not answer was tried again and again, until the operator had given that node up."""

    @action(by=COORDINATOR)
    def fail_barrier(self, t: Term[Tablet]) -> None:
        """A node that is down does not answer the barrier: it is asked once more."""
        require(some(self.down.has(n) & ~self.excluded.has(n) for n in Node), "a node is down")
        tablet = self.tablets[t]
        waits = tablet.stage.column(lambda stage: stage.barrier)
        require(waits & (tablet.barrier == Progress.none), "stage has a barrier")
        tablet.barrier = Progress.none


BUGS = known_bugs_in(globals())
