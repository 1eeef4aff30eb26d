"""Streaming and repair, at the node that runs them: rows are pulled in chunks, and for a repair pushed back.

What streams does so within a session. When a node learns that the session is closed, it ends the transfer;
rows that arrive afterwards belong to no transfer and are thrown away.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.messages import (
    Effect,
    OperationReply,
    PullRows,
    PushAck,
    PushRows,
    PutRows,
    Row,
    RowChunk,
    RunOperation,
    Send,
    Wake,
)
from stagewright.impl.cluster.node_store import Rows
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.cluster.view import TabletView, View
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Run

START = ""  # less than every key


@dataclass
class _Transfer:
    number: int
    tablet: str
    session: int | None
    sources: list[str]  # still to pull from, the current one first
    targets: list[str]  # then to push to
    operations: dict[int, str]  # who waits for the end: operation and coordinator
    after: str = START
    attempts: int = 0
    sent: tuple[Row, ...] = field(default=())  # being pushed


class Transfers:
    """The transfers that one node runs, at most one a tablet."""

    def __init__(self, name: str, rows: Rows, settings: Settings) -> None:
        self._name = name
        self._rows = rows
        self._settings = settings
        self._running: dict[str, _Transfer] = {}
        self._number = 0

    # -- beginning and ending ----------------------------------------------------------------------------

    def begin(self, order: RunOperation, view: View) -> list[Effect]:
        """Start streaming or repairing, or join what runs already."""
        running = self._running.get(order.tablet)
        if running is not None and running.session == order.session:
            running.operations[order.operation] = order.coordinator
            return []
        tablet = view.tablets[order.tablet]
        sources = self._sources(order.run, tablet, view.ignored)
        self._number += 1
        transfer = _Transfer(
            self._number,
            order.tablet,
            order.session,
            sources,
            list(sources) if order.run is Run.repair else [],
            {order.operation: order.coordinator},
        )
        if not sources and order.run is Run.streaming:
            return self._end(transfer, "no replica to stream from is left")
        self._running[order.tablet] = transfer
        return self._go_on(transfer)

    def _sources(self, run: Run, tablet: TabletView, ignored: frozenset[str]) -> list[str]:
        """A migration streams from the replica it replaces; a rebuild from all others, or from one repaired."""
        if run is Run.repair:
            return [n for n in tablet.replicas if n not in ignored and n != self._name]
        if tablet.kind is Kind.migration:
            return [n for n in tablet.leaving if n not in ignored]
        live = [n for n in tablet.staying if n not in ignored]
        return live[:1] if tablet.kind is Kind.rebuild_v2 else live

    def end_closed(self, view: View) -> None:
        """End the transfers whose session is closed: what they were for is over."""
        if self._settings.has(Defect.session_is_not_checked):
            return
        for transfer in list(self._running.values()):
            tablet = view.tablets[transfer.tablet]
            if tablet.stage.action is Run.nothing or tablet.session != transfer.session:
                del self._running[transfer.tablet]

    def _end(self, transfer: _Transfer, reason: str = "") -> list[Effect]:
        self._running.pop(transfer.tablet, None)
        return [
            Send(coordinator, OperationReply(operation, self._name, not reason, reason))
            for operation, coordinator in transfer.operations.items()
        ]

    def fail(self, tablet: str, reason: str) -> list[Effect]:
        """Something went wrong: the transfer of a tablet ends where it is."""
        transfer = self._running.get(tablet)
        return [] if transfer is None else self._end(transfer, reason)

    # -- one chunk after the other -------------------------------------------------------------------------

    def _go_on(self, transfer: _Transfer) -> list[Effect]:
        """Ask for the next chunk, send the next chunk, or be done."""
        if not transfer.sources and not transfer.targets:
            return self._end(transfer)
        transfer.attempts = 0
        if not transfer.sources:
            transfer.sent = self._rows.rows_after(
                transfer.tablet, transfer.after, self._settings.chunk_rows
            )
            if not transfer.sent:
                transfer.targets.pop(0)
                transfer.after = START
                return self._go_on(transfer)
        return self._send(transfer)

    def _send(self, transfer: _Transfer) -> list[Effect]:
        name, tablet, session, after = self._name, transfer.tablet, transfer.session, transfer.after
        again = ("transfer", tablet, transfer.number, after, transfer.attempts)
        wake = Wake(self._settings.resend_ms, again)
        if transfer.sources:
            return [Send(transfer.sources[0], PullRows(name, tablet, session, after)), wake]
        push = PushRows(name, tablet, session, after, transfer.sent)
        return [Send(transfer.targets[0], push), wake]

    def again(self, tablet: str, number: int, after: str, attempts: int) -> list[Effect]:
        """Nothing was heard for a while: send once more, or fail."""
        transfer = self._running.get(tablet)
        if transfer is None or (transfer.number, transfer.after, transfer.attempts) != (
            number,
            after,
            attempts,
        ):
            return []
        transfer.attempts += 1
        if transfer.attempts == self._settings.attempts:
            silent = (transfer.sources or transfer.targets)[0]
            return self._end(transfer, f"{silent} does not answer")
        return self._send(transfer)

    def received(self, chunk: RowChunk) -> list[Effect]:
        """Store a chunk that was asked for."""
        transfer = self._running.get(chunk.tablet)
        if (
            transfer is None
            or not transfer.sources
            or (transfer.session, transfer.sources[0], transfer.after)
            != (chunk.session, chunk.source, chunk.after)
        ):
            return []
        if chunk.refused:
            return self._end(transfer, f"{chunk.source} has no storage for the tablet")
        if chunk.last:
            transfer.sources.pop(0)
            transfer.after = START
        else:
            transfer.after = chunk.rows[-1].key
        stored = [PutRows(chunk.tablet, chunk.rows, chunk.session)] if chunk.rows else []
        return [*stored, *self._go_on(transfer)]

    def pushed(self, ack: PushAck) -> list[Effect]:
        """A chunk has been stored where it was missing."""
        transfer = self._running.get(ack.tablet)
        if (
            transfer is None
            or transfer.sources
            or not transfer.targets
            or (transfer.session, transfer.targets[0], transfer.after)
            != (ack.session, ack.target, ack.after)
        ):
            return []
        transfer.after = transfer.sent[-1].key
        return self._go_on(transfer)

    # -- at the other end ----------------------------------------------------------------------------------

    def give(self, pull: PullRows, view: View) -> list[Effect]:
        """Answer with the next chunk of rows."""
        stored = view.tablets[pull.tablet].stored_at(self._name)
        limit = self._settings.chunk_rows
        rows = self._rows.rows_after(pull.tablet, pull.after, limit + 1) if stored else ()
        chunk, last = rows[:limit], len(rows) <= limit
        if self._settings.has(Defect.streaming_misses_rows):
            kept = tuple(r for r in chunk if zlib.crc32(r.value.encode()) % 3)
            chunk = kept if last else (*kept, *chunk[-1:])
        answer = RowChunk(
            self._name, pull.tablet, pull.session, pull.after, chunk, last, refused=not stored
        )
        return [Send(pull.requester, answer)]

    def take(self, push: PushRows) -> list[Effect]:
        """Store rows that a repair found missing."""
        ack = PushAck(self._name, push.tablet, push.session, push.after)
        return [PutRows(push.tablet, push.rows, push.session), Send(push.sender, ack)]
