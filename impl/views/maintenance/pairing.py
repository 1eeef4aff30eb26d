"""Who gets the view updates of a base replica: the view replica of the same place, and one that is to come.

Replicas of a base tablet and of a view tablet are paired by their places in the lists of replicas. Who takes the place
of another in a migration is paired when requests leave the old replicas out, and not before.

Places change where a tablet gains or loses a replica, and where two tablets are merged whose lists differ. Nodes learn
of that one after the other: while it goes on, updates go to the pairs of before and of after. Where one of the two
has more replicas than the other, those without a partner are everybody's.

That is so of rows that are put by a write or a build. Where a tablet was merged from two whose lists differed, what
is built or leaves staging afterwards is for all replicas of the view: others of the base may have been done before, and
have put what they had where their partners of then are. A row that comes late, by a repair or because its replica is
rebuilt, is for all replicas of the view: it was in the view with the partners of those that had it, and these may be
others now. Deletions go to all of them, too: the row may have come to any, and of base replicas maybe one alone has had it.
"""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas

Hosts = tuple[str, ...]


def natural(row: TabletRow) -> Hosts:
    """The hosts of a tablet's replicas, in their places: the new ones once writes go to them alone."""
    tablet = row.tablet
    moved = tablet.next is not None and tablet.stage.writes is Replicas.next
    return _hosts((tablet.next or ()) if moved else tablet.replicas)


def is_paired(host: str, row: TabletRow) -> bool:
    """Whether a base replica has a place, or had one until it was left out."""
    return host in natural(row) or host in _hosts(row.tablet.replicas)


def partners(place: int, base: int, view: Hosts) -> Hosts:
    """Whom the base replica of a place, of so many, updates."""
    if place >= len(view):
        return view
    return (view[place], *view[base:])


def _hosts(replicas: tuple[TabletReplica, ...]) -> Hosts:
    return tuple(r.host for r in replicas)


def _lists(view: View, row: TabletRow) -> Iterator[Hosts]:
    """The lists whose places count now: where places change, that of before and that of after."""
    yield natural(row)
    now, then = row.tablet.replicas, row.tablet.next or ()
    if then and len(then) != len(now):
        yield _hosts(now)
        yield _hosts(then)
    if view.resizes.get(row.table) == Resize.merge.value and row.number % 2:
        yield from _lists(view, view.tablets[row.table][row.number - 1])


def targets_of(
    node: Context, base: str, update: ViewUpdate, before: Hosts, *, built: bool = False
) -> Hosts | None:
    """The hosts to which a base replica sends an update; None: it is not paired now.

    Those that it was for `before` stay, as long as they are replicas. `built`: it is of a task.
    """
    view = node.view
    base_row = view.tablet_with(base, token_in(update.base_key))
    view_row = view.tablet_with(update.view, token_in(update.key))
    if base_row is None or view_row is None or not is_paired(node.name, base_row):
        return None
    reordered = base_row.tablet.reordered or view_row.tablet.reordered
    built = built and not node.has(Defect.merged_tablets_have_their_places)
    pending, everyone = view_row.chosen.pending, update.everyone or (built and reordered)
    if node.has(Defect.view_updates_change_sides):
        before, everyone = (), False
    if everyone or (update.value is None and not node.has(Defect.view_rows_are_deleted_in_pairs)):
        return tuple(dict.fromkeys((*natural(view_row), *pending)))
    found = [*_partners(node, view, base_row, view_row)]
    if not node.has(Defect.view_updates_skip_pending):
        found += pending
    return tuple(h for h in dict.fromkeys((*found, *before)) if h in view_row.chosen.writes)


def _partners(node: Context, view: View, base_row: TabletRow, view_row: TabletRow) -> Iterator[str]:
    own = [hosts for hosts in _lists(view, base_row) if node.name in hosts]
    others = [*_lists(view, view_row)]
    if node.has(Defect.view_updates_change_sides):
        own, others = own[:1], others[:1]
    for hosts in own or [_hosts(base_row.tablet.replicas)]:
        place = hosts.index(node.name)
        if node.has(Defect.view_updates_go_to_the_first_replica):
            place = 0
        for there in others:
            yield from partners(place, len(hosts), there)
