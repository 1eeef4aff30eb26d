"""How the topology coordinator reads, waits and commits: guards, snapshots, and the event that wakes it.

A coordinator takes a guard on group0 and reads the topology under it. It gives the guard up while a barrier
runs, for others commit meanwhile, and takes it again. A commit succeeds only if nobody committed since the
guard was taken. An old coordinator may still be at work when a new one begins. The operation is the
decommission of one node; `topology_control.py` has all of them.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.machines.tablet_nodes import NETWORK
from stagewright.machines.topology_group0 import OPERATOR
from stagewright.machines.topology_states import NodeState, Owner, TransitionState
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    Term,
    action,
    budget,
    choose,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    one_of,
    per,
    require,
    set_of,
)

WEAK = Fairness.WEAK
T = TransitionState


class Coordinator(Entity, scope=2):
    """A node that is, or was, the topology coordinator."""


class At(Enum):
    """Where a coordinator is in its loop."""

    top = auto()  # it knows nothing
    decided = auto()  # it has read the topology, and holds a guard
    in_barrier = auto()  # it has given its guard up
    passed = auto()  # the barrier passed, and it holds a guard again
    failed = auto()  # the barrier failed, and it holds a guard again
    waiting = auto()  # there was no work: it waits for an event


class TopologyCoordinator(Machine):
    """A decommission, driven by two coordinators of which each may take the other's place."""

    requests = budget(2, doc="requests to leave")
    failures = budget(1, doc="barriers that fail")
    failovers = budget(1, doc="changes of the topology coordinator")

    # committed to group0
    node_state: OneVar[NodeState] = one_of(NodeState, init=NodeState.normal)
    transition_state: OneVar[TransitionState] = one_of(TransitionState, init=T.null)
    requested: FlagVar = flag()
    leader: OneVar[Coordinator] = one_of(Coordinator)
    # the coordinators
    at = per(Coordinator, one_of(At, init=At.top))
    read = per(Coordinator, one_of(TransitionState, init=T.null))  # as it was when last read
    guarded: SetVar[Coordinator] = set_of(
        Coordinator
    )  # nobody has committed since it took its guard
    saw_request: SetVar[Coordinator] = set_of(Coordinator)  # a request was pending when it looked
    events: SetVar[Coordinator] = set_of(Coordinator)  # something happened since it looked

    # -- the loop --------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_operation(self, c: Term[Coordinator]) -> None:
        """The leader takes a guard and reads the topology."""
        require((self.leader == c) & (self.at[c] == At.top), "the leader is at the top of its loop")
        self._take_guard(c)
        self.read[c] = self.transition_state
        self.saw_request.put(c, self.requested)
        self.events.discard(c)
        self.at[c] = At.decided

    @action(fair=WEAK)
    def run_barrier(self, c: Term[Coordinator]) -> None:
        """The state has a barrier: the guard is given up while it runs."""
        barrier = self.read[c].column(lambda state: state.barrier)
        require((self.at[c] == At.decided) & barrier, "the state that was read has a barrier")
        self.guarded.discard(c)
        self.at[c] = At.in_barrier

    @action(fair=WEAK)
    def pass_barrier(self, c: Term[Coordinator]) -> None:
        """The barrier passed; the guard is taken again, and the node looked up anew."""
        self._retake(c)
        self._looks_again(c)
        self.at[c] = At.passed

    @action(spends=failures)
    def fail_barrier(self, c: Term[Coordinator]) -> None:
        """The barrier failed; the same."""
        self._retake(c)
        self._looks_again(c)
        self.at[c] = At.failed

    @action(fair=WEAK)
    def start_over(self, c: Term[Coordinator]) -> None:
        """Another state is found than the barrier was run for."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        require(~self._unchanged(c), "the topology is in another state")
        self.at[c] = At.top

    @action(fair=WEAK)
    def lose_race(self, c: Term[Coordinator]) -> None:
        """Somebody committed since the guard was taken: group0_concurrent_modification."""
        holds = self.at[c].any_of(At.decided, At.passed, At.failed)
        require(holds & ~self.guarded.has(c), "its guard is of an older state")
        self.at[c] = At.top

    # -- commits ---------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_decommission(self, c: Term[Coordinator]) -> None:
        """The request to leave is taken up."""
        self._commit(c, At.decided, T.null, T.write_both_read_old)
        require(self.saw_request.has(c), "a request is pending")
        self.requested = False
        self.node_state = NodeState.decommissioning

    @action(fair=WEAK)
    def read_new(self, c: Term[Coordinator]) -> None:
        """Everything is streamed."""
        self._commit(c, At.passed, T.write_both_read_old, T.write_both_read_new)

    @action(fair=WEAK)
    def leave_token_ring(self, c: Term[Coordinator]) -> None:
        """Reads use the new ring."""
        self._commit(c, At.passed, T.write_both_read_new, T.left_token_ring)

    @action(fair=WEAK)
    def finish_left(self, c: Term[Coordinator]) -> None:
        """The node is left."""
        self._commit(c, At.passed, T.left_token_ring, T.null)
        self.node_state = NodeState.left

    @action(fair=WEAK)
    def roll_back(self, c: Term[Coordinator]) -> None:
        """The barrier failed before reads used the new ring."""
        self._commit(c, At.failed, T.write_both_read_old, T.rollback_to_normal)

    @action(fair=WEAK)
    def complete_rollback(self, c: Term[Coordinator]) -> None:
        """The node is normal again."""
        self._commit(c, At.passed, T.rollback_to_normal, T.null)
        self.node_state = NodeState.normal

    @action(fair=WEAK)
    def put_up(self, c: Term[Coordinator]) -> None:
        """A barrier that failed where there is no way back: the coordinator sleeps and tries again."""
        later = self.read[c] != T.write_both_read_old
        require((self.at[c] == At.failed) & later, "there is no way back")
        self.at[c] = At.top

    # -- waiting ---------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def wait(self, c: Term[Coordinator]) -> None:
        """There was no work when it looked, and nothing has happened since: it waits."""
        idle = (self.at[c] == At.decided) & (self.read[c] == T.null)
        require(idle, "the topology was at rest")
        require(~self.saw_request.has(c), "there was no request")
        self._nothing_happened(c)
        self.at[c] = At.waiting

    def _nothing_happened(self, c: Term[Coordinator]) -> None:
        require(~self.events.has(c), "no event came since")

    @action(fair=WEAK)
    def look_again(self, c: Term[Coordinator]) -> None:
        """Something has happened since it looked."""
        idle = (self.at[c] == At.decided) & (self.read[c] == T.null)
        require(idle & self.events.has(c), "an event came")
        self.at[c] = At.top

    @action(by=OPERATOR, spends=requests)
    def ask_to_leave(self) -> None:
        """A request is committed: an event."""
        require(self.node_state == NodeState.normal, "the node is normal")
        require(~self.requested, "no request is pending")
        self.requested = True
        self.guarded = frozenset()
        for c in Coordinator:
            self.at[c] = choose(self.at[c] == At.waiting, At.top, self.at[c])
            self.events.add(c)

    @action(by=NETWORK, spends=failovers)
    def elect(self, c: Term[Coordinator]) -> None:
        """Another node becomes the leader; the old one may not know yet."""
        require(self.leader != c, "another node leads")
        self.leader = c
        self.at[c] = At.top
        self.guarded.discard(c)

    # -- what recurs -----------------------------------------------------------------------------------

    def _take_guard(self, c: Term[Coordinator]) -> None:
        self.guarded.add(c)

    def _retake(self, c: Term[Coordinator]) -> None:
        require(self.at[c] == At.in_barrier, "a barrier runs")
        self._take_guard(c)

    def _looks_again(self, c: Term[Coordinator]) -> None:
        require(self._unchanged(c), "the topology is still in the state of the barrier")

    def _unchanged(self, c: Term[Coordinator]) -> Bool:
        """The node that is looked up under the new guard is in the state that the barrier was run for."""
        return self.read[c] == self.transition_state

    def _commit(
        self, c: Term[Coordinator], at: At, source: TransitionState, target: TransitionState
    ) -> None:
        require(self.at[c] == at, f"the coordinator has {at.name}")
        require(self.read[c] == source, f"it has read {source.name}")
        require(self.guarded.has(c), "nobody committed since it took its guard")
        self.transition_state = target
        for other in Coordinator:
            free = (other == c) | (self.at[other] == At.waiting)
            self.at[other] = choose(free, At.top, self.at[other])
            self.events.add(other)
        self.guarded = frozenset()

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def node_state_fits_transition_state(self) -> Bool:
        """The state of the node and that of the topology are a pair of the table (scylladb #16568)."""
        states = self.transition_state.column(lambda state: state.of)
        owned = self.transition_state.column(lambda state: state.owner is Owner.node)
        moving = self.node_state.column(lambda state: state.in_transition)
        return (owned == moving) & moving.implies(states.has(self.node_state))

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        return (self.transition_state == T.null) & ~self.requested

    @liveness
    def work_is_noticed(self) -> LeadsTo:
        """A request is taken up in the end: the coordinator does not sleep over it (scylladb #27958)."""
        return leads_to(self.requested, ~self.requested)

    @liveness
    def operations_end(self) -> LeadsTo:
        """An operation that has begun ends."""
        moving = self.transition_state != T.null
        return leads_to(moving, ~moving)
