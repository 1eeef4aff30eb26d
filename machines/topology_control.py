"""The topology state machine and its promises.

The tables are in `topology_states.py`, what group0 keeps in `topology_group0.py`, what happens in
`topology_requests.py`, `topology_tracks.py`, `topology_operations.py` and `topology_way_back.py`, and what is
promised of the order of things in `topology_order.py`.
`topology_cluster.py` puts nodes, client requests and data around it.
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_order import TopologyOrder
from stagewright.machines.topology_reasons import TABLES
from stagewright.machines.topology_states import (
    LEAVING,
    Barrier,
    NodeState,
    Ring,
    TransitionState,
)
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    choose,
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
NULL = T.null


class TopologyControl(TopologyOrder):
    """The states of nodes and of the topology as a whole, driven by the topology coordinator.

    Under `scylla-2026.2` and the releases before it every promise holds.

    Under `seed`, the design document of 2023-07, four do not. `every_request_ends` fails: there is no way
    back, so a step that fails for good is tried for ever. `left_nodes_hold_no_tablets` fails: nothing moves
    tablets away from a node that leaves. `left_nodes_do_not_run` fails: nobody tells the node that it left.
    `a_dead_node_is_replaced` fails: nobody looks whether the node to be replaced has come back.
    """

    exercised_at = scopes(
        {TopologyOrder.requests: 1},
        {TopologyOrder.faults: 0},
        {Node: 3, TopologyOrder.faults: 0},
        {},
        {Node: 3, TopologyOrder.requests: 1, TopologyOrder.faults: 2},
    )
    tables = TABLES

    # -- barriers --------------------------------------------------------------------------------------

    @step_property
    def barriers_are_told_truly(self, after: Self) -> Bool:
        """A barrier passes when all who take part have answered, and is waived where it has failed."""
        answered = (self.barrier == Barrier.running) & every(~self._blocks(n) for n in Node)
        passes = (self.barrier != after.barrier) & (after.barrier == Barrier.passed)
        waived = (self.barrier != after.barrier) & (after.barrier == Barrier.waived)
        return passes.implies(answered) & waived.implies(
            (self.barrier == Barrier.failed) & self._puts_up()
        )

    @step_property
    def what_was_learned_counts_in_its_state_alone(self, after: Self) -> Bool:
        """A barrier that passed, a stream that ended, a failure: they say nothing of the next state."""
        moves = (self.transition_state != after.transition_state) | (self.session != after.session)
        nothing = (after.barrier == Barrier.none) & ~after.streamed & ~after.giving_up
        return moves.implies(nothing)

    @invariant
    def barriers_are_of_states_that_have_one(self) -> Bool:
        """Barriers are run, and streams end, in the states that say so."""
        has = self.transition_state.column(lambda state: state.barrier)
        streams = self.transition_state == T.write_both_read_old
        runs = self.barrier != Barrier.none
        return runs.implies(has) & self.streamed.implies(streams)

    @invariant
    def only_operations_on_nodes_are_given_up(self) -> Bool:
        """Lemma: there is something to roll back, and a way back, where an operation is given up."""
        way_back = self.transition_state.column(lambda state: state.gives_up)
        return self.giving_up.implies(way_back & some(self._in_transition(n) for n in Node))

    @invariant
    def the_fence_is_never_ahead(self) -> Bool:
        """The fence refuses older versions, never the present one."""
        return self.fence_version <= self.version

    @step_property
    def the_fence_moves_with_a_barrier(self, after: Self) -> Bool:
        """Older requests are fenced when a barrier is done with them, or at the end of a rollback."""
        moves = self.fence_version != after.fence_version
        passes = (self.barrier != Barrier.passed) & (after.barrier == Barrier.passed)
        undone = self.transition_state == T.rollback_to_normal
        return moves.implies(passes | undone | self.is_at_rest())

    @step_property
    def ranges_are_streamed_between_live_nodes(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts"."""
        ends = ~self.streamed & after.streamed
        live = every(~self._blocks(n) for n in Node)
        return ends.implies(live & (self.barrier == Barrier.passed) & self.session)

    # -- rings, versions, sessions ---------------------------------------------------------------------

    @step_property
    def routing_changes_with_the_version(self, after: Self, n: Term[Node]) -> Bool:
        """What requests use changes in a version of its own, so that barriers and fences can tell."""
        old, new = self.transition_state, after.transition_state
        same = (self._is_written(n) == after._is_written(n)) & (
            self._is_read(n) == after._is_read(n)
        )
        same = same & (old.column(lambda t: t.writes) == new.column(lambda t: t.writes))
        same = same & (old.column(lambda t: t.tablets) == new.column(lambda t: t.tablets))
        return same | (after.version == self.version + 1)

    def _is_written(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.writes)
        old = (ring != Ring.new) & self.in_old_ring(n)
        return old | ((ring != Ring.old) & self.in_new_ring(n))

    def _is_read(self, n: Term[Node]) -> Bool:
        ring = self.transition_state.column(lambda state: state.reads)
        return choose(ring == Ring.old, self.in_old_ring(n), self.in_new_ring(n))

    @invariant
    def requests_use_both_rings_while_data_moves(self, n: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas …, reads are using old replicas"; then
        "reads are using new replicas".
        """
        reads_new = self.transition_state == T.write_both_read_new
        both = reads_new | (self.transition_state == T.write_both_read_old)
        old, new = self.in_old_ring(n), self.in_new_ring(n)
        written = self._is_written(n) == (old | (both & new))
        return written & (self._is_read(n) == choose(reads_new, new, old))

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
        left = left | (ends & some(self._is_reported(n, after) for n in Node))
        cleared = self.session & ~after.session & (old.any_of(T.truncate_table, T.snapshot_tables))
        passed = (self.fence_version == self.version) & (self.barrier == Barrier.passed)
        over = passed | self.giving_up | (self.barrier == Barrier.waived)
        return (left | cleared).implies(over)

    def _is_reported(self, n: Term[Node], after: Self) -> Bool:
        """The node in transition, that is: who waits meanwhile may be refused at any time."""
        return self._in_transition(n) & ~self.done.has(n) & after.done.has(n)

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

    @step_property
    def requests_on_tables_open_a_session(self, after: Self) -> Bool:
        """TRUNCATE and snapshots run in a session, and a second barrier follows when it is closed."""
        works = after.transition_state.any_of(T.truncate_table, T.snapshot_tables)
        begins = works & (self.transition_state != after.transition_state)
        return begins.implies(after.session)

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
        reads_new = self.transition_state == T.write_both_read_new
        ending = reads_new & self._being_replaced(n)
        ending = ending | (self.transition_state == T.left_token_ring)
        if not self.release.removing_leaves_ring:
            ending = ending | (reads_new & self._is(n, NodeState.removing))
        if not self.release.rollback:
            ending = ending | reads_new
        return self.tokens.has(n).implies(self.members.has(n) | ending)

    @invariant
    def tokens_belong_to_nodes_of_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it", none "has no tokens"."""
        serves = self._is(n, NodeState.normal, NodeState.rebuilding)
        outside = self._is(n, NodeState.absent, NodeState.none, NodeState.left)
        leaves = self._is(n, *LEAVING) & (self.transition_state != T.left_token_ring)
        has = self.tokens.has(n)
        return (serves | leaves).implies(has) & outside.implies(~has)

    @invariant
    def both_rings_differ_by_the_node_in_transition(self, n: Term[Node]) -> Bool:
        """001: "new replicas means calculated according to modified token ring"."""
        both = self.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        changes = self.in_old_ring(n) != self.in_new_ring(n)
        return both.implies(changes == (self._in_transition(n) | self._being_replaced(n)))

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

    @step_property
    def who_was_told_to_shut_down_does_not_run(self, after: Self, n: Term[Node]) -> Bool:
        """The barrier command of left_token_ring ends the node for good."""
        return (self._has_ended(n) & self.down.has(n)).implies(after.down.has(n))

    @step_property
    def nodes_are_out_of_group0_when_nobody_needs_them(self, after: Self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0": when no request that began before can reach it,
        and in left_token_ring when that is reported, so that it can be told.
        """
        removed = self.members.has(n) & ~after.members.has(n)
        over = self.barrier.any_of(Barrier.passed, Barrier.waived)
        at_once = (self.transition_state == T.write_both_read_new) & over
        refused = self._is(n, NodeState.none)
        return removed.implies(at_once | self._has_ended(n) | refused)

    @invariant
    def left_nodes_hold_no_tablets(self, n: Term[Node]) -> Bool:
        """A node leaves only when its tablets have moved away."""
        return self._is(n, NodeState.left).implies(~self.tablet_hosts.has(n))

    @invariant
    def left_nodes_need_no_cleanup(self, n: Term[Node]) -> Bool:
        """Nobody waits for rows of a node that is gone."""
        return self._is(n, NodeState.left).implies(~self.cleanup_needed.has(n))

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

    @step_property
    def rows_are_removed_when_nothing_can_write_them(self, after: Self, n: Term[Node]) -> Bool:
        """A node cleans up while no ring changes, and no request of an older one is left (scylladb #26315)."""
        cleaned = self.cleanup_needed.has(n) & ~after.cleanup_needed.has(n)
        cleaned = cleaned & ~after._is(n, NodeState.left)
        quiet = self.is_at_rest() & ~self.down.has(n)
        if self.release.barrier_before_cleanup:
            quiet = quiet & (self.fence_version == self.version)
        return cleaned.implies(quiet)

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

    @step_property
    def what_is_committed_is_to_be_published(self, after: Self) -> Bool:
        """001: "After committing the generation we move to publish"; later a fiber does it."""
        leaves = (self.transition_state == T.commit_cdc_generation) & after.transition_state.any_of(
            NULL, T.write_both_read_old, T.publish_cdc_generation
        )
        appears = ~self.unpublished_cdc_generations & after.unpublished_cdc_generations
        return leaves.implies(after.unpublished_cdc_generations) & appears.implies(
            self.new_cdc_generation
        )

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
        return self.is_at_rest() & ~asked & self.global_request.is_none()

    @reachable
    def can_come_to_rest(self) -> Bool:
        """Whatever happened, the topology can still come to rest."""
        return self.is_at_rest()

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
