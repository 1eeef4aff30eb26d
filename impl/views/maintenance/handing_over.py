"""Rows that come to a replica while its tablet leaves it: others get them before it cleans up.

A stream brings what was there when it went by. A write that fails afterwards may be on the replica that leaves alone:
nobody was promised it, but views may show it, and then the base table is to have it, too. Each such row has a mark beside
it, in a family of its own, until those that stay, or who takes the replica's place, have the row as of a request.
"""

from __future__ import annotations

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
"""A base table, and the stored key of one of its rows."""


def late_rows_of(base: str) -> str:
    """The family of the marks of a base table's rows."""
    return base + _SUFFIX


class HandingOver:
    """What one node hands over."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._asked: dict[int, Row] = {}  # by number of the message
        self._left: dict[Row, set[str]] = {}  # who has not got it

    def mark(self, table: str, cell: Cell) -> tuple[Put, ...]:
        """The mark to write with a row, if its tablet is leaving this node."""
        node, (key, time, _) = self._node, cell
        row = node.view.tablet_with(table, token_in(key))
        leaves = row is not None and node.name in row.hosts[Role.leaving]
        if not leaves or node.has(Defect.late_rows_are_not_handed_over):
            return ()
        return (Put(late_rows_of(table), Version(key, time, b"")),)

    def go_on(self, row: TabletRow) -> list[Effect] | None:
        """Send the marked rows of a tablet to those who lack them; None: nothing is left to hand over."""
        node, effects = self._node, list[Effect]()
        heirs = {*(row.hosts[Role.pending] or row.hosts[Role.staying])} - node.view.given_up
        marks = self._marks(row)
        if not marks or not heirs:
            return None
        for key in marks:
            newest = node.rows.get(row.table, key)
            assert newest is not None, "marks are beside rows"
            left = self._left.setdefault((row.table, key), {*heirs})
            left &= heirs
            if not left:
                effects.append(self._over((row.table, key)))
            for heir in sorted(left - node.down):
                number = node.number()
                self._asked[number] = row.table, key
                cell = key, newest.time, newest.value
                effects.append(Send(heir, ReplicaWrite(number, node.view.version, row.table, cell)))
        return effects

    def _marks(self, row: TabletRow) -> list[bytes]:
        snapshot = self._node.rows.snapshot()
        found = snapshot.versions(late_rows_of(row.table), *bounds(*row.range))
        marks = dict.fromkeys(version.key for version in found)
        snapshot.close()
        return [*marks]

    def owns(self, number: int) -> bool:
        """Whether an answer is to one of these messages."""
        return number in self._asked

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """Somebody has a row, or refuses it for now."""
        row = self._asked.pop(reply.number)
        left = self._left.get(row)
        if left is None or reply.outcome is not Outcome.done:
            return []
        left.discard(sender)
        return [] if left else [self._over(row)]

    def _over(self, row: Row) -> Drop:
        del self._left[row]
        return Drop(late_rows_of(row[0]), row[1], row[1] + b"\0")

    def forget(self, row: TabletRow) -> list[Effect]:
        """A tablet is no longer here."""
        marks = self._marks(row)
        for key in marks:
            self._left.pop((row.table, key), None)
        return [Drop(late_rows_of(row.table), *bounds(*row.range))] if marks else []
