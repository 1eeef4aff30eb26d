"""Mistakes by which a tablet, or what is known of it, is lost when a second thing happens to it."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node, Tablet
from stagewright.machines.scylladb.tablets import (
    load_balancer,
    resize_guards,
    tablet_replica_stages,
    tablet_replicas,
    tablet_resize,
)
from stagewright.machines.scylladb.tablets.intranode_migration import IntranodeMigration
from stagewright.machines.scylladb.tablets.load_balancer import LoadBalancer, Shard
from stagewright.machines.scylladb.tablets.resize_guards import ResizeGuards
from stagewright.machines.scylladb.tablets.resize_layout import Half
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_replicas import Client, TabletReplicas
from stagewright.machines.scylladb.tablets.tablet_resize import Resize, TabletResize
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    SetVar,
    Term,
    action,
    choose,
    count,
    every,
    flag,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'


@known_bug(
    "001-360",
    'design document 001: "transition info" of a tablet is there until its transition ends',
    breaks=(TabletMigration.can_come_to_rest, TabletMigration.every_transition_ends),
    budgets={TabletMigration.failures: 2, TabletMigration.failovers: 0},
)
class WhatIsUndoneIsNotTriedAgain(TabletMigration):
    """A barrier that failed on the way back, after another one, was not tried again where a replica was gone for good."""

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self) -> None:
        """The barrier is tried again, unless the transition is being undone for a replica that is gone."""
        super().retry_barrier()
        back = self.stage.any_of(
            Stage.write_both_read_old_fallback_cleanup,
            Stage.cleanup_target,
            Stage.revert_migration,
        )
        require(~back | self.excluded.is_empty(), "nothing is undone for a replica that is gone")


@known_bug(
    "001-361",
    INDEPENDENTLY,
    breaks=TabletCluster.migrations_end,
    sizes={Tablet: 2},
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletCluster.crashes: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class OneOfTwoIsTakenUp(TabletCluster):
    """A new coordinator took up the one tablet in transition, and nothing where it found two of them."""

    unknown = per(Tablet, flag())  # to the coordinator

    @action(by=COORDINATOR, spends=TabletCluster.coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        two = count(self.tablets[t].stage != Stage.none for t in Tablet) >= 2
        for t in Tablet:
            self.unknown[t] = two

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has answered, for a tablet that the coordinator knows."""
        super().pass_barrier(t)
        require(~self.unknown[t], "the coordinator knows the tablet")


@known_bug(
    "001-362",
    'design document 001: expected invariants hold of "cluster-wide state"; who is gone for good is committed',
    breaks=(
        TabletCluster.replicas_are_ready_for_writes,
        TabletCluster.reads_use_the_new_replicas,
        TabletCluster.only_replicas_have_storage,
    ),
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class WhoIsGoneIsForgotten(TabletCluster):
    """Which nodes are gone for good only the coordinator knew whom the operator had told: they came back under the next."""

    @action(by=COORDINATOR, spends=TabletCluster.coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        self.excluded = frozenset[Node]()


@known_bug(
    "001-363",
    "design document 001, Tablet migration: an action is taken before the stage is left",
    breaks=TabletCluster.actions_are_done_when_replicas_say_so,
    budgets={
        TabletCluster.writes: 0,
        TabletCluster.reads: 0,
        TabletMigration.failures: 0,
        TabletCluster.rebuilds: 1,
        TabletCluster.coordinator_changes: 1,
    },
)
class ARepairThatFailsIsDone(TabletCluster):
    """The repair before a rebuild was taken for done when it ended, also with an error, for its replicas were down."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_unanswered(self, t: Term[Tablet]) -> None:
        """The action ends because a node that it needs is down."""
        tablet = self.tablets[t]
        dead = some(self._needs(n, t) & self.down.has(n) for n in Node)
        require(dead | ~self._will_be_answered(t), "nobody can answer")
        require(tablet.operation == Progress.running, "action running")
        repairs = tablet.stage == Stage.rebuild_repair
        tablet.operation = choose(repairs, Progress.done, Progress.failed)


@known_bug(
    "001-364",
    INDEPENDENTLY,
    breaks=ResizeGuards.requests_are_aborted_for_their_own_tablet,
)
class EveryOlderRequestIsAborted(ResizeGuards):
    """A barrier had every request aborted whose map was not the newest, whichever tablet it was for."""

    def _its_tablet_changes(self, n: Term[resize_guards.Node]) -> None:
        require(self._is_current(n), "the node has learned of the newest")


@known_bug(
    "001-365",
    'design document 001, stage 2: replicas "see the transition info"',
    breaks=IntranodeMigration.stages_are_learned_while_clients_write,
    budgets={IntranodeMigration.failures: 0},
)
class StagesAreLearnedBetweenRequests(IntranodeMigration):
    """A node took the next stage when no request was under way, which under load is never."""

    @action(fair=WEAK)
    def learn(self) -> None:
        """The node learns the stage, between two requests."""
        super().learn()
        require((self.write == 0) & ~self.reading, "no request is under way")


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
    "001-375",
    'design document 001, stage 6: "No write request will reach tablet replica … which does not belong"',
    breaks=(
        TabletReplicas.only_replicas_hold_data,
        TabletReplicas.nobody_is_behind_the_last_barrier,
    ),
    sizes={Client: 2, tablet_replicas.Node: 2},
    budgets={TabletReplicas.removals: 0, TabletReplicas.additions: 0},
)
class OneAnswerIsEnoughToUndo(TabletReplicas):
    """To undo a move the barrier of whoever answered first was enough: others still wrote to the pending replica."""

    def _has_drained(self) -> Bool:
        back = self.stage.any_of(
            tablet_replica_stages.Stage.cleanup_target, tablet_replica_stages.Stage.revert_migration
        )
        one = some(
            (self.view[c].stage == self.stage)
            & ((self.write[c].value == 0) | (self.write[c].stage == self.stage))
            for c in Client
        )
        return super()._has_drained() | (back & one)


@known_bug(
    "001-376",
    'design document 001: the balancer is to "incrementally make decision", beside "active migrations"',
    breaks=(
        TabletResize.split_tablets_have_split_sstables,
        TabletResize.a_finalization_begins_when_nothing_is_left_to_prepare,
    ),
    budgets={TabletResize.decisions: 1, TabletResize.failovers: 1},
)
class WhoCameLaterIsNotAsked(TabletResize):
    """A new coordinator asked those whether they were ready that were replicas when it took over, and nobody who came later."""

    took_over: FlagVar = flag()
    asked: SetVar[tablet_resize.Node] = set_of(tablet_resize.Node)

    @action(by=tablet_resize.COORDINATOR, spends=TabletResize.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and looks who the replicas are."""
        super().fail_over()
        self.took_over = True
        self.asked = self.replicas[Half.left]

    def _is_split_everywhere(self) -> Bool:
        ready = every(
            (self.reported[n] == self.sequence) | (self.took_over & ~self.asked.has(n))
            for n in self.replicas[Half.left]
        )
        return (self.decision == Resize.split) & ready


BUGS = known_bugs_in(globals())
