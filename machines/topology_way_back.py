"""How an operation on a node ends in left_token_ring, and how it is rolled back.

The releases added both to 001: a node leaves the token ring before it is left, and a failure before reads
use the new ring undoes the operation. `topology_control.py` has the promises.
"""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import COORDINATOR
from stagewright.machines.topology_operations import TopologyOperations
from stagewright.machines.topology_requests import TopologyRequests
from stagewright.machines.topology_states import (
    JOINING,
    LEAVING,
    Barrier,
    NodeState,
    TransitionState,
)
from stagewright.spec import (
    Fairness,
    Term,
    action,
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


class TopologyWayBack(TopologyOperations):
    """Operations end as they should, or are undone."""

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
        require(self.done.has(n), "its request is done")
        require(~self.down.has(n), "it is up")
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
        self._has_a_way_back()
        self.giving_up = True

    def _has_a_way_back(self) -> None:
        require(self._gives_up(), "there is a way back")

    @action(by=COORDINATOR, spends=TopologyRequests.faults)
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

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            report_completion,
            "the request is not reported as done",
            because="what is reported may be reported again",
        ),
        equivalent_drop(
            shut_down, "it is up", because="what is down needs not be told, and may be told"
        ),
        equivalent_drop(
            remove_from_group0,
            "it is still in group0",
            because="what is removed may be removed again",
        ),
        equivalent_drop(
            _leaving_ring,
            "a node has left the token ring",
            "the node is in transition",
            because="nothing of the kind is done, or left to be done, for any other node",
        ),
        equivalent_drop(
            give_up_join,
            "it is not given up yet",
            because="what is given up may be given up again, or not at all",
        ),
        equivalent_loss(
            give_up_join,
            TopologyOperations.giving_up,
            because="what is given up may be given up again, or not at all",
        ),
        equivalent_drop(
            give_up_with_tablets,
            "a node that leaves has tablets",
            "it is not given up yet",
            because="a stream may fail at any time",
        ),
    )
