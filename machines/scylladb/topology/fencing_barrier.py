"""The global barrier of the topology coordinator: drain, move the fence, and inform where draining failed.

`global_token_metadata_barrier`: the command `barrier_and_drain` to every node that is not excluded; then the fence
moves to the version that was current when the barrier began; where draining failed and the barrier may do
without, the command `barrier` makes every node learn the fence. `fencing.py` says what is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.machines.scylladb.topology.fencing_nodes import (
    LAST_VERSION,
    NETWORK,
    FencingNodes,
    Node,
    NodeState,
    Stage,
    View,
)
from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    Number,
    NumberVar,
    OneVar,
    Profile,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    flag,
    number,
    one_of,
    per,
    profiles,
    require,
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


class FencingBarrier(FencingNodes):
    """Barriers, and what they are for: the next stage of a tablet, a topology change, a cleanup."""

    release = profiles(Barriers("scylla-2025.4", False), Barriers("scylla-2026.2", True))
    failures = budget(1, doc="commands to which a node does not answer")
    cleanups = budget(1, doc="replicas that are cleaned up")
    decommissions = budget(0, doc="nodes that are asked to leave")
    exclusions = budget(0, doc="nodes that are declared gone for good")
    failovers = budget(0, doc="changes of the topology coordinator")

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
        self.purpose = purpose
        self._send_command()

    @action(fair=WEAK)
    def read_what_is_committed(self, n: Term[Node]) -> None:
        """Node `n` receives the command and runs a raft read barrier."""
        require(self.phase.any_of(Phase.draining, Phase.informing), "a command was sent")
        require(self._is_asked(n), "it was sent to the node")
        require(self.answer[n] == Answer.none, "the node has not received it yet")
        self.answer[n] = Answer.applied
        self._apply(n)

    @action(fair=WEAK)
    def acknowledge_drain(self, n: Term[Node]) -> None:
        """Node `n` holds no older version and works in no closed session any more."""
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
        require(self.phase == Phase.draining, "phase is draining")
        falls_back = self._may_fall_back()
        self.drain_failed = falls_back
        self.phase = choose(falls_back, Phase.fencing, Phase.none)
        self.purpose = choose(falls_back, self.purpose, Purpose.tablets)
        self.barrier_version = choose(falls_back, self.barrier_version, 0)

    @action(by=COORDINATOR, fair=WEAK)
    def move_fence(self) -> None:
        """The fence moves to the version that was current when the barrier began."""
        require(self.phase == Phase.fencing, "phase is fencing")
        self.fence = self._new_fence()
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
        self.node[n] = NodeState.decommissioning

    @action(by=COORDINATOR, spends=cleanups)
    def clean_up(self, r: Term[Node]) -> None:
        """After a barrier replica `r` is asked to clean up; it runs a raft read barrier first."""
        require(self.phase == Phase.done, "the barrier has passed")
        require(~self.excluded.has(r), "the replica is not excluded")
        self._apply(r)
        self.cleaned[r] = self.barrier_version

    @action(by=COORDINATOR)
    def end_barrier(self) -> None:
        """What the barrier was for is done."""
        require(self.phase == Phase.done, "the barrier has passed")
        self.phase = Phase.none
        self._forget_barrier()

    @action(by=OPERATOR, spends=exclusions)
    def exclude(self, n: Term[Node]) -> None:
        """The operator declares a node gone for good; it is cut off from group0, and may live on."""
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
        self.purpose = Purpose.tablets
        self.barrier_version = 0
        self.drain_failed = False

    def _has_drained(self) -> Bool:
        """The barrier has passed, and was one that promises to drain."""
        drains = (self.purpose == Purpose.tablets) | ~self.drain_failed
        return (self.phase == Phase.done) & drains

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            begin_barrier,
            purpose,
            because="the barrier of a stage does more than that of a topology change",
        ),
        equivalent_drop(
            fail_to_drain, "phase is draining", because="a barrier may fail at any time"
        ),
        equivalent_loss(
            fail_to_drain,
            purpose,
            barrier_version,
            because="nobody looks at a barrier that is over",
        ),
        equivalent_drop(
            fail_to_inform, "phase is informing", because="a barrier may fail at any time"
        ),
        equivalent_loss(fail_to_inform, phase, because="a barrier may fail at any time"),
        equivalent_loss(
            decommission,
            FencingNodes.node,
            because="nodes in either state are asked; that they were not, was a bug",
        ),
        equivalent_loss(
            clean_up,
            View.version,
            View.stage,
            View.fence,
            because="whom a barrier has passed knows the stage",
        ),
        equivalent_loss(
            clean_up, FencingNodes.cleaned, because="what is not cleaned up may be stored to"
        ),
        equivalent_drop(
            end_barrier, "the barrier has passed", because="a barrier may be given up at any time"
        ),
        equivalent_loss(
            exclude, FencingNodes.excluded, because="a node that is not excluded is asked"
        ),
        equivalent_loss(
            _forget_barrier,
            purpose,
            barrier_version,
            drain_failed,
            because="nobody looks at a barrier that is over",
        ),
    )
