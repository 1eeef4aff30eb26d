"""Who gets the view updates of a base replica: the view replica of the same place, and one that is to come.

Replicas of a base tablet and of a view tablet are paired by their places in the lists of replicas. Who takes the place
of another in a migration is paired when requests leave the old replicas out, and not before.
"""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import token_in
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas


def natural(row: TabletRow) -> tuple[str, ...]:
    """The hosts of a tablet's replicas, in their places: the new ones once writes go to them alone."""
    tablet = row.tablet
    moved = tablet.next is not None and tablet.stage.writes is Replicas.next
    return tuple(r.host for r in (tablet.next or () if moved else tablet.replicas))


def place_of(host: str, row: TabletRow) -> int | None:
    """The place of a base replica; of one that is left out already, the place that it had; None: not paired."""
    for hosts in (natural(row), tuple(r.host for r in row.tablet.replicas)):
        if host in hosts:
            return hosts.index(host)
    return None


def targets_of(node: Context, base: str, update: ViewUpdate) -> tuple[str, ...]:
    """The hosts to which a base replica sends an update; none: it is not paired now."""
    view = node.view
    base_row = view.tablet_with(base, token_in(update.base_key))
    view_row = view.tablet_with(update.view, token_in(update.key))
    if base_row is None or view_row is None:
        return ()
    place, hosts = place_of(node.name, base_row), natural(view_row)
    if place is None or place >= len(hosts):
        return ()
    if node.has(Defect.view_updates_go_to_the_first_replica):
        place = 0
    if node.has(Defect.view_updates_skip_pending):
        return (hosts[place],)
    return tuple(dict.fromkeys((hosts[place], *view_row.chosen.pending)))
