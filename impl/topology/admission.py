"""Who is let into a cluster: a node that knows of every feature that the cluster uses."""

from __future__ import annotations

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec.verdict import Step

UNFIT = (
    "Feature check failed. The node does not support some features that are enabled by the cluster"
)


def rejection(node: Context, step: Step) -> str:
    """Why the node of a step is not to be let in, if it wants in; empty if it may come."""
    n = step.arguments.get("n")
    member = node.view.nodes.get(n.name) if isinstance(n, Node) else None
    if member is None or member.state is not NodeState.none:
        return ""
    if node.has(Defect.features_are_not_checked):
        return ""
    unknown = ", ".join(sorted(node.view.features - member.features))
    return f"{UNFIT}: {{{unknown}}}" if unknown else ""
