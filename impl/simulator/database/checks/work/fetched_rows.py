"""Whether rows that a node says it has fetched came from enough of those that have them."""

from __future__ import annotations

from collections.abc import Collection

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages import Work
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Role
from stagewright.machines.scylladb.topology.topology_states import NodeState

Fetched = Collection[tuple[str, str, tuple[int, int]]]
"""Families of rows, from whom they came, and of which ranges."""


def tablet_is_complete(
    view: View, row: TabletRow, work: Work, name: str, fetched: Fetched, absent: frozenset[str]
) -> bool:
    """Whether the rows of a tablet that a node gains or repairs came from whom they are to come from.

    `absent` were given up since the tablet's session is open.
    """
    families = [
        {s for t, s, r in fetched if (t, r) == (family, row.range)}
        for family in view.families(row.table)
    ]
    have = set.intersection(*families)
    stay = {*row.hosts[Role.staying]} - absent
    if work is Work.repair_tablet:
        rebuilt = row.kind is Kind.rebuild_v2
        due = stay if rebuilt else {*row.tablet.hosts(Replicas.previous)} - absent
        return have >= due - {name}
    match row.kind:
        case Kind.migration:
            return have >= {*row.hosts[Role.leaving]} - absent
        case Kind.rebuild:
            return have >= stay
        case Kind.rebuild_v2:
            return bool(have & {*row.hosts[Role.staying]})  # given up since it was asked, maybe
        case _:
            return True  # a shard of the node has them


def ranges_are_complete(view: View, name: str, fetched: Fetched) -> bool:
    """Whether each range that a node needs came from as many replicas as no quorum can avoid."""
    rebuilds = view.nodes[name].state is NodeState.rebuilding
    for table, factor in view.vnode_tables.items():
        for low, high in view.ranges():
            chosen = view.chosen(high, factor)
            if name not in (chosen.reads if rebuilds else view.fetchers(high, factor)):
                continue
            old = [n for n in chosen.writes if n not in chosen.pending]
            have = {s for t, s, r in fetched if (t, r) == (table, (low, high))}
            have |= {name} & {*old}
            if len(have & {*old}) < len(old) - factor // 2:
                return False
    return True
