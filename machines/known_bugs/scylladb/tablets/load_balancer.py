"""Bugs of ScyllaDB's tablet load balancer: what the change of design document 001 mended, and its opposites."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.load_balancer import (
    COORDINATOR,
    WEAK,
    LoadBalancer,
    Shard,
    Tablet,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec import Bool, Number, Term, action, count, every, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

QUIET = {LoadBalancer.disturbances: 0}


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
    breaks=LoadBalancer.two_migrations_stream_at_once,
    sizes={Tablet: 2},
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


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
