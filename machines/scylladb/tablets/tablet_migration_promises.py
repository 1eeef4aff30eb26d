"""What is promised of the transition of one tablet, whichever way it goes.

Sources: design document 001 (topology-over-raft), section "Tablet migration", as `001:`; the stages of
ScyllaDB's tablet coordinator, its transition table and its selectors for the releases.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.tablets.tablet_stages import (
    BOTH,
    Kind,
    Release,
    Replicas,
    Role,
    Run,
    Stage,
)
from stagewright.spec import (
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    Profiles,
    SetVar,
    Term,
    always_reachable,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    step_property,
)


class Progress(Enum):
    """What the coordinator knows of a barrier or of an action that it started; volatile."""

    none = auto()
    running = auto()
    done = auto()
    failed = auto()


class MigrationPromises(Machine):
    """The promises; `TabletMigration` has the variables and the steps."""

    release: Profiles[Release]
    stage: OneVar[Stage]
    kind: OptionalVar[Kind]
    session: FlagVar
    excluded: SetVar[Role]
    unwanted: FlagVar
    barrier: OneVar[Progress]
    operation: OneVar[Progress]

    # -- the stages -----------------------------------------------------------------------------------

    @invariant
    def transition_has_a_kind(self) -> Bool:
        """001, stage 1: "transition info in group0 is filled with information about migration"."""
        return (self.stage == Stage.none) == self.kind.is_none()

    @invariant
    def repair_stays_among_its_stages(self) -> Bool:
        """A repair moves no replica, so it never enters a stage of a migration, nor the other way round."""
        of_repair = self.stage.any_of(Stage.repair, Stage.end_repair)
        return (self.stage != Stage.none).implies((self.kind == Kind.repair) == of_repair)

    @invariant
    def nothing_is_remembered_at_rest(self) -> Bool:
        """001: when a tablet is not in transition, there is no transition info."""
        clean = self.excluded.is_empty() & ~self.unwanted & (self.barrier == Progress.none)
        return (self.stage == Stage.none).implies(clean & (self.operation == Progress.none))

    @step_property
    def neighbouring_stages_agree(self, after: Self) -> Bool:
        """001: nodes learn a stage one after the other, so requests of a stage and of the next one meet:
        what the ones write the others read, and a replica that is written to has storage.

        Up to `scylla-2025.4` a migration that read from the new replicas could be undone without a stage
        between: requests that still read there met writes to the old replicas alone.
        """
        only_when(self.release.fallback_cleanup or not self.release.rollback)
        reads, writes = self._selected(self.stage), self._written(self.stage)
        next_reads, next_writes = self._selected(after.stage), self._written(after.stage)
        read = _within(reads, next_writes) & _within(next_reads, writes)
        stored = _within(writes, self._stored(after.stage)) & _within(
            next_writes, self._stored(self.stage)
        )
        return (after.stage != Stage.none).implies(read & stored)

    @step_property
    def writes_use_the_sets_that_the_next_stage_presupposes(self, after: Self) -> Bool:
        """001, stage 3: all writes "will reach CL in both old and new replica sets" before anything is
        streamed; stage 6: no write reaches a replica outside of the new set before it is cleaned up.
        """
        begins = self._moves(after) & after.stage.any_of(Stage.streaming, Stage.rebuild_repair)
        cleans = self._moves(after) & (after.stage == Stage.cleanup)
        written = self._written(self.stage)
        return begins.implies(written == BOTH) & cleans.implies(written == Replicas.next)

    @step_property
    def a_transition_ends_where_all_selectors_are_in_step(self, after: Self) -> Bool:
        """Only then may what was "previous" or "next" be called the replicas (5.4: end_migration)."""
        only_when(self.release.end_migration)
        in_step = (self._selected(self.stage) == self._written(self.stage)) & (
            self._written(self.stage) == self._stored(self.stage)
        )
        return (after.stage == Stage.none).implies(in_step)

    @step_property
    def every_replica_has_learned_a_stage_before_the_next(self, after: Self) -> Bool:
        """001: "When stage is advanced, it means that expected invariants about cluster-wide state
        relevant to the tablet, associated with the next stage, hold": its barrier has passed.

        Only to undo the transition does the coordinator not wait; a repair that is done needs none.
        """
        waits = self.stage.column(lambda stage: stage.barrier) & (self.stage != Stage.repair)
        if not self.release.barrier_before_target_cleanup:
            waits = waits & (self.stage != Stage.cleanup_target)
        forward = self._moves(after) & ~self._turns_back(after)
        return (forward & waits).implies(self.barrier == Progress.done)

    @step_property
    def the_action_of_a_stage_is_done_before_the_next(self, after: Self) -> Bool:
        """001: the stage "determines which action should be taken by the topology change coordinator on
        behalf of the tablet before it can move to the next step". Nothing is cleaned up where nobody is.
        """
        runs = self.stage.column(lambda stage: stage.action is not Run.nothing)
        if not self.release.end_migration:
            runs = runs & (self.stage != Stage.cleanup)
        nobody = ((self.stage == Stage.cleanup) & self._is_gone(Role.leaving)) | (
            (self.stage == Stage.cleanup_target) & self._is_gone(Role.pending)
        )
        drained = (self.stage == Stage.repair) & (self.barrier == Progress.done)
        failed = (self.operation == Progress.failed) & drained
        done = (self.operation == Progress.done) | failed | nobody
        return (self._moves(after) & ~self._turns_back(after) & runs).implies(done)

    @step_property
    def a_failed_repair_is_drained_after_it_failed(self, after: Self) -> Bool:
        """A barrier that passed before says nothing of what the repair still does."""
        only_when(self.release.repair)
        passes = (self.barrier != Progress.done) & (after.barrier == Progress.done)
        return ((self.stage == Stage.repair) & passes).implies(self.operation == Progress.failed)

    @step_property
    def the_target_is_cleaned_up_after_a_barrier(self, after: Self) -> Bool:
        """Writes to both sets are drained before the pending replica is cleaned up (scylladb #26512)."""
        only_when(self.release.barrier_before_target_cleanup)
        starts = (self.operation == Progress.none) & (after.operation == Progress.running)
        cleans = starts & (self.stage == Stage.cleanup_target)
        return cleans.implies(self.barrier == Progress.done)

    @step_property
    def a_transition_is_undone_only_for_a_reason(self, after: Self) -> Bool:
        """Failure is no free edge: a barrier or the action has failed, and a replica is excluded, more of the
        new ones than of the old ones once reads use those; while streaming also if the migration has
        become pointless.
        """
        only_when(self.release.rollback)
        excluded = ~self.excluded.is_empty()
        reads_new = self.stage == Stage.write_both_read_new
        worse = self.excluded.has(Role.pending) & ~self.excluded.has(Role.leaving)
        worse = worse & (self.kind != Kind.intranode_migration)
        barrier_failed = (self.barrier == Progress.failed) & excluded & (~reads_new | worse)
        pointless = excluded | (self.unwanted & (self.stage == Stage.streaming))
        action_failed = (self.operation == Progress.failed) & pointless
        return self._turns_back(after).implies(barrier_failed | action_failed)

    @step_property
    def what_is_known_of_a_stage_ends_with_it(self, after: Self) -> Bool:
        """The barrier and the action are those of one stage: the next stage has its own."""
        nothing = (after.barrier == Progress.none) & (after.operation == Progress.none)
        return self._moves(after).implies(nothing)

    # -- streaming ------------------------------------------------------------------------------------

    @invariant
    def session_is_open_only_while_something_streams(self) -> Bool:
        """Sessions guard streaming; once its result counts, or is thrown away, none may be open."""
        past = self.stage.any_of(
            Stage.none, Stage.write_both_read_new, Stage.use_new, Stage.cleanup, Stage.end_migration
        )
        return self.session.implies(~past)

    @invariant
    def what_streams_has_a_session(self) -> Bool:
        """It is set on entering write_both_read_old (5.4): a replica refuses to stream, or to repair,
        without one.
        """
        only_when(self.release.sessions)
        streams = self.stage.any_of(
            Stage.write_both_read_old, Stage.rebuild_repair, Stage.streaming, Stage.repair
        )
        return streams.implies(self.session)

    @step_property
    def the_session_closes_when_streaming_is_over(self, after: Self) -> Bool:
        """Whether it is done or given up: what is still on the wire is refused from then on."""
        streamed = self.stage.any_of(Stage.streaming, Stage.rebuild_repair, Stage.repair)
        over = streamed & self._moves(after) & (after.stage != Stage.streaming)
        return over.implies(~after.session)

    @invariant
    def only_rebuild_v2_repairs(self) -> Bool:
        """Lemma: the second version of a rebuild has a stage of its own (2025.2)."""
        only_when(self.release.repair)
        return (self.stage == Stage.rebuild_repair).implies(self.kind == Kind.rebuild_v2)

    @invariant
    def nothing_is_unwanted_before_it_streams(self) -> Bool:
        """Lemma: whether a migration is still wanted is asked while it streams."""
        only_when(self.release.rollback)
        before = self.stage.any_of(
            Stage.allow_write_both_read_old, Stage.write_both_read_old, Stage.rebuild_repair
        )
        return self.unwanted.implies(~before)

    @step_property
    def rebuild_v2_repairs_before_it_streams(self, after: Self) -> Bool:
        """It streams from what was repaired (2025.2)."""
        only_when(self.release.repair)
        begins = (self.stage != Stage.streaming) & (after.stage == Stage.streaming)
        repaired = self.stage == Stage.rebuild_repair
        return begins.implies((self.kind == Kind.rebuild_v2) == repaired)

    # -- the end --------------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """A tablet may stay where it is."""
        return self.stage == Stage.none

    @always_reachable
    def can_come_to_rest(self) -> Bool:
        """Whatever happened, the transition can still end."""
        return self.stage == Stage.none

    @liveness
    def every_transition_ends(self) -> LeadsTo:
        """Every migration ends, done or reverted, if what can happen for ever happens."""
        return leads_to(self.stage != Stage.none, self.stage == Stage.none)

    # -- what recurs -----------------------------------------------------------------------------------

    def _has(self, role: Role) -> Bool:
        """The transition has such a replica."""
        if role is Role.leaving:
            return self.kind.any_of(*(k for k in Kind if k.leaving))
        return self.kind.any_of(*(k for k in Kind if k.pending))

    def _is_gone(self, role: Role) -> Bool:
        return self.excluded.has(role) | ~self._has(role)

    def _moves(self, after: Self) -> Bool:
        return after.stage != self.stage

    def _turns_back(self, after: Self) -> Bool:
        """The step begins to undo the transition."""
        back = (
            Stage.write_both_read_old_fallback_cleanup,
            Stage.cleanup_target,
            Stage.revert_migration,
        )
        return after.stage.any_of(*back) & ~self.stage.any_of(*back)

    def _selected(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.reads)

    def _written(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.writes)

    def _stored(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.storage)


def _within(some: Term[Replicas], others: Term[Replicas]) -> Bool:
    """The others have all of them."""
    return (some == others) | (others == BOTH)
