"""Whom the topology coordinator rejects: who lacks what the cluster uses, who cannot be spared, who asks for others' tokens."""

from __future__ import annotations

from uuid import UUID

from stagewright.impl.catalog.columns import TOPOLOGY
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.view import Member
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import Step

UNFIT = (
    "Feature check failed. The node does not support some features that are enabled by the cluster"
)
TAKEN = "the token {token} is owned by {owner}"
GOING = ("leave", "remove")


def rejection(node: Context, step: Step) -> str:
    """Why the node of a step is not to be let in, or not to be let go; empty if it may."""
    n = step.arguments.get("n")
    member = node.view.nodes.get(n.name) if isinstance(n, Node) else None
    if member is None:
        return ""
    if member.state is NodeState.none:
        return "" if node.has(Defect.features_are_not_checked) else _unfit(node, member)
    if member.asked in GOING and not node.has(Defect.leaves_are_not_checked):
        return _indispensable(node, member)
    return ""


def taken_token(node: Context) -> str:
    """Why the tokens that a joining node asks for cannot be its own; empty if they can."""
    view = node.view
    newcomer = next((m for m in view.nodes.values() if m.state is NodeState.bootstrapping), None)
    if newcomer is None or newcomer.tokens:
        return ""
    owners = {
        t: m.name for m in view.nodes.values() if m.state is not NodeState.left for t in m.tokens
    }
    for token in newcomer.initial_tokens:
        if token in owners:
            return f"{TAKEN.format(token=token, owner=owners[token])}: ask for others, or let {owners[token]} leave first"
    return ""


def _unfit(node: Context, member: Member) -> str:
    unknown = ", ".join(sorted(node.view.features - member.features))
    return f"{UNFIT}: {{{unknown}}}" if unknown else ""


def _indispensable(node: Context, member: Member) -> str:
    """A node may go if enough others can hold what it holds, also once those are gone that asked before it.

    While tablets are drained nobody takes the place of a node that is to be replaced: that has to wait until they are.
    """
    view, asked_at = node.view, _asked_at(node, member)
    drains = view.transition_state is TransitionState.tablet_migration
    replaced = {m.replaced for m in view.nodes.values() if drains and m.asked == "replace"}
    stay = [
        m
        for m in view.nodes.values()
        if m.state is NodeState.normal
        and m.name not in {member.name, *replaced}
        and not (m.asked in GOING and _asked_at(node, m) < asked_at)
    ]
    for table, rows in view.tablets.items():
        most = max(view.tables[table], *(len(row.tablet.replicas) for row in rows))
        if len(stay) < most:
            return (
                f"the tablets of {name_of(table)} have {counted(most, 'replica')}, and without {member.name} "
                f"only {counted(len(stay), 'node')} would be left: let a node join first, or ask for fewer replicas"
            )
    return ""


def _asked_at(node: Context, member: Member) -> int:
    return UUID(node.catalog.tables[TOPOLOGY][member.name,]["request_id"]).time
