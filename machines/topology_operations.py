"""Operations on nodes: bootstrap, replace, decommission, remove.

The transition states of 001, "Topology state machine", and what the releases added: join_group0, draining,
left_token_ring and rollback_to_normal. `topology_control.py` has the promises.
"""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import A_DEAD_NODE_WAITS, COORDINATOR, NOT_NEEDED
from stagewright.machines.topology_requests import TopologyRequests
from stagewright.machines.topology_states import (
    Barrier,
    NodeState,
    Request,
    TransitionState,
    Work,
)
from stagewright.machines.topology_tracks import TopologyTracks
from stagewright.spec import (
    Bool,
    Fairness,
    Term,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    only_when,
    require,
    some,
)

WEAK = Fairness.WEAK
T = TransitionState
NULL = T.null


class TopologyOperations(TopologyTracks):
    """One node at a time goes through the transition states."""

    # -- bootstrap and replace -------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def accept_join(self, n: Term[Node]) -> None:
        """Bootstrap: the node is accepted."""
        only_when(self.release.join_group0)
        self._begin(n, Request.join)
        self.transition_state = T.join_group0
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def accept_replace(self, n: Term[Node]) -> None:
        """Replace: the node is accepted."""
        only_when(self.release.join_group0)
        self._begin(n, Request.replace)
        self.transition_state = T.join_group0
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_accept(self, n: Term[Node]) -> None:
        """The node does not take JOIN_NODE_RESPONSE: it is left."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self.down.has(n), "the node is down")
        require(~self.members.has(n), "the node is not in group0")
        self.node_state[n] = NodeState.left
        self.transition_state = NULL
        self._end(n, error=True)
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def join_group0(self, n: Term[Node]) -> None:
        """The node has taken JOIN_NODE_RESPONSE and is a member of group0."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(~self.down.has(n), "the node is up")
        require(~self.members.has(n), "the node is not in group0")
        self.members.add(n)

    @action(by=COORDINATOR, fair=WEAK)
    def insert_tokens(self, n: Term[Node]) -> None:
        """Bootstrap: tokens are chosen, and the data of a CDC generation for them is written."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")
        self._joined(n)
        self._insert_tokens(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_bootstrap(self, n: Term[Node]) -> None:
        """001: "When a node bootstraps, we create new tokens for it and a new CDC generation"."""
        only_when(not self.release.join_group0)
        self._begin(n, Request.join)
        self._insert_tokens(n)

    def _insert_tokens(self, n: Term[Node]) -> None:
        self.tokens.add(n)
        self.new_cdc_generation = True
        self.transition_state = T.commit_cdc_generation
        self._enter(new_version=False)

    @action(by=COORDINATOR, fair=WEAK)
    def commit_cdc_generation(self, n: Term[Node]) -> None:
        """Every node has the data of the new generation: it is committed with its timestamp."""
        require(self.transition_state == T.commit_cdc_generation, "a generation is to be committed")
        self._is_for(n)
        self._barrier_passed()
        self.new_cdc_generation = False
        self.unpublished_cdc_generations = True
        if self.release.publish_state:
            self.transition_state = T.publish_cdc_generation
            self._enter(new_version=False)
        else:
            self._write_both()

    def _is_for(self, n: Term[Node]) -> None:
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")

    @action(by=COORDINATOR, fair=WEAK)
    def publish_cdc_generation(self, n: Term[Node]) -> None:
        """001: "Once the generation is published, we enter write_both_read_old state"."""
        only_when(self.release.publish_state)
        require(self.transition_state == T.publish_cdc_generation, "a generation is published")
        require(self._is(n, NodeState.bootstrapping), "the node bootstraps")
        self.unpublished_cdc_generations = False
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def take_tokens(self, n: Term[Node]) -> None:
        """Replace: the node takes ownership of the replaced node's tokens."""
        only_when(self.release.join_group0)
        self._joining(n)
        require(self._is(n, NodeState.replacing), "the node replaces another")
        self._joined(n)
        self.tokens.add(n)
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def start_replace(self, n: Term[Node]) -> None:
        """The same, at once."""
        only_when(not self.release.join_group0)
        self._begin(n, Request.replace)
        self.tokens.add(n)
        self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_bootstrap(self, n: Term[Node]) -> None:
        """No read that began before uses the old ring: the node is normal."""
        self._past_read_fence()
        self._mark_for_cleanup()
        self._move(n, NodeState.bootstrapping, NodeState.normal)
        self._end(n)
        self._finish()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_replaced(self, n: Term[Node], dead: Term[Node]) -> None:
        """The replaced node is removed from group0 before it is left."""
        self._past_read_fence()
        replaced = self._is(n, NodeState.replacing) & (self.replaced_id[n] == dead)
        require(replaced, "it is replaced")
        require(self.members.has(dead), "it is still in group0")
        self.members.discard(dead)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_replace(self, n: Term[Node]) -> None:
        """The replacing node is normal and the replaced one left, in one commit."""
        self._past_read_fence()
        require(self._is(n, NodeState.replacing), "the node replaces another")
        self._replaced_is_out(n)
        for m in Node:
            dead = self.replaced_id[n] == m
            becomes = choose(dead, NodeState.left, self.node_state[m])
            self.node_state[m] = choose(m == n, NodeState.normal, becomes)
            self.tokens.put(m, self.tokens.has(m) & ~dead)
            self.cleanup_needed.put(m, self.cleanup_needed.has(m) & ~dead)
        self._tablets_are_gone_with_the_replaced(n)
        self._end(n)
        self._finish()

    def _tablets_are_gone_with_the_replaced(self, n: Term[Node]) -> None:
        for m in Node:
            self.tablet_hosts.put(m, self.tablet_hosts.has(m) & (self.replaced_id[n] != m))

    def _replaced_is_out(self, n: Term[Node]) -> None:
        out = ~some(self.members.has(m) for m in self.replaced_id[n])
        require(out, "the replaced node is removed from group0")

    def _joining(self, n: Term[Node]) -> None:
        require(self.transition_state == T.join_group0, "a node joins group0")
        require(self._in_transition(n), "the node is in transition")
        require(~self.giving_up, "the operation goes on")

    def _joined(self, n: Term[Node]) -> None:
        require(self.members.has(n), "the node is in group0")

    # -- decommission and remove -----------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_decommission(self, n: Term[Node]) -> None:
        """The node is to stream its data to those that take over."""
        self._begin(n, Request.leave)
        self._start_leaving(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_remove(self, n: Term[Node]) -> None:
        """Its data is to be streamed from owners that are still alive."""
        self._begin(n, Request.remove)
        self._start_leaving(n)

    def _start_leaving(self, n: Term[Node]) -> None:
        if self.release.cleanup:
            clean = ~some(self.cleanup_needed.has(m) & ~self.down.has(m) for m in Node)
            require(clean, "no node that is up needs cleanup")
        if self.release.draining_state:
            self.session = True
            self.transition_state = T.tablet_draining
            self.tablet_work = choose(self.tablet_hosts.has(n), Work.draining, self.tablet_work)
            self._enter()
        else:
            self._write_both()

    @action(by=COORDINATOR, fair=WEAK)
    def drain_again(self, n: Term[Node]) -> None:
        """Tablets are on the node, yet none is in transition: more of them are moved away."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._leaves_with_tablets(n), "a node that leaves has tablets")
        self.tablet_work = Work.draining

    @action(by=COORDINATOR, fair=WEAK)
    def finish_draining(self, n: Term[Node]) -> None:
        """No tablet is in transition, and none is left on the node."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(self.tablet_work.is_none() & ~self.giving_up, "no tablet is in transition")
        require(self._in_transition(n) & ~self.tablet_hosts.has(n), "no tablet is on the node")
        self._write_both()

    @action(by=COORDINATOR, spends=TopologyRequests.faults)
    def fail_to_drain(self) -> None:
        """Tablets cannot move away: the operation is given up, while some of them are in transition."""
        only_when(self.release.draining_state)
        require(self.transition_state == T.tablet_draining, "tablets are drained")
        require(~self.giving_up, "it is not given up yet")
        self.giving_up = True

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The node has no tokens any more; it still takes part until all know."""
        only_when(self.release.rollback)
        self._past_read_fence()
        leaves = self._is(n, NodeState.decommissioning)
        if self.release.removing_leaves_ring:
            leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        require(leaves, "the node leaves")
        self.tokens.discard(n)
        self.transition_state = T.left_token_ring
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def remove_leaving(self, n: Term[Node]) -> None:
        """Where no left_token_ring follows, the node is removed from group0 before it is left."""
        only_when(not self.release.removing_leaves_ring)
        self._past_read_fence()
        self._leaves_at_once(n)
        require(self.members.has(n), "it is still in group0")
        self.members.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_leaving(self, n: Term[Node]) -> None:
        """And then is left."""
        only_when(not self.release.removing_leaves_ring)
        self._past_read_fence()
        self._leaves_at_once(n)
        self._out_of_group0(n)
        self.node_state[n] = NodeState.left
        self.tokens.discard(n)
        self.cleanup_needed.discard(n)
        self._end(n)
        self._finish()

    def _out_of_group0(self, n: Term[Node]) -> None:
        require(~self.members.has(n), "it is removed from group0")

    def _leaves_at_once(self, n: Term[Node]) -> None:
        leaves = self._is(n, NodeState.removing)
        if not self.release.rollback:
            leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        require(leaves, "the node leaves")

    # -- from both sets of owners to the new one -------------------------------------------------------

    def _write_both(self) -> None:
        self.transition_state = T.write_both_read_old
        self.session = True
        self._enter()

    @action(by=COORDINATOR, fair=WEAK)
    def stream_ranges(self) -> None:
        """001: "After the entire cluster learns about it, streaming starts": and ends well."""
        self._barrier_passed()
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(~self.streamed & ~self.giving_up, "it has not ended yet")
        require(self.session, "session is open")
        self._all_are_up()
        self.streamed = True

    @action(by=COORDINATOR, spends=TopologyRequests.faults)
    def fail_to_stream(self) -> None:
        """Streaming fails."""
        self._streaming_fails()

    @action(by=COORDINATOR, fair=WEAK)
    def stream_with_dead_node(self) -> None:
        """Streaming fails, for a node that takes part is down."""
        require(some(self._blocks(n) for n in Node), "a node that takes part is down")
        self._streaming_fails()

    def _streaming_fails(self) -> None:
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        self._barrier_passed()
        require(~self.streamed & ~self.giving_up, "it has not ended yet")
        if self.release.rollback:
            self.giving_up = True
        else:
            self.barrier = Barrier.none

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, n: Term[Node]) -> None:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        require(self.transition_state == T.write_both_read_old, "writes go to both rings")
        require(self._in_transition(n), "the node is in transition")
        require(self.streamed & ~self.giving_up, "streaming is done")
        if self.release.rollback:
            require(~self._leaves_with_tablets(n), "a node that leaves has no tablets")
        self.transition_state = T.write_both_read_new
        self.session = False
        self._enter()

    def _leaves_with_tablets(self, n: Term[Node]) -> Bool:
        leaves = self._is(n, NodeState.decommissioning, NodeState.removing)
        return leaves & self.tablet_hosts.has(n)

    def _past_read_fence(self) -> None:
        """The cluster has learned of it, and "no reads that started before this point exist"."""
        require(self.transition_state == T.write_both_read_new, "reads use the new ring")
        self._barrier_passed_or_waived()

    def _finish(self) -> None:
        self.transition_state = NULL
        self._enter()

    def _mark_for_cleanup(self) -> None:
        """The other nodes may hold rows of ranges which they do not own any more."""
        if self.release.cleanup:
            for m in Node:
                others = self._is(m, NodeState.normal)
                self.cleanup_needed.put(m, self.cleanup_needed.has(m) | others)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            start_decommission, "no request to join comes before it", because=NOT_NEEDED
        ),
        equivalent_drop(
            start_remove, "no request to join comes before it", because=A_DEAD_NODE_WAITS
        ),
        equivalent_drop(
            join_group0,
            "the node is up",
            "the node is not in group0",
            because="a node that joins and dies at once, or that joins again",
        ),
        equivalent_drop(
            remove_replaced,
            "it is replaced",
            because="whom a node has replaced before is out of group0",
        ),
        equivalent_drop(
            remove_replaced, "it is still in group0", because="what is removed may be removed again"
        ),
        equivalent_loss(
            finish_replace,
            TopologyTracks.cleanup_needed,
            because="it takes a third node to owe a cleanup and be replaced",
        ),
        equivalent_drop(
            _joining,
            "a node joins group0",
            "the node is in transition",
            because="no other node is outside of group0, or as far as this one",
        ),
        equivalent_drop(
            _joining,
            "the operation goes on",
            because="what has not joined yet may be refused, or go on to join",
        ),
        equivalent_drop(
            stream_ranges,
            "writes go to both rings",
            "it has not ended yet",
            "session is open",
            because="what is streamed may be streamed again, and where nodes stream is a session",
        ),
        equivalent_drop(
            stream_ranges,
            "all nodes that take part are up",
            because="beside the one that streams and the one that is dead a third asks to replace",
        ),
        equivalent_drop(
            stream_with_dead_node,
            "a node that takes part is down",
            because="a stream may fail at any time",
        ),
        equivalent_drop(
            _streaming_fails,
            "it has not ended yet",
            because="a stream may fail at any time, or not",
        ),
        equivalent_loss(
            _streaming_fails,
            TopologyTracks.giving_up,
            because="a stream may fail at any time, or not",
        ),
        equivalent_drop(
            read_new, "writes go to both rings", because="something streams in no other state"
        ),
        equivalent_drop(
            read_new,
            "the node is in transition",
            "streaming is done",
            because="the node only tells of its tablets, and holds some where it is given up now",
        ),
        equivalent_drop(
            read_new, "a node that leaves has no tablets", because="a dead node gets no tablets"
        ),
        equivalent_drop(
            _past_read_fence,
            "reads use the new ring",
            because="a replaced node is removed from group0 only here",
        ),
    )
