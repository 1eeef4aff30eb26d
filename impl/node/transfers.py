"""A transfer: the rows of token ranges of one table, from one source, chunk after chunk; and what is reported of such work."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.messages import PullRows, RowChunk, Work
from stagewright.impl.node.port import Effect, RowWork, Send, Wake
from stagewright.impl.storage.port import Put, Version

Ranges = tuple[tuple[int, int], ...]


@dataclass
class Transfer:
    """What one node fetches; `start` is where the next chunk begins, `kind` what it is woken for."""

    kind: str
    number: int
    session: str
    table: str
    source: str
    ranges: Ranges
    start: bytes = b""
    over: bool = False

    def pull(self, node: Context, attempts: int) -> list[Effect]:
        """Ask for the next chunk, and be woken if it does not come."""
        position = node.member.head.position
        pull = PullRows(self.number, self.session, self.table, self.ranges, self.start, position)
        reason = (self.kind, self.number, self.start.hex(), attempts + 1)
        return [Send(self.source, pull), Wake(node.timing.resend, reason)]

    def waits_for(self, start: bytes) -> bool:
        """Whether the chunk that begins there is the one that is to come."""
        return not self.over and self.start == start

    def take(self, node: Context, chunk: RowChunk) -> tuple[Put, ...]:
        """The rows of the chunk that are newer than what the node has, and have not expired; go on behind it."""
        if chunk.following is None:
            self.over = True
        else:
            self.start = chunk.following
        known, oldest = node.rows.get, _oldest(node, self.table)
        return tuple(
            Put(self.table, Version(*cell))
            for cell in chunk.cells
            if cell[1] >= oldest
            and ((there := known(self.table, cell[0])) is None or there.time < cell[1])
        )


def _oldest(node: Context, table: str) -> int:
    """The time from which on rows are kept: those of a log that are older could go round among its replicas for ever."""
    base = next((b for b, log in node.view.logs.items() if log == table), "")
    kept = node.view.kept.get(base, 0)
    return node.around.now() - 1000 * kept if kept else 0


def report_begin(
    node: Context, work: Work, transfers: Iterable[Transfer], row: TabletRow | None = None
) -> None:
    """A node begins to fetch rows, in transfers."""
    found = ((t.table, range_, t.source) for t in transfers for range_ in t.ranges)
    node.report(RowWork(work, begins=True, row=row, fetched=tuple(found)))
