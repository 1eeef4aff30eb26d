"""Mistakes put back into `TopologyRequest`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_request import COORDINATOR, TopologyRequest
from stagewright.spec import action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


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


BUGS = known_bugs_in(globals())
