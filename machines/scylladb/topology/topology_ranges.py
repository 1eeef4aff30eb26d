"""What is promised of a range while its owners change: of reads and writes, of rows, of what a barrier waits for."""

from __future__ import annotations

from typing import Self

from stagewright.machines.scylladb.tablets.tablet_nodes import Node
from stagewright.machines.scylladb.topology.topology_nodes import TopologyNodes
from stagewright.machines.scylladb.topology.topology_states import (
    Barrier,
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec import Bool, Term, every, invariant, only_when, step_property

T = TransitionState


class TopologyRanges(TopologyNodes):
    """The promises about a range; the steps are in `topology.py`."""

    @invariant
    def reads_see_acknowledged_writes(self) -> Bool:
        """001: the replicas that are read "will reflect all successful writes": a read returns what was
        acknowledged before it began, or something newer.
        """
        return ~self.stale_read

    @invariant
    def the_range_has_owners(self) -> Bool:
        """001: writes go "to both new and old replicas": in either ring somebody owns the range."""
        both = self.topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        return ~self.owners.is_empty() & both.implies(~self.next.is_empty())

    @invariant
    def new_owners_are_in_the_new_ring(self) -> Bool:
        """001: "new replicas means calculated according to modified token ring"; at rest there are none."""
        both = self.topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        in_ring = every(self.topology.in_new_ring(n) for n in self.next)
        rests = self.topology.is_at_rest()
        return both.implies(in_ring) & rests.implies(self.next.is_empty())

    @invariant
    def streaming_begins_when_writes_go_to_both(self) -> Bool:
        """001: "Writes are going to both new and old replicas … After the entire cluster learns about it,
        streaming starts."
        """
        writes = self.request.coordinator.is_some() & self.request.write & ~self.request.abandoned
        both = (self.owners | self.next) <= self.request.targets
        begun = (self.topology.transition_state == T.write_both_read_old) & (
            self.topology.barrier == Barrier.passed
        )
        return (begun & writes).implies(both)

    @invariant
    def what_has_streamed_counts_for_its_operation(self) -> Bool:
        """001: every operation streams what its own new owners lack."""
        return self.copied.implies(self.topology.transition_state == T.write_both_read_old)

    @invariant
    def new_owners_are_complete(self, n: Term[Node]) -> Bool:
        """001: new replicas "contain all the writes which reached the matching leaving" ones: what is read from
        new owners holds all that was acknowledged.
        """
        reads_new = self.topology.transition_state == T.write_both_read_new
        gains = self.next.has(n) & ~self.owners.has(n)
        return (reads_new & gains).implies(self.data[n] >= self.acknowledged)

    @invariant
    def owners_store_what_was_acknowledged(self, n: Term[Node]) -> Bool:
        """001: writes "on behalf of a successful request, will reach CL in both old and new replica sets": also
        a dead replica, for its removal may be rolled back, and it may come back.
        """
        return self.owners.has(n).implies(self.data[n] >= self.acknowledged)

    @step_property
    def no_read_outlives_the_old_ring(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist in the system"."""
        before, now = self.topology.transition_state, after.topology.transition_state
        ends = (before == T.write_both_read_new) & (before != now)
        reads = self.request.coordinator.is_some() & ~self.request.write & ~self.request.abandoned
        return (ends & reads).implies(self.request.targets <= self.next)

    @invariant
    def rows_of_lost_ranges_are_known(self, n: Term[Node]) -> Bool:
        """A node that stores rows of a range which it does not own is known to need cleanup (scylladb #26150)."""
        only_when(self.topology.release.cleanup)
        topology = self.topology
        holds = (self.data[n] > 0) & ~self.owners.has(n) & ~self.next.has(n)
        stays = topology.node_state[n] == NodeState.normal
        return (holds & stays & topology.is_at_rest()).implies(topology.cleanup_needed.has(n))

    @invariant
    def nobody_writes_to_nodes_that_left(self, n: Term[Node]) -> Bool:
        """left_token_ring waits until all nodes have stopped to write to the node."""
        only_when(self.topology.release.rollback)
        topology, request = self.topology, self.request
        told = topology.asked[n].any_of(Request.leave, Request.join)
        left = (topology.node_state[n] == NodeState.left) & told
        return (left & request.write & ~request.abandoned).implies(~request.targets.has(n))

    # -- nodes and barriers ----------------------------------------------------------------------------

    @step_property
    def a_node_that_is_down_does_nothing(self, after: Self, n: Term[Node]) -> Bool:
        """001: a removed node's data is streamed "from still alive owners", and to a replacing node for a dead
        one: while a node is down it stores nothing, and learns of nothing.
        """
        down = self.topology.down.has(n) & after.topology.down.has(n)
        view, now = self.view[n], after.view[n]
        same = (view.version == now.version) & (view.fence == now.fence)
        return down.implies(same & (self.data[n] == after.data[n]))

    @step_property
    def nodes_keep_what_is_newest(self, after: Self, n: Term[Node]) -> Bool:
        """001: "the new replica set will reflect all successful writes either by the means of coordinator
        replication or by the means of streaming": neither undoes the other, until the row is cleaned up.
        """
        removed = (after.data[n] == 0) & ~self.owners.has(n)
        return removed | (self.data[n] <= after.data[n])

    @step_property
    def what_is_acknowledged_stays_so(self, after: Self) -> Bool:
        """001: what replicas hold "will reflect all successful writes": none counts for less later."""
        return self.acknowledged <= after.acknowledged

    @step_property
    def a_barrier_waits_until_all_have_learned(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it"; ring_delay is as long as that takes."""
        topology = self.topology
        learned = every(
            (topology.members.has(n) & ~topology.down.has(n)).implies(
                self.view[n].version == topology.version
            )
            for n in Node
        )
        return self._barrier_is_over(after).implies(learned)

    @step_property
    def a_barrier_waits_for_older_requests(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist in the system"; nor writes."""
        request = self.request
        waits = request.coordinator.is_some() & ~request.abandoned
        older = waits & (request.version < self.topology.version)
        return self._barrier_is_over(after).implies(~older)

    def _barrier_is_over(self, after: Self) -> Bool:
        """It has passed, also at rest; or what can have been sent before it is over by its time."""
        before, now = self.topology, after.topology
        changed = (before.barrier != now.barrier) & now.barrier.any_of(
            Barrier.passed, Barrier.waived
        )
        fenced = (before.fence_version != now.fence_version) & before.is_at_rest()
        return changed | fenced

    @invariant
    def owners_are_in_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it"."""
        return self.owners.has(n).implies(self.topology.in_old_ring(n))
