"""What is promised of the order of things: the tables, the tracks, and how requests are served.

`topology_control.py` adds what is promised of barriers, rings, members, rows and generations.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.tablet_nodes import Node
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
    TransitionState,
    Work,
)
from stagewright.machines.topology_way_back import TopologyWayBack
from stagewright.spec import (
    Bool,
    Term,
    count,
    every,
    invariant,
    only_when,
    some,
    step_property,
)

T = TransitionState
NULL = T.null
ORDER = (Request.replace, Request.join, Request.remove, Request.leave, Request.rebuild)


class TopologyOrder(TopologyWayBack):
    """The tables of the topology are followed, and every request is served in its turn."""

    # -- the tables ------------------------------------------------------------------------------------

    @step_property
    def nodes_follow_the_diagram(self, after: Self, n: Term[Node]) -> Bool:
        """001, "State transition diagram for nodes", with the releases' edges back to normal."""
        old, new = self.node_state[n], after.node_state[n]
        return (old != new).implies(old.column(lambda state: NODE_DIAGRAM[state]).has(new))

    @step_property
    def nodes_that_left_are_kept(self, after: Self, n: Term[Node]) -> Bool:
        """001: "Nodes in state left are never removed from the state"."""
        is_left = self.node_state[n] == NodeState.left
        return is_left.implies(after.node_state[n] == NodeState.left)

    @step_property
    def the_topology_follows_its_table(self, after: Self) -> Bool:
        """001: the order of the transition states, with the releases' states between them."""
        old, new = self.transition_state, after.transition_state
        return (old != new).implies(old.column(lambda state: TRANSITION_TABLE[state]).has(new))

    @invariant
    def one_node_in_transition(self) -> Bool:
        """001: "one of the nodes is in a bootstrapping/decommissioning/removing/replacing state"."""
        return count(self._in_transition(n) for n in Node) <= 1

    @invariant
    def node_state_fits_transition_state(self, n: Term[Node]) -> Bool:
        """The state of the node and that of the topology are a pair of the table (scylladb #16568)."""
        states = self.transition_state.column(lambda state: state.of)
        return self._in_transition(n).implies(states.has(self.node_state[n]))

    @invariant
    def transition_state_has_its_owner(self) -> Bool:
        """`transition_state` is set on behalf of who owns it, and of nobody else (scylladb #23751)."""
        state = self.transition_state
        owner = state.column(lambda state: state.owner)
        moving = some(self._in_transition(n) for n in Node)
        generation = self.new_cdc_generation | (state == T.publish_cdc_generation)
        wanted = self.global_request == GlobalRequest.new_cdc_generation
        asked = some(
            request.column(lambda r: r.done_in) == state for request in self.global_request
        )
        return (
            (owner == Owner.node).implies(moving)
            & (owner == Owner.generation).implies(generation & (moving | wanted))
            & (owner == Owner.request).implies(asked)
            & ((owner == Owner.nobody) == (state == NULL))
        )

    @invariant
    def what_goes_on_owns_the_transition_state(self) -> Bool:
        """A node that joins or leaves, a generation, tablets, a request: each has its own states (scylladb #23751)."""
        state = self.transition_state
        owner = state.column(lambda state: state.owner)
        moves = some(self._is(n, *JOINING, *LEAVING) for n in Node)
        tracks = state.column(lambda state: state.tablets)
        leaving = state.any_of(T.tablet_draining, T.rollback_to_normal)
        return (
            moves.implies(owner.any_of(Owner.node, Owner.generation))
            & self.new_cdc_generation.implies(owner == Owner.generation)
            & (owner == Owner.tablets).implies(tracks)
            & tracks.implies((owner == Owner.tablets) | leaving)
        )

    @invariant
    def requests_on_tables_have_states_of_their_own(self) -> Bool:
        """Tables are truncated in truncate_table, and snapshot in snapshot_tables (scylladb #23751)."""
        state, request = self.transition_state, self.global_request
        owned = state.column(lambda state: state.owner) == Owner.request
        truncates = owned & (request == GlobalRequest.truncate_table)
        snapshots = owned & (request == GlobalRequest.snapshot_tables)
        return (state == T.truncate_table).implies(truncates) & (
            state == T.snapshot_tables
        ).implies(snapshots)

    @invariant
    def tablets_move_in_their_tracks(self) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is guaranteed
        that there are no tablet transitions in the system." Later they also drain from a node that leaves.
        """
        tracks = self.transition_state.column(lambda state: state.tablets)
        resizing = self.transition_state == T.tablet_resize_finalization
        return self.tablet_work.is_some().implies(tracks & ~resizing)

    @step_property
    def the_load_balancer_waits(self, after: Self) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked"."""
        begins = self.transition_state != after.transition_state
        begins = begins & after.transition_state.any_of(
            T.tablet_migration, T.tablet_resize_finalization
        )
        planned = after.tablet_work.any_of(Work.balancing, Work.draining) | (
            after.transition_state == T.tablet_resize_finalization
        )
        free = ~self._pending() & self.global_request.is_none()
        rolled_back = self.transition_state == T.rollback_to_normal
        return (begins & planned & ~rolled_back).implies(self.is_at_rest() & free)

    @step_property
    def tablets_leave_a_node_by_moving(self, after: Self, n: Term[Node]) -> Bool:
        """Tablets are gone from a node when they have moved to others, or when it is left."""
        gone = self.tablet_hosts.has(n) & ~after.tablet_hosts.has(n) & ~after._is(n, NodeState.left)
        return gone.implies(self.tablet_work.is_some())

    # -- requests --------------------------------------------------------------------------------------

    @invariant
    def a_request_is_pending_until_it_is_taken_up(self, n: Term[Node]) -> Bool:
        """001: a request is an entry in the map until its operation begins."""
        request = self.topology_request[n]
        joins = request.any_of(Request.join, Request.replace)
        goes = request.any_of(Request.leave, Request.remove, Request.rebuild)
        fits = every(r.column(lambda r: r.asked_in) == self.node_state[n] for r in request)
        right = (self._is(n, NodeState.none) == joins) & fits
        return right & goes.implies(self._is(n, NodeState.normal))

    @invariant
    def a_pending_request_is_in_the_table(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": the request table says what
        it is, and not that it has ended.
        """
        request = self.topology_request[n]
        ended = self.done.has(n) | self.error.has(n)
        return request.is_some().implies((self.asked[n] == request) & ~ended)

    @step_property
    def requests_are_not_overwritten(self, after: Self, n: Term[Node]) -> Bool:
        """A request stays until it is taken up or refused."""
        before, now = self.topology_request[n], after.topology_request[n]
        return (before.is_some() & now.is_some()).implies(before == now)

    @step_property
    def nodes_begin_what_they_asked_for(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node goes through the operation that was requested, once it can proceed."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        wanted = some(
            request.column(lambda r: r.begins_as) == after.node_state[n]
            for request in self.topology_request[n]
        )
        return begins.implies(wanted & self._ready(n))

    @step_property
    def somebody_stays_where_a_node_goes(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node that leaves streams its data "to nodes that took over its ranges"."""
        goes = after.topology_request[n].any_of(Request.leave, Request.remove)
        asks = self.topology_request[n].is_none() & goes
        return asks.implies(self._others_stay(n))

    @step_property
    def dead_nodes_are_removed(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node that is decommissioned streams its data itself, for one that is removed others do."""
        only_when(self.release.rollback)
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(self.down.has(n) == after._is(n, NodeState.removing))

    @invariant
    def a_node_that_is_removed_is_dead(self, n: Term[Node]) -> Bool:
        """001: the data of a node that is removed is streamed "from still alive owners": it does not come back."""
        only_when(self.release.rollback)
        return self._is(n, NodeState.removing).implies(self.down.has(n))

    @step_property
    def only_what_goes_on_ends(self, after: Self, n: Term[Node]) -> Bool:
        """A request is done when its operation is, or when it is refused."""
        ends = ~self.done.has(n) & after.done.has(n)
        refused = self.topology_request[n].is_some() & after.error.has(n)
        return ends.implies(self._in_transition(n) | refused)

    @step_property
    def requests_are_refused_at_rest(self, after: Self, n: Term[Node]) -> Bool:
        """The coordinator refuses a request ("Join is rejected", "Canceled. Dead nodes") where it would take it
        up: when nothing else goes on. To leave or to be removed may be aborted while it waits.
        """
        return self._is_refused(n, after).implies(self.is_at_rest())

    @step_property
    def requests_are_cancelled_when_none_can_proceed(self, after: Self, n: Term[Node]) -> Bool:
        """What can proceed may be refused when its turn has come ("Join is rejected"); what cannot is cancelled
        when no other request can either, for dead nodes ("Canceled. Dead nodes").
        """
        none = ~some(self._ready(m) for m in Node)
        return self._is_refused(n, after).implies(self._ready(n) | none)

    def _is_refused(self, n: Term[Node], after: Self) -> Bool:
        refused = ~self._in_transition(n) & ~self.error.has(n) & after.error.has(n)
        return refused & ~self._wants_to_go(n)

    @invariant
    def what_goes_on_is_not_done(self, n: Term[Node]) -> Bool:
        """A request is reported as done at the end of its operation only."""
        ends = self.transition_state == T.left_token_ring
        return (self._in_transition(n) & ~ends).implies(~self.done.has(n))

    @invariant
    def a_dead_node_is_replaced(self, n: Term[Node]) -> Bool:
        """001: "'replacing' state has host id of a node been replaced as a parameter"."""
        known = some(self._is(m, NodeState.normal) for m in self.replaced_id[n])
        asks = self.topology_request[n] == Request.replace
        dead = some(self.down.has(m) for m in self.replaced_id[n])
        replacing = self._is(n, NodeState.replacing)
        return (asks | replacing).implies(known) & replacing.implies(dead)

    @step_property
    def what_is_given_up_is_undone(self, after: Self) -> Bool:
        """An operation that is given up goes back, not on."""
        moves = self.transition_state != after.transition_state
        back = after.transition_state.any_of(T.left_token_ring, T.rollback_to_normal)
        outside = ~some(self._in_transition(n) & self.members.has(n) for n in Node)
        return (self.giving_up & moves).implies(back | outside)

    @step_property
    def a_rebuild_is_done_when_it_has_streamed(self, after: Self, n: Term[Node]) -> Bool:
        """A rebuild that could not stream is told to have failed."""
        ends = self._is(n, NodeState.rebuilding) & after._is(n, NodeState.normal)
        return ends.implies(after.error.has(n) | (self.session & ~self.down.has(n)))

    @step_property
    def global_requests_are_done(self, after: Self) -> Bool:
        """A global request goes when its work is done: in its own state, or when all is clean."""
        gone = self.global_request.is_some() & after.global_request.is_none()
        cleanup = self.global_request == GlobalRequest.cleanup
        clean = self.is_at_rest() & every(
            ~self.cleanup_needed.has(n) | self.down.has(n) for n in Node
        )
        there = some(
            request.column(lambda r: r.done_in) == self.transition_state
            for request in self.global_request
        )
        if self.release.publish_state:
            there = self.transition_state == T.publish_cdc_generation
        return gone.implies((cleanup & clean) | (~cleanup & there & ~self.session))

    @step_property
    def global_requests_come_after_those_of_nodes(self, after: Self) -> Bool:
        """The coordinator looks for a node to work on first."""
        begins = (self.transition_state == NULL) & after.transition_state.any_of(
            T.commit_cdc_generation, T.truncate_table, T.snapshot_tables
        )
        alone = ~some(after._in_transition(n) for n in Node)
        return (begins & alone).implies(~some(self._ready(n) for n in Node))

    @step_property
    def requests_are_served_in_order(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """The order in which requests are served is replace, join, remove, leave, rebuild."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        earlier = some(
            (self.topology_request[n] == request) & self.topology_request[m].any_of(*ORDER[:place])
            for place, request in enumerate(ORDER)
            if place > 0
        )
        return begins.implies(~(earlier & self._ready(m)))

    @step_property
    def paused_requests_do_not_begin(self, after: Self, n: Term[Node]) -> Bool:
        """A node that still holds tablet replicas begins to leave only where tablets drain meanwhile."""
        only_when(self.release.draining_state or self.release.parallel_draining)
        begins = ~self._in_transition(n) & after._in_transition(n)
        leaves = after._is(n, *LEAVING) & self.tablet_hosts.has(n)
        return (begins & leaves).implies(after.transition_state.column(lambda s: s.tablets))

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

    @step_property
    def nobody_waits_for_a_node_that_was_told_to_shut_down(self, after: Self) -> Bool:
        """left_token_ring may be entered again: what was done in it is not done twice (scylladb #20865)."""
        waits = (self.barrier != after.barrier) & after.barrier.any_of(
            Barrier.running, Barrier.passed, Barrier.failed
        )
        reported = some(self._in_transition(n) & self.done.has(n) for n in Node)
        return waits.implies(~reported)

    # -- what recurs -----------------------------------------------------------------------------------

    def _was_replaced(self, n: Term[Node]) -> Bool:
        return some((self.replaced_id[m] == n) & self._is(m, NodeState.normal) for m in Node)
