"""Tablets that an operator moves: the wish is written into the tablet's row, and the track begins it when it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.tablet_rows import TabletRow, wished
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Command, Mutation
from stagewright.impl.node.messages.tables import MoveTablet, SetBalancing
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.tablets.balancer import Asked, Migration, TabletName
from stagewright.impl.tablets.replication import staying
from stagewright.spec.errors import RefusedError
from stagewright.spec.text.counting import counted


def ask_to_move(view: View, rows: tuple[TabletRow, ...], request: MoveTablet) -> Command:
    """The command that writes the wish down.

    Raises:
        RefusedError: there is no such tablet or replica, something is done to it, or it cannot lie there.
    """
    if not 0 <= request.tablet < len(rows):
        problem = f"{name_of(request.table)} has no tablet {request.tablet}"
        raise RefusedError(problem, (), help=f"its tablets: 0 to {len(rows) - 1}")
    row = rows[request.tablet]
    if row.tablet.moves or row.repair or row.wish is not None:
        raise RefusedError(f"something is done to {row.name}", (), help="wait until that is done")
    leaving = _source(row, request)
    wish = leaving, _target(view, request, leaving)
    problem = _problem(view, row, wish)
    if problem:
        raise RefusedError(problem, (), help="`tablets` says where it lies")
    return Command(f"move of {row.name} is requested", mutations=(wished(row, wish),))


def switch_balancing(view: View, request: SetBalancing) -> Command | None:
    """The command that lets the balancer work, or not; None if that is so."""
    if view.balances == request.enabled:
        return None
    column = {"tablet_balancing_enabled": request.enabled}
    text = f"{'Enabling' if request.enabled else 'Disabling'} tablet balancing"
    return Command(text, mutations=(Mutation(TOPOLOGY, ALL, column),))


def by_hand(view: View) -> Iterator[Migration]:
    """What operators asked for and can begin."""
    for row in _with_wishes(view):
        assert row.wish is not None
        if not row.tablet.moves and not row.repair and not _problem(view, row, row.wish):
            yield Migration(TabletName(row.table, row.number), *row.wish, Asked())


def withdrawn(view: View) -> tuple[Mutation, ...]:
    """Wishes that cannot be fulfilled any more are forgotten: a node has gone since."""
    rows = ((row, row.wish) for row in _with_wishes(view) if not row.tablet.moves)
    return tuple(wished(row, None) for row, wish in rows if wish and _problem(view, row, wish))


def _with_wishes(view: View) -> Iterator[TabletRow]:
    return (row for rows in view.tablets.values() for row in rows if row.wish is not None)


def _source(row: TabletRow, request: MoveTablet) -> TabletReplica:
    there = [r for r in row.tablet.replicas if r.host == request.source]
    there = [r for r in there if request.source_shard in (-1, r.shard)]
    if not there:
        places = ", ".join(f"{r.host}:{r.shard}" for r in row.tablet.replicas)
        shard = "" if request.source_shard < 0 else f":{request.source_shard}"
        problem = f"{row.name} has no replica on {request.source}{shard}"
        raise RefusedError(problem, (), help=f"it lies on {places}")
    return there[0]


def _target(view: View, request: MoveTablet, leaving: TabletReplica) -> TabletReplica:
    """The shard that is named, or the one with the fewest tablets that is not the replica's own."""
    node = view.nodes.get(request.target)
    if request.target_shard >= 0 or node is None:
        return TabletReplica(request.target, max(0, request.target_shard))
    load = Counter(r for rows in view.tablets.values() for row in rows for r in row.tablet.replicas)
    shards = [TabletReplica(node.name, shard) for shard in range(node.shards)]
    others = [s for s in shards if s != leaving]
    return min(others or shards, key=lambda r: (load[r], r))


def _problem(view: View, row: TabletRow, wish: tuple[TabletReplica, TabletReplica]) -> str:
    """Why a tablet cannot move so, if it cannot."""
    leaving, pending = wish
    stay = {m.name: m for m in staying(view)}
    if leaving not in row.tablet.replicas:
        return f"{row.name} has no replica on {leaving.host}:{leaving.shard}"
    for replica in wish:
        if replica.host not in stay:
            return f"{replica.host} is no node that stays"
        if replica.shard >= stay[replica.host].shards:
            return f"{replica.host} has {counted(stay[replica.host].shards, 'shard')}"
    if pending == leaving:
        return f"{row.name} lies on {leaving.host}:{leaving.shard}"
    if pending.host in {r.host for r in row.tablet.replicas if r != leaving}:
        return f"{row.name} has a replica on {pending.host}"
    return ""
