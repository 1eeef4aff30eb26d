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
    return _paired(node.context.view, node.name, base, update)


def due(node: DatabaseNode, base: str, update: ViewUpdate, *, late: bool = False) -> Hosts:
    """These and the view replica that is to come: who must have an update before it is forgotten.

    Of a deletion, and of a row that comes `late`, these are all.
    """
    return _due(node.context.view, node.name, base, update, late=late)


def allowed(view: View, name: str, base: str, update: ViewUpdate) -> frozenset[str]:
    """Whom a node may send an update that sees the cluster so: all replicas, while places change; else those to whom it is due."""
    rows = _rows(view, base, update)
    if rows is None:
        return frozenset()
    if any(_changes(view, row) for row in rows):
        return frozenset(rows[1].chosen.writes)
    return frozenset(_due(view, name, base, update))


def _paired(view: View, name: str, base: str, update: ViewUpdate) -> Hosts:
    rows = _rows(view, base, update)
    if rows is None:
        return ()
    own, there = now_of(rows[0]), now_of(rows[1])
    if name not in own:
        own = tuple(r.host for r in rows[0].tablet.replicas)
    if name not in own:
        return ()
    place = own.index(name)
    return there if place >= len(there) else (there[place], *there[len(own) :])


def _due(view: View, name: str, base: str, update: ViewUpdate, *, late: bool = False) -> Hosts:
    rows, found = _rows(view, base, update), _paired(view, name, base, update)
    if rows is None or not found:
        return found
    everyone = late or update.value is None
    return (*(now_of(rows[1]) if everyone else found), *rows[1].chosen.pending)


def _changes(view: View, row: TabletRow) -> bool:
    """Whether the places of a tablet's replicas change, or soon will, or were others in one that it was merged from."""
    then = row.tablet.next
    return (
        row.table in view.resizes
        or row.tablet.reordered
        or (then is not None and len(then) != len(row.tablet.replicas))
    )


def _rows(view: View, base: str, update: ViewUpdate) -> tuple[TabletRow, TabletRow] | None:
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
    # How much a life had learned when it was first seen to have an update, and what was committed where tablets changed.
    _since: dict[tuple[str, ViewUpdate], int] = field(
        default_factory=dict[tuple[str, ViewUpdate], int]
    )
    _committed: list[tuple[int, View]] = field(default_factory=list[tuple[int, View]])

    def committed(self, position: int, view: View) -> None:
        """Tablets have changed, or are moving: whoever learns of that may have updates for others."""
        self._committed.append((position, view))

    def begin(self, life: str, node: DatabaseNode, update: ViewUpdate, *, everyone: bool) -> None:
        """An update is stored."""
        view = node.context.view.views.get(update.view)
        if everyone:
            self.allow(life, update)
        if view is not None:
            self._known[life, update] = {*allowed(node.context.view, node.name, view.base, update)}
            self._since[life, update] = node.context.member.head.position

    def allow(self, life: str, update: ViewUpdate) -> None:
        """An update may go to every replica of its view."""
        self._everyone.add((life, update))

    def see(self, life: str, node: DatabaseNode, update: ViewUpdate) -> None:
        """A stored update is sent: if this life has not stored it, it lay on the disk."""
        if (life, update) not in self._known:
            self.begin(life, node, update, everyone=True)

    def has(self, life: str, node: DatabaseNode, update: ViewUpdate, to: str) -> bool:
        """Whether an update may go to a node now, or might since it is there: it was for that one then."""
        now, place = node.context.view, node.context.member.head.position
        base, row = now.views[update.view].base, now.tablet_with(update.view, token_in(update.key))
        known = self._known.setdefault((life, update), set[str]())
        known |= allowed(now, node.name, base, update)
        since = self._since.setdefault((life, update), place)
        if to in known or row is None or to not in row.chosen.writes:
            return to in known
        return (life, update) in self._everyone or any(
            to in allowed(view, node.name, base, update)
            for position, view in self._committed
            if since < position < place
        )
