"""Where the tablets of a new table go: to the least loaded shards, each replica in a rack of its own if it can be."""

from __future__ import annotations

from collections import Counter

from stagewright.impl.catalog.view import View
from stagewright.impl.ring.tablets import Tablet, TabletMap, TabletReplica
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec.errors import RefusedError
from stagewright.spec.text.counting import counted


def allocated(view: View, count: int, replicas: int, down: frozenset[str]) -> TabletMap:
    """The map of a table with so many tablets, on nodes that are normal and up.

    Raises:
        RefusedError: there are fewer such nodes than replicas, whether or not some are down.
        InputError: the number of tablets is no power of two.
    """
    members = [m for m in view.nodes.values() if m.state is NodeState.normal]
    # None that is to leave.
    members = [m for m in members if m.request is None or m.request["done"]]
    refuse_too_many(len(members), replicas)
    nodes = [m for m in members if m.name not in down]
    if len(nodes) < replicas:
        away = ", ".join(m.name for m in members if m.name in down)
        problem = f"only {counted(len(nodes), 'node')} up, and each tablet is to have {counted(replicas, 'replica')}"
        raise RefusedError(problem, (), help=f"wait for {away}, or ask for fewer replicas")
    load: Counter[TabletReplica] = Counter(
        r for rows in view.tablets.values() for row in rows for r in row.tablet.replicas
    )
    tablets: list[Tablet] = []
    for _ in range(count):
        chosen: list[TabletReplica] = []
        racks: set[str] = set()
        for _ in range(replicas):
            taken = {r.host for r in chosen}
            free = [m for m in nodes if m.name not in taken]
            apart = [m for m in free if m.rack not in racks] or free
            best = min(
                (TabletReplica(m.name, shard) for m in apart for shard in range(m.shards)),
                key=lambda r: (sum(load[s] for s in load if s.host == r.host), load[r], r),
            )
            racks |= {m.rack for m in nodes if m.name == best.host}
            load[best] += 1
            chosen.append(best)
        tablets.append(Tablet(tuple(chosen)))
    return TabletMap(tuple(tablets))


def refuse_too_many(nodes: int, replicas: int) -> None:
    """Tablets have no more replicas than there are nodes that stay.

    Raises:
        RefusedError: they were to have more.
    """
    if nodes < replicas:
        problem = f"tablets can be on {counted(nodes, 'node')}, and each is to have {counted(replicas, 'replica')}"
        raise RefusedError(problem, (), help="let nodes join, or ask for fewer replicas")
