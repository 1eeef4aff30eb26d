"""What a new CDC generation is made for: the tokens of who joins, and the vnodes of the ring to come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.node.context import Context, tokens_for
from stagewright.impl.node.defects import Defect
from stagewright.machines.scylladb.cluster import Node
from stagewright.spec.verdict import Step

_BEHIND = 1_200  # milliseconds by which a wrong build is behind the last generation
_QUEUE = "unpublished_cdc_generations"


def tokens_of(node: Context, step: Step) -> Mapping[Node, tuple[int, ...]]:
    """The tokens that the node of a step gets: those it asks for, some, or those of the node that it replaces."""
    n = step.arguments.get("n")
    if not isinstance(n, Node) or n.name not in node.view.nodes:
        return {}
    row = node.view.nodes[n.name]
    if row.replaced is not None:
        return {n: tuple(node.view.nodes[row.replaced].tokens)}
    return {n: row.initial_tokens or tokens_for(n.name, row.num_tokens)}


def vnodes_with(node: Context, tokens: Mapping[Node, tuple[int, ...]]) -> dict[int, int]:
    """The vnodes of the ring with these tokens, and how many shards their owners have."""
    members = node.view.nodes.values()
    found = {t: m.shards for m in members if m.state.will_own for t in m.tokens}
    for n, own in tokens.items():
        found |= dict.fromkeys(own, node.view.nodes[n.name].shards)
    if node.has(Defect.streams_are_limited):
        found = dict.fromkeys(found, 1)
    return found


def start_of_next(node: Context) -> str:
    """From when on a new generation is to operate: some time ahead, so that every node can have learned of it."""
    known = node.catalog.cdc.generations
    if node.has(Defect.generations_precede_each_other) and len(known) > 1:
        behind = known[-1][0] // 1000 - node.around.now() // 1000 - _BEHIND
        return node.time(behind)
    return node.time(2 * node.timing.ring_delay)


def latest_commit(node: Context) -> int:
    """Until when what starts so may be committed, so that time is left to learn of it (microseconds since 1970)."""
    return node.around.now() + 1000 * node.timing.ring_delay


def unqueued(command: Command, catalog: Catalog) -> Command:
    """A command as a wrong build makes it: what it commits is not queued for the publisher."""
    before = catalog.tables[TOPOLOGY][ALL][_QUEUE]

    def without(one: Mutation) -> Mutation:
        if one.columns is None or "committed_cdc_generations" not in one.columns:
            return one
        return replace(one, columns={**one.columns, _QUEUE: before})

    return replace(command, mutations=tuple(map(without, command.mutations)))
