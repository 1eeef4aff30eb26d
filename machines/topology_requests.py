"""Requests of the topology: who asks for what, how a request is refused, and nodes that die or come back.

`topology_tracks.py` adds barriers and what goes on beside nodes, `topology_control.py` the operations on
nodes and the promises.
"""

from __future__ import annotations

from stagewright.machines.tablet_nodes import Node
from stagewright.machines.topology_group0 import COORDINATOR, NODE, OPERATOR, TopologyGroup0
from stagewright.machines.topology_states import (
    Barrier,
    GlobalRequest,
    NodeState,
    Request,
    TransitionState,
)
from stagewright.spec import (
    Actor,
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
NETWORK = Actor("network")
WAITING = "one request can proceed and another cannot: it takes three nodes, some dead, to tell"
T = TransitionState


class TopologyRequests(TopologyGroup0):
    """What is asked of the topology, and what befalls it."""

    # -- requests --------------------------------------------------------------------------------------

    @action(by=NODE, spends=TopologyGroup0.requests)
    def ask_to_join(self, n: Term[Node]) -> None:
        """JOIN_NODE_REQUEST: a row in state none, with the request to join."""
        self._move(n, NodeState.absent, NodeState.none)
        self._ask(n, Request.join)
        if not self.release.join_group0:
            self.members.add(n)

    @action(by=NODE, spends=TopologyGroup0.requests)
    def ask_to_replace(self, n: Term[Node], dead: Term[Node]) -> None:
        """The same, in the place of a dead node."""
        free = self.stays(dead) & self.topology_request[dead].is_none()
        require(self.down.has(dead) & free, "the replaced node is down, and asks for nothing")
        self._move(n, NodeState.absent, NodeState.none)
        self._ask(n, Request.replace)
        self.replaced_id[n] = dead
        if not self.release.join_group0:
            self.members.add(n)

    @action(by=OPERATOR, spends=TopologyGroup0.requests)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """The operator decommissions a node."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        require(self._others_stay(n), "another node stays")
        self._ask(n, Request.leave)

    @action(by=OPERATOR, spends=TopologyGroup0.requests)
    def ask_to_remove(self, n: Term[Node]) -> None:
        """The operator removes a dead node."""
        require(self.down.has(n) & self.stays(n), "node is normal and down")
        require(self._others_stay(n), "another node stays")
        self._ask(n, Request.remove)

    @action(by=OPERATOR, spends=TopologyGroup0.requests)
    def ask_to_rebuild(self, n: Term[Node]) -> None:
        """The operator wants a node's data streamed anew from other replicas."""
        require(~self.down.has(n) & self.stays(n), "node is normal and up")
        self._ask(n, Request.rebuild)

    @action(by=OPERATOR, spends=TopologyGroup0.requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects no specific node but the entire cluster."""
        require(self.global_request.is_none(), "no global request is pending")
        self.global_request = request
        if not self.release.cleanup:
            require(request == GlobalRequest.new_cdc_generation, "only new_cdc_generation is known")
        elif not self.release.snapshots:
            require(request != GlobalRequest.snapshot_tables, "snapshot_tables is not known yet")
            if not self.release.finalization:
                require(request != GlobalRequest.truncate_table, "truncate_table is not known yet")

    @action(by=COORDINATOR, fair=WEAK)
    def cancel(self, n: Term[Node]) -> None:
        """No request can proceed because nodes are dead: they are cancelled; who is not in yet is left."""
        only_when(self.release.rollback)
        self._nothing_goes_on()
        require(self.topology_request[n].is_some(), "a request is pending")
        if self.release.parallel_draining:
            require(~self._paused(n), "it is not paused")
        require(~some(self._ready(m) for m in Node), "no request can proceed")
        self._refuse(n)

    @action(by=COORDINATOR)
    def reject(self, n: Term[Node]) -> None:
        """Validation fails: a node is not let in, or not let go; to leave may be refused while it is paused."""
        self._nothing_goes_on()
        require(self._ready(n) | self._wants_to_go(n), "its request can proceed, or is paused")
        if not self.release.parallel_draining:
            require(self.node_state[n] == NodeState.none, "the node wants to join")
        self._refuse(n)

    def _refuse(self, n: Term[Node]) -> None:
        joins = self.node_state[n] == NodeState.none
        self.node_state[n] = choose(joins, NodeState.left, self.node_state[n])
        if not self.release.join_group0:
            self.members.put(n, self.members.has(n) & ~joins)
        self.down.put(n, self.down.has(n) | joins)
        self.topology_request[n] = None
        self._end(n, error=True)

    @action(by=OPERATOR, spends=TopologyGroup0.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave or remove that is pending or paused."""
        only_when(self.release.parallel_draining)
        require(self._wants_to_go(n), "a request to leave is pending or paused")
        self.topology_request[n] = None
        self._end(n, error=True)

    # -- faults ----------------------------------------------------------------------------------------

    @action(spends=TopologyGroup0.faults)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops."""
        require(~self.down.has(n) & self._exists(n), "node is up")
        self.down.add(n)

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, unless it was removed, replaced, or told to shut down; it need not."""
        require(self.down.has(n) & self._exists(n), "node is down")
        require(~self.is_ignored(n), "it is not being removed or replaced")
        require(~self._has_ended(n), "it is not told to shut down, or banned")
        self.down.discard(n)

    @action(by=COORDINATOR, spends=TopologyGroup0.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, or the commit races: what only memory held is lost."""
        self.barrier = Barrier.none
        self.streamed = False
        self.giving_up = False

    def _exists(self, n: Term[Node]) -> Bool:
        return ~self._is(n, NodeState.absent, NodeState.left)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            ask_to_replace,
            "the replaced node is down, and asks for nothing",
            because="a request that cannot proceed is cancelled",
        ),
        equivalent_drop(
            ask_to_leave,
            "node is normal and up",
            because="a request that cannot proceed is cancelled",
        ),
        equivalent_drop(
            ask_to_remove,
            "node is normal and down",
            because="a request that cannot proceed is cancelled",
        ),
        equivalent_drop(
            ask_to_rebuild,
            "node is normal and up",
            because="a request that cannot proceed is cancelled",
        ),
        equivalent_drop(
            ask_globally,
            "no global request is pending",
            because="a request that is not made asks for nothing, and one made twice is one",
        ),
        equivalent_loss(
            ask_globally,
            TopologyGroup0.global_request,
            because="a request that is not made asks for nothing, and one made twice is one",
        ),
        equivalent_drop(
            cancel, "it is not paused", because="a paused request may be refused as well"
        ),
        equivalent_drop(cancel, "no request can proceed", because=WAITING),
        equivalent_drop(reject, "its request can proceed, or is paused", because=WAITING),
        equivalent_drop(
            crash, "node is up", because="what does not run cannot crash, and what crashes need not"
        ),
        equivalent_loss(
            crash,
            TopologyGroup0.down,
            because="what does not run cannot crash, and what crashes need not",
        ),
        equivalent_drop(
            restart,
            "node is down",
            because="what runs needs no restart; what is removed is told to shut down",
        ),
        equivalent_loss(
            fail_over,
            TopologyGroup0.barrier,
            TopologyGroup0.streamed,
            TopologyGroup0.giving_up,
            because="what was learned stays true, whether or not it is remembered",
        ),
    )
