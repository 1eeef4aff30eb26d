"""Tablet migration: the transition of one tablet, driven forward by the topology coordinator.

"Each tablet has its own migration state machine stored in group0" (001, "Tablet migration"). This
is that machine, with what only the coordinator knows of it: whether the barrier of the stage has
passed, and whether its action is done. `tablet.py` adds nodes, requests and data.

Sources: design document 001 (topology-over-raft), section "Tablet migration", as `001:`; the stages
of ScyllaDB's tablet coordinator, its transition table and its selectors for the releases.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.tablets.tablet_stages import (
    BOTH,
    HARMLESS_IN_STAGES,
    SCYLLA_6_0,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Kind,
    Replicas,
    Role,
    Run,
    Stage,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    fault_budget,
    final,
    flag,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    only_when,
    optional,
    profiles,
    require,
    scopes,
    set_of,
    step_property,
    volatile,
)

COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
WEAK = Fairness.WEAK
FORGOTTEN = (
    "a change of the coordinator, too, makes it forget a failure without undoing the transition"
)
HOPELESS = "a hopeless transition that is retried may still succeed"
NO_FAULT = "with one fault less, less can go wrong"
BACK = (
    Stage.write_both_read_old_fallback_cleanup,
    Stage.cleanup_target,
    Stage.revert_migration,
)
"""The stages in which a transition is undone."""


class Progress(Enum):
    """What the coordinator knows of a barrier, or of an action that it has started; volatile."""

    none = auto()
    running = auto()
    done = auto()
    failed = auto()


class TabletMigration(Machine):
    """The stages of one tablet's transition, with barriers, actions, failures and rollback.

    Profiles: `seed` is the design document of 2023-07: six stages, no way back, no session, and a
    cleanup stage without a cleanup. The others follow the transition tables of releases.
    `scylla-6.0` stands for all from 6.0 to 2025.3: at some point among them repair was added, and
    the way back that skips `cleanup_target` removed.
    """

    release = profiles(SEED, SCYLLA_6_0, SCYLLA_2025_4, SCYLLA_2026_2)
    failures = fault_budget(1, doc="barriers and actions that fail")
    failovers = fault_budget(1, doc="changes of the topology coordinator")
    exclusions = budget(doc="replicas that are declared gone for good")
    exercised_at = scopes(
        {}, {exclusions: 0}, {failures: 2, failovers: 0}, {failures: 1, failovers: 2, exclusions: 0}
    )

    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    kind: OptionalVar[Kind] = optional(Kind)  # of the current transition
    session: FlagVar = flag()  # open in group0: streaming is accepted
    excluded: SetVar[Role] = set_of(Role)  # replicas whose nodes are gone for good, and ignored
    unwanted: FlagVar = flag()  # the leaving host must go, or the pending one's disk is nearly full
    barrier: OneVar[Progress] = volatile(one_of(Progress, init=Progress.none), of=COORDINATOR)
    operation: OneVar[Progress] = volatile(one_of(Progress, init=Progress.none), of=COORDINATOR)

    # -- the way forward -----------------------------------------------------------------------------

    @stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR)
    def start(self, kind: Term[Kind]) -> None:
        """The load balancer persists its plan: transition info in group0 is filled with the migration."""
        require(kind != Kind.repair, "repair has stages of its own")
        if not self.release.repair:
            require(kind == Kind.migration, "migration is the only kind")
        self.kind = kind
        self._enter()

    @stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def write_both(self) -> None:
        """All replicas see the transition info and are prepared for writes: write to both sets."""
        self._barrier_done()
        if self.release.sessions:
            self.session = True
        self._enter()

    @stage.step(Stage.write_both_read_old, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def begin_streaming(self) -> None:
        """Every write reaches both replica sets from now on: stream what was there before."""
        self._barrier_done()
        require(self.kind != Kind.rebuild_v2, "rebuild_v2 repairs first")
        self._enter()

    @stage.step(Stage.write_both_read_old, Stage.rebuild_repair, by=COORDINATOR, fair=WEAK)
    def begin_rebuild_repair(self) -> None:
        """A rebuild first repairs the replicas that it will stream from."""
        only_when(self.release.repair)
        self._barrier_done()
        require(self.kind == Kind.rebuild_v2, "kind is rebuild_v2")
        self._enter()

    @stage.step(Stage.rebuild_repair, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def stream_after_repair(self) -> None:
        """The replicas to stream from agree: stream."""
        only_when(self.release.repair)
        self._operation_done()
        self._enter()

    @stage.step(Stage.streaming, Stage.write_both_read_new, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """The new replicas contain all writes: read from them, still write to both."""
        self._operation_done()
        self.session = False
        self._enter()

    @stage.step(Stage.write_both_read_new, Stage.use_new, by=COORDINATOR, fair=WEAK)
    def use_new(self) -> None:
        """No read uses the old replicas any more: write to the new ones alone."""
        self._barrier_done()
        self._enter()

    @stage.step(Stage.use_new, Stage.cleanup, by=COORDINATOR, fair=WEAK)
    def begin_cleanup(self) -> None:
        """No write reaches the leaving replica any more: clean it up."""
        self._barrier_done()
        self._enter()

    @stage.step(Stage.cleanup, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish_without_cleanup(self) -> None:
        """The end in the document, which has a cleanup stage, but neither an action in it nor a barrier after it."""
        only_when(not self.release.end_migration)
        self._leave()

    @stage.step(Stage.cleanup, Stage.end_migration, by=COORDINATOR, fair=WEAK)
    def end(self) -> None:
        """The leaving replica is cleaned up, or there is none, or it is gone."""
        only_when(self.release.end_migration)
        gone = self._is_gone(Role.leaving)
        require((self.operation == Progress.done) | gone, "leaving replica is cleaned up or gone")
        self._enter()

    @stage.step(Stage.end_migration, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish(self) -> None:
        """The new replicas are the replicas; the transition is deleted."""
        only_when(self.release.end_migration)
        self._barrier_done()
        self._leave()

    # -- the way back --------------------------------------------------------------------------------

    @stage.step(
        (Stage.allow_write_both_read_old, Stage.write_both_read_old),
        Stage.cleanup_target,
        by=COORDINATOR,
        fair=WEAK,
    )
    def give_up_before_streaming(self) -> None:
        """A replica is gone for good, and the barrier failed: undo the transition."""
        only_when(self.release.rollback)
        require(self.barrier == Progress.failed, "barrier failed")
        require(~self.excluded.is_empty(), "a replica is excluded")
        self._enter()

    @stage.step(Stage.allow_write_both_read_old, Stage.revert_migration, by=COORDINATOR, fair=WEAK)
    def revert_at_once(self) -> None:
        """The same in older releases: nothing was written to the pending replica, so there is nothing to clean up."""
        only_when(self.release.reverts_at_once)
        require(self.barrier == Progress.failed, "barrier failed")
        require(~self.excluded.is_empty(), "a replica is excluded")
        self._enter()

    @stage.step(
        (Stage.rebuild_repair, Stage.streaming), Stage.cleanup_target, by=COORDINATOR, fair=WEAK
    )
    def give_up_streaming(self) -> None:
        """The action failed, and cannot or need not succeed: close the session and undo the transition."""
        only_when(self.release.rollback)
        require(self.operation == Progress.failed, "action failed")
        require(self._streaming_is_pointless(), "a replica is excluded or the migration unwanted")
        self._close_session()
        self._enter()

    @stage.step(
        Stage.write_both_read_new,
        Stage.write_both_read_old_fallback_cleanup,
        by=COORDINATOR,
        fair=WEAK,
    )
    def fall_back(self) -> None:
        """More new replicas than old ones are gone: read the old ones again."""
        only_when(self.release.fallback_cleanup)
        require(self.barrier == Progress.failed, "barrier failed")
        require(self._new_replicas_are_worse(), "more new than old replicas are excluded")
        self._enter()

    @stage.step(Stage.write_both_read_new, Stage.cleanup_target, by=COORDINATOR, fair=WEAK)
    def give_up_new_replicas(self) -> None:
        """The same before 2026.2: straight to writing to the old replicas alone."""
        only_when(self.release.rollback and not self.release.fallback_cleanup)
        require(self.barrier == Progress.failed, "barrier failed")
        require(self._new_replicas_are_worse(), "more new than old replicas are excluded")
        self._enter()

    @stage.step(
        Stage.write_both_read_old_fallback_cleanup, Stage.cleanup_target, by=COORDINATOR, fair=WEAK
    )
    def give_up_after_fall_back(self) -> None:
        """No read uses the new replicas any more: write to the old ones alone."""
        only_when(self.release.fallback_cleanup)
        self._barrier_done()
        self._enter()

    @stage.step(Stage.cleanup_target, Stage.revert_migration, by=COORDINATOR, fair=WEAK)
    def revert(self) -> None:
        """The pending replica is cleaned up, or gone."""
        only_when(self.release.rollback)
        gone = self._is_gone(Role.pending)
        require((self.operation == Progress.done) | gone, "pending replica is cleaned up or gone")
        if self.release.barrier_before_target_cleanup:
            self._barrier_done()
        self._enter()

    @stage.step(Stage.revert_migration, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish_revert(self) -> None:
        """The old replicas stay the replicas; the transition is deleted."""
        only_when(self.release.rollback)
        self._barrier_done()
        self._leave()

    # -- repair --------------------------------------------------------------------------------------

    @stage.step(Stage.none, Stage.repair, by=COORDINATOR)
    def start_repair(self) -> None:
        """A repair of the tablet was requested: it keeps its replicas."""
        only_when(self.release.repair)
        self.kind = Kind.repair
        self.session = True
        self._enter()

    @stage.step(Stage.repair, Stage.end_repair, by=COORDINATOR, fair=WEAK)
    def end_repair(self) -> None:
        """The repair is done; or it failed, and a barrier has made sure that none of it still runs."""
        only_when(self.release.repair)
        failed_safely = (self.operation == Progress.failed) & (self.barrier == Progress.done)
        require(
            (self.operation == Progress.done) | failed_safely,
            "repair is done, or failed and drained",
        )
        self.session = False
        self._enter()

    @stage.step(Stage.end_repair, Stage.none, by=COORDINATOR, fair=WEAK)
    def finish_repair(self) -> None:
        """No replica works for the repair any more: the transition is deleted."""
        only_when(self.release.repair)
        self._barrier_done()
        self._leave()

    # -- barriers and actions of a stage ---------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Every node that is not excluded has learned the stage, and drained requests from before it."""
        self._has_barrier()
        require(self.barrier == Progress.none, "no barrier yet")
        self.barrier = Progress.done

    @action(by=COORDINATOR, spends=failures)
    def fail_barrier(self) -> None:
        """A node does not answer the barrier."""
        self._has_barrier()
        require(self.barrier == Progress.none, "no barrier yet")
        self.barrier = Progress.failed

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self) -> None:
        """The coordinator retries the barrier a second later, unless it has to give up."""
        require(self.barrier == Progress.failed, "barrier failed")
        if self.release.rollback:
            before = self.stage.any_of(Stage.allow_write_both_read_old, Stage.write_both_read_old)
            hopeless = (before & ~self.excluded.is_empty()) | (
                (self.stage == Stage.write_both_read_new) & self._new_replicas_are_worse()
            )
            require(~hopeless, "no reason to give up")
        self.barrier = Progress.none

    @action(by=COORDINATOR, fair=WEAK)
    def start_operation(self) -> None:
        """The coordinator asks a replica to repair, to stream, or to clean up."""
        runs = self.stage.column(lambda stage: stage.action is not Run.nothing)
        if not self.release.end_migration:
            runs = runs & (self.stage != Stage.cleanup)
        require(runs, "stage has an action")
        require(self.operation == Progress.none, "no action yet")
        if self.release.barrier_before_target_cleanup:
            drained = (self.stage != Stage.cleanup_target) | (self.barrier == Progress.done)
            require(drained, "barrier done before the target is cleaned up")
        self.operation = Progress.running

    @action(by=COORDINATOR, fair=WEAK)
    def finish_operation(self) -> None:
        """The replica answers that it is done."""
        require(self.operation == Progress.running, "action running")
        self.operation = Progress.done

    @action(by=COORDINATOR, spends=failures)
    def fail_operation(self) -> None:
        """The action fails, or its answer is lost; what it started may go on."""
        require(self.operation == Progress.running, "action running")
        self.operation = Progress.failed

    @action(by=COORDINATOR, fair=WEAK)
    def retry_operation(self) -> None:
        """The coordinator retries, unless it has to give up: an action may happen more than once."""
        require(self.operation == Progress.failed, "action failed")
        if self.release.rollback:
            streams = self.stage.any_of(Stage.rebuild_repair, Stage.streaming)
            require(~(streams & self._streaming_is_pointless()), "no reason to give up")
        self.operation = Progress.none

    # -- what happens around it ------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.barrier = Progress.none
        self.operation = Progress.none

    @action(by=OPERATOR, spends=exclusions)
    def exclude(self, role: Term[Role]) -> None:
        """The operator declares that the node of a dead replica is gone for good: barriers ignore it."""
        require(self.stage != Stage.none, "in transition")
        require(~self.excluded.has(role), "not excluded yet")
        require((role == Role.staying) | self._is(role), "the transition has such a replica")
        self.excluded.add(role)

    @action(by=OPERATOR)
    def make_unwanted(self) -> None:
        """The leaving node is asked to leave the cluster, or the pending node's disk fills up."""
        only_when(self.release.rollback)
        require(self.stage == Stage.streaming, "stage is streaming")
        require(~self.unwanted, "still wanted")
        self.unwanted = True

    # -- helpers ---------------------------------------------------------------------------------------

    def _barrier_done(self) -> None:
        require(self.barrier == Progress.done, "barrier done")

    def _operation_done(self) -> None:
        require(self.operation == Progress.done, "action done")

    def _has_barrier(self) -> None:
        barrier = self.stage.column(lambda stage: stage.barrier)
        if self.release.repair:
            # A repair runs the barrier only to drain a failed attempt.
            barrier = barrier & ((self.stage != Stage.repair) | (self.operation == Progress.failed))
        require(barrier, "stage has a barrier")

    def _new_replicas_are_worse(self) -> Bool:
        """Never within one node, whose two shards are excluded together."""
        worse = self.excluded.has(Role.pending) & ~self.excluded.has(Role.leaving)
        return worse & (self.kind != Kind.intranode_migration)

    def _streaming_is_pointless(self) -> Bool:
        return ~self.excluded.is_empty() | self.unwanted

    def _is(self, role: Term[Role]) -> Bool:
        leaving = (role == Role.leaving) & self._has(Role.leaving)
        return leaving | ((role == Role.pending) & self._has(Role.pending))

    def _close_session(self) -> None:
        self.session = False

    def _enter(self) -> None:
        self.barrier = Progress.none
        self.operation = Progress.none

    def _leave(self) -> None:
        self._enter()
        self.kind = None
        self.excluded = frozenset()
        self.unwanted = False
        if self.release.sessions:
            self.session = False

    # == promises ========================================================================================

    # -- the stages -----------------------------------------------------------------------------------

    @invariant
    def transition_has_a_kind(self) -> Bool:
        """001, stage 1: "transition info in group0 is filled with information about migration"."""
        return (self.stage == Stage.none) == self.kind.is_none()

    @step_property
    def a_transition_stays_of_its_kind(self, after: Self) -> Bool:
        """The same: the info says which replicas leave and come, from the first stage to the last. Where something fails, the
        transition is not taken for another one, from which less is waited for.
        """
        goes_on = (self.stage != Stage.none) & (after.stage != Stage.none)
        return goes_on.implies(after.kind == self.kind)

    @invariant
    def repair_stays_among_its_stages(self) -> Bool:
        """A repair moves no replica, so it never enters a stage of a migration, nor a migration one of a repair."""
        of_repair = self.stage.any_of(Stage.repair, Stage.end_repair)
        return (self.stage != Stage.none).implies((self.kind == Kind.repair) == of_repair)

    @invariant
    def nothing_is_remembered_at_rest(self) -> Bool:
        """001: when a tablet is not in transition, there is no transition info."""
        clean = self.excluded.is_empty() & ~self.unwanted & (self.barrier == Progress.none)
        return (self.stage == Stage.none).implies(clean & (self.operation == Progress.none))

    @step_property
    def neighbouring_stages_agree(self, after: Self) -> Bool:
        """001: nodes learn of a stage one after the other, so requests of a stage and of the next
        one run side by side: what either of them writes the other reads, and every replica that is
        written to has storage.

        Up to `scylla-2025.4` a migration that read from the new replicas could be undone without a
        stage in between: some requests still read there while others already wrote only to the old
        replicas.
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
        """001, stage 3: all writes "will reach CL in both old and new replica sets" before anything
        is streamed; stage 6: "No write request will reach" a replica outside of the new set when it
        is cleaned up.
        """
        begins = self._moves(after) & after.stage.any_of(Stage.streaming, Stage.rebuild_repair)
        cleans = self._moves(after) & (after.stage == Stage.cleanup)
        written = self._written(self.stage)
        return begins.implies(written == BOTH) & cleans.implies(written == Replicas.next)

    @step_property
    def a_transition_ends_where_all_selectors_are_in_step(self, after: Self) -> Bool:
        """Only then can the "previous" or the "next" replicas become the tablet's replicas (5.4: end_migration)."""
        only_when(self.release.end_migration)
        in_step = (self._selected(self.stage) == self._written(self.stage)) & (
            self._written(self.stage) == self._stored(self.stage)
        )
        return (after.stage == Stage.none).implies(in_step)

    @step_property
    def every_replica_has_learned_a_stage_before_the_next(self, after: Self) -> Bool:
        """001: "When stage is advanced, it means that expected invariants about cluster-wide state
        relevant to the tablet, associated with the next stage, hold": its barrier has passed.

        The coordinator does not wait when it undoes the transition, nor when a repair is done.
        """
        waits = self.stage.column(lambda stage: stage.barrier) & (self.stage != Stage.repair)
        if not self.release.barrier_before_target_cleanup:
            waits = waits & (self.stage != Stage.cleanup_target)
        forward = self._moves(after) & ~self._turns_back(after)
        return (forward & waits).implies(self.barrier == Progress.done)

    @step_property
    def the_action_of_a_stage_is_done_before_the_next(self, after: Self) -> Bool:
        """001: the stage "determines which action should be taken by the topology change
        coordinator on behalf of the tablet before it can move to the next step". Where no replica
        is left to clean up, nothing is waited for; and no action is done that no replica was asked
        for.
        """
        runs = self.stage.column(lambda stage: stage.action is not Run.nothing)
        if not self.release.end_migration:
            runs = runs & (self.stage != Stage.cleanup)
        nobody_leaves = self.excluded.has(Role.leaving) | self._only_adds()
        nobody = ((self.stage == Stage.cleanup) & nobody_leaves) | (
            (self.stage == Stage.cleanup_target) & self.excluded.has(Role.pending)
        )
        drained = (self.stage == Stage.repair) & (self.barrier == Progress.done)
        failed = (self.operation == Progress.failed) & drained
        done = (self.operation == Progress.done) | failed | nobody
        advances = self._moves(after) & ~self._turns_back(after)
        answered = (self.operation != Progress.done) & (after.operation == Progress.done)
        asked = self.operation == Progress.running
        return (advances & runs).implies(done) & answered.implies(asked)

    @step_property
    def replicas_are_cleaned_up_before_they_lose_their_storage(self, after: Self) -> Bool:
        """001, when not in transition: storage contains writes "only if that shard is one of the
        current tablet replicas": a replica that loses its storage has been cleaned up, unless
        nothing was ever written to it.
        """
        only_when(self.release.end_migration)
        loses = (self._stored(self.stage) == BOTH) & (self._stored(after.stage) != BOTH)
        cleans = (Stage.cleanup, Stage.cleanup_target)
        cleaned = self.stage.any_of(*cleans) | after.stage.any_of(*cleans)
        empty = (self.stage == Stage.allow_write_both_read_old) | (self.kind == Kind.repair)
        return loses.implies(cleaned | empty)

    @accepts(end)
    def nobody_waits_for_a_leaving_replica_that_is_gone(self) -> Bool:
        """001: "expected invariants about cluster-wide state" hold for the nodes that are there: a
        replica on a node that is gone for good is never cleaned up; nor is any if the transition
        only adds a replica.
        """
        only_when(self.release.end_migration)
        nobody_leaves = self.excluded.has(Role.leaving) | self._only_adds()
        return (self.stage == Stage.cleanup) & nobody_leaves

    @accepts(revert)
    def nobody_waits_for_a_pending_replica_that_is_gone(self) -> Bool:
        """The same on the way back, once the barrier has drained writes to both sets."""
        only_when(self.release.rollback)
        drained = (self.stage == Stage.cleanup_target) & (self.barrier == Progress.done)
        return drained & self.excluded.has(Role.pending)

    def _only_adds(self) -> Bool:
        """A rebuild adds a replica to the tablet: none leaves."""
        return self.kind.any_of(Kind.rebuild, Kind.rebuild_v2)

    @step_property
    def a_failed_repair_is_drained_after_it_failed(self, after: Self) -> Bool:
        """A barrier that passed before the failure says nothing about what the repair still does."""
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
        """A failure of a barrier or an action alone undoes nothing: a replica has to be excluded as
        well (once reads use the new replicas, more new than old ones), or a migration that streams
        has to be unwanted.
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
    def what_is_undone_is_not_taken_up_again(self, after: Self) -> Bool:
        """The way back has no turn: a transition that is undone ends where it began, and the load balancer, which knows what
        has become of its replicas, may plan another one.
        """
        only_when(self.release.rollback)
        undone = self.stage.any_of(*BACK)
        return undone.implies(after.stage.any_of(*BACK, Stage.none))

    @step_property
    def what_is_known_of_a_stage_ends_with_it(self, after: Self) -> Bool:
        """A barrier and an action belong to one stage: the next stage has its own."""
        nothing = (after.barrier == Progress.none) & (after.operation == Progress.none)
        return self._moves(after).implies(nothing)

    # -- what may begin, and what may be asked for ------------------------------------------------------

    @accepts(start)
    def tablets_at_rest_can_be_moved(self, kind: Term[Kind]) -> Bool:
        """001, "Load balancing": the balancer "persists it by moving tablets into transitional
        states": any tablet at rest may be migrated, or begin any other transition that changes its
        replicas.
        """
        known = kind != Kind.repair if self.release.repair else kind == Kind.migration
        return (self.stage == Stage.none) & known

    @accepts(start_repair)
    def tablets_at_rest_can_be_repaired(self) -> Bool:
        """The same for a repair, which is a transition of its own."""
        only_when(self.release.repair)
        return self.stage == Stage.none

    @accepts(exclude)
    def dead_replicas_are_given_up_in_any_stage(self, role: Term[Role]) -> Bool:
        """001 counts on "still alive owners": an operator may declare that any replica is gone for
        good, whatever the coordinator is waiting for.
        """
        there = (
            (role == Role.staying)
            | ((role == Role.leaving) & ~self._only_adds() & (self.kind != Kind.repair))
            | ((role == Role.pending) & (self.kind != Kind.repair))
        )
        return (self.stage != Stage.none) & there & ~self.excluded.has(role)

    @accepts(make_unwanted)
    def streams_can_lose_their_point(self) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", even if it is to
        leave and a tablet is being streamed from it.
        """
        only_when(self.release.rollback)
        return (self.stage == Stage.streaming) & ~self.unwanted

    @step_property
    def dead_replicas_stay_given_up(self, after: Self) -> Bool:
        """001: a tablet's state machine is "stored in group0": a replica that was declared gone for good is so for whoever
        drives the transition on, to its end.
        """
        return (self.excluded <= after.excluded) | (after.stage == Stage.none)

    @accepts(retry_operation)
    def what_failed_is_tried_again(self) -> Bool:
        """001: "Tablets are migrated in parallel and independently": an action that has failed but
        may still succeed is retried, whatever happens to other tablets.
        """
        hopeful = self.excluded.is_empty() & ~self.unwanted
        return (self.operation == Progress.failed) & hopeful

    @accepts(retry_barrier)
    def barriers_that_failed_are_tried_again(self) -> Bool:
        """The same for a barrier."""
        return (self.barrier == Progress.failed) & self.excluded.is_empty()

    # -- streaming ------------------------------------------------------------------------------------

    @invariant
    def session_is_open_only_while_something_streams(self) -> Bool:
        """Sessions guard streaming and repair: none may be open once the result is in use, or has been thrown away."""
        past = self.stage.any_of(
            Stage.none,
            Stage.write_both_read_new,
            Stage.use_new,
            Stage.cleanup,
            Stage.end_migration,
            Stage.end_repair,
        )
        return self.session.implies(~past)

    @invariant
    def what_streams_has_a_session(self) -> Bool:
        """It is set on entering write_both_read_old (5.4): a replica refuses to stream, or to repair, without one."""
        only_when(self.release.sessions)
        streams = self.stage.any_of(
            Stage.write_both_read_old, Stage.rebuild_repair, Stage.streaming, Stage.repair
        )
        return streams.implies(self.session)

    @step_property
    def the_session_closes_when_streaming_is_over(self, after: Self) -> Bool:
        """Whether streaming is done or given up, data that is still on its way is refused from then on."""
        streamed = self.stage.any_of(Stage.streaming, Stage.rebuild_repair, Stage.repair)
        over = streamed & self._moves(after) & (after.stage != Stage.streaming)
        return over.implies(~after.session)

    @lemma
    def only_rebuild_v2_repairs(self) -> Bool:
        """The second version of a rebuild has a stage of its own (2025.2). A lemma: whatever streams afterwards is one, by
        `rebuild_v2_repairs_before_it_streams`, and nothing else follows but that it is undone.
        """
        only_when(self.release.repair)
        return (self.stage == Stage.rebuild_repair).implies(self.kind == Kind.rebuild_v2)

    @lemma
    def nothing_is_unwanted_before_it_streams(self) -> Bool:
        """A migration can only become unwanted while it streams."""
        only_when(self.release.rollback)
        before = self.stage.any_of(
            Stage.allow_write_both_read_old, Stage.write_both_read_old, Stage.rebuild_repair
        )
        return self.unwanted.implies(~before)

    @step_property
    def rebuild_v2_repairs_before_it_streams(self, after: Self) -> Bool:
        """It streams from replicas that were repaired first (2025.2)."""
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
        """Whatever has happened, the transition can still end."""
        return self.stage == Stage.none

    @liveness
    def every_transition_ends(self) -> LeadsTo:
        """Every transition ends, completed or reverted, if no step that stays possible is put off for ever."""
        return leads_to(self.stage != Stage.none, self.stage == Stage.none)

    # -- helpers ---------------------------------------------------------------------------------------

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
        """The step starts to undo the transition."""
        return after.stage.any_of(*BACK) & ~self.stage.any_of(*BACK)

    def _selected(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.reads)

    def _written(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.writes)

    def _stored(self, stage: Term[Stage]) -> Term[Replicas]:
        return stage.column(lambda stage: stage.storage)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        *HARMLESS_IN_STAGES,
        equivalent_value(
            Kind.repair,
            lambda kind: kind.leaving,
            because="a repair cleans up no replica: nobody asks whether one leaves",
        ),
        equivalent_value(
            Kind.repair,
            lambda kind: kind.pending,
            because="a repair cleans up no replica: nobody asks whether one is pending",
        ),
        equivalent_loss(give_up_before_streaming, stage, because=FORGOTTEN),
        equivalent_loss(fall_back, stage, because=FORGOTTEN),
        equivalent_drop(
            pass_barrier,
            "no barrier yet",
            because="a barrier that passes after it failed has been retried",
        ),
        equivalent_drop(
            fail_barrier,
            "no barrier yet",
            because="the coordinator may forget that a barrier passed, and the next one may fail",
        ),
        equivalent_loss(fail_barrier, barrier, because=NO_FAULT),
        equivalent_drop(retry_barrier, "no reason to give up", because=HOPELESS),
        equivalent_replacement(retry_barrier, "no reason to give up", because=HOPELESS),
        equivalent_loss(fail_operation, operation, because=NO_FAULT),
        equivalent_drop(retry_operation, "no reason to give up", because=HOPELESS),
        equivalent_replacement(retry_operation, "no reason to give up", because=HOPELESS),
        equivalent_replacement(
            retry_operation,
            "operation becomes: running for none",
            because="an action that is to be retried is started next: both may be one step",
        ),
        equivalent_loss(
            fail_over,
            barrier,
            operation,
            because="what a new coordinator would know of its predecessor's work is still true",
        ),
        equivalent_drop(
            exclude, "not excluded yet", because="excluding a replica twice changes nothing"
        ),
        equivalent_drop(
            exclude,
            "the transition has such a replica",
            because="it does not matter whether a replica that the transition does not have is excluded",
        ),
        equivalent_loss(exclude, excluded, because=NO_FAULT),
        equivalent_replacement(exclude, "excluded[role] becomes: no for yes", because=NO_FAULT),
        equivalent_drop(
            make_unwanted, "still wanted", because="an unwanted migration stays unwanted"
        ),
        equivalent_loss(make_unwanted, unwanted, because=NO_FAULT),
        equivalent_replacement(make_unwanted, "becomes: no for yes", because=NO_FAULT),
        equivalent_weakening(
            _has_barrier,
            "stage has a barrier",
            because="a barrier that fails before the repair does is retried",
        ),
        equivalent_loss(
            _enter,
            barrier,
            operation,
            because="a stage has either a barrier or an action: nothing is known of the other",
        ),
        equivalent_loss(_leave, unwanted, because="a repair is never unwanted"),
        equivalent_loss(
            _leave,
            session,
            because="only a migration that is being undone may still have a session",
        ),
    )


def _within(some: Term[Replicas], others: Term[Replicas]) -> Bool:
    """All of the first are among the second."""
    return (some == others) | (others == BOTH)
