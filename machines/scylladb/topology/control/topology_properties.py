"""The promises of the topology state machine: those of design document 001, and those of the releases."""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    NORMAL,
    NULL,
    T,
    TopologyRecord,
)
from stagewright.machines.scylladb.topology.topology_states import (
    JOINING,
    LEAVING,
    NODE_DIAGRAM,
    SEED,
    SEED_DIAGRAM,
    SEED_TABLE,
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
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    always_reachable,
    choose,
    count,
    every,
    final,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    only_when,
    some,
    step_property,
    violated,
)

ORDER = (Request.replace, Request.join, Request.remove, Request.leave, Request.rebuild)


class TopologyProperties(TopologyRecord):
    """What holds in every state and step, and what must end, whatever a coordinator does with this record."""

    # -- helpers -------------------------------------------------------------------------------------

    def _enters(self, after: Self, *states: TransitionState) -> Bool:
        """The topology enters one of the states from a different one."""
        moves = self.transition_state != after.transition_state
        return moves & after.transition_state.any_of(*states)

    def _was_replaced(self, n: Term[Node]) -> Bool:
        return some((self.replaced_id[m] == n) & self._is(m, NodeState.normal) for m in Node)

    def _is_missed(self, n: Term[Node]) -> Bool:
        """It is down, although 001 has "the entire cluster" learn. Nodes that have not joined yet
        or have left do not count, nor do dead nodes that are being removed or replaced.
        """
        outside = self._is(n, NodeState.absent, NodeState.none, NodeState.left)
        replaces = some(self._is(m, NodeState.replacing) & (self.replaced_id[m] == n) for m in Node)
        given_up = self._is(n, NodeState.removing) | replaces
        return self.down.has(n) & ~outside & ~given_up

    def _could_begin(self, n: Term[Node]) -> Bool:
        """It has a request, and no node is missing: the node itself is up, unless it is to be
        removed, and so are all other normal nodes, except one that is to be replaced. A node that
        is to leave holds no tablets any more.
        """
        request = self.topology_request[n]
        if not self.release.rollback:
            return request.is_some()
        replaces = request == Request.replace
        alive = some(self._is(m, NORMAL) & ~self.down.has(m) for m in self.replaced_id[n])
        right = (self.down.has(n) == (request == Request.remove)) & ~(replaces & alive)
        missed = some(
            (m != n)
            & self._is(m, NORMAL)
            & self.down.has(m)
            & ~(replaces & (self.replaced_id[n] == m))
            for m in Node
        )
        able = request.is_some() & right & ~missed
        return able & ~self._must_be_emptied(n) if self.release.parallel_draining else able

    def _alone_could_begin(self, n: Term[Node], request: Request) -> Bool:
        """Nothing is going on, and no other request could begin."""
        others = some((m != n) & self._could_begin(m) for m in Node)
        asks = (self.topology_request[n] == request) & self._could_begin(n)
        return self.is_at_rest() & asks & ~others

    def _must_be_emptied(self, n: Term[Node]) -> Bool:
        """It holds tablets, and is asked to leave, is leaving, or has left."""
        asked = self.topology_request[n].any_of(Request.leave, Request.remove)
        return self.tablet_hosts.has(n) & (asked | self._is(n, *LEAVING, NodeState.left))

    def _is_emptied_first(self, n: Term[Node]) -> Bool:
        """Its request waits until it holds no tablets: since 2026.1, which drain nodes beside each other."""
        return self._must_be_emptied(n) & self.release.parallel_draining

    # -- the tables ----------------------------------------------------------------------------------

    @step_property
    def nodes_follow_the_diagram(self, after: Self, n: Term[Node]) -> Bool:
        """001, "State transition diagram for nodes", and in the releases also the edges back to normal."""
        old, new = self.node_state[n], after.node_state[n]
        diagram = NODE_DIAGRAM if self.release.rollback else SEED_DIAGRAM
        return (old != new).implies(old.column(lambda state: diagram[state]).has(new))

    @lemma
    @step_property
    def nodes_that_left_are_kept(self, after: Self, n: Term[Node]) -> Bool:
        """001: "Nodes in state left are never removed from the state". A lemma: no edge of the
        diagram leads away from it.
        """
        is_left = self.node_state[n] == NodeState.left
        return is_left.implies(after.node_state[n] == NodeState.left)

    @step_property
    def the_topology_follows_its_table(self, after: Self) -> Bool:
        """001: the order of the transition states, with the states that the releases have added."""
        old, new = self.transition_state, after.transition_state
        table = TRANSITION_TABLE if self.release.rollback else SEED_TABLE
        return (old != new).implies(old.column(lambda state: table[state]).has(new))

    @invariant
    def one_node_in_transition(self) -> Bool:
        """001: "one of the nodes is in a bootstrapping/decommissioning/removing/replacing state"."""
        return count(self._in_transition(n) for n in Node) <= 1

    @invariant
    def node_state_fits_transition_state(self, n: Term[Node]) -> Bool:
        """The table has the state of the node and that of the topology together (scylladb #16568)."""
        states = self.transition_state.column(lambda state: state.of)
        return self._in_transition(n).implies(states.has(self.node_state[n]))

    @invariant
    def transition_state_has_its_owner(self) -> Bool:
        """`transition_state` is set on behalf of its owner, and of nobody else (scylladb #23751)."""
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
        """A node that joins or leaves, a generation, tablets and a request have states of their own (scylladb #23751)."""
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
        """Tables are truncated in truncate_table, and snapshots taken in snapshot_tables (scylladb #23751)."""
        state, request = self.transition_state, self.global_request
        owned = state.column(lambda state: state.owner) == Owner.request
        truncates = owned & (request == GlobalRequest.truncate_table)
        snapshots = owned & (request == GlobalRequest.snapshot_tables)
        return (state == T.truncate_table).implies(truncates) & (
            state == T.snapshot_tables
        ).implies(snapshots)

    @invariant
    def tablets_move_in_their_tracks(self) -> Bool:
        """001: "When the topology state machine is not in the tablet_migration track, it is
        guaranteed that there are no tablet transitions in the system." In releases they also drain
        from a node that leaves.
        """
        tracks = self.transition_state.column(lambda state: state.tablets)
        resizing = self.transition_state == T.tablet_resize_finalization
        return self.tablet_work.is_some().implies(tracks & ~resizing)

    @lemma
    def tablets_are_drained_where_a_node_leaves(self) -> Bool:
        """Tablets drain from a node that is leaving, or from one that is being replaced."""
        drains = (self.transition_state == T.tablet_draining) & self.tablet_work.is_some()
        return drains.implies(some(self._is(n, *LEAVING, NodeState.replacing) for n in Node))

    @step_property
    def the_load_balancer_waits(self, after: Self) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked"."""
        begins = self._enters(after, T.tablet_migration, T.tablet_resize_finalization)
        planned = after.tablet_work.any_of(Work.balancing, Work.draining) | (
            after.transition_state == T.tablet_resize_finalization
        )
        free = ~self._pending() & self.global_request.is_none()
        rolled_back = self.transition_state == T.rollback_to_normal
        return (begins & planned & ~rolled_back).implies(self.is_at_rest() & free)

    @step_property
    def operations_on_nodes_wait_for_the_track(self, after: Self, n: Term[Node]) -> Bool:
        """001: "node operations will have to wait for tablet migration track to finish before they
        can take over the state machine", even those that do not change the topology.
        """
        begins = ~self._in_transition(n) & after._in_transition(n)
        return begins.implies(self.transition_state == NULL)

    @step_property
    def tablets_leave_a_node_by_moving(self, after: Self, n: Term[Node]) -> Bool:
        """Tablets disappear from a node only because they have moved or were rebuilt elsewhere, so
        that another node has them, or because their table was dropped; those of other nodes stay
        where they are.
        """
        gone = self.tablet_hosts.has(n) & ~after.tablet_hosts.has(n)
        elsewhere = some((m != n) & after._may_settle(m) for m in after.tablet_hosts)
        dropped = self.dropped != after.dropped
        alone = every((m == n) | after.tablet_hosts.has(m) for m in self.tablet_hosts)
        return gone.implies(((self.tablet_work.is_some() & elsewhere) | dropped) & alone)

    # -- requests ------------------------------------------------------------------------------------

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
        """001: "When a request is issued to a node the entry is added to the map": the request
        table has it, and does not report it as ended.
        """
        request = self.topology_request[n]
        ended = self.done.has(n) | self.error.has(n)
        return request.is_some().implies((self.asked[n] == request) & ~ended)

    @step_property
    def results_stay_until_the_node_asks_again(self, after: Self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": what was
        reported of it stays, whoever coordinates later and whatever happens to the node, until the
        next one is issued.
        """
        same = (after.asked[n] == self.asked[n]) & (after.error.has(n) == self.error.has(n))
        asks = after.topology_request[n].is_some()
        return (self.done.has(n) & ~asks).implies(after.done.has(n) & same)

    @step_property
    def requests_are_not_overwritten(self, after: Self, n: Term[Node]) -> Bool:
        """A request stays until it is taken up or refused."""
        before, now = self.topology_request[n], after.topology_request[n]
        return (before.is_some() & now.is_some()).implies(before == now)

    @step_property
    def nodes_begin_what_they_asked_for(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node begins the operation that was requested, once all nodes that this needs are up."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        wanted = some(
            request.column(lambda r: r.begins_as) == after.node_state[n]
            for request in self.topology_request[n]
        )
        return begins.implies(wanted & self._could_begin(n))

    @step_property
    def somebody_stays_where_a_node_goes(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node that leaves will "stream its data to nodes that took over": so there has to be one."""
        goes = after.topology_request[n].any_of(Request.leave, Request.remove)
        asks = self.topology_request[n].is_none() & goes
        return asks.implies(some((m != n) & self._nobody_wants_it_gone(m) for m in Node))

    @step_property
    def dead_nodes_are_removed(self, after: Self, n: Term[Node]) -> Bool:
        """001: a node that is decommissioned streams its data itself; for one that is removed, others do."""
        only_when(self.release.rollback)
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(self.down.has(n) == after._is(n, NodeState.removing))

    @invariant
    def a_node_that_is_removed_is_dead(self, n: Term[Node]) -> Bool:
        """001: the data of a node that is removed is streamed "from still alive owners": it is
        dead, and does not come back.
        """
        only_when(self.release.rollback)
        return self._is(n, NodeState.removing).implies(self.down.has(n))

    @step_property
    def requests_end_with_their_operation(self, after: Self, n: Term[Node]) -> Bool:
        """A request is done when its operation is, or when it is refused."""
        ends = ~self.done.has(n) & after.done.has(n)
        refused = self.topology_request[n].is_some() & after.error.has(n)
        return ends.implies(self._in_transition(n) | refused)

    @step_property
    def requests_are_refused_at_rest(self, after: Self, n: Term[Node]) -> Bool:
        """The coordinator refuses a request ("Join is rejected", "Canceled. Dead nodes") when it
        would otherwise take it up, which is when nothing else is going on. A request to leave or to
        remove may be aborted while it waits.
        """
        return self._is_refused(n, after).implies(self.is_at_rest())

    @step_property
    def requests_are_cancelled_when_none_can_proceed(self, after: Self, n: Term[Node]) -> Bool:
        """A request that can proceed may be refused when its turn has come ("Join is rejected");
        one that cannot is cancelled when no other request can either, because of dead nodes
        ("Canceled. Dead nodes").
        """
        none = ~some(self._could_begin(m) for m in Node)
        return self._is_refused(n, after).implies(self._could_begin(n) | none)

    @step_property
    def requests_end_each_for_itself(self, after: Self, n: Term[Node]) -> Bool:
        """001: "a map of topology requests per node": an operator aborts, and the coordinator
        rejects, the request of one node. Several end at once only if none of them can proceed
        ("Canceled. Dead nodes").
        """
        none = self.is_at_rest() & ~some(self._could_begin(m) for m in Node)
        refused = ~self._in_transition(n) & ~self.error.has(n) & after.error.has(n)
        alone = every((m == n) | (self.error.has(m) == after.error.has(m)) for m in Node)
        return (refused & ~none).implies(alone)

    @step_property
    def requests_change_nothing_that_goes_on(self, after: Self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": what is going on
        meanwhile is not affected when an entry is added, taken back or refused: tablets that are
        moving come to rest in their own time.
        """
        before, now = self.topology_request[n], after.topology_request[n]
        withdrawn = before.is_some() & now.is_none() & ~after._in_transition(n)
        same = (self.transition_state == after.transition_state) & (self.version == after.version)
        same = same & (self.tablet_work == after.tablet_work) & (self.session == after.session)
        same = same & (self.barrier == after.barrier) & (self.giving_up == after.giving_up)
        return (withdrawn | (before.is_none() & now.is_some())).implies(same)

    def _is_refused(self, n: Term[Node], after: Self) -> Bool:
        refused = ~self._in_transition(n) & ~self.error.has(n) & after.error.has(n)
        return refused & ~self._wants_to_go(n)

    @invariant
    def what_goes_on_is_not_done(self, n: Term[Node]) -> Bool:
        """A request is reported as done only at the end of its operation."""
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
        """An operation that is given up is rolled back, not continued."""
        moves = self.transition_state != after.transition_state
        back = after.transition_state.any_of(T.left_token_ring, T.rollback_to_normal)
        outside = ~some(self._in_transition(n) & self.members.has(n) for n in Node)
        return (self.giving_up & moves).implies(back | outside)

    @step_property
    def operations_are_given_up_by_who_saw_them_fail(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts": an operation is undone when the one has failed, or
        the other behind it, or for tablets that came meanwhile: a coordinator that knows of neither goes on with it.
        """
        begins = ~self.giving_up & after.giving_up
        begins = begins & (self.transition_state == T.write_both_read_old)
        failed = after.barrier.any_of(Barrier.passed, Barrier.failed)
        held = some(self._must_be_empty(n) & self.tablet_hosts.has(n) for n in Node)
        return begins.implies(failed | held)

    @step_property
    def a_rebuild_is_done_when_it_has_streamed(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node "is streaming data from other replicas"; if it could not, its request has failed."""
        ends = self._is(n, NodeState.rebuilding) & after._is(n, NodeState.normal)
        source = some(self._is(m, NORMAL) & ~self.down.has(m) for m in Node)
        return ends.implies(after.error.has(n) | (self.session & ~self.down.has(n) & source))

    @step_property
    def rebuilds_fail_where_nodes_are_missing(self, after: Self, n: Term[Node]) -> Bool:
        """001: the node "is streaming data from other replicas": as long as there are some, and all nodes are up, no request
        to rebuild fails, whichever coordinator goes on with it.
        """
        ends = self._is(n, NodeState.rebuilding) & after._is(n, NodeState.normal)
        others = some((m != n) & self._is(m, NORMAL) for m in Node)
        missing = some(self._is_missed(m) for m in Node) | ~others
        return (ends & after.error.has(n)).implies(missing)

    @step_property
    def global_requests_are_not_overwritten(self, after: Self) -> Bool:
        """001: the field has "one of the supported global topology requests": the next one is made
        when it is free again.
        """
        before, now = self.global_request, after.global_request
        return (before.is_some() & now.is_some()).implies(before == now)

    @step_property
    def global_requests_are_done(self, after: Self) -> Bool:
        """A global request is removed when its work is done: in its own state, or, for a cleanup,
        when all nodes are clean.
        """
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
        """The coordinator looks for requests of nodes first."""
        begins = (self.transition_state == NULL) & after.transition_state.any_of(
            T.commit_cdc_generation, T.truncate_table, T.snapshot_tables
        )
        alone = ~some(after._in_transition(n) for n in Node)
        return (begins & alone).implies(~some(self._could_begin(n) for n in Node))

    @step_property
    def requests_are_served_in_order(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """The order in which requests are served is replace, join, remove, leave, rebuild."""
        begins = ~self._in_transition(n) & after._in_transition(n)
        earlier = some(
            (self.topology_request[n] == request) & self.topology_request[m].any_of(*ORDER[:place])
            for place, request in enumerate(ORDER)
            if place > 0
        )
        return begins.implies(~(earlier & self._could_begin(m)))

    @step_property
    def paused_requests_do_not_begin(self, after: Self, n: Term[Node]) -> Bool:
        """A node that still holds tablet replicas begins to leave only if they drain while it does."""
        only_when(self.release.draining_state or self.release.parallel_draining)
        begins = ~self._in_transition(n) & after._in_transition(n)
        leaves = after._is(n, *LEAVING) & self.tablet_hosts.has(n)
        return (begins & leaves).implies(after.transition_state.column(lambda s: s.tablets))

    @invariant
    def joined_means_normal(self, n: Term[Node]) -> Bool:
        """A request to join or replace that ended without error has made the node normal."""
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
        """After a request to leave or remove the node has left, or is about to; after one that failed it stays."""
        leaves = self.asked[n].any_of(Request.leave, Request.remove)
        out = self._is(n, NodeState.left) | (self.transition_state == T.left_token_ring)
        stays = self._is(n, NodeState.normal) | self._was_replaced(n)
        right = (self.error.has(n) & stays) | (~self.error.has(n) & out)
        return (leaves & self.done.has(n)).implies(right)

    @step_property
    def nobody_waits_for_a_node_that_was_told_to_shut_down(self, after: Self) -> Bool:
        """left_token_ring may be entered again, but what was done in it is not done twice (scylladb #20865)."""
        waits = (self.barrier != after.barrier) & after.barrier.any_of(
            Barrier.running, Barrier.passed, Barrier.failed
        )
        reported = some(self._in_transition(n) & self.done.has(n) for n in Node)
        return waits.implies(~reported)

    # -- barriers ------------------------------------------------------------------------------------

    @step_property
    def barriers_pass_once_all_have_answered(self, after: Self) -> Bool:
        """A barrier passes only when all nodes that take part have answered, and is waived only where that is allowed."""
        answered = (self.barrier == Barrier.running) & every(~self._is_missed(n) for n in Node)
        passes = (self.barrier != after.barrier) & (after.barrier == Barrier.passed)
        waived = (self.barrier != after.barrier) & (after.barrier == Barrier.waived)
        return passes.implies(answered) & waived.implies(
            (self.barrier == Barrier.failed) & self._waives()
        )

    @step_property
    def what_was_learned_counts_in_its_state_alone(self, after: Self) -> Bool:
        """A barrier that passed, a stream that ended or a failure says nothing about the next state."""
        moves = (self.transition_state != after.transition_state) | (self.session != after.session)
        nothing = (after.barrier == Barrier.none) & ~after.streamed & ~after.giving_up
        return moves.implies(nothing)

    @invariant
    def barriers_run_only_in_states_that_have_one(self) -> Bool:
        """Barriers run, and streams end, only in the states that the table gives them."""
        has = self.transition_state.column(lambda state: state.barrier)
        streams = self.transition_state == T.write_both_read_old
        runs = self.barrier != Barrier.none
        return runs.implies(has) & self.streamed.implies(streams)

    @lemma
    def only_operations_on_nodes_are_given_up(self) -> Bool:
        """Where an operation is given up, there is something to roll back, and a way back."""
        way_back = self.transition_state.column(lambda state: state.gives_up)
        return self.giving_up.implies(way_back & some(self._in_transition(n) for n in Node))

    @invariant
    def the_fence_is_never_ahead(self) -> Bool:
        """The fence refuses older versions, never the current one."""
        return self.fence_version <= self.version

    @step_property
    def the_fence_moves_with_a_barrier(self, after: Self) -> Bool:
        """Older requests are fenced when a barrier passes or is waived, at rest before a cleanup,
        or by the barriers of tablets, which `tablet-migration` has: here it is assumed that all
        nodes have drained then.
        """
        moves = self.fence_version != after.fence_version
        over = after.barrier.any_of(Barrier.passed, Barrier.waived)
        passes = (self.barrier != after.barrier) & over
        tablets = self.tablet_work.is_some() & (self.transition_state == T.tablet_migration)
        return moves.implies(passes | tablets | self.is_at_rest())

    @step_property
    def ranges_are_streamed_between_live_nodes(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it, streaming starts"."""
        ends = ~self.streamed & after.streamed
        live = every(~self._is_missed(n) for n in Node)
        return ends.implies(live & (self.barrier == Barrier.passed) & self.session)

    # -- rings, versions, sessions -------------------------------------------------------------------

    @step_property
    def routing_changes_with_the_version(self, after: Self, n: Term[Node]) -> Bool:
        """A change of the replicas that requests use has a version of its own, which barriers and fences rely on."""
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
        """001: "Writes are going to both new and old replicas …, reads are using old replicas";
        then "reads are using new replicas".
        """
        reads_new = self.transition_state == T.write_both_read_new
        both = reads_new | (self.transition_state == T.write_both_read_old)
        old, new = self.in_old_ring(n), self.in_new_ring(n)
        written = self._is_written(n) == (old | (both & new))
        return written & (self._is_read(n) == choose(reads_new, new, old))

    @step_property
    def versions_only_grow(self, after: Self) -> Bool:
        """Neither the version nor the fence ever goes back."""
        return (self.version <= after.version) & (self.fence_version <= after.fence_version)

    @step_property
    def the_version_moves_only_with_a_change(self, after: Self) -> Bool:
        """The version moves only with the topology or with the stages of tablets, so that no
        barrier is run for nothing.
        """
        stays = self.transition_state == after.transition_state
        rests = self.tablet_work.is_none() & after.tablet_work.is_none()
        return (stays & rests).implies(self.version == after.version)

    @step_property
    def older_versions_are_fenced(self, after: Self) -> Bool:
        """A state with a barrier is left for the next one only when no older version can have
        effects any more; a rollback raises the fence even if its barrier failed. 001: "the whole cluster needs to learn
        about it": whoever leaves is told so, and may be shut down, once nobody works by a ring that has it.
        """
        old = self.transition_state
        ends = old == T.left_token_ring  # with the report, after which the node may be gone
        left = (old != after.transition_state) & old.column(lambda state: state.barrier) & ~ends
        told = some(self._is_reported(n, after) & after._in_transition(n) for n in Node)
        left = left | told
        cleared = self.session & ~after.session & (old.any_of(T.truncate_table, T.snapshot_tables))
        answered = self.barrier.any_of(Barrier.passed, Barrier.waived)
        over = (answered & (self.fence_version == self.version)) | self.giving_up
        fenced = (old != T.rollback_to_normal) | (after.fence_version == after.version)
        present = told.implies(self.version == after.version)
        return (left | cleared).implies(over & fenced & present)

    def _is_reported(self, n: Term[Node], after: Self) -> Bool:
        """Of the node in transition alone: requests that wait meanwhile may be refused at any time."""
        return self._in_transition(n) & ~self.done.has(n) & after.done.has(n)

    @invariant
    def what_streams_has_an_open_session(self) -> Bool:
        """An operation that streams has an open session (scylladb #16741)."""
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return ((self.transition_state == T.write_both_read_old) | rebuilds).implies(self.session)

    @step_property
    def requests_on_tables_open_a_session(self, after: Self) -> Bool:
        """TRUNCATE and snapshots run in a session, and a second barrier follows when it is closed.
        No coordinator opens it again, or else what clients have written since would be removed as
        well.
        """
        tables = T.truncate_table, T.snapshot_tables
        goes_on = self.transition_state.any_of(*tables) & after.transition_state.any_of(*tables)
        opened = self._enters(after, *tables).implies(after.session)
        return opened & (goes_on & after.session).implies(self.session)

    @invariant
    def sessions_are_closed_when_their_work_is_over(self) -> Bool:
        """Nothing may stream once its result is in use, or has been thrown away."""
        streams = self.transition_state.any_of(
            T.tablet_draining, T.write_both_read_old, T.truncate_table, T.snapshot_tables
        )
        rebuilds = some(self._is(n, NodeState.rebuilding) for n in Node)
        return self.session.implies(streams | rebuilds)

    @step_property
    def reads_move_when_all_is_streamed(self, after: Self) -> Bool:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        begins = self._enters(after, T.write_both_read_new)
        return begins.implies(self.streamed & (self.barrier == Barrier.passed))

    # -- members of the cluster ----------------------------------------------------------------------

    @invariant
    def left_nodes_are_out_of_group0(self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0" (scylladb #14885)."""
        return self._is(n, NodeState.left).implies(~self.members.has(n))

    @invariant
    def nodes_that_serve_are_in_group0(self, n: Term[Node]) -> Bool:
        """A node that owns a part of the ring is a member, and so learns of changes, until it is about to leave."""
        reads_new = self.transition_state == T.write_both_read_new
        ending = reads_new & self._being_replaced(n)
        ending = ending | (self.transition_state == T.left_token_ring)
        if not self.release.removing_leaves_ring:
            ending = ending | (reads_new & self._is(n, NodeState.removing))
        if not self.release.rollback:
            ending = ending | reads_new
        return self.tokens.has(n).implies(self.members.has(n) | ending)

    @lemma
    @invariant
    def tokens_belong_to_nodes_of_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it"; one in state none
        "has no tokens". A lemma: nodes that serve are in group0, and both rings differ by the node
        in transition.
        """
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
        """The replaced node becomes left in the same commit in which the one that replaces it becomes normal."""
        replaced = self.replaced_id[n] == dead
        asked = self._is(n, NodeState.normal)
        return (replaced & asked).implies(self._is(dead, NodeState.left))

    @invariant
    def left_nodes_do_not_run(self, n: Term[Node]) -> Bool:
        """A node becomes left only when it is dead, was refused, or was told to shut down."""
        return self._is(n, NodeState.left).implies(self.down.has(n))

    @step_property
    def who_was_told_to_shut_down_does_not_run(self, after: Self, n: Term[Node]) -> Bool:
        """The barrier command of left_token_ring ends the node for good."""
        return (self._has_ended(n) & self.down.has(n)).implies(after.down.has(n))

    @step_property
    def who_stays_is_not_shut_down(self, after: Self, n: Term[Node]) -> Bool:
        """001: "normal - the node … serves": a request to leave that is refused or rolled back does
        not stop its node. Nodes may die, but not by a step of the coordinator.
        """
        stops = ~self.down.has(n) & after.down.has(n)
        goes = after._is(n, NodeState.left) | self._has_ended(n)
        same = (self.node_state[n] == after.node_state[n]) & (
            self.error.has(n) == after.error.has(n)
        )
        return stops.implies(goes | (same & (self.transition_state == after.transition_state)))

    @step_property
    def nodes_are_out_of_group0_when_nobody_needs_them(self, after: Self, n: Term[Node]) -> Bool:
        """001: "left - the node left the cluster and group0": once no request that began before can
        reach it, and in left_token_ring only after its request is reported as done, so that it can
        still learn of that.
        """
        removed = self.members.has(n) & ~after.members.has(n)
        over = self.barrier.any_of(Barrier.passed, Barrier.waived)
        at_once = (self.transition_state == T.write_both_read_new) & over
        refused = self._is(n, NodeState.none)
        return removed.implies(at_once | self._has_ended(n) | refused)

    @invariant
    def left_nodes_hold_no_tablets(self, n: Term[Node]) -> Bool:
        """A node leaves only after its tablets have moved away; since 2026.1 the tablets of a
        replaced node are rebuilt afterwards.
        """
        holds = self._is(n, NodeState.left) & self.tablet_hosts.has(n)
        if self.release.parallel_draining:
            gone = NodeState.absent, NodeState.none
            return holds.implies(
                some((self.replaced_id[m] == n) & ~self._is(m, *gone) for m in Node)
            )
        return ~holds

    @invariant
    def tablets_are_on_nodes_that_serve(self, n: Term[Node]) -> Bool:
        """001: a node in state none "has no tokens and data to serve": it holds no tablet before it is normal."""
        before = self._is(n, NodeState.absent, NodeState.none, *JOINING)
        return before.implies(~self.tablet_hosts.has(n))

    @liveness
    def tablets_of_replaced_nodes_are_rebuilt(self, n: Term[Node]) -> LeadsTo:
        """The load balancer rebuilds them from their other replicas, unless nodes stay down."""
        only_when(self.release.parallel_draining)
        holds, nobody_down = self.tablet_hosts.has(n), every(~self._is_missed(m) for m in Node)
        return leads_to(holds & self._is(n, NodeState.left), ~holds | ~nobody_down)

    @invariant
    def left_nodes_need_no_cleanup(self, n: Term[Node]) -> Bool:
        """Nobody waits for a node that is gone to remove rows."""
        return self._is(n, NodeState.left).implies(~self.cleanup_needed.has(n))

    # -- cleanup -------------------------------------------------------------------------------------

    @step_property
    def rows_of_lost_ranges_are_remembered(self, after: Self, n: Term[Node], m: Term[Node]) -> Bool:
        """After a node has joined, or has not left after all, the others may hold rows of ranges that are not theirs."""
        only_when(self.release.cleanup)
        joined = self._is(n, NodeState.bootstrapping) & after._is(n, NodeState.normal)
        undone = self._enters(after, T.rollback_to_normal)
        other = (m != n) & self._is(m, NodeState.normal)
        return (other & (joined | undone)).implies(after.cleanup_needed.has(m))

    @step_property
    def no_range_comes_back_to_a_node_with_old_rows(self, after: Self, n: Term[Node]) -> Bool:
        """A node leaves only after the nodes that take over have removed the rows of ranges that they had lost."""
        begins = ~self._in_transition(n) & after._is(n, *LEAVING)
        return begins.implies(every(~self.cleanup_needed.has(m) | self.down.has(m) for m in Node))

    @step_property
    def rows_are_removed_when_nothing_can_write_them(self, after: Self, n: Term[Node]) -> Bool:
        """A node cleans up while no ring changes, and no request of an older ring is left (scylladb
        #26315). Each node removes its own rows, and no other's.
        """
        cleaned = self.cleanup_needed.has(n) & ~after.cleanup_needed.has(n)
        cleaned = cleaned & ~after._is(n, NodeState.left)
        quiet = self.is_at_rest() & ~self.down.has(n)
        if self.release.barrier_before_cleanup:
            quiet = quiet & (self.fence_version == self.version)
        before, now = self.cleanup_needed, after.cleanup_needed
        alone = every((m == n) | (before.has(m) == now.has(m)) for m in Node)
        return cleaned.implies(quiet & alone)

    # -- CDC generations -----------------------------------------------------------------------------

    @lemma
    def a_generation_waits_for_its_commit(self) -> Bool:
        """001: new_cdc_generation_data_uuid is "used in commit_cdc_generation state". A lemma: each
        state has its owner, and apart from the document's publish_cdc_generation, no other state
        belongs to a generation.
        """
        return self.new_cdc_generation == (self.transition_state == T.commit_cdc_generation)

    @step_property
    def a_node_bootstraps_with_a_committed_generation(self, after: Self) -> Bool:
        """001: "we need to commit the generation … and tell every node to start using it"."""
        bootstraps = some(self._is(n, NodeState.bootstrapping) for n in Node)
        begins = self._enters(after, T.write_both_read_old) & bootstraps
        if self.release.publish_state:
            published = self.transition_state == T.publish_cdc_generation
            return begins.implies(published & ~after.unpublished_cdc_generations)
        committed = (self.transition_state == T.commit_cdc_generation) & self.new_cdc_generation
        return begins.implies(committed & after.unpublished_cdc_generations)

    @step_property
    def what_is_committed_is_to_be_published(self, after: Self) -> Bool:
        """001: "After committing the generation we move to publish"; in releases a fiber publishes it."""
        leaves = (self.transition_state == T.commit_cdc_generation) & after.transition_state.any_of(
            NULL, T.write_both_read_old, T.publish_cdc_generation
        )
        given_up = some(self._in_transition(n) & after._is(n, NodeState.left) for n in Node)
        appears = ~self.unpublished_cdc_generations & after.unpublished_cdc_generations
        return (leaves & ~given_up).implies(after.unpublished_cdc_generations) & appears.implies(
            self.new_cdc_generation
        )

    @step_property
    def what_is_committed_stays_until_it_is_published(self, after: Self) -> Bool:
        """001: "Once the generation is published", which happens in its state, and in releases by a
        fiber that does nothing else: no rollback and no new coordinator takes a committed
        generation for published.
        """
        gone = self.unpublished_cdc_generations & ~after.unpublished_cdc_generations
        if self.release.publish_state:
            return gone.implies(self.transition_state == T.publish_cdc_generation)
        rows = every(self.node_state[n] == after.node_state[n] for n in Node)
        knows = (self.barrier == after.barrier) & (self.giving_up == after.giving_up)
        return gone.implies(rows & knows & (self.transition_state == after.transition_state))

    @liveness
    def generations_are_published(self) -> LeadsTo:
        """001: "we need to publish it to user-facing description tables"."""
        unpublished = self.unpublished_cdc_generations
        return leads_to(unpublished, ~unpublished)

    # -- ends ----------------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """No request waits, and nothing is going on."""
        asked = some(self.topology_request[n].is_some() for n in Node)
        return self.is_at_rest() & ~asked & self.global_request.is_none()

    @always_reachable
    def can_come_to_rest(self) -> Bool:
        """Whatever happened, the topology can still come to rest."""
        return self.is_at_rest()

    @liveness
    def every_request_ends(self, n: Term[Node]) -> LeadsTo:
        """Every request ends, with or without an error: what fails is rolled back, not retried for
        ever (scylladb #16461). Only operations that are not on a node are retried as long as a node
        stays down, and hold up others.
        """
        alone = ~some(self._in_transition(n) for n in Node)
        held_up = alone & self.barrier.any_of(Barrier.running, Barrier.failed)
        held_up = held_up & some(self._is_missed(n) for n in Node)
        return leads_to(self.asked[n].is_some(), self.done.has(n) | held_up)

    @liveness
    def global_requests_end(self) -> LeadsTo:
        """Global requests end as well, unless nodes stay down."""
        nobody_down = every(~self._is_missed(n) for n in Node)
        waits = self.global_request.is_some()
        return leads_to(waits, ~waits | ~nobody_down)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(every_request_ends, under=SEED, because="what fails for good is retried for ever"),
        violated(
            left_nodes_hold_no_tablets,
            left_nodes_do_not_run,
            a_dead_node_is_replaced,
            under=SEED,
            because="nothing moves a leaving node's tablets, tells it that it has left, or checks whether a dead node is back",
        ),
        violated(
            older_versions_are_fenced,
            nodes_are_out_of_group0_when_nobody_needs_them,
            under=SEED,
            because="the text has no barrier or fence before the edges from bootstrapping and replacing to left",
        ),
    )
