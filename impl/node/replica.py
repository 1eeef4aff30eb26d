"""A node as a replica: it writes and reads rows unless a request is fenced off, and deletes what it lost."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.cdc.expiry import expired
from stagewright.impl.cdc.rows import log_of
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import LOCAL, bounds, token_in
from stagewright.impl.node.messages import (
    Outcome,
    ReplicaRead,
    ReplicaReply,
    ReplicaRows,
    ReplicaScan,
    ReplicaWrite,
)
from stagewright.impl.node.port import Drop, Effect, Send, Store, Truncate, Wake
from stagewright.impl.node.superseding import Superseding
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views.maintenance.handing_over import late_rows_of
from stagewright.impl.views.maintenance.hints import hints_of
from stagewright.impl.views.maintenance.staged import staging_of
from stagewright.impl.views.node_views import NodeViews


class Replica:
    """The rows of one node, as others ask for them."""

    def __init__(self, node: Context, views: NodeViews) -> None:
        self._node = node
        self.views = views
        self._unsynced: dict[int, tuple[Effect, ...]] = {}
        self._expires = False  # it is going to be woken to look what has expired
        self._gone = frozenset[str]()  # tables whose rows it has removed
        self.superseding = Superseding(node, views.outbox, self.store)
        views.store = self.store
        views.worker.synced = partial(self.store, ())

    def serve(self, sender: str, request: ReplicaWrite | ReplicaRead | ReplicaScan) -> list[Effect]:
        """Do what another node's client wants."""
        refusal = self._refusal(request)
        if isinstance(request, ReplicaScan):
            if self._node.has(Defect.scans_are_not_fenced) and refusal is Outcome.fenced:
                refusal = None
            return [Send(sender, self._scan(request, refusal))]
        if refusal is not None:
            return [Send(sender, ReplicaReply(request.number, refusal))]
        if isinstance(request, ReplicaWrite):
            key, timestamp, value = request.cell
            if self._is_truncated(request.table, timestamp):  # views get nothing of it, either
                return [Send(sender, ReplicaReply(request.number, Outcome.done))]
            puts = [Put(request.table, Version(key, timestamp, value))]
            beside = [Put(table, Version(*cell)) for table, cell in request.beside]
            puts += beside
            hints, then = self.views.of_write(request.table, request.cell, late=request.late)
            puts += hints
            answer = Send(sender, ReplicaReply(request.number, Outcome.done))
            if self._node.has(Defect.sync_is_forgotten):
                return [Store(tuple(puts)), answer, *then]
            if beside and self._node.has(Defect.log_rows_are_stored_apart):
                rows = tuple(put for put in puts if put not in beside)
                return [*self.store(rows), *self.store(tuple(beside), answer, *then)]
            return self.store(tuple(puts), answer, *then)
        found = self._node.rows.get(request.table, request.key)
        if found is None:
            return [Send(sender, ReplicaReply(request.number, Outcome.done))]
        reply = ReplicaReply(request.number, Outcome.done, found.time, found.value)
        return [Send(sender, reply)]

    def _refusal(self, request: ReplicaWrite | ReplicaRead | ReplicaScan) -> Outcome | None:
        node = self._node
        if not node.ready and not node.has(Defect.unready_replica_answers):
            return Outcome.unready
        if request.version < node.view.fence_version and not node.has(Defect.fence_is_ignored):
            return Outcome.fenced
        careless = node.has(Defect.rows_come_to_dropped_tables)
        if node.view.is_dropped(request.table) and not careless:
            return Outcome.absent
        row = node.view.tablet_with(request.table, token_in(request.first))
        if row is not None and node.name not in row.tablet.hosts(row.tablet.stage.storage):
            return Outcome.absent
        return None

    def _scan(self, request: ReplicaScan, refusal: Outcome | None) -> ReplicaRows:
        if refusal is not None:
            return ReplicaRows(request.number, refusal)
        cells: list[tuple[bytes, int, bytes | None]] = []
        snapshot = self._node.rows.snapshot()
        for version in snapshot.newest(request.table, request.start, request.end):
            if len(cells) == request.limit:
                break
            cells.append((version.key, version.time, version.value))
        snapshot.close()
        full = len(cells) == request.limit
        return ReplicaRows(request.number, Outcome.done, tuple(cells), full)

    # -- the disk --------------------------------------------------------------------------------------

    def store(self, batch: tuple[Put, ...], *then: Effect) -> list[Effect]:
        """Write rows; what follows happens when they are on the disk."""
        number, batch = self._node.number(), self._not_truncated(batch)
        self._unsynced[number] = then
        return [Store(batch, number), *self.superseding.wrote(batch)]

    def say_once_synced(self, end: Effect) -> list[Effect]:
        """Say that rows have streamed, once they are on the disk: a repeated order may come before that."""
        if self._node.has(Defect.streamed_rows_are_not_synced):
            return [end]
        return self.store((), end)

    def stored(self, number: int) -> list[Effect]:
        """They are."""
        return [*self._unsynced.pop(number, ())]

    # -- cleanup ---------------------------------------------------------------------------------------

    def clean(self, then: Effect) -> list[Effect]:
        """Remove the rows of ranges that the node has no part in, in any ring."""
        node, view = self._node, self._node.view
        dropped: list[Effect] = []
        for table, factor in sorted(view.vnode_tables.items()):
            for low, high in view.ranges():
                chosen = view.chosen(high, factor)
                mine = node.name in (*chosen.writes, *chosen.reads)
                if node.has(Defect.cleanup_drops_owned_rows):
                    mine = node.name in (*chosen.writes, *chosen.reads)[:1]
                first, end = bounds(low, high)
                if not mine and self._holds(table, first, end):
                    dropped.append(Drop(table, first, end))
        return [*dropped, *self.store((), then)]

    def clean_tablet(self, row: TabletRow, then: Effect) -> list[Effect]:
        """Remove the rows of a tablet that the node gains no more, or has lost.

        What is kept beside them goes first: a crash may leave rows without it, but not it without its rows.
        """
        return [*self.views.forget(row), *self._drops(row), *self.store((), then)]

    def drop_lost(self, rows: Iterable[TabletRow]) -> list[Effect]:
        """Remove the rows of tablets that this node has no part in: they were rebuilt while it counted as gone.

        Where what was begun has only to be ended, or taken back, nobody asks the node for that any more.
        """
        effects: list[Effect] = []
        if self._node.has(Defect.lost_rows_are_kept):
            return effects
        for row in rows:
            holders = row.tablet.hosts(row.tablet.stage.storage)
            if self._node.name not in holders and (dropped := self._drops(row)):
                effects += [*self.views.forget(row), *dropped]
        return effects

    def drop_tables(self, *, started: bool = False) -> list[Effect]:
        """Remove what is here of tables that were dropped; a node that was down looks for all of them once it has `started`."""
        node, view = self._node, self._node.view
        gone = view.dropped - view.tables.keys() - self._gone
        self._gone |= gone
        if started and node.has(Defect.dropped_rows_are_not_looked_for):
            return []
        beside = (log_of, hints_of, staging_of, late_rows_of)
        families = [f for t in sorted(gone) for f in (t, *(of(t) for of in beside))]
        return [Drop(f, b"", None) for f in families if self._holds(f, b"", None)]

    def truncate_tables(self) -> list[Effect]:
        """Remove what tables had when they were truncated, where this node has not; a mark says how far it has."""
        node, effects, marks = self._node, list[Effect](), list[Put]()
        for table, until in sorted(node.view.truncated.items()):
            mark = f"truncated:{table}".encode()
            known = node.rows.get(LOCAL, mark)
            if known is None or known.time < until:
                effects.append(Truncate(table, until))
                marks.append(Put(LOCAL, Version(mark, until, b"COMPLETED")))
        return [*effects, *self.store(tuple(marks))] if marks else effects

    def _not_truncated(self, batch: tuple[Put, ...]) -> tuple[Put, ...]:
        """Rows without those that are from before their table was truncated, however late they come."""
        if not self._node.view.truncated:
            return batch
        return tuple(p for p in batch if not self._is_truncated(p.family, p.version.time))

    def _is_truncated(self, family: str, time: int) -> bool:
        careless = self._node.has(Defect.rows_come_to_truncated_tables)
        return time <= self._node.view.truncated.get(family, 0) and not careless

    def expire(self, *, woken: bool = False) -> list[Effect]:
        """Remove rows of logs that are older than they are kept; look again after a quarter of that time."""
        node, view = self._node, self._node.view
        effects: list[Effect] = []
        self._expires &= not woken
        if not view.kept:
            return effects  # their tables were dropped
        early = 8 if node.has(Defect.log_rows_expire_early) else 1
        snapshot = node.rows.snapshot()
        for table, milliseconds in view.kept.items():
            log, before = view.logs[table], node.around.now() - 1000 * milliseconds // early
            effects += [Drop(log, *ends) for ends in expired(snapshot, log, before)]
        snapshot.close()
        if not self._expires:
            self._expires = True
            effects.append(Wake(max(1, min(view.kept.values()) // 4), ("expire",)))
        return effects

    def _drops(self, row: TabletRow) -> list[Effect]:
        """What removes the rows of a tablet, and those of its log."""
        first, end = bounds(*row.range)
        families = self._node.view.families(row.table)
        return [Drop(f, first, end) for f in families if self._holds(f, first, end)]

    def _holds(self, table: str, first: bytes, end: bytes | None) -> bool:
        snapshot = self._node.rows.snapshot()
        found = next(snapshot.versions(table, first, end), None) is not None
        snapshot.close()
        return found
