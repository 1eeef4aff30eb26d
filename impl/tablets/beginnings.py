"""What begins on the track when tablets are at rest: migrations of the balancer, replicas more or fewer, repairs."""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.tablets.balancer import (
    Drain,
    HostState,
    Kind as Move,
    Limits,
    Migration,
    TabletName,
    plan,
)
from stagewright.impl.tablets.loads import sketch_of
from stagewright.impl.tablets.moves_by_hand import by_hand
from stagewright.impl.tablets.replication import Change, changes
from stagewright.impl.tablets.resizing import Colocation, colocations, decided
from stagewright.impl.topology.planning import step_of
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec.verdict import Step

Start = Migration | Change | Colocation
Moves = list[tuple[TabletRow, Step]]
_MANY = 1 << 20
_KINDS = {
    Move.migration: Kind.migration,
    Move.intranode_migration: Kind.intranode_migration,
}


def beginnings(node: Context, drains: bool) -> tuple[tuple[Start, ...], Moves]:
    """What is to begin, and the repairs beside it; if a node is drained, what leaves it alone."""
    view, down = node.view, node.down
    limits = Limits(_MANY, _MANY) if node.has(Defect.limits_are_ignored) else Limits()
    planned = plan(sketch_of(view), limits).migrations
    if drains:
        host = drained(view)
        leave = (m for m in planned if isinstance(m.reason, Drain) and m.leaving.host == host)
        return tuple(leave), []
    asked_for = {m.tablet: m for m in by_hand(view)}
    merged = decided(view, Resize.merge)  # evenness waits for pairs
    evens = {t for t in view.tablets if view.balances and t not in merged}
    made = [
        *asked_for.values(),
        *(
            m
            for m in planned
            if m.tablet not in asked_for
            and (isinstance(m.reason, Drain) or m.tablet.table in evens)
        ),
    ]
    rows = (row for rows in view.tablets.values() for row in rows)
    asked = [row for row in rows if row.repair and not row.tablet.moves]
    move = {m.tablet for m in made}
    busy = move | {_name(row) for row in asked}
    repairs = [(row, step_of("start_repair")) for row in asked if _name(row) not in move]
    more = [*changes(view, busy, down)]
    together = colocations(view, busy | {c.tablet for c in more})
    return (*made, *more, *together), repairs


def _name(row: TabletRow) -> TabletName:
    return TabletName(row.table, row.number)


def kind_of(start: Start, row: TabletRow, node: Context) -> Kind:
    """A replica that comes is streamed from one that has been repaired, if there are several to repair.

    Before one goes for good, the others get what it alone has.
    """
    if isinstance(start, Colocation):
        return Kind.migration
    if isinstance(start, Migration) and start.kind is not Move.rebuild:
        return _KINDS[start.kind]
    careless = node.has(Defect.removed_replicas_are_not_repaired)
    if careless and isinstance(start, Change) and not start.comes:
        return Kind.rebuild
    there = {r.host for r in row.tablet.replicas} - node.view.given_up
    return Kind.rebuild_v2 if len(there) > 1 else Kind.rebuild


def drained(view: View) -> str:
    """The node that is drained, one at a time: the one that tablets leave now, or the first."""
    hosts = sketch_of(view).hosts
    leaving = [r.host for row in view.moving for r in row.tablet.replicas]
    for host in (*leaving, *sorted(holders(view, set()))):
        if hosts[host].state is not HostState.normal:
            return host
    return ""


def holders(view: View, ended: set[str]) -> set[str]:
    """The hosts that hold tablets once these have ended."""
    found: set[str] = set()
    for rows in view.tablets.values():
        for row in rows:
            over = row.name in ended and row.tablet.next is not None
            over = over and row.tablet.stage is Stage.end_migration
            found |= {r.host for r in ((row.tablet.next or ()) if over else row.tablet.replicas)}
    return found
