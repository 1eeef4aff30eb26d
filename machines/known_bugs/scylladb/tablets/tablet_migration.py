"""Mistakes put back into `TabletMigration`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration import (
    COORDINATOR,
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.spec import Bool, Fairness, Term, action, choose, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ACTION = 'design document 001: the "action should be taken … before it can move to the next step"'
WEAK = Fairness.WEAK
ALIVE = 'design document 001: "streamed to nodes that took over from still alive owners"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug("001-117", ACTION, breaks=TabletMigration.the_action_of_a_stage_is_done_before_the_next)
class WhoIsToLeaveIsGone(TabletMigration):
    """A leaving replica counted as gone as soon as its node was asked to leave the cluster: nobody removed its rows."""

    def _is_gone(self, role: Role) -> Bool:
        gone = super()._is_gone(role)
        return gone | self.unwanted if role is Role.leaving else gone


@known_bug(
    "001-240",
    'design document 001: a node stores rows "only if that shard is one of the current tablet replicas"',
    breaks=TabletMigration.replicas_are_cleaned_up_before_they_lose_their_storage,
)
class CleanupIsSkipped(TabletMigration):
    """When no write used the old replicas any more the migration was ended: the rows of the one that left stayed there."""

    @TabletMigration.stage.step(Stage.use_new, Stage.end_migration, by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving replica any more: end the migration."""
        self._barrier_done()
        self._enter()


@known_bug(
    "001-241",
    'design document 001: the stage says "which action should be taken … before it can move to the next step"',
    breaks=TabletMigration.session_is_open_only_while_something_streams,
)
class RepairsEndAsTheyBegin(TabletMigration):
    """A requested repair entered its last stage at once: its replicas were told to end what none had begun."""

    @TabletMigration.stage.step(Stage.none, Stage.end_repair, by=COORDINATOR)
    def start_repair(self) -> None:
        """A repair of the tablet was requested."""
        self.kind = Kind.repair
        self.session = True
        self._enter()


@known_bug(
    "001-403",
    'design document 001: "Each tablet has its own migration state machine stored in group0"',
    breaks=TabletMigration.dead_replicas_stay_given_up,
)
class WhoIsGoneIsForgottenWithTheCoordinator(TabletMigration):
    """Which replicas were gone for good only the coordinator knew whom the operator had told: the next one waited for them."""

    @action(by=COORDINATOR, spends=TabletMigration.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        self.excluded = frozenset[Role]()


@known_bug(
    "001-710",
    "design document 001, stage 1: transition info is filled with information about migration",
    breaks=TabletMigration.a_transition_stays_of_its_kind,
)
class CleanupsThatFailAreWaived(TabletMigration):
    """A migration whose cleanup had failed went on as a rebuild, which has none: the replica that left kept its rows."""

    @action(by=COORDINATOR, fair=WEAK)
    def retry_operation(self) -> None:
        """The coordinator retries; of a cleanup it takes it that there is nothing to remove."""
        super().retry_operation()
        self.kind = choose(self.stage == Stage.cleanup, Kind.rebuild, self.kind)


@known_bug(
    "001-711",
    "design document 001, in the releases: the last stage of the way back deletes the transition",
    breaks=TabletMigration.what_is_undone_is_not_taken_up_again,
)
class FallbacksAreTakenBack(TabletMigration):
    """When the barrier of a fallback had passed, all nodes had answered: reads went to the new replicas again, of which one
    was gone for good.
    """

    @TabletMigration.stage.step(
        Stage.write_both_read_old_fallback_cleanup,
        Stage.write_both_read_new,
        by=COORDINATOR,
        fair=WEAK,
    )
    def give_up_after_fall_back(self) -> None:
        """All nodes have answered: go on."""
        only_when(self.release.fallback_cleanup)
        self._barrier_done()
        self._enter()


# -- what is never done ----------------------------------------------------------------------------


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


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-118",
    ACTION,
    breaks=TabletMigration.nobody_waits_for_a_leaving_replica_that_is_gone,
)
class RebuildsHaveALeavingReplica(TabletMigration):
    """A rebuild that had given the tablet one replica more waited until the old one had removed its rows."""

    def _has(self, role: Role) -> Bool:
        return super()._has(role) | super()._has(Role.pending)


@known_bug(
    "001-119",
    ACTION,
    breaks=TabletMigration.nobody_waits_for_a_pending_replica_that_is_gone,
)
class OnlyLeavingReplicasAreGone(TabletMigration):
    """A migration to a node that was gone for good was undone, and waited there for that node to remove its rows."""

    def _is_gone(self, role: Role) -> Bool:
        return super()._is_gone(role) if role is Role.leaving else ~self._has(role)


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


BUGS = known_bugs_in(globals())
