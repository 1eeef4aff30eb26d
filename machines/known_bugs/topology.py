"""Bugs of ScyllaDB's topology state machine."""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_control import TopologyControl
from stagewright.machines.topology_states import TransitionState
from stagewright.spec import Bool, Term
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in

ONE = {TopologyControl.requests: 1, TopologyControl.faults: 0}


@known_bug(
    "T17",
    "scylladb PR #23751",
    breaks=(TopologyControl.node_state_fits_transition_state, TopologyControl.every_request_ends),
    profile="scylla-2025.4",
    budgets={TopologyControl.requests: 2, TopologyControl.faults: 0},
)
class TabletIsMovedWhileANodeLeaves(TopologyControl):
    """move_tablet set the tablet migration track without looking whether the topology was busy: called
    while tablets drained from a node, it threw the state of the decommission away, which never went on.
    """

    def _not_busy(self) -> None:
        """Nothing was checked."""


@known_bug(
    "P02",
    "scylladb #20865",
    breaks=TopologyControl.nobody_waits_for_a_node_that_was_told_to_shut_down,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class LeftTokenRingStartsAgain(TopologyControl):
    """A commit raced, the coordinator entered left_token_ring again and began from its top: its barrier
    asked the node that had been told to shut down, and failed.
    """

    def _still_matters(self) -> None:
        """It was not looked at whether the request was reported as done already."""


@known_bug(
    "P06",
    "scylladb #16741",
    breaks=TopologyControl.what_streams_has_an_open_session,
    budgets=ONE,
)
class RebuildWithoutSession(TopologyControl):
    """A rebuild began without a session: every mutation that it streamed was rejected."""

    def _open_rebuild_session(self) -> None:
        """Forgotten."""


@known_bug(
    "P10",
    "scylladb #16461",
    breaks=TopologyControl.every_request_ends,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class CommitOfAGenerationIsTriedForEver(TopologyControl):
    """A node died, the barrier of commit_cdc_generation failed, and was tried again and again."""

    def _gives_up(self) -> Bool:
        return super()._gives_up() & (self.transition_state != TransitionState.commit_cdc_generation)


@known_bug(
    "P14",
    "scylladb #14885",
    breaks=TopologyControl.left_nodes_are_out_of_group0,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class ReplacedNodeStaysInGroup0(TopologyControl):
    """The replaced node was left before it was removed from the raft configuration, which was done now and
    then only: the coordinator could sleep with a dead member.
    """

    def _replaced_is_out(self, n: Term[Node]) -> None:
        """It was not waited for."""


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
