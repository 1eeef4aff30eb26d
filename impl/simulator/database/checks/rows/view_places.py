"""Where rows of views are, were, and are not to come any more: what replicas had that left with what nobody else has."""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import token_in
from stagewright.impl.storage.port import Put
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

OVER = (Stage.none, Stage.end_migration)
"""Nobody is asked to clean up any more, also if it is no longer given up."""
Rows = dict[tuple[str, bytes], int]
"""Times by views and stored keys."""


class ViewPlaces:
    """The rows of views that replicas have had, and those with which a tablet has left them, as is committed."""

    def __init__(self) -> None:
        self._view: View | None = None
        # Of nodes that have a place for them: the newest time of each row of a view that they ever had.
        self._newest: dict[str, Rows] = {}
        # The same of those that had a place, and have lost it since.
        self._left: dict[str, Rows] = {}
        self._lost: list[Rows] = []  # with replicas that were given up until then

    @property
    def lost(self) -> int:
        """How many replicas have been lost with nodes that were given up."""
        return len(self._lost)

    def committed(self, view: View) -> None:
        """Something was committed."""
        before, self._view = self._view, view
        if before is None or before.tablets is view.tablets:
            return
        for earlier in before.moving:
            row = view.tablet(earlier.table, earlier.number)
            if row is not None and row.table in view.views:
                for host in sorted(earlier.holders - row.holders):
                    rows = self._leave(host, earlier)
                    if host in before.given_up | view.given_up:
                        self._lost.append(rows)

    def _leave(self, host: str, earlier: TabletRow) -> Rows:
        known, (low, high) = self._newest.setdefault(host, {}), earlier.range
        of_tablet = [w for w in known if w[0] == earlier.table and low < token_in(w[1]) <= high]
        rows = {where: known.pop(where) for where in of_tablet}
        self._left.setdefault(host, {}).update(rows)
        return rows

    def stored(self, name: str, batch: tuple[Put, ...]) -> None:
        """A node stores rows; the committed view says which are of views."""
        rows = self._newest.setdefault(name, {})
        for put in batch:
            if self._view is not None and put.family in self._view.views:
                where = put.family, put.version.key
                rows[where] = max(put.version.time, rows.get(where, 0))

    def has_left(self, name: str, update: ViewUpdate) -> bool:
        """Whether a tablet has left a node that had a row of it, which others may not have learned."""
        return _has(self._left.get(name, {}), update)

    def takes(self, update: ViewUpdate, view: View, *, since: int) -> bool:
        """Whether a row may be only where nobody can ask for it, as a node knows the cluster.

        It is with a node that is given up; or was, and is spared while its tablet is rebuilt without it: until that is
        over it hands the row over. Or it was lost with one that was given up until that was over, whatever that one is
        now. `since`: what was lost before is not asked for, as a batch sends its updates to who is there.
        """
        row = view.tablet_with(update.view, token_in(update.key))
        spared = row.lost if row is not None and row.tablet.stage not in OVER else frozenset[str]()
        gone = [self._newest.get(name, {}) for name in view.given_up | spared]
        return any(_has(rows, update) for rows in (*gone, *self._lost[since:]))


def _has(rows: Rows, update: ViewUpdate) -> bool:
    return rows.get((update.view, update.key), 0) >= update.time
