"""Mistakes put back into `TopologyAnnounced`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_announced import TopologyAnnounced
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "P08",
    "scylladb #18678",
    breaks=TopologyAnnounced.done_means_normal_everywhere,
    budgets={
        TopologyAnnounced.operations: 1,
        TopologyAnnounced.writes: 0,
        TopologyAnnounced.reads: 0,
    },
)
class DoneWhenCommitted(TopologyAnnounced):
    """The transition state is removed with no barrier after it, in the design document and in every release:
    the client is told that the bootstrap is done while other nodes take the node for one that joins.
    """

    def _all_have_learned(self) -> None:
        """The commit was all that was waited for."""


BUGS = known_bugs_in(globals())
