"""Tablet migration: the transition of one tablet, as the topology coordinator drives it.

Each tablet has its own migration state machine, stored in group0 (001, "Tablet migration"). This is that
machine, with the coordinator's volatile knowledge of it: whether the barrier of the stage has passed and
whether its action is done. `tablet_migration_promises.py` says what is promised of it; `tablet.py`
puts nodes, requests and data around it.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration_promises import (
    MigrationPromises,
    Progress,
)
from stagewright.machines.scylladb.tablets.tablet_stages import (
    HARMLESS_IN_STAGES,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Kind,
    Role,
    Run,
    Stage,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    budget,
    equivalent_drop,
    equivalent_loss,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    flag,
    one_of,
    only_when,
    optional,
    profiles,
    require,
    scopes,
    set_of,
    volatile,
)

COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
WEAK = Fairness.WEAK
FORGOTTEN = "to forget a failure without undoing is what a change of the coordinator does too"
HOPELESS = "a hopeless transition that is tried again may still go on"
NO_FAULT = "with a fault less there is less that can go wrong"


class TabletMigration(MigrationPromises):
    """The stages of one tablet's transition, with barriers, actions, failures and rollback.

    Profiles: `seed` is the design document of 2023-07: six stages, no way back, no session, and a cleanup
    stage without a cleanup. `scylla-2025.4` and `scylla-2026.2` follow the releases' transition tables.
    """

    release = profiles(SEED, SCYLLA_2025_4, SCYLLA_2026_2)
    failures = budget(1, doc="barriers and actions that fail")
    failovers = budget(1, doc="changes of the topology coordinator")
    exclusions = budget(doc="replicas that are declared gone for good")
    exercised_at = scopes({}, {exclusions: 0})

    stage: OneVar[Stage] = one_of(Stage, init=Stage.none)
    kind: OptionalVar[Kind] = optional(Kind)  # of the transition that is going on
    session: FlagVar = flag()  # an open session in group0: streaming is accepted
    excluded: SetVar[Role] = set_of(Role)  # replicas that are down for good and ignored
    unwanted: FlagVar = flag()  # the leaving host must go, or the pending one's disk is nearly full
    barrier: OneVar[Progress] = volatile(one_of(Progress, init=Progress.none), of=COORDINATOR)
    operation: OneVar[Progress] = volatile(one_of(Progress, init=Progress.none), of=COORDINATOR)

    # -- the way forward -----------------------------------------------------------------------------

    @stage.step(Stage.none, Stage.allow_write_both_read_old, by=COORDINATOR)
    def start(self, kind: Term[Kind]) -> None:
        """The load balancer persists a migration: transition info in group0 is filled."""
        require(kind != Kind.repair, "repair has stages of its own")
        if not self.release.repair:
            require(kind == Kind.migration, "migration is the only kind")
        self.kind = kind
        self._enter()

    @stage.step(
        Stage.allow_write_both_read_old, Stage.write_both_read_old, by=COORDINATOR, fair=WEAK
    )
    def write_both(self) -> None:
        """Every replica has seen the transition info and is ready for writes: write to both sets."""
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
        """A rebuild repairs the replica it will read from first."""
        only_when(self.release.repair)
        self._barrier_done()
        require(self.kind == Kind.rebuild_v2, "kind is rebuild_v2")
        self._enter()

    @stage.step(Stage.rebuild_repair, Stage.streaming, by=COORDINATOR, fair=WEAK)
    def stream_after_repair(self) -> None:
        """The replicas to read from agree: stream."""
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
        """The document's end: it names the cleanup stage but no action in it, and no barrier after it."""
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
        """A replica is gone for good and the barrier failed: undo."""
        only_when(self.release.rollback)
        require(self.barrier == Progress.failed, "barrier failed")
        require(~self.excluded.is_empty(), "a replica is excluded")
        self._enter()

    @stage.step(
        (Stage.rebuild_repair, Stage.streaming), Stage.cleanup_target, by=COORDINATOR, fair=WEAK
    )
    def give_up_streaming(self) -> None:
        """The action failed and cannot or need not succeed: close the session and undo."""
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
        """More of the new replicas than of the old ones are gone: read the old ones again."""
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
        """A repair of the tablet was requested: its replicas stay what they are."""
        only_when(self.release.repair)
        self.kind = Kind.repair
        self.session = True
        self._enter()

    @stage.step(Stage.repair, Stage.end_repair, by=COORDINATOR, fair=WEAK)
    def end_repair(self) -> None:
        """The repair is done; or it failed, and a barrier has made sure that nothing of it still runs."""
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
        """Every node that is not excluded has learned the stage and drained what was before it."""
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
        """The coordinator tries the barrier again, a second later, if it need not give up."""
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
        """The coordinator tries again, if it need not give up: an action may happen more than once."""
        require(self.operation == Progress.failed, "action failed")
        if self.release.rollback:
            streams = self.stage.any_of(Stage.rebuild_repair, Stage.streaming)
            require(~(streams & self._streaming_is_pointless()), "no reason to give up")
        self.operation = Progress.none

    # -- around it -------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.barrier = Progress.none
        self.operation = Progress.none

    @action(by=OPERATOR, spends=exclusions)
    def exclude(self, role: Term[Role]) -> None:
        """The operator declares a dead replica's node gone for good: barriers ignore it."""
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

    # -- what recurs -----------------------------------------------------------------------------------

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
        """Never so within one node, whose two shards are excluded together."""
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        *HARMLESS_IN_STAGES,
        equivalent_value(
            tuple(Kind),
            lambda kind: kind.leaving,
            because="which replicas a kind has shows where there are replicas: in the cluster",
        ),
        equivalent_value(
            tuple(Kind),
            lambda kind: kind.pending,
            because="which replicas a kind has shows where there are replicas: in the cluster",
        ),
        equivalent_loss(give_up_before_streaming, stage, because=FORGOTTEN),
        equivalent_loss(fall_back, stage, because=FORGOTTEN),
        equivalent_drop(
            pass_barrier,
            "no barrier yet",
            because="a barrier that passes after one that failed is one that was tried again",
        ),
        equivalent_drop(
            fail_barrier,
            "no barrier yet",
            because="what is known of a barrier that passed may be lost, and the next one fail",
        ),
        equivalent_loss(fail_barrier, barrier, because=NO_FAULT),
        equivalent_drop(retry_barrier, "no reason to give up", because=HOPELESS),
        equivalent_loss(fail_operation, operation, because=NO_FAULT),
        equivalent_drop(retry_operation, "no reason to give up", because=HOPELESS),
        equivalent_loss(
            fail_over,
            barrier,
            operation,
            because="what a new coordinator would know of its predecessor's work is still so",
        ),
        equivalent_drop(
            exclude, "not excluded yet", because="to exclude a replica twice is to exclude it once"
        ),
        equivalent_drop(
            exclude,
            "the transition has such a replica",
            because="nobody asks whether a replica is excluded that the transition does not have",
        ),
        equivalent_loss(exclude, excluded, because=NO_FAULT),
        equivalent_drop(make_unwanted, "still wanted", because="what is unwanted stays so"),
        equivalent_loss(make_unwanted, unwanted, because=NO_FAULT),
        equivalent_weakening(
            _has_barrier,
            "stage has a barrier",
            because="a barrier that fails before the repair does is tried again",
        ),
        equivalent_loss(
            _enter,
            barrier,
            operation,
            because="a stage has a barrier or an action: of the other one nothing is known",
        ),
        equivalent_loss(_leave, unwanted, because="a repair is never unwanted"),
        equivalent_loss(
            _leave, session, because="only a migration that is undone may still have a session"
        ),
    )
