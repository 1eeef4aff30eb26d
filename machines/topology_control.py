"""The topology state machine: the end of a node, the way back, and the promises.

Each operation on a node ends as it should, or is rolled back. The tables are in `topology_states.py`, what
group0 keeps in `topology_group0.py`, the way forward in `topology_requests.py`, `topology_tracks.py` and
`topology_operations.py`. `topology_cluster.py` puts nodes, client requests and data around it.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import COORDINATOR
from stagewright.machines.topology_operations import TopologyOperations
from stagewright.machines.topology_requests import TopologyRequests
from stagewright.machines.topology_states import (
    JOINING,
    LEAVING,
    NODE_DIAGRAM,
    TRANSITION_TABLE,
    Barrier,
    GlobalRequest,
    NodeState,
    Owner,
    Request,
    Ring,
    TransitionState,
)
from stagewright.spec import (
    Bool,
    Fairness,
    LeadsTo,
    Term,
    action,
    choose,
    count,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    reachable,
    require,
    some,
    step_property,
)

WEAK = Fairness.WEAK
T = TransitionState
NULL = T.null


class TopologyControl(TopologyOperations):
    """The states of nodes and of the topology as a whole, driven by the topology coordinator.

    `seed` is the design document of 2023-07. It has no way back.
    """

    # -- the end of a node -----------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def report_completion(self, n: Term[Node]) -> None:
        """The request is done, and recorded as such while its node can still be told."""
        self._leaving_ring(n)
        self._barrier_passed_or_waived()
        require(~self.done.has(n), "the request is not reported as done")
        self._end(n)

    @action(by=COORDINATOR, fair=WEAK)
    def shut_down(self, n: Term[Node]) -> None:
        """The node is told by a barrier that it may shut down."""
        self._leaving_ring(n)
        require(self.done.has(n) & ~self.down.has(n), "its request is done and it is up")
        self.down.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def remove_from_group0(self, n: Term[Node]) -> None:
        """The node is removed from group0."""
        self._leaving_ring(n)
        require(self.done.has(n) & self.down.has(n), "its request is done and it is down")
        require(self.members.has(n), "it is still in group0")
        self.members.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_left(self, n: Term[Node]) -> None:
        """And is left, for ever."""
        self._leaving_ring(n)
        require(self.done.has(n), "its request is done")
        self._out_of_group0(n)
        self.node_state[n] = NodeState.left
        self.tokens.discard(n)
        self.cleanup_needed.discard(n)
        self.transition_state = NULL
        self._enter(new_version=False)

    def _leaving_ring(self, n: Term[Node]) -> None:
        only_when(self.release.rollback)
        require(self.transition_state == T.left_token_ring, "a node has left the token ring")
        require(self._in_transition(n), "the node is in transition")

    # -- the way back ----------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def give_up(self) -> None:
        """A barrier failed before reads used the new ring: the operation is to be undone."""
        only_when(self.release.rollback)
        require(self.barrier == Barrier.failed, "barrier failed")
        require(self.transition_state.column(lambda state: state.gives_up), "there is a way back")
        require(some(self._in_transition(n) for n in Node), "a node is in transition")
        self.giving_up = True
        self.barrier = Barrier.none

    @action(by=COORDINATOR, spends=TopologyRequests.failures)
    def give_up_join(self) -> None:
        """No tokens can be had for the node, or its rack does not fit."""
        only_when(self.release.rollback)
        require(self.transition_state == T.join_group0, "a node joins group0")
        require(some(self._in_transition(n) & self.members.has(n) for n in Node), "it has joined")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def give_up_with_tablets(self, n: Term[Node]) -> None:
        """A table was made meanwhile: the node that leaves holds tablets again."""
        only_when(self.release.rollback)
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(self._leaves_with_tablets(n), "a node that leaves has tablets")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_join(self, n: Term[Node]) -> None:
        """The node that was to join leaves the token ring."""
        self._roll_back(n, *JOINING)
        self.new_cdc_generation = False
        self.transition_state = T.left_token_ring

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The node that was to leave stays; the others may hold rows of it."""
        self._roll_back(n, *LEAVING)
        self._mark_for_cleanup()
        self.transition_state = T.rollback_to_normal

    def _roll_back(self, n: Term[Node], *states: NodeState) -> None:
        only_when(self.release.rollback)
        require(self.giving_up, "the operation is to be undone")
        require(self.transition_state.column(lambda state: state.gives_up), "there is a way back")
        require(self._is(n, *states), "the node is in transition")
        self.error.add(n)
        self.session = False
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, n: Term[Node]) -> None:
        """The node is normal again; tablets whose transition was resumed may go on."""
        only_when(self.release.rollback)
        require(self.transition_state == T.rollback_to_normal, "a node goes back to normal")
        self._barrier_passed_or_waived()
        require(self._in_transition(n), "the node is in transition")
        self.node_state[n] = NodeState.normal
        self.fence_version = self.version
        self._end(n)
        self.transition_state = T.tablet_migration
        self._enter(new_version=False)

    # -- promises of the tables ------------------------------------------------------------------------

    @step_property
    def nodes_follow_the_diagram(self, after: Self, n: Term[Node]) -> Bool:
        """001, "State transition diagram for nodes", with the releases' edges back to normal."""
        old, new = self.node_state[n], after.node_state[n]
        return (old != new).implies(old.column(lambda state: NODE_DIAGRAM[state]).has(new))

    @step_property
    def nodes_that_left_are_kept(self, after: Self, n: Term[Node]) -> Bool:
        """001: "Nodes in state left are never removed from the state.\""""
        is_left = self.node_state[n] == NodeState.left
        return is_left.implies(after.node_state[n] == NodeState.left)

    @step_property
    def the_topology_follows_its_table(self, after: Self) -> Bool:
        """001: the order of the transition states, with the releases' states between them."""
        old, new = self.transition_state, after.transition_state
        return (old != new).implies(old.column(lambda state: TRANSITION_TABLE[state]).has(new))

    @invariant
    def one_node_in_transition(self) -> Bool:
        """001: the transition states are of "one of the nodes"."""
        return count(self._in_transition(n) for n in Node) <= 1

    @invariant
    def node_state_fits_transition_state(self, n: Term[Node]) -> Bool:
        """scylladb #16568: the state of the node and that of the topology are a pair of the table."""
        states = self.transition_state.column(lambda state: state.of)
        return self._in_transition(n).implies(states.has(self.node_state[n]))

    @invariant
    def transition_state_has_its_owner(self) -> Bool:
        """scylladb #23751: `transition_state` is changed only on behalf of who owns it."""
        owner = self.transition_state.column(lambda state: state.owner)
        moving = some(self._in_transition(n) for n in Node)
        asked = self.global_request == GlobalRequest.new_cdc_generation
        of_node = (owner == Owner.node).implies(moving)
        of_generation = (owner == Owner.generation).implies(moving | asked)
        of_request = self.global_request.any_of(
            GlobalRequest.truncate_table, GlobalRequest.snapshot_tables
        )
        return of_node & of_generation & (owner == Owner.request).implies(of_request)

    # -- promises of requests --------------------------------------------------------------------------

    @invariant
    def a_request_is_pending_until_it_is_taken_up(self, n: Term[Node]) -> Bool:
        """001: a request is an entry in the map until its operation begins."""
        fits = self._is(n, NodeState.none).implies(
            self.topology_request[n].any_of(Request.join, Request.replace)
        )
        nothing = self.topology_request[n].is_none()
        of_normal = self.topology_request[n].any_of(Request.leave, Request.remove, Request.rebuild)
        return fits & choose(
            self._is(n, NodeState.normal),
            nothing | of_normal,
            nothing | self._is(n, NodeState.none),
        )

    @step_property
    def requests_are_served_in_order(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """The order in which requests are served is replace, join, remove, leave, rebuild."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        earlier = some(
            (self.topology_request[n] == request) & self.topology_request[m].any_of(*before)
            for request in Request
            if (before := [r for r in Request if r.priority < request.priority])
        )
        return begins.implies(~(earlier & self._ready(m)))

    @invariant
    def joined_means_normal(self, n: Term[Node]) -> Bool:
        """A request to join or replace that is done without error has made the node normal."""
        joins = self.asked[n].any_of(Request.join, Request.replace)
        outside = self._is(n, NodeState.none, NodeState.left) & ~self._was_replaced(n)
        good = self.done.has(n) & ~self.error.has(n)
        return (joins & good).implies(~outside & ~self._is(n, *JOINING))

    @invariant
    def refused_means_left(self, n: Term[Node]) -> Bool:
        """A request to join or replace that failed leaves the node out for good."""
        joins = self.asked[n].any_of(Request.join, Request.replace)
        out = self._is(n, NodeState.left) | (self.transition_state == T.left_token_ring)
        return (joins & self.done.has(n) & self.error.has(n)).implies(out)

    @invariant
    def gone_means_left(self, n: Term[Node]) -> Bool:
        """A request to leave or remove that is done has the node left, or as good as left; else it stays."""
        leaves = self.asked[n].any_of(Request.leave, Request.remove)
        out = self._is(n, NodeState.left) | (self.transition_state == T.left_token_ring)
        stays = self._is(n, NodeState.normal) | self._was_replaced(n)
        right = (self.error.has(n) & stays) | (~self.error.has(n) & out)
        return (leaves & self.done.has(n)).implies(right)

    def _was_replaced(self, n: Term[Node]) -> Bool:
        return some((self.replaced_id[m] == n) & self._is(m, NodeState.normal) for m in Node)

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        asked = some(self.topology_request[n].is_some() for n in Node)
        return self._at_rest() & ~asked & self.global_request.is_none()

    @reachable
    def can_come_to_rest(self) -> Bool:
        """Whatever happened, the topology can still come to rest."""
        return self._at_rest()

    @liveness
    def every_request_ends(self, n: Term[Node]) -> LeadsTo:
        """scylladb #16461: a failed step leads to rollback, so every request ends, done or with an error."""
        return leads_to(self.asked[n].is_some(), self.done.has(n))
