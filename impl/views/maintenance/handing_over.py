"""Rows that come to a replica while its tablet leaves it: others get them before it cleans up.

A stream brings what was there when it went by. A write that fails afterwards may be on the replica that leaves alone:
nobody was promised it, but views may show it, and then the base table is to have it, too. Each such row has a mark beside
it, in a family of its own, until those that stay, or who takes the replica's place, have the row as of a request.

No stream reads who was given up. If it is spared before it has cleaned up, it has all rows to hand over, as it may have had
some alone from before: those of a view, too, whose updates nobody keeps any more.

Of a row all versions are handed over that are kept: a view may show an older one, of which nobody else knows that it was
replaced.
"""

from __future__ import annotations

from collections.abc import Iterable

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import bounds, token_in
from stagewright.impl.node.messages import Cell, Outcome, ReplicaReply, ReplicaWrite
from stagewright.impl.node.port import Drop, Effect, Send
from stagewright.impl.storage.port import Put, Version
from stagewright.machines.scylladb.tablets.tablet_stages import Role

_SUFFIX = "_late_rows"
Row = tuple[str, bytes]
"""A base table or a view, and the stored key of one of its rows."""


def late_rows_of(base: str) -> str:
    """The family of the marks of a base table's rows."""
    return base + _SUFFIX


class HandingOver:
    """What one node hands over."""

    def __init__(self, node: Context) -> None:
        self._node = node
        # Who has not got which version (by its time), with the number of messages.
        self._left: dict[Row, dict[tuple[int, str], int]] = {}
        self._asked: dict[int, tuple[Row, int]] = {}  # the inverse
        self._heirs: dict[Row, set[tuple[int, str]]] = {}  # who was to get it, or has
        self._alone: dict[
            tuple[str, str], set[bytes]
        ] = {}  # rows of tablets that others get without asking this node, by the tablets' keys

    def mark(self, table: str, cell: Cell) -> tuple[Put, ...]:
        """The mark to write with a row, if its tablet is leaving this node."""
        node, (key, time, _) = self._node, cell
        row = node.view.tablet_with(table, token_in(key))
        leaves = row is not None and node.name in row.hosts[Role.leaving]
        if not leaves or node.has(Defect.late_rows_are_not_handed_over):
            return ()
        return (Put(late_rows_of(table), Version(key, time, b"")),)

    def go_on(self, row: TabletRow) -> list[Effect] | None:
        """Send rows of a tablet to those who may lack them; None: nothing is left to hand over."""
        node, effects = self._node, list[Effect]()
        comes, stays = ({*row.hosts[r]} - node.view.given_up for r in (Role.pending, Role.staying))
        heirs = comes or stays
        keys = sorted({*self._marks(row), *self._had_alone(row)})
        if not keys or not heirs:
            return None
        snapshot = node.rows.snapshot()
        for key in keys:
            cells = {v.time: v.value for v in snapshot.versions(row.table, key, key + b"\0")}
            left, version = self._left_of((row.table, key), cells, heirs), node.view.version
            if not left:
                effects += self._end((row.table, key))
            effects += [
                Send(
                    heir,
                    ReplicaWrite(number, version, row.table, (key, time, cells[time]), late=True),
                )
                for (time, heir), number in left.items()
                if heir not in node.down
            ]
        snapshot.close()
        return effects

    def _left_of(
        self, row: Row, times: Iterable[int], heirs: set[str]
    ) -> dict[tuple[int, str], int]:
        """Which heirs have not got which version; each is sent it under one number, however often. Others may become heirs."""
        left, known = self._left.setdefault(row, {}), self._heirs.setdefault(row, set())
        wanted = {(time, heir) for time in times for heir in heirs}
        for one in left.keys() - wanted:
            del self._asked[left.pop(one)]
            known.discard(one)
        for one in sorted(wanted - known):
            left[one] = number = self._node.number()
            self._asked[number] = row, one[0]
        known |= wanted
        return left

    @property
    def waiting(self) -> int:
        """How many answers it waits for."""
        return len(self._asked)

    def _marks(self, row: TabletRow) -> list[bytes]:
        snapshot = self._node.rows.snapshot()
        found = snapshot.versions(late_rows_of(row.table), *bounds(*row.range))
        marks = dict.fromkeys(version.key for version in found)
        snapshot.close()
        return [*marks]

    def _had_alone(self, row: TabletRow) -> set[bytes]:
        """The rows that it has still to hand over, marked or not: all that it had when it was first asked."""
        node = self._node
        careless = Defect.spared_nodes_keep_silent
        concerned = bool(node.view.views_of(row.table))
        if row.table in node.view.views:
            careless, concerned = Defect.spared_view_replicas_keep_silent, True
        if node.name not in row.lost or not concerned or node.has(careless):
            return set()
        if row.key not in self._alone:
            snapshot = node.rows.snapshot()
            newest = snapshot.newest(row.table, *bounds(*row.range))
            self._alone[row.key] = {version.key for version in newest}
            snapshot.close()
        return self._alone[row.key]

    def owns(self, number: int) -> bool:
        """Whether an answer is to one of these messages."""
        return number in self._asked

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """Somebody has a row, or refuses it for now."""
        row, time = self._asked[reply.number]
        if reply.outcome is not Outcome.done:
            return []
        del self._asked[self._left[row].pop((time, sender))]
        return [] if self._left[row] else self._end(row)

    def _end(self, row: Row) -> list[Effect]:
        self._forget_row(row)
        for (table, _), keys in self._alone.items():
            if table == row[0]:
                keys.discard(row[1])
        if row[0] in self._node.view.views:
            return []  # its rows are not marked
        return [Drop(late_rows_of(row[0]), row[1], row[1] + b"\0")]

    def _forget_row(self, row: Row) -> None:
        self._heirs.pop(row, None)
        for number in self._left.pop(row, {}).values():
            del self._asked[number]

    def forget(self, row: TabletRow) -> list[Effect]:
        """A tablet is no longer here."""
        marks = self._marks(row)
        for key in (*marks, *self._alone.pop(row.key, ())):
            self._forget_row((row.table, key))
        return [Drop(late_rows_of(row.table), *bounds(*row.range))] if marks else []
