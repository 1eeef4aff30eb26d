"""Mistakes by which a tablet waits for others, or for clients, that have nothing to do with it."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets.intranode_migration import (
    IntranodeMigration,
    Shard,
    Stage as ShardStage,
)
from stagewright.machines.scylladb.tablets.load_balancer import (
    COORDINATOR,
    LoadBalancer,
    Tablet as BalancedTablet,
)
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import Progress, TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Fairness, Term, action, choose, every, require
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
TWO_MIGRATIONS: dict[BudgetName, int | None] = {
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletCluster.migrations: 2,
}


@known_bug(
    "001-385",
    INDEPENDENTLY,
    breaks=LoadBalancer.migrations_end_independently,
    sizes={BalancedTablet: 2},
    budgets={LoadBalancer.disturbances: 1},
)
class MigrationsEndTogether(LoadBalancer):
    """The last stage edge was taken when nothing streamed any more: a tablet that had streamed waited for all that the
    balancer went on to start.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, t: Term[BalancedTablet]) -> None:
        """The pending replica takes the place of the leaving one, once nothing streams."""
        quiet = every(self.stage[o] != Stage.streaming for o in BalancedTablet)
        require(quiet, "nothing streams")
        super().finish_migration(t)


@known_bug(
    "001-386",
    INDEPENDENTLY,
    breaks=LoadBalancer.migrations_are_undone_while_others_go_on,
    sizes={BalancedTablet: 3},
    budgets={LoadBalancer.disturbances: 1},
)
class WhatFailedWaitsForTheRest(LoadBalancer):
    """A migration that had failed was undone to its end when it was the only one left: its shards counted it until then."""

    @action(by=COORDINATOR, fair=WEAK)
    def revert_migration(self, t: Term[BalancedTablet]) -> None:
        """The replicas are what they were, if no other tablet moves."""
        alone = every((o == t) | (self.stage[o] == Stage.none) for o in BalancedTablet)
        require(alone, "no other tablet is in transition")
        super().revert_migration(t)


@known_bug(
    "001-387",
    'design document 001, stage 4: "New tablet replicas contain all the writes"',
    breaks=LoadBalancer.a_tablet_has_one_transition_at_a_time,
    sizes={BalancedTablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class NewCoordinatorsTakeWhatFailedForStreamed(LoadBalancer):
    """A coordinator that found a tablet past its streaming, and did not ask which way, ended a migration that was being
    undone: the new replica had half of the rows.
    """

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and goes on with what does not stream any more."""
        super().fail_over()
        for t in BalancedTablet:
            undone = self.stage[t] == Stage.cleanup_target
            self.stage[t] = choose(undone, Stage.write_both_read_new, self.stage[t])


@known_bug(
    "001-388",
    INDEPENDENTLY,
    breaks="tablets.what_failed_is_tried_again",
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class WhatFailedIsTriedAgainWhenOthersRest(TabletCluster):
    """An action that had failed was tried again when no other tablet was in transition, as failures were laid to load: two
    that had failed waited for each other.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def retry_operation(self, t: Term[Tablet]) -> None:
        """The coordinator tries again, if nothing else is going on."""
        alone = every((o == t) | (self.tablets[o].kind.is_none()) for o in Tablet)
        require(alone, "no other tablet is in transition")
        self.tablets[t].retry_operation()


@known_bug(
    "001-389",
    INDEPENDENTLY,
    breaks="tablets.barriers_that_failed_are_tried_again",
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class BarriersAreTriedAgainWhenNothingStreams(TabletCluster):
    """A barrier that had failed was tried again when no action ran, of whichever tablet: beside long streams a tablet that
    was ready for its next stage waited for hours.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self, t: Term[Tablet]) -> None:
        """The coordinator tries the barrier again, if nothing runs."""
        quiet = every(self.tablets[o].operation != Progress.running for o in Tablet)
        require(quiet, "no action runs")
        self.tablets[t].retry_barrier()


@known_bug(
    "001-390",
    'design document 001, cleanup: "No write request will reach tablet replica in the database layer"',
    breaks=IntranodeMigration.rows_are_removed_while_clients_read,
    budgets={IntranodeMigration.failures: 0, IntranodeMigration.writes: 0},
)
class CleanupsWaitForReads(IntranodeMigration):
    """A shard was cleaned up when nothing was read: of a tablet that is read all the time the rows stayed on both shards."""

    @action(by=COORDINATOR, fair=WEAK)
    def clean_up(self, shard: Term[Shard]) -> None:
        """The shard that is not to keep the tablet removes its rows, unless somebody reads."""
        quiet = ~self.reading | (self.stage != ShardStage.cleanup)
        require(quiet, "no read is under way")
        super().clean_up(shard)


@known_bug(
    "001-398",
    INDEPENDENTLY,
    breaks=TabletCluster.two_tablets_stream_at_once,
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class NodesStreamOneTabletAtATime(TabletCluster):
    """The limit of a shard was applied to its node: one tablet was streamed to it at a time, on whichever shard."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica starts to stream, when its node has done with other tablets."""
        others = every((o == t) | (self.streaming_at[o] != pending) for o in Tablet)
        require(others, "the node streams no other tablet")
        super().ask_to_stream(t, pending)


@known_bug(
    "001-399",
    INDEPENDENTLY,
    breaks=TabletCluster.requests_end_as_they_began,
    sizes={Tablet: 2},
    budgets={
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
    },
)
class BarriersRefuseWhatIsOfOtherTablets(TabletCluster):
    """A barrier waited for requests to its own tablet, and the fence that moved with it refused what had begun before, to
    whichever tablet: clients of a tablet at rest were cut off.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has learned the stage and drained older requests to the tablet; then all that is older is refused."""
        drained = every(self._acknowledges_barrier(n, t) for n in Node)
        require(drained, "every node has learned the stage and drained older requests")
        self.tablets[t].pass_barrier()
        for n in Node:
            other = self.request[n].tablet.is_some() & (self.request[n].tablet != t)
            self._forget(n, where=other | self._is_older(n, t))


@known_bug(
    "001-400",
    'design document 001: node operations "have to wait for tablet migration track to finish"',
    breaks=TabletCluster.topology_changes_are_not_interrupted,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
        TabletCluster.topology_changes: 2,
    },
)
class RequestsGoWithTheChangeBefore(TabletCluster):
    """At the end of a topology change the request was deleted, once more: it was that of another node, which had asked
    meanwhile, and waited for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done, and its request."""
        super().end_topology_change()
        self.request_pending = False


@known_bug(
    "001-401",
    INDEPENDENTLY,
    breaks=TabletCluster.streams_come_from_live_replicas,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.repairs: 1,
    },
)
class CrashesStopAllStreams(TabletCluster):
    """Whoever streamed gave up when a node died, from which it may have streamed nothing: each crash had all tablets of the
    cluster streamed anew.
    """

    @action(spends=TabletCluster.crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops, and so do all that stream."""
        require(~self.down.has(n), "node is up")
        self.down.add(n)
        self._abandon(n)
        for t in Tablet:
            self.streaming_at[t] = None
            self.copied[t] = False
            self.compacting[t][n] = 0


BUGS = known_bugs_in(globals())
