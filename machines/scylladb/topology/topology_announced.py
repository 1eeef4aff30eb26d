"""A stricter end of a bootstrap than ScyllaDB's: the client is told `done` only when every node has learned.

write_both_read_new is left without a barrier after it, in the design document and in every release: for a
while other nodes take the new node for one that still joins (scylladb #18678, open).
"""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology import TopologyCluster
from stagewright.machines.scylladb.topology.topology_states import NodeState, Request
from stagewright.spec import (
    Bool,
    Fairness,
    Term,
    action,
    every,
    invariant,
    per,
    require,
    set_of,
)


class TopologyAnnounced(TopologyCluster):
    """The topology with clients that wait for their node to be up."""

    sees_normal = per(Node, set_of(Node))  # the nodes that a node takes for normal
    told = set_of(Node)  # nodes whose bootstrap the client was told to be done

    def _learn(self, n: Term[Node]) -> None:
        super()._learn(n)
        for m in Node:
            self.sees_normal[n].put(m, self.topology.node_state[m] == NodeState.normal)

    @action(fair=Fairness.WEAK)
    def tell(self, n: Term[Node]) -> None:
        """Node `n` "completes initialization": its client may rely on it from now on."""
        topology = self.topology
        good = self._has_joined(n) & topology.done.has(n) & ~topology.error.has(n)
        require(good & ~topology.down.has(n), "the node has joined")
        require(~self.told.has(n), "the client is not told yet")
        self._all_have_learned()
        self.told.add(n)

    def _has_joined(self, n: Term[Node]) -> Bool:
        """Its last request is to join, or to replace another node."""
        return self.topology.asked[n].any_of(Request.join, Request.replace)

    def _all_have_learned(self) -> None:
        """One barrier more."""
        learned = every(self._must_know(m).implies(self._is_current(m)) for m in Node)
        require(learned, "every node that is up has learned it")

    def _must_know(self, m: Term[Node]) -> Bool:
        return (self.topology.node_state[m] == NodeState.normal) & ~self.topology.down.has(m)

    @invariant
    def done_means_normal_everywhere(self, n: Term[Node], m: Term[Node]) -> Bool:
        """When a client is told that a bootstrap is done, all nodes see the node as normal, until it is asked for something
        else.
        """
        normal = self.topology.node_state[n] == NodeState.normal
        relies = self.told.has(n) & self._has_joined(n) & normal
        return (relies & self._must_know(m)).implies(self.sees_normal[m].has(n))
