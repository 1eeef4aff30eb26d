"""Streaming of tablets: a node that gains one fetches its rows, each tablet in a session of its own.

A migration fetches from the replica that leaves: what a quorum acknowledged is on as many replicas afterwards.
A rebuild fetches from all that stay.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Order, OrderDone, RowChunk
from stagewright.impl.node.port import Effect, Send
from stagewright.impl.node.replica import Replica
from stagewright.impl.node.transfers import Transfer
from stagewright.impl.views.hints import hints_of
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Run

ATTEMPTS = 20  # without an answer, until a source is taken for gone


@dataclass
class _Running:
    """The streaming of one tablet, for the coordinator that asked for it last."""

    row: TabletRow
    coordinator: str
    order: Order
    transfers: dict[int, Transfer] = field(default_factory=dict[int, Transfer])


class TabletStreams:
    """What one node streams of tablets, by session."""

    def __init__(self, node: Context, replica: Replica) -> None:
        self._node = node
        self._replica = replica
        self._running: dict[str, _Running] = {}
        self._done: set[str] = set()

    # -- the node that gains a tablet --------------------------------------------------------------------

    def begin(self, coordinator: str, order: Order) -> list[Effect]:
        """Fetch a tablet; all that was committed when the order came is learned."""
        node, session = self._node, order.session
        row = node.view.tablet(order.table, order.tablet)
        if row is None or not session or row.session != session:
            return [_end(coordinator, order, f"session {session} is not open")]
        if session in self._done or node.has(Defect.tablet_streaming_is_skipped):
            return [_end(coordinator, order)]
        if session in self._running:
            self._running[session].coordinator = coordinator
            self._running[session].order = order
            return []
        given_up = node.view.given_up
        role = Role.leaving if row.kind is Kind.migration else Role.staying
        sources = [h for h in row.hosts[role] if h not in given_up]
        moves_within = row.kind is Kind.intranode_migration
        if not sources and not moves_within:
            return [_end(coordinator, order, f"no replica of {row.name} is left")]
        running = _Running(row, coordinator, order)
        for source in () if moves_within else sources:
            number = node.number()
            running.transfers[number] = Transfer(
                "tablet transfer", number, session, row.table, source, (row.range,)
            )
            if node.view.views_of(row.table) and row.kind is Kind.migration:
                number, hints = node.number(), hints_of(row.table)
                running.transfers[number] = Transfer(
                    "tablet transfer", number, session, hints, source, (row.range,)
                )
        self._running[session] = running
        pulls = [e for t in running.transfers.values() for e in self._pull(running, t, 0)]
        return [*pulls, *self._look(running)]

    def _pull(self, running: _Running, transfer: Transfer, attempts: int) -> list[Effect]:
        if attempts == ATTEMPTS:
            return self._fail(running, f"{transfer.source} does not answer")
        return transfer.pull(self._node, attempts)

    def _of(self, number: int) -> tuple[_Running, Transfer] | None:
        for running in self._running.values():
            if number in running.transfers:
                return running, running.transfers[number]
        return None

    def again(self, number: int, start: str, attempts: int) -> list[Effect]:
        """Nothing has come for a while: ask once more."""
        found = self._of(number)
        if found is None or not found[1].waits_for(bytes.fromhex(start)):
            return []
        return self._pull(*found, attempts)

    def received(self, chunk: RowChunk) -> list[Effect] | None:
        """Rows have come; None if they are of no tablet that is fetched."""
        found = self._of(chunk.transfer)
        if found is None:
            return None
        running, transfer = found
        if not transfer.waits_for(chunk.start):
            return []
        if chunk.refused:
            return self._fail(running, f"{transfer.source}: {chunk.refused}")
        batch, then = transfer.take(self._node, chunk), list[Effect]()
        if transfer.table == running.row.table:
            rebuilt = running.row.kind is Kind.rebuild
            hints, then = self._replica.views.of_stream(
                transfer.table, chunk.cells, rebuilt=rebuilt
            )
            batch += hints
        else:
            self._replica.views.of_hints(running.row.table, chunk.cells)
        more = [] if transfer.over else self._pull(running, transfer, 0)
        stored = self._replica.store(batch, *then) if batch else []
        return [*stored, *more, *self._look(running)]

    def _look(self, running: _Running) -> list[Effect]:
        """All transfers may be over: what they brought is synced before the coordinator hears of it."""
        if not all(t.over for t in running.transfers.values()):
            return []
        del self._running[running.row.session]
        self._done.add(running.row.session)
        return self._replica.store((), _end(running.coordinator, running.order))

    def _fail(self, running: _Running, reason: str) -> list[Effect]:
        del self._running[running.row.session]
        return [_end(running.coordinator, running.order, reason)]

    def end_closed(self) -> None:
        """What was learned may have closed sessions: their streaming ends."""
        if self._node.has(Defect.session_is_not_checked):
            return
        open_sessions = self._node.view.sessions
        for session in [s for s in self._running if s not in open_sessions]:
            del self._running[session]

    # -- the node that has lost one ------------------------------------------------------------------------

    def clean(self, coordinator: str, order: Order) -> list[Effect]:
        """Remove the rows of a tablet; all that was committed when the order came is learned."""
        row = self._node.view.tablet(order.table, order.tablet)
        cleans = row is not None and row.tablet.stage.action is Run.cleanup
        if row is None or not cleans or self._node.name in row.chosen.writes:
            return [_end(coordinator, order, "there is nothing to clean up")]
        if self._replica.views.holds(row):
            return [_end(coordinator, order, "view updates of it are on their way")]
        if self._node.has(Defect.tablet_cleanup_leaves_rows):
            return [_end(coordinator, order)]
        return self._replica.clean_tablet(row, _end(coordinator, order))


def _end(coordinator: str, order: Order, problem: str = "") -> Send:
    return Send(coordinator, OrderDone(order.term, order.number, not problem, problem))
