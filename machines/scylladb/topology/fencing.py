"""Fencing: after the global barrier nothing of an older topology version has effects any more.

Every request holds the version of the token metadata that it began under (`fencing_nodes.py`). The barrier waits
until older versions are released, and moves the fence, below which replicas refuse (`fencing_barrier.py`).
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.topology.fencing_barrier import Answer, FencingBarrier, Phase
from stagewright.machines.scylladb.topology.fencing_nodes import FencingNodes, Node, Stage
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    always_reachable,
    equivalent_value,
    equivalents,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    scopes,
    some,
    step_property,
)


class Fencing(FencingBarrier):
    """A barrier drains requests of older versions, and a fence refuses the rest.

    Under `scylla-2026.2` every promise holds. Under `scylla-2025.4` the barrier of a tablet's stage falls back
    on the fence where a node does not drain: `no_coordinator_is_older_than_the_barrier`,
    `nothing_older_runs_after_the_barrier`, `closed_sessions_are_drained`,
    `stages_leave_nothing_older_behind` and `transactions_exclude_each_other` fail (scylladb #26864, #26375).
    """

    exercised_at = scopes(
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 0,
            FencingBarrier.cleanups: 0,
            FencingBarrier.failures: 2,
        },
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 3,
            FencingBarrier.decommissions: 1,
            FencingBarrier.failures: 0,
        },
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 0,
            FencingNodes.streams: 2,
            FencingBarrier.failures: 0,
        },
        {
            FencingNodes.writes: 2,
            FencingNodes.bumps: 0,
            FencingBarrier.cleanups: 0,
            FencingBarrier.failures: 0,
        },
        {FencingBarrier.cleanups: 0, FencingBarrier.failures: 0},
        {
            FencingNodes.bumps: 0,
            FencingBarrier.cleanups: 0,
            FencingBarrier.failures: 0,
            FencingBarrier.decommissions: 1,
        },
        {FencingNodes.bumps: 0, FencingBarrier.failures: 0, FencingBarrier.failovers: 1},
        {FencingNodes.bumps: 0},
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 0,
            FencingBarrier.failures: 0,
            FencingNodes.transactions: 1,
        },
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 0,
            FencingBarrier.failures: 0,
            FencingBarrier.cleanups: 0,
            FencingNodes.transactions: 2,
        },
        {FencingNodes.bumps: 0, FencingBarrier.failures: 0, FencingBarrier.exclusions: 1},
    )
    harmless = equivalents(
        equivalent_value(
            tuple(Stage), lambda stage: stage.left, because="with fewer versions less happens"
        ),
        equivalent_value(
            Stage.both, lambda stage: stage.session, False, because="nobody need stream"
        ),
    )

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def no_coordinator_is_older_than_the_barrier(self, n: Term[Node]) -> Bool:
        """After a barrier at version x "no coordinator with version < x" is left (facts, 1a); nodes that
        are decommissioning coordinate too (scylladb #15804).
        """
        older = self._waits(n) & (self.request[n].version < self.barrier_version)
        return (self._has_drained() & ~self.excluded.has(n)).implies(~older)

    @invariant
    def nothing_older_runs_after_the_barrier(self, r: Term[Node], n: Term[Node]) -> Bool:
        """Nor does replica `r` still execute under an older version of its own, be it for a coordinator
        that gave up (scylladb #26864).
        """
        older = self._executes(r, n) & (self.request[n].executed < self.barrier_version)
        return (self._has_drained() & ~self.excluded.has(r)).implies(~older)

    @invariant
    def closed_sessions_are_drained(self, n: Term[Node]) -> Bool:
        """The session is open in the stage between the others; after the barrier of another one nobody works
        in it (facts, 1a: "drain closed sessions").
        """
        works = self.streaming.has(n) & ~self.excluded.has(n)
        return (self._has_drained() & works).implies(self.stage == Stage.both)

    @step_property
    def stages_leave_nothing_older_behind(self, after: Self, n: Term[Node]) -> Bool:
        """When the next stage is committed, no coordinator is older than the barrier of the last one: 001,
        "expected invariants about cluster-wide state relevant to the tablet, associated with the next
        stage, hold".
        """
        moves = (self.stage != after.stage) & ~self.excluded.has(n)
        older = self._waits(n) & (self.request[n].version < self.barrier_version)
        return moves.implies(~older)

    @invariant
    def barriers_have_a_version(self) -> Bool:
        """A barrier is for a version that was committed when it began."""
        committed = (self.barrier_version > 0) & (self.barrier_version <= self.version)
        return (self.phase != Phase.none).implies(committed)

    @invariant
    def only_what_is_below_the_fence_is_refused(self) -> Bool:
        """Replicas refuse stale requests, and no others."""
        return ~self.refused_current

    @invariant
    def current_requests_are_not_fenced_out(self, n: Term[Node]) -> Bool:
        """A request using a version that was current when the barrier began is not fenced out by it
        (scylladb #18699).
        """
        current = self._waits(n) & (self.request[n].version >= self.barrier_version)
        fenced_out = self.request[n].version < self.fence
        return ((self.phase != Phase.none) & current).implies(~fenced_out)

    @invariant
    def fence_holds_on_every_replica(self, r: Term[Node]) -> Bool:
        """After a barrier that fell back on the fence every replica refuses what is older; those that are
        decommissioning store too (scylladb #17108).
        """
        fell_back = (self.phase == Phase.done) & self.drain_failed & ~self.excluded.has(r)
        return fell_back.implies(self.view[r].fence >= self.barrier_version)

    @invariant
    def nothing_stale_is_stored(self) -> Bool:
        """No replica stores, after a cleanup, a write that is older than the barrier before the cleanup:
        "no stale side effects" (scylladb #26375).
        """
        return ~self.stale_effect

    @invariant
    def transactions_exclude_each_other(self, n: Term[Node], m: Term[Node]) -> Bool:
        """Lightweight transactions exclude each other on a replica, whose locks are on the old shard, on
        both and on the new one as the stages go by (scylladb #26864).
        """
        together = some(self._executes(r, n) & self._executes(r, m) for r in Node)
        return (n != m).implies(~together)

    @invariant
    def views_are_at_most_one_stage_behind(self, n: Term[Node]) -> Bool:
        """Facts, 1a: "skew at most one stage each way"."""
        skipped = (self.stage == Stage.new) & (self.view[n].stage == Stage.old)
        return (~self.excluded.has(n)).implies(~skipped)

    @step_property
    def what_is_committed_is_applied_whole(self, after: Self, n: Term[Node]) -> Bool:
        """Facts, 1a: a node runs a raft read barrier, after which it has all that is committed: version,
        stage and fence are never of different times.
        """
        old, new = self.view[n], after.view[n]
        unchanged = (
            (new.version == old.version) & (new.stage == old.stage) & (new.fence == old.fence)
        )
        latest = (
            (new.version == self.version) & (new.stage == self.stage) & (new.fence == self.fence)
        )
        return unchanged | latest

    @step_property
    def excluded_nodes_are_left_alone(self, after: Self, n: Term[Node]) -> Bool:
        """Facts, 1a: commands go to all nodes "except ignored_nodes", which are cut off from group0: such a
        node receives nothing, learns nothing, and is asked for nothing.
        """
        receives = (self.answer[n] == Answer.none) & (after.answer[n] != Answer.none)
        learns = after.view[n].version != self.view[n].version
        cleaned = after.cleaned[n] != self.cleaned[n]
        return self.excluded.has(n).implies(~receives & ~learns & ~cleaned)

    @step_property
    def only_commands_are_answered(self, after: Self, n: Term[Node]) -> Bool:
        """Facts, 1a: a node answers `barrier_and_drain`, or the `barrier` after it, that the coordinator waits for."""
        answers = (after.answer[n] != self.answer[n]) & (after.answer[n] != Answer.none)
        return answers.implies(self.phase.any_of(Phase.draining, Phase.informing))

    @step_property
    def fence_never_falls(self, after: Self) -> Bool:
        """The fence moves forward, and never beyond what is committed."""
        return (self.fence <= after.fence) & (after.fence <= after.version)

    # -- lemmas ----------------------------------------------------------------------------------------

    @invariant
    def versions_are_in_order(self, n: Term[Node]) -> Bool:
        """Lemma: nobody is ahead of what is committed, and nothing that was cleaned up of what it knows."""
        view, request = self.view[n], self.request[n]
        known = (view.version <= self.version) & (view.fence <= self.fence)
        barrier = (self.phase == Phase.none) | (self.fence <= self.barrier_version)
        cleaned = self.cleaned[n] <= view.fence
        idle = request.replica.is_none().implies(request.executed == 0)
        return (
            known
            & idle
            & barrier
            & cleaned
            & (self.fence <= self.version)
            & (request.version <= view.version)
        )

    @invariant
    def stages_go_with_versions(self, n: Term[Node]) -> Bool:
        """Lemma: who has the latest version has the latest stage; nobody has a later one."""
        view = self.view[n]
        mine = view.stage.number_column(lambda stage: stage.left)
        left = self.stage.number_column(lambda stage: stage.left)
        return (left <= mine) & (view.version == self.version).implies(view.stage == self.stage)

    @invariant
    def what_is_executed_goes_with_the_view(self, r: Term[Node], n: Term[Node]) -> Bool:
        """Lemma: a replica executes under the version and the stage that it had, and these go together."""
        view, request = self.view[r], self.request[n]
        mine = view.stage.number_column(lambda stage: stage.left)
        left = request.stage.number_column(lambda stage: stage.left)
        same = (request.executed == view.version).implies(request.stage == view.stage)
        skipped = (request.stage == Stage.old) & (view.stage == Stage.new)
        behind = (request.stage == Stage.old) & (self.stage == Stage.new) & ~self.excluded.has(r)
        ordered = (request.executed <= view.version) & (mine <= left)
        return self._executes(r, n).implies(same & ordered & ~skipped & ~behind)

    @invariant
    def answers_say_what_is_so(self, r: Term[Node], n: Term[Node]) -> Bool:
        """Lemma: a node that has applied a command is up to date; one that has drained holds nothing old."""
        view, stage = self.view[r], self.stage
        up_to_date = (view.version >= self.barrier_version) & (view.stage == stage)
        fence = (self.phase == Phase.informing).implies(view.fence >= self.barrier_version)
        informed = (self.phase == Phase.done) & self.drain_failed
        going_on = self.phase.any_of(Phase.draining, Phase.informing)
        applied = going_on & (self.answer[r] != Answer.none)
        drained = (self.phase == Phase.draining) & (self.answer[r] == Answer.acknowledged)
        passed = self.phase.any_of(Phase.fencing, Phase.done) & ~self.drain_failed
        waits = self._waits(r).implies(self.request[r].version >= self.barrier_version)
        streams = self.streaming.has(r).implies(stage == Stage.both)
        executes = self._executes(r, n).implies(
            (self.request[n].executed >= self.barrier_version) & (self.request[n].stage == stage)
        )
        nothing_old = up_to_date & waits & streams & executes
        return self.excluded.has(r) | (
            applied.implies(up_to_date & fence)
            & informed.implies(view.fence >= self.barrier_version)
            & (drained | passed).implies(nothing_old)
        )

    @invariant
    def a_stage_never_falls_back(self) -> Bool:
        """Lemma: only a barrier that may fall back has failed to drain and goes on; then the fence is there."""
        fails = self.drain_failed.implies(self._may_fall_back() & (self.phase != Phase.none))
        at = self.phase.any_of(Phase.informing, Phase.done)
        draining = (self.phase == Phase.draining).implies(~self.drain_failed)
        informing = (self.phase == Phase.informing).implies(self.drain_failed)
        return fails & draining & informing & at.implies(self.fence == self.barrier_version)

    # -- goals -----------------------------------------------------------------------------------------

    @always_reachable
    def the_last_stage_can_be_reached(self) -> Bool:
        """Whatever happened, barriers can pass and the tablet can go on to its last stage."""
        return self.stage == Stage.new

    @final
    def nobody_waits(self) -> Bool:
        """A cluster without requests and without a barrier may stay as it is."""
        idle = every(self.request[n].replica.is_none() for n in Node)
        return idle & self.phase.any_of(Phase.none, Phase.done)

    @liveness
    def barriers_end(self) -> LeadsTo:
        """Every barrier ends, passed or given up: nodes that are not excluded answer in the end."""
        going_on = self.phase.any_of(Phase.draining, Phase.fencing, Phase.informing)
        return leads_to(going_on, ~going_on)
