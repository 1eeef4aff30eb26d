"""Mistakes put back into `LoadBalancer`: who is refused, or waits."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets import load_balancer
from stagewright.machines.scylladb.tablets.load_balancer import (
    BALANCER,
    COORDINATOR,
    OPERATOR,
    WEAK,
    LoadBalancer,
    Node,
    Shard,
    Tablet,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Bool, Term, action, count, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'


@known_bug(
    "001-152",
    "design document 001: node operations have to wait for the tablet migration track to finish",
    breaks=LoadBalancer.topology_changes_are_requested_while_tablets_move,
    sizes={Tablet: 2},
)
class RequestsAreRefusedInTheTrack(LoadBalancer):
    """A topology change that was asked for while tablets migrate was refused, and did not wait: as the balancer goes on as
    long as it finds something, an operator could ask in vain for hours.
    """

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested: no tablet may migrate."""
        super().request_topology_change()
        require(every(self.stage[t] == Stage.none for t in Tablet), "no tablet is in transition")


@known_bug(
    "001-153",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=LoadBalancer.nodes_are_drained_while_tablets_move,
    sizes={Tablet: 2},
)
class DrainingWaitsForMigrations(LoadBalancer):
    """A node could be drained only when no tablet was in transition, on whichever node."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave, when all migrations have ended."""
        super().drain(n)
        require(every(self.stage[t] == Stage.none for t in Tablet), "no tablet is in transition")


@known_bug(
    "001-250",
    'design document 001: active migrations are treated "as if they were already completed"',
    breaks=LoadBalancer.plans_count_what_is_on_its_way_as_done,
    sizes={Tablet: 2},
)
class WhoComesCountsWhenItIsThere(LoadBalancer):
    """A replica counted for the shard that it was coming to when it was there: the shard gave none away meanwhile."""

    @action(by=BALANCER, fair=WEAK)
    def plan_migration(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> None:
        """A migration is planned from a shard that has more replicas, without those that still come."""
        super().plan_migration(t, leaving, pending)
        there = count(self._will_have(o, leaving) & (self.pending[o] != leaving) for o in Tablet)
        more = self._load(pending) + 1 < there
        require(self._drains(leaving) | more, "the shard has more replicas")


@known_bug(
    "001-383",
    'design document 001: migrations are "to be started as soon as tablets finish streaming"',
    breaks=(
        LoadBalancer.plans_count_what_is_on_its_way_as_done,
        LoadBalancer.the_cluster_is_saturated,
    ),
    sizes={load_balancer.Node: 3, load_balancer.Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class NodesAreEmptiedOneAfterTheOther(LoadBalancer):
    """Of two nodes that were to leave, no tablet left the one before that of the other had got to its last stage."""

    def _improves(self, leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        others = some(
            some(
                (self.leaving[t] == s) & (self.node[s] != self.node[leaving]) & self._drains(s)
                for s in Shard
            )
            for t in load_balancer.Tablet
        )
        return super()._improves(leaving, pending) & ~(self._drains(leaving) & others)


@known_bug(
    "001-385",
    INDEPENDENTLY,
    breaks=LoadBalancer.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 1},
)
class MigrationsEndTogether(LoadBalancer):
    """The last stage edge was taken when nothing streamed any more: a tablet that had streamed waited for all that the
    balancer went on to start.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, t: Term[Tablet]) -> None:
        """The pending replica takes the place of the leaving one, once nothing streams."""
        quiet = every(self.stage[o] != Stage.streaming for o in Tablet)
        require(quiet, "nothing streams")
        super().finish_migration(t)


@known_bug(
    "001-386",
    INDEPENDENTLY,
    breaks=LoadBalancer.tablets_advance_independently,
    sizes={Tablet: 3},
    budgets={LoadBalancer.disturbances: 1},
)
class WhatFailedWaitsForTheRest(LoadBalancer):
    """A migration that had failed was undone to its end when it was the only one left: its shards counted it until then."""

    @action(by=COORDINATOR, fair=WEAK)
    def revert_migration(self, t: Term[Tablet]) -> None:
        """The replicas are what they were, if no other tablet moves."""
        alone = every((o == t) | (self.stage[o] == Stage.none) for o in Tablet)
        require(alone, "no other tablet is in transition")
        super().revert_migration(t)


@known_bug(
    "001-514",
    INDEPENDENTLY,
    breaks=LoadBalancer.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class StreamsEndWhenNothingIsUndone(LoadBalancer):
    """A tablet that had streamed stayed in its stage as long as the migration of another was being undone."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The tablet has streamed, and no other is on its way back."""
        super().finish_streaming(t)
        undone = some(self.stage[other] == Stage.cleanup_target for other in Tablet)
        require(~undone, "no migration is undone")


@known_bug(
    "001-515",
    "design document 001, its change: new migrations are started as soon as tablets finish streaming",
    breaks=LoadBalancer.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class StreamsEndWhenNothingIsPlanned(LoadBalancer):
    """Stages were advanced between two plans of the load balancer: while it planned, nothing that had streamed
    counted.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The tablet has streamed, and no plan is being made."""
        super().finish_streaming(t)
        require(self._plan_is_empty(), "no plan is being made")


@known_bug(
    "001-548",
    'design document 001: the balancer is silent to "allow pending topology operation to start"',
    breaks=LoadBalancer.topology_changes_wait_for_no_plan,
    sizes={Tablet: 2},
)
class TopologyChangesWaitForTheBalancer(LoadBalancer):
    """A topology change began when the balancer had found that there was nothing to do."""

    @action(by=COORDINATOR, fair=WEAK)
    def begin_topology_change(self) -> None:
        """The topology change takes over, once the balancer has looked."""
        super().begin_topology_change()
        require(~self.invoked, "the balancer is done")


@known_bug(
    "001-693",
    'design document 001: the balancer is silent to "allow pending topology operation to start"',
    breaks=LoadBalancer.topology_changes_wait_for_no_plan,
    sizes={Tablet: 2},
)
class TopologyChangesEndWhenNothingIsPlanned(LoadBalancer):
    """A topology change that was done held the state machine until the balancer had looked for migrations, which it may not
    plan meanwhile.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done, and the balancer has looked."""
        require(~self.invoked, "the balancer is done")
        super().end_topology_change()


@known_bug(
    "001-694",
    'design document 001: the balancer is invoked "continuously as long as it generates new migrations"',
    breaks=LoadBalancer.plans_wait_for_no_migration,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class RefusedPlansWaitForTheStreams(LoadBalancer):
    """A plan that another command had overtaken was made again when nothing streamed: meanwhile shards had nothing to do."""

    @action(by=COORDINATOR, fair=WEAK)
    def retry(self) -> None:
        """Something else was committed first: the plan is made again, once nothing streams."""
        require(every(self.stage[t] != Stage.streaming for t in Tablet), "nothing streams")
        super().retry()


BUGS = known_bugs_in(globals())
