"""Mistakes about what an operator is told of a node or a request: the rows that logs, dumps and drivers see."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_node import COORDINATOR, N, TopologyNode
from stagewright.machines.scylladb.topology.topology_request import TopologyRequest
from stagewright.machines.scylladb.topology.topology_transition import T, TopologyTransition
from stagewright.spec import action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "001-300",
    "design document 001: removing, one of the states of a node",
    breaks=TopologyNode.a_node_is_in_each_state,
)
class RemovedNodesLeaveAtOnce(TopologyNode):
    """A dead node that was removed was left in the commit that took the request up: nobody saw that its data was
    streamed still.
    """

    @TopologyNode.node_state.step(N.normal, N.left, by=COORDINATOR)
    def remove(self) -> None:
        """The log says "finished removing node", and nothing before."""


@known_bug(
    "001-301",
    "design document 001: a request that is refused is done, with an error",
    breaks=TopologyRequest.a_refused_request_ends_with_its_error,
)
class RefusedRequestsAreDone(TopologyRequest):
    """A request that was cancelled got its end_time and no error: whoever waited took it that the node had left."""

    @action(by=COORDINATOR)
    def refuse(self) -> None:
        """It is rejected, cancelled or aborted: it is done."""
        self._is_pending()
        require(~self.error, "it has not failed yet")
        self.done = True


@known_bug(
    "001-304",
    "design document 001: the entire topology can be in a transitioning state",
    breaks=TopologyTransition.the_topology_is_in_each_state,
)
class FinalizationsAreSeenAsMigrations(TopologyTransition):
    """While a split or a merge was finalized, the row said tablet_migration: the API moved tablets of the old boundaries."""

    @TopologyTransition.transition_state.step(T.null, T.tablet_migration, by=COORDINATOR)
    def start_resize(self) -> None:
        """Tablets of a table are split or merged for good, in the track of the others."""
        self._at_rest()


BUGS = known_bugs_in(globals())
