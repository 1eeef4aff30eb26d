"""Mistakes by which replicas of a tablet wait for clients or each other, or clients for them, who need not."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.intranode_migration import (
    PENDING,
    IntranodeMigration,
    Stage as ShardStage,
)
from stagewright.machines.scylladb.tablets.resize_guards import (
    CLIENT,
    Node as GuardNode,
    ResizeGuards,
    TabletId,
)
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.tablet_replica_stages import Stage
from stagewright.machines.scylladb.tablets.tablet_replicas import (
    COORDINATOR,
    Client,
    Node,
    TabletReplicas,
)
from stagewright.machines.scylladb.tablets.tablet_resize import (
    BALANCER,
    Node as ResizeNode,
    Resize,
    TabletResize,
)
from stagewright.spec import (
    Fairness,
    Term,
    action,
    every,
    require,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
NOBODY_WAITS = (
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
)


@known_bug(
    "001-177",
    "design document 001, the change of replicas: none is the last but the last",
    breaks=TabletReplicas.replicas_are_removed_while_clients_write,
    budgets={TabletReplicas.writes: 0},
)
class TwoReplicasStay(TabletReplicas):
    """A replication factor of two was never lowered to one."""

    @TabletReplicas.stage.step(
        Stage.none,
        Stage.allow_write_both_read_old,
        by=COORDINATOR,
        spends=TabletReplicas.removals,
    )
    def remove_replica(self, leaving: Term[Node]) -> None:
        """The replication factor falls by one, unless it is two."""
        require(self.replicas.has(leaving), "the node is a replica")
        require(self.replicas.size() > 2, "two others are left")
        self._barrier()
        self.next.discard(leaving)


@known_bug(
    "001-178",
    "design document 001, in the releases: rebuild_repair, if it fails, is followed by cleanup_target",
    breaks=TabletReplicas.what_cannot_be_done_is_undone,
    budgets={TabletReplicas.writes: 0},
)
class FailedRepairsAreNotUndone(TabletReplicas):
    """A rebuild was undone if streaming failed; if its repair failed, it was tried for ever."""

    @TabletReplicas.stage.step(
        Stage.streaming, Stage.cleanup_target, by=COORDINATOR, spends=TabletReplicas.failures
    )
    def give_up_streaming(self) -> None:
        """Streaming failed for good: undo."""
        require(~self.operated, "the action is not done")


@known_bug(
    "001-179",
    NOBODY_WAITS,
    breaks=TabletReplicas.replicas_stream_while_clients_write,
    sizes={Node: 2},
    budgets={TabletReplicas.moves: 0},
)
class StreamsWaitForWrites(TabletReplicas):
    """A replica was streamed to when no write was on its way: under load that took for ever."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], pending: Term[Node]) -> None:
        """The pending replica copies another, while nobody writes."""
        super().stream(source, pending)
        require(every(self.write[c].value == 0 for c in Client), "nobody writes")


@known_bug(
    "001-180",
    NOBODY_WAITS,
    breaks=IntranodeMigration.rows_are_streamed_while_clients_write,
)
class ShardsStreamInSilence(IntranodeMigration):
    """One shard streamed to another when no write was on its way."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self) -> None:
        """The pending shard gets what the leaving one has, while nobody writes."""
        super().stream()
        require(self.write == 0, "nobody writes")


@known_bug(
    "001-181",
    "design document 001: the load balancer is invoked where there is no other work",
    breaks=IntranodeMigration.tablets_are_moved_while_clients_write,
)
class ShardsMoveInSilence(IntranodeMigration):
    """A tablet went to another shard of its node when nobody read or wrote it."""

    @IntranodeMigration.stage.step(
        ShardStage.none, ShardStage.allow_write_both_read_old, by=COORDINATOR
    )
    def start(self) -> None:
        """The load balancer moves a tablet that nobody uses."""
        require((self.write == 0) & ~self.reading, "nobody uses it")


@known_bug(
    "001-182",
    "design document 001, in the releases: streaming, if it fails, is followed by cleanup_target",
    breaks=IntranodeMigration.what_cannot_be_streamed_is_undone,
)
class WhatHasBegunIsNotUndone(IntranodeMigration):
    """A migration was undone only as long as the pending shard had got nothing."""

    @IntranodeMigration.stage.step(
        ShardStage.streaming,
        ShardStage.cleanup_target,
        by=COORDINATOR,
        spends=IntranodeMigration.failures,
    )
    def give_up_streaming(self) -> None:
        """Streaming failed for good, and nothing has come: undo."""
        require(~self.operated, "it is not done")
        require(self.data[PENDING] == 0, "nothing has come")


@known_bug(
    "001-184",
    "design document 001, in the releases: the balancer revokes a resize decision",
    breaks=TabletResize.decisions_are_revoked_until_they_are_carried_out,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1},
)
class WhatIsPreparedIsCarriedOut(TabletResize):
    """A split that every replica was ready for was not revoked any more, though the table had shrunk."""

    @TabletResize.decision.step((Resize.split, Resize.merge), Resize.none, by=BALANCER)
    def revoke(self) -> None:
        """The average size has changed again, before everybody was ready."""
        require(~self._is_split_everywhere(), "it is not prepared")


@known_bug(
    "001-185",
    "design document 001, in the releases: each replica splits its sstables, and reports",
    breaks=TabletResize.replicas_split_as_soon_as_they_know,
    budgets={TabletResize.migrations: 0, TabletResize.decisions: 1},
)
class ReplicasSplitTogether(TabletResize):
    """No replica split its sstables before every node had learned of the decision: one that was down held up all."""

    @action(fair=WEAK)
    def start_splitting(self, n: Term[ResizeNode]) -> None:
        """A replica starts to split once all know that it should."""
        super().start_splitting(n)
        require(every(self._is_current(o) for o in ResizeNode), "everybody has learned of it")


@known_bug(
    "001-187",
    NOBODY_WAITS,
    breaks=ResizeGuards.requests_are_taken_while_tablets_change,
)
class RequestsWaitForMigrations(ResizeGuards):
    """No request began while its tablet migrated."""

    @action(by=CLIENT)
    def begin(self, n: Term[GuardNode], key: Term[Half]) -> None:
        """A node begins a request, unless a tablet migrates."""
        super().begin(n, key)
        require(self.migrating.is_none(), "no tablet migrates")


@known_bug(
    "001-188",
    "design document 001, in the releases: a resize waits for no request; its guard is refreshed or aborted",
    breaks=ResizeGuards.tablets_are_split_under_requests,
)
class ResizesWaitForRequests(ResizeGuards):
    """A table was split or merged when nobody used it."""

    def _resize(self) -> None:
        super()._resize()
        require(every(self.guard[n].key.is_none() for n in GuardNode), "nobody uses it")


@known_bug(
    "001-189",
    "design document 001: a migration begins, and its barriers wait for what is older",
    breaks=ResizeGuards.tablets_migrate_under_requests,
)
class MigrationsWaitForRequests(ResizeGuards):
    """A tablet began to migrate when no request was under way, of any tablet."""

    @action(by=COORDINATOR, spends=ResizeGuards.migrations)
    def start_migration(self, t: Term[TabletId]) -> None:
        """A tablet that nobody uses begins to migrate."""
        require(every(self.guard[n].key.is_none() for n in GuardNode), "nobody uses it")
        super().start_migration(t)


BUGS = known_bugs_in(globals())
