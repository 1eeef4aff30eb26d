"""How the topology coordinator reads, waits and commits: guards, snapshots, and the event that wakes it.

A coordinator takes a guard on group0 and reads the topology under it. It gives the guard up while a barrier
runs, for others commit meanwhile, and takes it again. A commit succeeds only if nobody committed since the
guard was taken. An old coordinator may still be at work when a new one begins. The operation is the
decommission of one node; `topology_control.py` has all of them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import NETWORK
from stagewright.machines.scylladb.topology.topology_control import OPERATOR
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    States,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    final,
    flag,
    invariant,
    leads_to,
    liveness,
    one_of,
    per,
    require,
    scopes,
    set_of,
    step_property,
)

WEAK = Fairness.WEAK


class Coordinator(Entity, scope=2):
    """A node that is, or was, the topology coordinator."""


class Transition(States):
    """The transition states of a decommission; while any but `null`, the node is decommissioning."""

    # fmt: off
    #                     goes on to, or back to
    null                = "write_both_read_old", ""
    write_both_read_old = "write_both_read_new", "rollback_to_normal"
    write_both_read_new = "left_token_ring",     ""
    left_token_ring     = "null",                ""
    rollback_to_normal  = "null",                ""
    # fmt: on

    def __init__(self, goes_on: str, goes_back: str) -> None:
        self.goes_on = goes_on
        self.goes_back = goes_back


T = Transition
FOLLOWERS = {
    t: frozenset(Transition[name] for name in (t.goes_on, t.goes_back) if name) for t in Transition
}


class At(Enum):
    """Where a coordinator is in its loop."""

    top = auto()  # it knows nothing
    decided = auto()  # it has read the topology, and holds a guard
    in_barrier = auto()  # it has given its guard up
    passed = auto()  # the barrier passed, and it holds a guard again
    waiting = auto()  # there was no work: it waits for an event


class TopologyCoordinator(Machine):
    """A decommission, driven by two coordinators of which each may take the other's place."""

    requests = budget(2, doc="requests to leave")
    failures = budget(1, doc="barriers that fail")
    failovers = budget(2, doc="changes of the topology coordinator")
    exercised_at = scopes({requests: 1, failovers: 1}, {})

    # committed to group0
    node_state: OneVar[NodeState] = one_of(NodeState, init=NodeState.normal)
    transition_state: OneVar[Transition] = one_of(Transition, init=T.null)
    requested: FlagVar = flag()
    leader: OneVar[Coordinator] = one_of(Coordinator)
    # the coordinators
    at = per(Coordinator, one_of(At, init=At.top))
    read = per(Coordinator, one_of(Transition, init=T.null))  # as it was when last read
    saw_request: SetVar[Coordinator] = set_of(Coordinator)  # a request was pending then
    guarded: SetVar[Coordinator] = set_of(
        Coordinator
    )  # nobody has committed since it took its guard
    events: SetVar[Coordinator] = set_of(Coordinator)  # something happened since it looked
    # the operator
    waits: FlagVar = flag()  # for the answer to a request

    # -- the loop --------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_operation(self, c: Term[Coordinator]) -> None:
        """The leader takes a guard and reads the topology."""
        require(self.at[c] == At.top, "the coordinator is at the top of its loop")
        require(self.leader == c, "the coordinator leads")
        self.guarded.add(c)
        self.read[c] = self.transition_state
        self.saw_request.put(c, self.requested)
        self.events.discard(c)
        self.at[c] = At.decided

    @action(fair=WEAK)
    def run_barrier(self, c: Term[Coordinator]) -> None:
        """A transition goes on: the guard is given up while the barrier of its state runs."""
        require(self.at[c] == At.decided, "the coordinator has decided")
        require(self.read[c] != T.null, "a transition goes on")
        self.guarded.discard(c)
        self.at[c] = At.in_barrier

    @action(fair=WEAK)
    def pass_barrier(self, c: Term[Coordinator]) -> None:
        """The barrier passed; the guard is taken again, and the node looked up anew."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        self._looks_again(c)
        self.guarded.add(c)
        self.at[c] = At.passed

    def _looks_again(self, c: Term[Coordinator]) -> None:
        require(self._unchanged(c), "the topology is still in the state of the barrier")

    def _unchanged(self, c: Term[Coordinator]) -> Bool:
        return self.read[c] == self.transition_state

    @action(fair=WEAK)
    def start_over(self, c: Term[Coordinator]) -> None:
        """Another state is found than the barrier was run for."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        require(~self._unchanged(c), "the topology is in another state")
        self.at[c] = At.top

    @action(fair=WEAK)
    def lose_race(self, c: Term[Coordinator]) -> None:
        """Somebody committed since the guard was taken: group0_concurrent_modification."""
        require(self.at[c].any_of(At.decided, At.passed), "the coordinator holds a guard")
        require(~self.guarded.has(c), "its guard is of an older state")
        self.at[c] = At.top

    # -- commits ---------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def start_decommission(self, c: Term[Coordinator]) -> None:
        """The request to leave is taken up."""
        require(self.at[c] == At.decided, "the coordinator has decided")
        require(self.saw_request.has(c), "a request is pending")
        self._commit(c, T.null, T.write_both_read_old)
        self.requested = False
        self.node_state = NodeState.decommissioning

    @action(fair=WEAK)
    def read_new(self, c: Term[Coordinator]) -> None:
        """Everything is streamed."""
        self._barrier_passed(c)
        self._commit(c, T.write_both_read_old, T.write_both_read_new)

    @action(fair=WEAK)
    def leave_token_ring(self, c: Term[Coordinator]) -> None:
        """Reads use the new ring."""
        self._barrier_passed(c)
        self._commit(c, T.write_both_read_new, T.left_token_ring)

    @action(fair=WEAK)
    def finish_left(self, c: Term[Coordinator]) -> None:
        """The node is left."""
        self._barrier_passed(c)
        self._commit(c, T.left_token_ring, T.null)
        self.node_state = NodeState.left
        self.waits = False

    @action(spends=failures)
    def roll_back(self, c: Term[Coordinator]) -> None:
        """The barrier failed before reads used the new ring."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        self._looks_again(c)
        require(self.read[c] == T.write_both_read_old, "there is a way back")
        self._becomes(c, T.rollback_to_normal)

    @action(fair=WEAK)
    def complete_rollback(self, c: Term[Coordinator]) -> None:
        """The node is normal again."""
        self._barrier_passed(c)
        self._commit(c, T.rollback_to_normal, T.null)
        self.node_state = NodeState.normal
        self.waits = False

    def _barrier_passed(self, c: Term[Coordinator]) -> None:
        require(self.at[c] == At.passed, "barrier passed")

    def _commit(self, c: Term[Coordinator], source: Transition, target: Transition) -> None:
        require(self.read[c] == source, f"it has read {source.name}")
        require(self.guarded.has(c), "nobody committed since it took its guard")
        self._becomes(c, target)

    def _becomes(self, c: Term[Coordinator], target: Transition) -> None:
        self.transition_state = target
        self.guarded = frozenset()
        self.at[c] = At.top

    # -- waiting ---------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def wait(self, c: Term[Coordinator]) -> None:
        """There was no work when it looked, and nothing has happened since: it waits."""
        require(self.at[c] == At.decided, "the coordinator has decided")
        require(self.read[c] == T.null, "the topology was at rest")
        require(~self.saw_request.has(c), "there was no request")
        self._nothing_happened(c)
        self.at[c] = At.waiting

    def _nothing_happened(self, c: Term[Coordinator]) -> None:
        require(~self.events.has(c), "no event came since")

    # -- around it -------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=requests)
    def ask_to_leave(self) -> None:
        """A request is committed: an event."""
        require(self.node_state == NodeState.normal, "the node is normal")
        self.requested = True
        self.waits = True
        self.guarded = frozenset()
        for c in Coordinator:
            self.at[c] = choose(self.at[c] == At.waiting, At.top, self.at[c])
            self.events.add(c)

    @action(by=NETWORK, spends=failovers)
    def elect(self, c: Term[Coordinator]) -> None:
        """Another node becomes the leader, in whatever it still does; the old one may not know yet."""
        require(self.leader != c, "another node leads")
        self.leader = c

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def node_state_fits_transition_state(self) -> Bool:
        """The state of the node and that of the topology are a pair of the table (scylladb #16568)."""
        moving = self.node_state == NodeState.decommissioning
        return (self.transition_state != T.null) == moving

    @step_property
    def commits_follow_the_table(self, after: Self) -> Bool:
        """001: the order of the transition states; nobody undoes what another coordinator has committed."""
        old, new = self.transition_state, after.transition_state
        return (old != new).implies(old.column(lambda state: FOLLOWERS[state]).has(new))

    @step_property
    def nodes_that_left_are_kept(self, after: Self) -> Bool:
        """001: "Nodes in state left are never removed from the state"."""
        is_left = self.node_state == NodeState.left
        return is_left.implies(after.node_state == NodeState.left)

    @step_property
    def states_are_left_after_their_barrier(self, after: Self, c: Term[Coordinator]) -> Bool:
        """Who moves a transition on has run the barrier of the state that it leaves."""
        old = self.transition_state
        moves = (old != after.transition_state) & (old != T.null)
        did = (self.at[c] != after.at[c]) & (after.at[c] == At.top)
        return (moves & did).implies(self.at[c].any_of(At.in_barrier, At.passed))

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        return (self.transition_state == T.null) & ~self.requested

    @liveness
    def work_is_noticed(self) -> LeadsTo:
        """Whoever asks is answered: the coordinator does not sleep over a request (scylladb #27958)."""
        return leads_to(self.waits, ~self.waits)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            start_operation,
            "the coordinator leads",
            because="whoever reads and commits under a guard is right, leader or not",
        ),
        equivalent_loss(
            start_operation, events, because="an event that is seen twice makes it look once more"
        ),
        equivalent_loss(
            run_barrier, guarded, because="a guard that is held for too long only loses more races"
        ),
        equivalent_drop(
            start_over,
            "a barrier runs",
            because="to start over is always right, as long as it comes to an end",
        ),
        equivalent_drop(
            start_decommission,
            "the coordinator has decided",
            because="who holds a guard on a topology at rest has decided",
        ),
        equivalent_loss(
            roll_back,
            transition_state,
            because="a barrier that failed may be tried again, if not for ever",
        ),
        equivalent_drop(
            _commit, "it has read null", because="who has seen a request has read null"
        ),
        equivalent_drop(
            _commit,
            "nobody committed since it took its guard",
            because="the last commit of an operation may be made twice",
        ),
        equivalent_loss(
            _becomes, guarded, because="one commit may be made twice, if the next one is not"
        ),
        equivalent_loss(
            _becomes, at, because="who does not know of its own commit loses its next race"
        ),
        equivalent_drop(
            wait,
            "the coordinator has decided",
            because="whoever waits is woken by every event that comes then",
        ),
        equivalent_loss(wait, at, because="who does not wait looks again when something happens"),
        equivalent_loss(ask_to_leave, waits, because="to be told of nothing is no harm"),
        equivalent_loss(
            ask_to_leave, at, because="to start over is always right, as long as it comes to an end"
        ),
        equivalent_drop(elect, "another node leads", because="an election that changes nothing"),
        equivalent_loss(elect, leader, because="an election that changes nothing"),
    )
