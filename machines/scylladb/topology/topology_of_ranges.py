"""The topology state machine as far as the owners of a range are concerned.

What is left out of `topology_control.py` changes no owner; and what it requires of that alone, whoever joins,
leaves or is replaced here finds to be so.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    TopologyRecord,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import Request
from stagewright.spec import (
    Fairness,
    Term,
    action,
    equivalent_drop,
    equivalent_helper,
    equivalent_weakening,
    equivalents,
    only_when,
)

# Tablets, rebuilds and requests for the cluster as a whole change no owner of a range.
NO_PART_OF_IT = (
    TopologyControl.ask_to_rebuild,
    TopologyControl.start_rebuild,
    TopologyControl.finish_rebuild,
    TopologyControl.fail_to_rebuild,
    TopologyControl.start_balancing,
    TopologyControl.start_draining,
    TopologyControl.settle_tablets_on,
    TopologyControl.finish_draining_node,
    TopologyControl.move_last_tablet,
    TopologyControl.settle_tablets,
    TopologyControl.drain_again,
    TopologyControl.fail_to_drain,
    TopologyControl.find_no_place,
    TopologyControl.give_up_with_tablets,
    TopologyControl.start_resize_finalization,
    TopologyControl.finish_resize,
    TopologyControl.move_tablet,
    TopologyControl.create_table,
    TopologyControl.drop_table,
    TopologyControl.ask_globally,  # but for cleanups, for which the system asks
    TopologyControl.prepare_generation,
    TopologyControl.commit_generation,
    TopologyControl.publish_requested_generation,
    TopologyControl.start_truncating,
    TopologyControl.start_snapshots,
    TopologyControl.clear_request_session,
    TopologyControl.finish_global_request,
    TopologyControl.lock,
    TopologyControl.unlock,
    TopologyControl.abort,
)


class TopologyOfRanges(TopologyControl):
    """What it requires because of tablets, rebuilds, global requests and second crashes has its reason."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def retry_barrier(self) -> None:
        """Since there is a way back, only what no node's operation depends on is tried again: nothing here."""
        only_when(not self.release.rollback)
        self._try_again()

    def _cleanup_is_asked_for(self) -> None:
        super()._cleanup_is_asked_for()

    def _barrier_passed_or_waived(self) -> None:
        super()._barrier_passed_or_waived()

    def _all_are_up(self) -> None:
        super()._all_are_up()

    def _lacks_no_node(self, n: Term[Node], request: Request) -> None:
        super()._lacks_no_node(n, request)

    def _is_drained(self, n: Term[Node]) -> None:
        super()._is_drained(n)

    def _none_waits(self, earlier: Request) -> None:
        super()._none_waits(earlier)

    def _nothing_goes_on(self) -> None:
        super()._nothing_goes_on()

    def _tablets_are_at_rest(self) -> None:
        super()._tablets_are_at_rest()

    def _is_for(self, n: Term[Node]) -> None:
        super()._is_for(n)

    def _has_a_way_back(self) -> None:
        super()._has_a_way_back()

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            _cleanup_is_asked_for,
            "cleanup is asked for",
            because="no other global request is made here",
        ),
        equivalent_drop(
            _barrier_passed_or_waived,
            "barrier passed, or it failed and ring_delay is over",
            because="a replaced node is removed from group0 after the same barrier",
        ),
        equivalent_drop(
            _all_are_up,
            "all nodes that take part are up",
            because="it takes a second crash, while a dead node is removed or replaced",
        ),
        equivalent_drop(
            _lacks_no_node,
            "no node that it needs is down",
            because="it takes a second crash, while a dead node is removed or replaced",
        ),
        equivalent_drop(
            _is_drained, "the request is not paused", because="there are no tablets here"
        ),
        equivalent_drop(
            _none_waits,
            "no request to replace comes before it",
            "no request to join comes before it",
            "no request to remove comes before it",
            "no request to leave comes before it",
            because="of two requests only one could proceed here: a third node would have to ask",
        ),
        equivalent_drop(
            _nothing_goes_on,
            "the topology is at rest",
            because="no node rebuilds here, and no tablet, lock or global request has a state",
        ),
        equivalent_drop(
            _tablets_are_at_rest,
            "no tablet is in transition",
            because="there are no tablets here that could be in transition",
        ),
        equivalent_helper(
            TopologyRecord.is_at_rest,
            "does not mention: no n in Node: topology.node_state[n].in_transition",
            because="no node rebuilds here: one that joins or leaves has a transition state",
        ),
        equivalent_drop(
            _is_for,
            "the node bootstraps",
            because="no generation is asked for by itself here: it is of the node that joins",
        ),
        equivalent_drop(
            _has_a_way_back,
            "there is a way back",
            because="no generation is asked for by itself here: an operation on a node goes on",
        ),
        equivalent_weakening(
            TopologyControl.ask_to_leave,
            "another node stays",
            because="of two requests only one could proceed here: a third node would have to ask",
        ),
    )
