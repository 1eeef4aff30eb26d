"""Mistakes against one promise of the topology state machine (design document 001)."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    NODE,
    OPERATOR,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    Barrier,
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.spec import Bool, Fairness, Term, action, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
ONE: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 0}
ONE_FAULT: dict[BudgetName, int | None] = {TopologyControl.requests: 1, TopologyControl.faults: 1}
TWO: dict[BudgetName, int | None] = {TopologyControl.requests: 2, TopologyControl.faults: 0}


@known_bug(
    "001-29",
    "design document 001: state transition diagram for nodes",
    breaks=TopologyControl.nodes_follow_the_diagram,
    budgets=ONE_FAULT,
)
class TheDecommissionedIsRemoved(TopologyControl):
    """A node dies while it is decommissioned. The operation goes on as a removal, and its state with it."""

    @action(by=COORDINATOR)
    def go_on_without(self, n: Term[Node]) -> None:
        """The others stream what the node had."""
        require(self.down.has(n), "the node is down")
        both = self.transition_state == TransitionState.write_both_read_old
        require(both, "writes go to both rings")
        self._move(n, NodeState.decommissioning, NodeState.removing)


@known_bug(
    "001-30",
    "design document 001: one of the nodes is in such a state",
    breaks=TopologyControl.one_node_in_transition,
    budgets=TWO,
)
class TwoNodesAreRebuiltAtOnce(TopologyControl):
    """A rebuild does not change the topology, so that nobody waited for one: another began beside it."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew, whether or not another one does."""
        require(self.transition_state == TransitionState.null, "there is no transition state")
        require(self.topology_request[n] == Request.rebuild, "the node asks for rebuild")
        self._lacks_no_node(n, Request.rebuild)
        self._is_its_turn(Request.rebuild)
        self.node_state[n] = NodeState.rebuilding
        self.topology_request[n] = None
        self._open_rebuild_session()
        self._enter(new_version=False)

    def _has_source(self, n: Term[Node]) -> Bool:
        normal = NodeState.normal
        return some((m != n) & self._is(m, normal) & ~self.down.has(m) for m in Node)

    def _rebuilt(self, n: Term[Node]) -> None:
        self._move(n, NodeState.rebuilding, NodeState.normal)
        others = some((m != n) & self._is(m, NodeState.rebuilding) for m in Node)
        self.session = others


@known_bug(
    "001-31",
    'design document 001: a node that leaves streams its data "to nodes that took over"',
    breaks=TopologyControl.somebody_stays_where_a_node_goes,
    budgets=ONE,
)
class TheLastNodeMayLeave(TopologyControl):
    """Only for a node with tablets it was asked whether another one can take them: the last one left the ring."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        require(self._others_stay(n) | ~self.tablet_hosts.has(n), "its tablets have a place to go")
        self._ask(n, Request.leave)


@known_bug(
    "001-32",
    'design document 001: "When streaming finishes, we move to write_both_read_new"',
    breaks=TopologyControl.reads_move_when_all_is_streamed,
    budgets=ONE,
)
class ReadsMoveWithTheBarrier(TopologyControl):
    """Reads moved to the new ring as soon as all nodes wrote to both, before anything was streamed."""

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, n: Term[Node]) -> None:
        """All nodes have learned of the new ring."""
        both = self.transition_state == TransitionState.write_both_read_old
        require(both, "writes go to both rings")
        require(self._in_transition(n) & ~self.giving_up, "the node's operation goes on")
        require(~self._leaves_with_tablets(n), "a node that leaves has no tablets")
        self._barrier_passed()
        self.transition_state = TransitionState.write_both_read_new
        self.session = False
        self._enter()


@known_bug(
    "001-33",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    budgets=ONE_FAULT,
)
class TokensAreNotGivenBack(TopologyControl):
    """The decommission of a node was rolled back, and the node stayed, without the tokens that it was to hand over."""

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays."""
        super().roll_back_leave(n)
        self.tokens.discard(n)


@known_bug(
    "001-34",
    'design document 001: with a request pending, "the load balancer will not be invoked"',
    breaks=TopologyControl.the_load_balancer_waits,
    budgets=TWO,
)
class TheBalancerDoesNotLookAtRequests(TopologyControl):
    """Whenever the topology was at rest the balancer had a plan, whoever waited to join."""

    def _enter_tablet_track(self, work: Work) -> None:
        require(self.is_at_rest(), "the topology is at rest")
        require(self.global_request.is_none(), "no global request is pending")
        self.transition_state = TransitionState.tablet_migration
        self.tablet_work = work
        self._enter()


@known_bug(
    "001-114",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    budgets=ONE_FAULT,
)
class TokensComeBackWithTheRollback(TopologyControl):
    """While a decommission was rolled back its node had no tokens: requests went to those that had not got its rows."""

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays, and is not in the ring yet."""
        super().roll_back_leave(n)
        self.tokens.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again, and has its tokens again."""
        back = self.transition_state == TransitionState.rollback_to_normal
        require(back & self._in_transition(n), "the node goes back to normal")
        self._barrier_passed_or_waived()
        self.node_state[n] = NodeState.normal
        self.tokens.add(n)
        self.fence_version = self.version + 1
        self._end(n)
        self.transition_state = TransitionState.tablet_migration
        self._enter()


@known_bug(
    "001-234",
    'design document 001: none, "has no tokens and data to serve"',
    breaks=TopologyControl.tokens_belong_to_nodes_of_the_ring,
    profile="seed",
    budgets=ONE,
)
class TokensAreChosenWithTheRequest(TopologyControl):
    """A node that asked to join had its tokens in the ring at once, before anybody had said that it may."""

    @action(by=NODE, spends=TopologyControl.requests)
    def ask_to_join(self, n: Term[Node]) -> None:
        """A row in state none, with the request to join and with tokens."""
        super().ask_to_join(n)
        self.tokens.add(n)

    def _refuse(self, n: Term[Node]) -> None:
        self.tokens.put(n, self.tokens.has(n) & (self.node_state[n] != NodeState.none))
        super()._refuse(n)


@known_bug(
    "001-115",
    "design document 001: the order of the transition states",
    breaks=TopologyControl.the_topology_follows_its_table,
    budgets=TWO,
)
class MovesTakeThePlaceOfAResize(TopologyControl):
    """A resize that all nodes had heard of counted as done: an operator's move came before its commit, which never was."""

    def _not_busy(self) -> None:
        free = self.transition_state.any_of(TransitionState.null, TransitionState.tablet_migration)
        resizes = self.transition_state == TransitionState.tablet_resize_finalization
        heard_of = resizes & (self.barrier == Barrier.passed)
        require(free | heard_of, "topology is not busy")


BUGS = known_bugs_in(globals())
