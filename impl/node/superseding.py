"""Removes what rows have replaced: a node keeps an older version of a row only while somebody may want it.

Requests, streams, repairs and the updates of views use the newest version that a replica has. Of a table of the token
ring, and of a view, whatever is older goes when the node looks next. A table of tablets may have views, now or later, and
then one more wants it: a replica that has missed the newer versions may have put the row of an older one into a view. If
that replica is lost, the others take it out (`taken_back`), and nothing but their old version says what that is.

So a replica says from which version on it has a row, with `Settled`: that is on its disk, and no view is to get or to lose
anything by what it has replaced. What is older than all other replicas say goes. What pins an older version is thus another
replica that has not said so: it misses the newer one, or is down, or a view's replica does not answer it, or the row waits in
staging; and it does so until that replica says it of the row's next version, or is a replica no more. Nothing is repeated or
kept beyond a crash. The newest version always stays, also a tombstone, for ever.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable

from stagewright.impl.catalog.view import View
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages import Settled
from stagewright.impl.node.port import Drop, Effect, Send, Supersede, Wake
from stagewright.impl.storage.port import LAST_TIME, Put
from stagewright.impl.views.maintenance.outbox import Outbox
from stagewright.impl.views.maintenance.staged import has_staged

LOOK = ("superseding", "look")
SYNCED = ("superseding", "synced")
MOST = 20_000  # rows of which what others say is remembered
TOGETHER = 500  # rows that a message is about
Rows = dict[bytes, int]
"""Times of versions by stored keys."""


class Superseding:
    """What one life of a node has to remove; `store` writes, and goes on when all that was written is on the disk."""

    def __init__(self, node: Context, outbox: Outbox, store: Callable[..., list[Effect]]) -> None:
        self._node = node
        self._outbox = outbox
        self._store = store
        self._waits = False  # for the next look
        # Rows that were written since the last one; True: what they had replaced is gone already.
        self._written: defaultdict[str, dict[bytes, bool]] = defaultdict(dict)
        self._unsynced: deque[dict[str, Rows]] = deque()
        self._unsaid: defaultdict[str, Rows] = defaultdict(dict)  # on the disk
        # What others have said: where they were in group0, and from which version on they have a row.
        self._said: dict[tuple[str, bytes], dict[str, tuple[int, int]]] = {}
        self._since: dict[str, list[int]] = {}  # of each tablet: where its replicas changed last
        self._view: View | None = None
        self._kinds: dict[str, bool | None] = {}  # of families, as of that view

    def wrote(self, batch: Iterable[Put]) -> list[Effect]:
        """Versions are written, which may replace others."""
        for put in batch:
            if self._may_settle(put.family) is not None:
                self._written[put.family].setdefault(put.version.key, False)
        return self._look_later() if self._written else []

    def _may_settle(self, family: str) -> bool | None:
        """Whether other replicas are to be waited for; None: nothing of it is replaced, or it is soon dropped."""
        view = self._node.view
        if view is not self._view:
            self._view, self._kinds = view, {}
        if family not in self._kinds:
            if family in view.logs.values() or family not in view.tables:
                self._kinds[family] = None
            else:
                self._kinds[family] = family in view.tablets and family not in view.views
        return self._kinds[family]

    def _look_later(self) -> list[Effect]:
        if self._waits:
            return []
        self._waits = True
        return [Wake(self._node.timing.superseding, LOOK)]

    def wake(self, what: str) -> list[Effect]:
        """It is time to look, or what was seen then is on the disk."""
        if what == SYNCED[1]:
            for table, rows in self._unsynced.popleft().items():
                self._unsaid[table].update(rows)
            return self._say()
        self._waits = False
        effects, replaced = self._look()
        if self._node.has(Defect.rows_settle_unsynced):
            self._unsaid |= replaced
        elif replaced:
            self._unsynced.append(replaced)
            return [*effects, *self._store((), Wake(0, SYNCED))]
        return [*effects, *self._say()]

    def _look(self) -> tuple[list[Effect], dict[str, Rows]]:
        """Remove what nobody else is asked about, and find what has replaced something beside that."""
        effects, others = list[Effect](), dict[str, Rows]()
        hasty = self._node.has(Defect.superseded_rows_are_not_awaited)
        written, self._written = self._written, defaultdict(dict)
        snapshot = self._node.rows.snapshot()
        for family, keys in written.items():
            alone = dict.fromkeys(keys, LAST_TIME)
            if self._may_settle(family) and not hasty:
                alone, replaced = {}, Rows()
                for key, gone in keys.items():
                    newest = snapshot.get(family, key)
                    if newest is None or not (gone or snapshot.get(family, key, newest.time - 1)):
                        continue
                    if self._others(family, key):
                        replaced[key] = newest.time
                    else:
                        alone[key] = newest.time
                if replaced:
                    others[family] = replaced
            effects += self._remove(family, alone)
        snapshot.close()
        return effects, others

    def _others(self, table: str, key: bytes) -> frozenset[str]:
        """The other replicas of a row, also those that come or go; nobody: it is not of this node."""
        row = self._node.view.tablet_with(table, token_in(key))
        me = frozenset({self._node.name})
        return row.holders - me if row is not None and row.holders >= me else frozenset()

    # -- what is committed -------------------------------------------------------------------------------

    def learned(self, before: View, *, all_of_it: bool) -> None:
        """Tablets may have other replicas: one that comes back has other rows than those that it spoke of before."""
        view, position = self._node.view, self._node.member.head.position
        if view.tablets is before.tablets and not all_of_it:
            return
        for table, rows in view.tablets.items():
            then, since = before.tablets.get(table, ()), self._since.get(table, [])
            if all_of_it or len(since) != len(rows) or len(then) != len(rows):
                self._since[table] = [position] * len(rows)
                continue
            for was, row in zip(then, rows, strict=True):
                if was is not row and was.holders != row.holders:
                    since[row.number] = position
        for of_tables in (self._unsaid, *self._unsynced):
            for table, settled in of_tables.items():
                for key in [k for k in settled if self._changed_at(table, k) == position]:
                    del settled[key]

    def _changed_at(self, table: str, key: bytes) -> int:
        row = self._node.view.tablet_with(table, token_in(key))
        return self._since[row.table][row.number] if row is not None else 0

    # -- what this node says, and hears ------------------------------------------------------------------

    def _say(self) -> list[Effect]:
        """Tell the other replicas of rows that are settled here; the others are looked at again."""
        node, found = self._node, defaultdict[tuple[str, str], list[tuple[bytes, int]]](list)
        for table, rows in [*self._unsaid.items()]:
            held = self._held(table, rows)
            for key, time in rows.items():
                for other in () if key in held else sorted(self._others(table, key) - node.down):
                    found[other, table].append((key, time))
            self._unsaid[table] = {key: time for key, time in rows.items() if key in held}
            if not held:
                del self._unsaid[table]
        position = node.member.head.position
        said = [
            Send(other, Settled(position, table, tuple(rows[i : i + TOGETHER])))
            for (other, table), rows in found.items()
            for i in range(0, len(rows), TOGETHER)
        ]
        return [*said, *(self._look_later() if self._unsaid else ())]

    def _held(self, table: str, rows: Rows) -> set[bytes]:
        """Those that views may still get or lose something by."""
        if not self._node.view.views_of(table) or self._node.has(Defect.rows_settle_before_views):
            return set()
        snapshot = self._node.rows.snapshot()
        staged = has_staged(snapshot, table)
        snapshot.close()
        return {*rows} if staged else rows.keys() & self._outbox.rows_of(table)

    def heard(self, sender: str, said: Settled) -> list[Effect]:
        """Another replica has rows from a version on; who knows less of the cluster does not know who else must."""
        node, table = self._node, said.table
        if not node.ready or node.member.head.position < said.position:
            return []
        known, before = self._said, Rows()
        for key, time in said.rows:
            others, since = self._others(table, key), self._changed_at(table, key)
            of_row = known.pop((table, key), {})  # the last one that was heard of is the last to go
            of_row[sender] = max((said.position, time), of_row.get(sender, (0, 0)))
            of_row = {o: of_row[o] for o in others & of_row.keys() if of_row[o][0] >= since}
            if others and of_row.keys() == others:
                before[key] = least = min(time for _, time in of_row.values())
                if key in self._written.get(table, {}):
                    self._written[table][key] = True
                of_row = {other: what for other, what in of_row.items() if what[1] > least}
            if of_row:
                known[table, key] = of_row
        while len(known) > MOST:
            del known[next(iter(known))]
        return self._remove(table, before)

    def _remove(self, family: str, before: Rows) -> list[Effect]:
        """Remove what is older than the newest version, and than these."""
        node, wrong = self._node, list[bytes]()
        if node.has(Defect.newest_versions_are_removed):
            wrong = [*before]
        elif node.has(Defect.tombstones_are_removed):
            found = ((key, node.rows.get(family, key)) for key in before)
            wrong = [key for key, newest in found if newest is not None and newest.value is None]
        drops = [Drop(family, key, key + b"\0") for key in wrong]
        right = tuple((key, time) for key, time in before.items() if key not in wrong)
        return [*drops, Supersede(family, right)] if right else [*drops]
