"""Replication factors that change: each tablet gains or loses one replica at a time until it has as many as its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import Member, View
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import TabletName
from stagewright.machines.scylladb.topology.topology_states import NodeState


@dataclass(frozen=True)
class Change:
    """A replica that comes to a tablet, or one that goes."""

    tablet: TabletName
    replica: TabletReplica
    comes: bool
    wanted: int

    def after(self, replicas: tuple[TabletReplica, ...]) -> tuple[TabletReplica, ...]:
        """The replicas once it is done."""
        if self.comes:
            return (*replicas, self.replica)
        return tuple(r for r in replicas if r != self.replica)

    def __str__(self) -> str:
        what = "comes to" if self.comes else "goes from"
        place = f"{self.replica.host}:{self.replica.shard}"
        return f"a replica of {self.tablet} {what} {place}: its table is to have {self.wanted}"


def changes(view: View, busy: Iterable[TabletName], down: frozenset[str]) -> Iterator[Change]:
    """What can begin now, of tablets at rest that are not busy."""
    load: Counter[TabletReplica] = Counter(
        r
        for rows in view.tablets.values()
        for row in rows
        for r in {*row.tablet.replicas, *(row.tablet.next or ())}
    )
    busy = frozenset(busy)
    for table, rows in view.tablets.items():
        wanted = view.tables[table]
        for row in rows:
            name = TabletName(table, row.number)
            if row.tablet.moves or name in busy or len(row.tablet.replicas) == wanted:
                continue
            comes = len(row.tablet.replicas) < wanted
            places = _free(view, row, down) if comes else [*row.tablet.replicas]
            if not places:
                continue
            if comes:
                best = min(places, key=lambda r: (load[r], r))
            else:
                best = max(places, key=lambda r: (r.host in view.given_up, load[r], r))
            load[best] += 1 if comes else -1
            yield Change(name, best, comes, wanted)


def _free(view: View, row: TabletRow, down: frozenset[str]) -> list[TabletReplica]:
    """Where another replica may go: to nodes that have none, in racks that have none if there are such."""
    there = {r.host for r in row.tablet.replicas}
    racks = {view.nodes[h].rack for h in there}
    free = [m for m in staying(view) if m.name not in there | down]
    apart = [m for m in free if m.rack not in racks] or free
    return [TabletReplica(m.name, shard) for m in apart for shard in range(m.shards)]


def staying(view: View) -> list[Member]:
    """The normal nodes that nobody has asked to go."""
    members = view.nodes.values()
    return [m for m in members if m.state is NodeState.normal and m.name not in _going(view)]


def _going(view: View) -> frozenset[str]:
    asked = {m.name for m in view.nodes.values() if m.asked in ("leave", "remove")}
    return view.given_up | asked


def is_altered(view: View, table: str) -> bool:
    """Whether tablets of a table have more or fewer replicas than it is to have."""
    return any(len(row.tablet.replicas) != view.tables[table] for row in view.tablets[table])
