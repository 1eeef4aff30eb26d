"""Whom an update of a view is for, as a node that has learned so much ought to see it: said here once more, for checks."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas

Hosts = tuple[str, ...]


def now_of(row: TabletRow) -> Hosts:
    """The hosts of a tablet in their places, as requests wait for them."""
    tablet = row.tablet
    moved = tablet.next is not None and tablet.stage.writes is Replicas.next
    return tuple(r.host for r in ((tablet.next or ()) if moved else tablet.replicas))


def paired(node: DatabaseNode, base: str, update: ViewUpdate) -> Hosts:
    """The view replicas that have an update from this node alone, or from no other for certain; none: it has no place."""
    rows = _rows(node, base, update)
    if rows is None:
        return ()
    own, there = now_of(rows[0]), now_of(rows[1])
    if node.name not in own:
        own = tuple(r.host for r in rows[0].tablet.replicas)
    if node.name not in own:
        return ()
    place = own.index(node.name)
    return there if place >= len(there) else (there[place], *there[len(own) :])


def due(node: DatabaseNode, base: str, update: ViewUpdate, *, late: bool = False) -> Hosts:
    """These and the view replica that is to come: who must have an update before it is forgotten.

    Of a deletion, and of a row that comes `late`, these are all.
    """
    rows, found = _rows(node, base, update), paired(node, base, update)
    if rows is None or not found:
        return found
    everyone = late or update.value is None
    return (*(now_of(rows[1]) if everyone else found), *rows[1].chosen.pending)


def allowed(node: DatabaseNode, base: str, update: ViewUpdate) -> frozenset[str]:
    """Who may be sent an update: all replicas, while places change; else those to whom it is due."""
    rows = _rows(node, base, update)
    if rows is None:
        return frozenset()
    if any(_changes(node.context.view, row) for row in rows):
        return frozenset(rows[1].chosen.writes)
    return frozenset(due(node, base, update))


def _changes(view: View, row: TabletRow) -> bool:
    """Whether the places of a tablet's replicas change, or soon will."""
    then = row.tablet.next
    return row.table in view.resizes or (then is not None and len(then) != len(row.tablet.replicas))


def _rows(node: DatabaseNode, base: str, update: ViewUpdate) -> tuple[TabletRow, TabletRow] | None:
    view = node.context.view
    base_row = view.tablet_with(base, token_in(update.base_key))
    view_row = view.tablet_with(update.view, token_in(update.key))
    return None if base_row is None or view_row is None else (base_row, view_row)


@dataclass
class Sides:
    """For whom each update of a life has been; of what lay on a disk, or comes late, it is all replicas of the view."""

    _known: dict[tuple[str, ViewUpdate], set[str]] = field(
        default_factory=dict[tuple[str, ViewUpdate], set[str]]
    )
    _everyone: set[tuple[str, ViewUpdate]] = field(default_factory=set[tuple[str, ViewUpdate]])

    def begin(self, life: str, node: DatabaseNode, update: ViewUpdate, *, everyone: bool) -> None:
        """An update is stored."""
        view = node.context.view.views.get(update.view)
        if everyone:
            self.allow(life, update)
        if view is not None:
            self._known[life, update] = {*allowed(node, view.base, update)}

    def allow(self, life: str, update: ViewUpdate) -> None:
        """An update may go to every replica of its view."""
        self._everyone.add((life, update))

    def see(self, life: str, node: DatabaseNode, update: ViewUpdate) -> None:
        """A stored update is sent: if this life has not stored it, it lay on the disk."""
        if (life, update) not in self._known:
            self.begin(life, node, update, everyone=True)

    def has(self, life: str, node: DatabaseNode, update: ViewUpdate, to: str) -> bool:
        """Whether an update may go to a node now."""
        view = node.context.view.views[update.view]
        row = node.context.view.tablet_with(update.view, token_in(update.key))
        known = self._known.setdefault((life, update), set[str]())
        known |= allowed(node, view.base, update)
        anyone = (life, update) in self._everyone
        return to in known or (anyone and row is not None and to in row.chosen.writes)
