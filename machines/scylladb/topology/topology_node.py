"""The `node_state` of one node, as logs and dumps tell of it.

Source: the node diagram of design document 001 (topology-over-raft, 2023-07), with what every release's code
has beside it: the replaced node, and the way back. `topology_control.py` says why and when.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewright.machines.scylladb.topology.topology_states import NODE_DIAGRAM, NodeState
from stagewright.spec import (
    Actor,
    Bool,
    Machine,
    OneVar,
    Profile,
    Term,
    equivalent_disabled,
    equivalents,
    every,
    final,
    one_of,
    only_when,
    profiles,
    sometimes,
    step_property,
)

COORDINATOR = Actor("topology coordinator")
N = NodeState


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does about a node."""

    rollback: bool  # a node that was to leave may stay (6.0)


SEED = Release("seed", False)
SCYLLA_6_0 = Release("scylla-6.0", True)


class TopologyNode(Machine):
    """One node, by its host id: from its request to join until it is left, for ever."""

    release = profiles(SEED, SCYLLA_6_0)

    node_state: OneVar[NodeState] = one_of(NodeState, init=NodeState.absent)

    @node_state.step(N.absent, N.none)
    def ask_to_join(self) -> None:
        """JOIN_NODE_REQUEST: a row in state none."""

    @node_state.step(N.absent, N.normal)
    def start_the_cluster(self) -> None:
        """The log says "bootstrap: adding myself as the first node to the topology"; or it was there before group0."""

    @node_state.step((N.absent, N.none), N.left, by=COORDINATOR)
    def refuse(self) -> None:
        """The log says "bootstrap: node rejected", "cancel all topology requests"; an orphan is banned without a row."""

    @node_state.step(N.none, N.bootstrapping, by=COORDINATOR)
    def bootstrap(self) -> None:
        """The log says "bootstrap: accept node"."""

    @node_state.step(N.none, N.replacing, by=COORDINATOR)
    def replace(self) -> None:
        """The log says "replace: accept node"."""

    @node_state.step((N.bootstrapping, N.replacing), N.normal, by=COORDINATOR)
    def join(self) -> None:
        """The log says "read fence completed"; or it owns no tokens."""

    @node_state.step((N.bootstrapping, N.replacing), N.left, by=COORDINATOR)
    def fail_to_join(self) -> None:
        """The log says "bootstrap: failed to accept", "finished rollback"."""

    @node_state.step(N.normal, N.rebuilding, by=COORDINATOR)
    def rebuild(self) -> None:
        """The log says "start rebuilding"."""

    @node_state.step(N.rebuilding, N.normal, by=COORDINATOR)
    def finish_rebuild(self) -> None:
        """The log says "rebuilding completed"."""

    @node_state.step(N.normal, N.decommissioning, by=COORDINATOR)
    def decommission(self) -> None:
        """The log says "start decommission"."""

    @node_state.step(N.normal, N.removing, by=COORDINATOR)
    def remove(self) -> None:
        """The log says "start removenode"."""

    @node_state.step((N.decommissioning, N.removing), N.left, by=COORDINATOR)
    def leave(self) -> None:
        """The log says "finished decommissioning node", "finished removing node"."""

    @node_state.step((N.decommissioning, N.removing), N.normal, by=COORDINATOR)
    def stay(self) -> None:
        """The log says "complete rollback … to state normal"."""
        only_when(self.release.rollback)

    @node_state.step(N.normal, N.left, by=COORDINATOR)
    def be_replaced(self) -> None:
        """In the commit in which the node that replaces it becomes normal."""

    @step_property
    def states_follow_the_diagram(self, after: Self) -> Bool:
        """001, the diagram of node states; and what it does not draw. A node that left does not come back."""
        beside = {N.absent: {N.normal, N.left}}

        def follows(state: NodeState) -> Bool:
            next_ones = NODE_DIAGRAM[state] | beside.get(state, set()) | {state}
            may = after.node_state.any_of(*(s for s in N if s in next_ones))
            return (self.node_state == state).implies(may)

        return every(follows(state) for state in N)

    @step_property
    def each_step_shows(self, after: Self) -> Bool:
        """Every step changes what a log or a dump reports."""
        return self.node_state != after.node_state

    @sometimes
    def a_node_is_in_each_state(self, state: Term[NodeState]) -> Bool:
        """001: "Node state can be one of those", and a node that is in one is seen in it: also one that streams."""
        return self.node_state == state

    @final
    def may_rest(self) -> Bool:
        """A node may stay what it is for ever, unless something was begun with it."""
        return self.node_state.any_of(N.absent, N.normal, N.left)

    harmless = equivalents(
        equivalent_disabled(
            because="what is seen here `topology-control` does, whose steps would be none without it"
        ),
        equivalent_disabled(
            start_the_cluster, because="a log may begin when the first node is there already"
        ),
    )
