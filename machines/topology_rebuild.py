"""Rebuild: a node streams its data anew, while the topology as a whole stays at rest.

001: "some nodes may require work but the topology as a whole does not transition".
"""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import COORDINATOR, NOT_NEEDED
from stagewright.machines.topology_requests import TopologyRequests
from stagewright.machines.topology_states import NodeState, Request
from stagewright.spec import Fairness, Term, action, equivalent_drop, equivalents, require

WEAK = Fairness.WEAK


class TopologyRebuild(TopologyRequests):
    """A node in state rebuilding, from its request to its end."""

    @action(by=COORDINATOR, fair=WEAK)
    def start_rebuild(self, n: Term[Node]) -> None:
        """The node streams its data anew; the topology as a whole does not transition."""
        self._begin(n, Request.rebuild)
        self._open_rebuild_session()
        self._enter(new_version=False)

    def _open_rebuild_session(self) -> None:
        self.session = True

    @action(by=COORDINATOR, fair=WEAK)
    def finish_rebuild(self, n: Term[Node]) -> None:
        """Its data is streamed, or could not be: it is normal again."""
        require(~self.down.has(n), "the node is up")
        self._rebuilt(n)
        self._end(n)

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_rebuild(self, n: Term[Node]) -> None:
        """The node died while it streamed."""
        require(self.down.has(n), "the node is down")
        self._rebuilt(n)
        self._end(n, error=True)

    def _rebuilt(self, n: Term[Node]) -> None:
        self._move(n, NodeState.rebuilding, NodeState.normal)
        self.session = False

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(start_rebuild, "no request to join comes before it", because=NOT_NEEDED),
        equivalent_drop(
            fail_to_rebuild, "the node is down", because="a stream may fail at any time"
        ),
    )
