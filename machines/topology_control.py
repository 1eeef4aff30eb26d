"""The topology state machine and its promises.

The tables are in `topology_states.py`, what group0 keeps in `topology_group0.py`, what happens in
`topology_requests.py`, `topology_tracks.py`, `topology_operations.py` and `topology_way_back.py`.
`topology_cluster.py` puts nodes, client requests and data around it.
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
    Ring,
    TransitionState,
    Work,
)
from stagewright.machines.topology_way_back import TopologyWayBack
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    choose,
    count,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    reachable,
    scopes,
    some,
    step_property,
)

T = TransitionState


class TopologyControl(TopologyWayBack):
    """The states of nodes and of the topology as a whole, driven by the topology coordinator.

    Under `scylla-2026.2` and the releases before it every promise holds.

    Under `seed`, the design document of 2023-07, three do not. `every_request_ends` fails: there is no way
    back, so a step that fails for good is tried for ever. `left_nodes_hold_no_tablets` fails: nothing moves
    tablets away from a node that leaves. `left_nodes_do_not_run` fails: nobody tells the node that it left.
    """

    exercised_at = scopes(
        {TopologyWayBack.requests: 1}, {TopologyWayBack.faults: 0}, {}
    )

    # -- the tables ------------------------------------------------------------------------------------

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
        owner = self.transition_state.column(lambda state: state.owner)
        moving = some(self._in_transition(n) for n in Node)
        generation = self.global_request == GlobalRequest.new_cdc_generation
        on_tables = self.global_request.any_of(
            GlobalRequest.truncate_table, GlobalRequest.snapshot_tables
        )
        return (
            (owner == Owner.node).implies(moving)
            & (owner == Owner.generation).implies(moving | generation)
            & (owner == Owner.request).implies(on_tables)
        )

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
        planned = after.tablet_work.any_of(Work.balancing)
        begins = (self.tablet_work != after.tablet_work) & planned
        return begins.implies(self._at_rest() & ~self._pending())

    # -- requests --------------------------------------------------------------------------------------

    @invariant
    def a_request_is_pending_until_it_is_taken_up(self, n: Term[Node]) -> Bool:
        """001: a request is an entry in the map until its operation begins."""
        request = self.topology_request[n]
        joins = request.any_of(Request.join, Request.replace)
        goes = request.any_of(Request.leave, Request.remove, Request.rebuild)
        return (self._is(n, NodeState.none) == joins) & goes.implies(self._is(n, NodeState.normal))

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

    @invariant
    def nobody_waits_for_a_node_that_was_told_to_shut_down(self, n: Term[Node]) -> Bool:
        """left_token_ring may be entered again: what was done in it is not done twice (scylladb #20865)."""
        waits = self.barrier.any_of(Barrier.running, Barrier.failed) & self._takes_part(n)
        return ~(waits & self._in_transition(n) & self.done.has(n))

    # -- rings, versions, sessions ---------------------------------------------------------------------

    @step_property
    def routing_changes_with_the_version(self, after: Self, n: Term[Node]) -> Bool:
        """What requests use changes in a version of its own, so that barriers and fences can tell."""
        same = (self._is_written(n) == after._is_written(n)) & (
            self._is_read(n) == after._is_read(n)
        )
        tablets = self.transition_state.column(lambda state: state.tablets)
        same = same & (tablets == after.transition_state.column(lambda state: state.tablets))
        return same | (after.version == self.version + 1)

    def _is_written(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.writes)
        old = (ring != Ring.new) & self._in_old_ring(n)
        return old | ((ring != Ring.old) & self._in_new_ring(n))

    def _is_read(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.reads)
        return choose(ring == Ring.old, self._in_old_ring(n), self._in_new_ring(n))

    @step_property
    def versions_only_grow(self, after: Self) -> Bool:
        """A version is used once, and the fence never opens again."""
        return (self.version <= after.version) & (self.fence_version <= after.fence_version)

    @step_property
    def older_versions_are_fenced(self, after: Self) -> Bool:
        """A state with a barrier is left for the next one only when no older version can act any more."""
        old = self.transition_state
        ends = old == T.left_token_ring  # with the report, after which the node may be gone
        left = (old != after.transition_state) & old.column(lambda state: state.barrier) & ~ends
        left = left | (ends & (self.done != after.done))
        fenced = self.fence_version == self.version
        return left.implies(fenced | self.giving_up | (self.barrier == Barrier.waived))

    @step_property
    def a_rollback_ends_fenced(self, after: Self) -> Bool:
        """rollback_to_normal puts the fence up even where its barrier failed."""
        left = (self.transition_state == T.rollback_to_normal) & (
            after.transition_state != T.rollback_to_normal
        )
        return left.implies(after.fence_version == after.version)

    @invariant
    def what_streams_has_an_open_session(self) -> Bool:
        """An operation that streams has an open session (scylladb #16741)."""
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return ((self.transition_state == T.write_both_read_old) | rebuilds).implies(self.session)

    @invariant
    def sessions_are_closed_when_their_work_is_over(self) -> Bool:
        """Nothing may stream once its result counts, or is thrown away."""
        streams = self.transition_state.any_of(
            T.tablet_draining, T.write_both_read_old, T.truncate_table, T.snapshot_tables
        )
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return self.session.implies(streams | rebuilds)

    @step_property
    def reads_move_when_all_is_streamed(self, after: Self) -> Bool:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        moves = after.transition_state == T.write_both_read_new
        begins = moves & (self.transition_state != T.write_both_read_new)
        return begins.implies(self.streamed & (self.barrier == Barrier.passed))

    # -- members of the cluster ------------------------------------------------------------------------

    @invariant
    def left_nodes_are_out_of_group0(self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0" (scylladb #14885)."""
        return self._is(n, NodeState.left).implies(~self.members.has(n))

    @invariant
    def nodes_that_serve_are_in_group0(self, n: Term[Node]) -> Bool:
        """A node that owns a part of the ring learns of changes, until its end has begun."""
        ending = self._ignored(n) | (self.transition_state == T.left_token_ring)
        if not self.release.rollback:
            ending = ending | (self.transition_state == T.write_both_read_new)
        return self.tokens.has(n).implies(self.members.has(n) | ending)

    @invariant
    def tokens_belong_to_nodes_of_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it", none "has no tokens"."""
        serves = self._is(n, NodeState.normal, NodeState.rebuilding)
        outside = self._is(n, NodeState.absent, NodeState.none, NodeState.left)
        return serves.implies(self.tokens.has(n)) & outside.implies(~self.tokens.has(n))

    @invariant
    def both_rings_differ_by_the_node_in_transition(self, n: Term[Node]) -> Bool:
        """001: "new replicas means calculated according to modified token ring"."""
        both = self.transition_state.column(lambda state: state.writes is Ring.both)
        changes = self._in_old_ring(n) != self._in_new_ring(n)
        return (both & self._in_transition(n)).implies(changes)

    @invariant
    def replaced_nodes_are_left(self, n: Term[Node], dead: Term[Node]) -> Bool:
        """The replaced node is left in the commit in which the one that replaces it becomes normal."""
        replaced = self.replaced_id[n] == dead
        asked = self._is(n, NodeState.normal)
        return (replaced & asked).implies(self._is(dead, NodeState.left))

    @invariant
    def left_nodes_do_not_run(self, n: Term[Node]) -> Bool:
        """A node is left only when it is dead, refused, or was told to shut down."""
        return self._is(n, NodeState.left).implies(self.down.has(n))

    @invariant
    def left_nodes_hold_no_tablets(self, n: Term[Node]) -> Bool:
        """A node leaves only when its tablets have moved away."""
        return self._is(n, NodeState.left).implies(~self.tablet_hosts.has(n))

    # -- cleanup ---------------------------------------------------------------------------------------

    @step_property
    def rows_of_lost_ranges_are_remembered(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """Where a node has taken over ranges, or was about to hand them out, the others may hold such rows."""
        only_when(self.release.cleanup)
        joined = self._is(n, NodeState.bootstrapping) & after._is(n, NodeState.normal)
        entered = after.transition_state == T.rollback_to_normal
        undone = entered & (self.transition_state != T.rollback_to_normal)
        other = (m != n) & self._is(m, NodeState.normal)
        return (other & (joined | undone)).implies(after.cleanup_needed.has(m))

    @step_property
    def no_range_comes_back_to_a_node_with_old_rows(self, after: Self, n: Term[Node]) -> Bool:
        """A node leaves only when those who take over have removed the rows of ranges that they had lost."""
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node))

    # -- CDC generations -------------------------------------------------------------------------------

    @invariant
    def a_generation_waits_for_its_commit(self) -> Bool:
        """001: new_cdc_generation_data_uuid is "used in commit_cdc_generation state"."""
        return self.new_cdc_generation == (self.transition_state == T.commit_cdc_generation)

    @step_property
    def a_node_bootstraps_with_a_committed_generation(self, after: Self) -> Bool:
        """001: "we need to commit the generation … and tell every node to start using it"."""
        bootstraps = some(self._is(n, NodeState.bootstrapping) for n in Node)
        writes = after.transition_state == T.write_both_read_old
        begins = writes & (self.transition_state != T.write_both_read_old) & bootstraps
        if self.release.publish_state:
            published = self.transition_state == T.publish_cdc_generation
            return begins.implies(published & ~after.unpublished_cdc_generations)
        committed = (self.transition_state == T.commit_cdc_generation) & self.new_cdc_generation
        return begins.implies(committed & after.unpublished_cdc_generations)

    @liveness
    def generations_are_published(self) -> LeadsTo:
        """001: "we need to publish it to user-facing description tables"."""
        unpublished = self.unpublished_cdc_generations
        return leads_to(unpublished, ~unpublished)

    # -- ends ------------------------------------------------------------------------------------------

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
        """Every request ends, done or with an error: what fails is rolled back, not tried for ever
        (scylladb #16461). What needs no node is tried for ever where a node stays down, and holds up others.
        """
        alone = ~some(self._in_transition(n) for n in Node)
        held_up = alone & self.barrier.any_of(Barrier.running, Barrier.failed)
        held_up = held_up & some(self._blocks(n) for n in Node)
        return leads_to(self.asked[n].is_some(), self.done.has(n) | held_up)

    @liveness
    def global_requests_end(self) -> LeadsTo:
        """Global requests are done too, unless nodes stay down."""
        nobody_down = every(~self._blocks(n) for n in Node)
        waits = self.global_request.is_some()
        return leads_to(waits, ~waits | ~nobody_down)

    # -- what recurs -----------------------------------------------------------------------------------

    def _was_replaced(self, n: Term[Node]) -> Bool:
        return some((self.replaced_id[m] == n) & self._is(m, NodeState.normal) for m in Node)
