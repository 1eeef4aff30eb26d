"""Mistakes put back into `TopologyNode`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_node import COORDINATOR, N, TopologyNode
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


BUGS = known_bugs_in(globals())
