"""What the balancer sees of the tables: hosts and how they stand, tablets at rest, migrations under way."""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import Host, HostState, LoadSketch, TabletName
from stagewright.machines.scylladb.topology.topology_states import NodeState


def sketch_of(view: View) -> LoadSketch:
    """The load sketch of a view: nodes that serve, and those that are gone and have replicas yet."""
    rows = [row for rows in view.tablets.values() for row in rows]
    holders = {r.host for row in rows for r in (*row.tablet.replicas, *(row.tablet.next or ()))}
    sketch = LoadSketch(
        Host(m.name, m.shards, m.rack, _state(view, m.name))
        for m in view.nodes.values()
        if m.state is NodeState.normal or m.name in holders
    )
    for row in rows:
        name = TabletName(row.table, row.number)
        sketch.add_tablet(name, row.tablet.replicas)
        moved = moved_replica(row)
        if moved is not None:
            sketch.start(name, *moved, row.tablet.stage)
        elif row.tablet.moves:
            sketch.occupy(name)
    return sketch


def _state(view: View, name: str) -> HostState:
    if name in view.given_up:
        return HostState.excluded
    member = view.nodes[name]
    stays = member.state is NodeState.normal and member.asked != "leave"
    return HostState.normal if stays else HostState.leaving


def moved_replica(row: TabletRow) -> tuple[TabletReplica, TabletReplica] | None:
    """The replica that goes and the one that comes, if one does."""
    now, then = row.tablet.replicas, row.tablet.next or row.tablet.replicas
    gone = [r for r in now if r not in then]
    come = [r for r in then if r not in now]
    return (gone[0], come[0]) if gone and come else None
