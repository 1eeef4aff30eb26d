"""Mistakes put back into `LoadBalancer`: what goes wrong."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Track
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
from stagewright.spec import Bool, Number, Term, action, choose, count, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

QUIET = {LoadBalancer.disturbances: 0}
DRAIN = 'design document 001: a pending request is "to allow for current migrations to drain"'
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'


@known_bug(
    "001-65",
    "design document 001: a pending topology operation is allowed to start",
    breaks=LoadBalancer.requests_are_pending_until_they_are_taken_up,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class TheRequestGoesWithTheChange(LoadBalancer):
    """A request stayed where it was until its change had ended; one that came meanwhile went with it."""

    @action(by=COORDINATOR, fair=WEAK)
    def begin_topology_change(self) -> None:
        """The topology change takes over the state machine."""
        require(self.request_pending, "one is pending")
        require(self.track == Track.idle, "migrations have drained")
        self.track = Track.topology_change
        self._commit()

    @action(by=COORDINATOR, fair=WEAK)
    def end_topology_change(self) -> None:
        """The topology change is done, and so is its request."""
        super().end_topology_change()
        self.request_pending = False


@known_bug(
    "001-721",
    "design document 001: a pending topology operation is allowed to start",
    breaks=LoadBalancer.requests_wait_for_the_change_before_them,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class RequestsJoinTheChangeThatGoesOn(LoadBalancer):
    """A request that came while a topology change went on was taken for a part of that, and its own change never began."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested, and is pending if none goes on."""
        self.request_pending = self.track != Track.topology_change
        self._commit()


@known_bug(
    "001-155",
    'design document 001: plans which "will produce the desired result"',
    breaks=LoadBalancer.nodes_that_are_to_leave_get_no_tablets,
    sizes={Tablet: 2},
)
class APlanOutlivesADrain(LoadBalancer):
    """A plan that had been made when a node was asked to leave was still carried out: a tablet moved there, to move away
    again.
    """

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave: the next plan will see to it."""
        self._may_leave(n)
        self.draining.add(n)
        self.invoked = True


@known_bug(
    "001-330",
    DRAIN,
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 1},
)
class RequestsUndoMigrations(LoadBalancer):
    """That a topology change need not wait, what streamed when it was asked for was undone, and streamed again later."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def request_topology_change(self) -> None:
        """A topology change is requested: all that streams is given up."""
        self.request_pending = True
        for t in Tablet:
            streams = self.stage[t] == Stage.streaming
            self.stage[t] = choose(streams, Stage.cleanup_target, self.stage[t])
        self._commit()


@known_bug(
    "001-331",
    'design document 001: "Each tablet has its own migration state machine stored in group0"',
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class AnotherCoordinatorUndoesMigrations(LoadBalancer):
    """A new coordinator, which had not begun what streamed, undid all of it."""

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and begins anew."""
        self._forget_plan()
        self.outdated = False
        self.invoked = True
        for t in Tablet:
            streams = self.stage[t] == Stage.streaming
            self.stage[t] = choose(streams, Stage.cleanup_target, self.stage[t])


@known_bug(
    "001-332",
    INDEPENDENTLY,
    breaks=LoadBalancer.migrations_are_undone_for_themselves,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class OneFailureUndoesAll(LoadBalancer):
    """The migrations of a plan were one job: when one of them failed, all were undone."""

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_streaming(self, t: Term[Tablet]) -> None:
        """A tablet could not be streamed: whatever streams is undone."""
        require(self.stage[t] == Stage.streaming, "the tablet streams")
        for other in Tablet:
            streams = self.stage[other] == Stage.streaming
            self.stage[other] = choose(streams, Stage.cleanup_target, self.stage[other])
        self._commit()
        self.invoked = True


@known_bug(
    "001-387",
    'design document 001, stage 4: "New tablet replicas contain all the writes"',
    breaks=LoadBalancer.a_tablet_has_one_transition_at_a_time,
    sizes={Tablet: 2},
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
        for t in Tablet:
            undone = self.stage[t] == Stage.cleanup_target
            self.stage[t] = choose(undone, Stage.write_both_read_new, self.stage[t])


@known_bug(
    "B01",
    "design document 001, before fe181b3bac",
    breaks=(LoadBalancer.the_cluster_is_saturated, LoadBalancer.one_starts_while_another_streams),
    sizes={Tablet: 2},
)
class PlansOnlyWhenNothingMigrates(LoadBalancer):
    """The load balancer made a plan only when no tablet was in transition: the slowest one held up the rest."""

    def _may_plan(self) -> Bool:
        return super()._may_plan() & every(self.stage[t] == Stage.none for t in Tablet)


@known_bug(
    "B02",
    "design document 001: one migration at a time",
    breaks=LoadBalancer.one_starts_while_another_streams,
)
class OneMigrationInTheCluster(LoadBalancer):
    """The limit was one of the cluster, and not of a shard."""

    def _has_room(self, leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        nothing_streams = every(
            (self.stage[t] != Stage.streaming) & self.plan_leaving[t].is_none() for t in Tablet
        )
        return super()._has_room(leaving, pending) & nothing_streams


@known_bug(
    "B03",
    "design document 001: everything at once",
    breaks=LoadBalancer.shards_are_not_overloaded,
    sizes={Tablet: 2},
)
class EverythingAtOnce(LoadBalancer):
    """The whole plan was carried out at once: a shard streams all that it has to give, or to take."""

    def _has_room(self, leaving: Term[Shard], pending: Term[Shard]) -> Bool:
        return leaving != pending


@known_bug(
    "B04",
    "design document 001: a slot of a shard is held until the cleanup",
    breaks=LoadBalancer.the_cluster_is_saturated,
    budgets=QUIET,
)
class CleanupTakesASlot(LoadBalancer):
    """A migration counted as streaming until its last stage, and not until its tablet had streamed."""

    def _reads(self, s: Term[Shard]) -> Number:
        return count((self.stage[t] != Stage.none) & (self.leaving[t] == s) for t in Tablet)

    def _writes(self, s: Term[Shard]) -> Number:
        return count((self.stage[t] != Stage.none) & (self.pending[t] == s) for t in Tablet)


@known_bug(
    "B05",
    "design document 001: a plan is not saturating",
    breaks=LoadBalancer.the_cluster_is_saturated,
    sizes={Tablet: 2},
)
class InvokedOnceAPlan(LoadBalancer):
    """One plan was made on each edge of a stage, though one alone does not saturate the cluster."""

    def _start_what_is_planned(self) -> None:
        super()._start_what_is_planned()
        self.invoked = False


@known_bug(
    "B06",
    "design document 001: a migration that is undone",
    breaks=(LoadBalancer.the_cluster_is_saturated, LoadBalancer.balance_is_reached),
    sizes={Tablet: 2},
)
class NobodyLooksAfterARevert(LoadBalancer):
    """A migration counts as done "optimistically". When it is undone its replica is back where there are too
    many, and nobody looks again.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def revert_migration(self, t: Term[Tablet]) -> None:
        """The migration is deleted."""
        require(self.stage[t] == Stage.cleanup_target, "the migration is undone")
        self.stage[t] = Stage.none
        self.leaving[t] = None
        self.pending[t] = None
        self._commit()


@known_bug(
    "B07",
    "design document 001: a plan that outlives its coordinator",
    breaks=(
        LoadBalancer.nothing_starts_while_a_request_is_pending,
        LoadBalancer.a_tablet_has_one_transition_at_a_time,
        LoadBalancer.a_migration_has_two_shards,
    ),
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class TheNewCoordinatorHasTheOldPlan(LoadBalancer):
    """Another coordinator went on with the plan of its predecessor, under a guard that it took just now."""

    @action(by=COORDINATOR, spends=LoadBalancer.disturbances)
    def fail_over(self) -> None:
        """The new coordinator takes a guard, and the plan as it is."""
        self.outdated = False
        self.invoked = True


@known_bug(
    "B08",
    "design document 001: a migration that is undone",
    breaks=LoadBalancer.a_migration_moves_one_replica,
    sizes={Tablet: 2},
)
class ARevertLosesTheReplica(LoadBalancer):
    """The migration is undone, and the leaving replica is dropped all the same."""

    @action(by=COORDINATOR, fair=WEAK)
    def revert_migration(self, t: Term[Tablet]) -> None:
        """The migration is deleted, with the replica that was to leave."""
        require(self.stage[t] == Stage.cleanup_target, "the migration is undone")
        for s in Shard:
            self.replicas[t].put(s, self.replicas[t].has(s) & (self.leaving[t] != s))
        self._end(t)


@known_bug(
    "B09",
    "design document 001: the pending replica takes the place of the leaving one",
    breaks=LoadBalancer.a_migration_moves_one_replica,
    sizes={Tablet: 2},
)
class AMigrationDropsTheOthers(LoadBalancer):
    """The pending replica takes the place of all."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self, t: Term[Tablet]) -> None:
        """The last stage edge: the tablet is on the pending shard."""
        require(self.stage[t] == Stage.write_both_read_new, "the tablet has streamed")
        for s in Shard:
            self.replicas[t].put(s, self.pending[t] == s)
        self._end(t)


@known_bug(
    "B10",
    'design document 001: active migrations are treated "as if they were already completed"',
    breaks=LoadBalancer.migrations_do_not_overshoot,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class APlanOutlivesAStage(LoadBalancer):
    """A plan whose guard was out of date was committed under a new one where no request had come: migrations, it was
    said, do not stand in each other's way. But one that had been counted as done was undone meanwhile.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def persist_plan(self) -> None:
        """All migrations of the plan start, whichever stage was committed since it was begun."""
        require(~self._plan_is_empty(), "something is planned")
        require(~self.outdated | self._may_plan(), "no topology change is pending or goes on")
        self._start_what_is_planned()
        self._forget_plan()
        self.outdated = False


@known_bug(
    "B12",
    "design document 001, before fe181b3bac",
    breaks=LoadBalancer.one_starts_while_another_streams,
    sizes={Tablet: 2},
)
class ThePlanWaitsForTheStreams(LoadBalancer):
    """The load balancer was asked again and again, but planned only when no tablet was being streamed."""

    @action(by=BALANCER, fair=WEAK)
    def plan_migration(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> None:
        """A migration is planned when nothing streams."""
        super().plan_migration(t, leaving, pending)
        require(every(~self._streams(other) for other in Tablet), "nothing streams")


@known_bug(
    "B13",
    "design document 001: if there is a pending request, the load balancer will not be invoked",
    breaks=LoadBalancer.nothing_starts_while_a_request_is_pending,
    sizes={Tablet: 2},
)
class APlanOutlivesARequest(LoadBalancer):
    """A plan that had been made when a topology change was requested was still committed, and the request waited."""

    @action(by=COORDINATOR, fair=WEAK)
    def persist_plan(self) -> None:
        """All migrations of the plan start; one that a request has overtaken, too."""
        require(~self._plan_is_empty(), "something is planned")
        require(~self.outdated | self.request_pending, "nothing but a request was committed since")
        require(self.track != Track.topology_change, "no topology change goes on")
        self._start_what_is_planned()
        self._forget_plan()
        self.outdated = False


@known_bug(
    "B14",
    "design document 001: the tablet migration track excludes with other topology changes",
    breaks=LoadBalancer.topology_changes_are_not_overtaken,
    sizes={Tablet: 2},
    budgets={LoadBalancer.disturbances: 2},
)
class DrainingEntersTheTrack(LoadBalancer):
    """The request to drain a node put the state machine into the tablet migration track, whatever it was doing."""

    @action(by=OPERATOR, spends=LoadBalancer.disturbances)
    def drain(self, n: Term[Node]) -> None:
        """A node is to leave: its tablets are to move at once."""
        super().drain(n)
        self.track = Track.tablet_migration


@known_bug(
    "B16",
    "design document 001: new migrations are started as soon as tablets finish streaming",
    breaks=LoadBalancer.a_shard_streams_again_before_a_migration_ends,
    sizes={Tablet: 2},
)
class ThePlanWaitsForTheCleanup(LoadBalancer):
    """The load balancer planned nothing from a shard until the migration that left it was over, and not until its tablet
    had streamed.
    """

    @action(by=BALANCER, fair=WEAK)
    def plan_migration(self, t: Term[Tablet], leaving: Term[Shard], pending: Term[Shard]) -> None:
        """A migration is planned from a shard that no other one is about to leave."""
        super().plan_migration(t, leaving, pending)
        about = some(
            (self.stage[other] == Stage.write_both_read_new) & (self.leaving[other] == leaving)
            for other in Tablet
        )
        require(~about, "no other one is about to leave it")


@known_bug(
    "001-705",
    "design document 001, node states: from decommissioning a node goes to left",
    breaks=LoadBalancer.nodes_that_are_to_leave_do_not_stay,
    sizes={Tablet: 2},
)
class WhoIsEmptyStays(LoadBalancer):
    """A node that had been emptied was one to balance again: tablets were moved back to it before it had left."""

    @action(by=BALANCER)
    def end_draining(self, n: Term[Node]) -> None:
        """No tablet is left on the node: nothing more is to be done about it."""
        require(self.draining.has(n), "the node drains")
        there = some(
            (self.node[s] == n) & some(self.replicas[t].has(s) for t in Tablet) for s in Shard
        )
        require(~there, "it has no replicas")
        self.draining.discard(n)
        self._commit()
        self.invoked = True


BUGS = known_bugs_in(globals())
