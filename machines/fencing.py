"""Fencing: the global barrier, after which nothing of an older topology version has effects any more.

`global_token_metadata_barrier` of the topology coordinator: the command `barrier_and_drain` to every node that
is not excluded; then the fence moves to the version that was current when the barrier began; where draining
failed and the barrier may do without, the command `barrier` makes every node learn the fence.
`fencing_nodes.py` has the nodes and their requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.fencing_nodes import (
    LAST_VERSION,
    NETWORK,
    FencingNodes,
    Node,
    NodeState,
    Stage,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Number,
    NumberVar,
    OneVar,
    Profile,
    Term,
    action,
    budget,
    choose,
    equivalent,
    equivalent_value,
    equivalents,
    every,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    per,
    profiles,
    reachable,
    require,
    scopes,
    some,
    step_property,
)

COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
WEAK = Fairness.WEAK


class Purpose(Enum):
    """What a barrier is for."""

    tablets = auto()  # the stage of a tablet
    topology = auto()  # the state of a topology change


class Phase(Enum):
    """Where the topology coordinator is in a barrier; volatile."""

    none = auto()
    draining = auto()  # `barrier_and_drain` was sent
    fencing = auto()  # drained, or failed to: the fence is to be committed
    informing = auto()  # failed to drain: `barrier` was sent
    done = auto()


class Answer(Enum):
    """How far a node is with the command that it was sent."""

    none = auto()
    applied = auto()  # its raft read barrier is done
    acknowledged = auto()


@dataclass(frozen=True)
class Barriers(Profile):
    """What a version of ScyllaDB does about barriers."""

    tablets_drain_everywhere: bool  # the barrier of a stage never falls back on the fence (2026-02)


class Fencing(FencingNodes):
    """A barrier drains requests of older versions, and a fence refuses the rest.

    Under `scylla-2026.2` every promise holds. Under `scylla-2025.4` a node that does not drain lets the
    barrier of a tablet's stage fall back on the fence: `no_coordinator_is_older_than_the_barrier`,
    `nothing_older_runs_after_the_barrier`, `closed_sessions_are_drained` and
    `transactions_exclude_each_other` fail (scylladb #26864, #26375).
    """

    release = profiles(Barriers("scylla-2025.4", False), Barriers("scylla-2026.2", True))
    failures = budget(1, doc="commands to which a node does not answer")
    cleanups = budget(1, doc="replicas that are cleaned up")
    decommissions = budget(0, doc="nodes that are asked to leave")
    exclusions = budget(0, doc="nodes that are declared gone for good")
    failovers = budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {FencingNodes.writes: 0, FencingNodes.bumps: 0, cleanups: 0, failures: 2},
        {FencingNodes.writes: 0, FencingNodes.bumps: 3, decommissions: 1, failures: 0},
        {FencingNodes.writes: 0, FencingNodes.bumps: 0, FencingNodes.streams: 2, failures: 0},
        {FencingNodes.writes: 2, FencingNodes.bumps: 0, cleanups: 0, failures: 0},
        {cleanups: 0, failures: 0},
        {FencingNodes.bumps: 0, cleanups: 0, failures: 0, decommissions: 1},
        {FencingNodes.bumps: 0, failures: 0, failovers: 1},
        {FencingNodes.bumps: 0},
        {FencingNodes.writes: 0, FencingNodes.bumps: 0, failures: 0, FencingNodes.transactions: 1},
        {
            FencingNodes.writes: 0,
            FencingNodes.bumps: 0,
            failures: 0,
            cleanups: 0,
            FencingNodes.transactions: 2,
        },
        {FencingNodes.bumps: 0, failures: 0, exclusions: 1},
    )
    harmless = equivalents(
        equivalent_value(
            tuple(Stage), lambda stage: stage.left, because="with fewer versions less happens"
        ),
        equivalent_value(
            Stage.both, lambda stage: stage.session, False, because="nobody need stream"
        ),
    )

    phase: OneVar[Phase] = one_of(Phase, init=Phase.none)
    purpose: OneVar[Purpose] = one_of(Purpose, init=Purpose.tablets)
    barrier_version: NumberVar = number(0, LAST_VERSION)  # current when the barrier began
    drain_failed: FlagVar = flag()
    answer = per(Node, one_of(Answer, init=Answer.none))

    # -- the barrier -----------------------------------------------------------------------------------

    @action(by=COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The coordinator sends `barrier_and_drain` to every node that is not excluded."""
        require(self.phase == Phase.none, "the coordinator is free")
        self.phase = Phase.draining
        self.barrier_version = self.version
        with equivalent("the barrier of a stage does more than that of a topology change"):
            self.purpose = purpose
        self._send_command()

    @action(fair=WEAK)
    def read_what_is_committed(self, n: Term[Node]) -> None:
        """Node `n` receives the command and runs a raft read barrier."""
        with equivalent("answers to nothing are forgotten when a command is sent"):
            require(self.phase.any_of(Phase.draining, Phase.informing), "a command was sent")
        with equivalent("what an excluded node learns harms nobody"):
            require(self._is_asked(n), "it was sent to the node")
        require(self.answer[n] == Answer.none, "the node has not received it yet")
        self.answer[n] = Answer.applied
        self._apply(n)

    @action(fair=WEAK)
    def acknowledge_drain(self, n: Term[Node]) -> None:
        """Node `n` holds no older version and works in no closed session any more."""
        with equivalent("who has drained has learned the fence too"):
            require(self.phase == Phase.draining, "phase is draining")
        require(self.answer[n] == Answer.applied, "node has read what is committed")
        require(~self._holds_older(n), "older versions are released")
        works = self.streaming.has(n) & ~self._session_is_open(n)
        require(~works, "closed sessions are drained")
        self.answer[n] = Answer.acknowledged

    @action(fair=WEAK)
    def acknowledge_fence(self, n: Term[Node]) -> None:
        """Node `n` has learned the fence."""
        require(self.phase == Phase.informing, "phase is informing")
        require(self.answer[n] == Answer.applied, "node has read what is committed")
        self.answer[n] = Answer.acknowledged

    @action(by=COORDINATOR, fair=WEAK)
    def drain(self) -> None:
        """Every node has drained: the fence is to move."""
        require(self.phase == Phase.draining, "phase is draining")
        self._all_have_acknowledged()
        self.phase = Phase.fencing

    @action(by=NETWORK, spends=failures)
    def fail_to_drain(self) -> None:
        """A node does not answer: a topology change goes on with the fence, a stage tries again."""
        with equivalent("a barrier may fail at any time"):
            require(self.phase == Phase.draining, "phase is draining")
        falls_back = self._may_fall_back()
        self.drain_failed = falls_back
        with equivalent("a topology change may try again as well"):
            self.phase = choose(falls_back, Phase.fencing, Phase.none)
        with equivalent("nobody looks at a barrier that is over"):
            self.purpose = choose(falls_back, self.purpose, Purpose.tablets)
            self.barrier_version = choose(falls_back, self.barrier_version, 0)

    @action(by=COORDINATOR, fair=WEAK)
    def move_fence(self) -> None:
        """The fence moves to the version that was current when the barrier began."""
        require(self.phase == Phase.fencing, "phase is fencing")
        self.fence = self._new_fence()
        with equivalent("to inform nodes that have drained takes only longer"):
            self.phase = choose(self.drain_failed, Phase.informing, Phase.done)
        self._send_command()

    @action(by=COORDINATOR, fair=WEAK)
    def inform(self) -> None:
        """Every node has learned the fence, where draining failed."""
        require(self.phase == Phase.informing, "phase is informing")
        self._all_have_acknowledged()
        self.phase = Phase.done

    @action(by=NETWORK, spends=failures)
    def fail_to_inform(self) -> None:
        """A node does not answer the second command either: the barrier has failed."""
        with equivalent("a barrier may fail at any time"):
            require(self.phase == Phase.informing, "phase is informing")
            self.phase = Phase.none
        self._forget_barrier()

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and knows of no barrier."""
        self.phase = Phase.none
        self._forget_barrier()

    # -- what a barrier is for -------------------------------------------------------------------------

    @action(by=COORDINATOR)
    def advance(self) -> None:
        """The barrier of the stage has passed: the next stage is committed, with a version of its own."""
        self._passed(Purpose.tablets)
        require(self.stage != Stage.new, "a stage is left")
        self.version = self.version + 1
        self.stage = choose(self.stage == Stage.old, Stage.both, Stage.new)
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=COORDINATOR, spends=decommissions)
    def decommission(self, n: Term[Node]) -> None:
        """A node begins to leave: it goes on coordinating requests, and storing those of others."""
        self._commit_version_beside_stages()
        with equivalent("nodes in either state are asked; that they were not, was a bug"):
            self.node[n] = NodeState.decommissioning

    @action(by=COORDINATOR, spends=cleanups)
    def clean_up(self, r: Term[Node]) -> None:
        """After a barrier replica `r` is asked to clean up; it runs a raft read barrier first."""
        require(self.phase == Phase.done, "the barrier has passed")
        with equivalent("what is left at an excluded node harms nobody"):
            require(~self.excluded.has(r), "the replica is not excluded")
        self._apply(r)
        with equivalent("what is not cleaned up may be stored to"):
            self.cleaned[r] = self.barrier_version

    @action(by=COORDINATOR)
    def end_barrier(self) -> None:
        """What the barrier was for is done."""
        with equivalent("a barrier may be given up at any time"):
            require(self.phase == Phase.done, "the barrier has passed")
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=OPERATOR, spends=exclusions)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares a node gone for good; it is cut off from group0, and may live on."""
        with equivalent("a node that is not excluded is asked"):
            self.excluded.add(n)

    # -- what recurs -----------------------------------------------------------------------------------

    def _passed(self, purpose: Purpose) -> None:
        require(self.phase == Phase.done, "the barrier has passed")
        require(self.purpose == purpose, "it was a barrier for this purpose")

    def _is_asked(self, n: Term[Node]) -> Bool:
        """Commands go to normal nodes and to those in transition, but not to excluded ones."""
        return ~self.excluded.has(n)

    def _all_have_acknowledged(self) -> None:
        answers = every((self.answer[n] == Answer.acknowledged) | ~self._is_asked(n) for n in Node)
        require(answers, "every node has acknowledged")

    def _may_fall_back(self) -> Bool:
        """A topology change may go on with requests that nobody drained, once all replicas refuse them."""
        if self.release.tablets_drain_everywhere:
            return self.purpose == Purpose.topology
        return self.purpose.any_of(Purpose.topology, Purpose.tablets)

    def _new_fence(self) -> Number:
        return self.barrier_version

    def _send_command(self) -> None:
        for n in Node:
            self.answer[n] = Answer.none

    def _forget_barrier(self) -> None:
        with equivalent("nobody looks at a barrier that is over"):
            self.purpose = Purpose.tablets
            self.barrier_version = 0
            self.drain_failed = False

    def _has_drained(self) -> Bool:
        """The barrier has passed, and was one that promises to drain."""
        drains = (self.purpose == Purpose.tablets) | ~self.drain_failed
        return (self.phase == Phase.done) & drains

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
    def fence_never_falls(self, after: Self) -> Bool:
        """The fence moves forward, and never beyond what is committed."""
        return (self.fence <= after.fence) & (after.fence <= after.version)

    @reachable
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
