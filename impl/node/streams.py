"""Streaming: a node that gains token ranges fetches their rows from the replicas that have them, in a session.

It asks every replica of the old ring that is not given up: a row that a quorum has acknowledged is then on
one of them at least. What is fetched counts while the session is open in the tables, and not a moment longer;
a source streams for an open session only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.view import View
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import (
    TOO_FEW,
    Cell,
    Order,
    OrderDone,
    PullRows,
    RowChunk,
    Work,
)
from stagewright.impl.node.port import Effect, RowWork, Send
from stagewright.impl.node.replica import Replica
from stagewright.impl.node.transfers import Transfer, report_begin
from stagewright.machines.scylladb.topology.topology_states import NodeState


@dataclass
class _Running:
    """The streaming of one session, for the coordinator that asked for it last."""

    session: str
    coordinator: str
    order: Order
    transfers: dict[int, Transfer] = field(default_factory=dict[int, Transfer])


class Streams:
    """What one node streams."""

    def __init__(self, node: Context, replica: Replica) -> None:
        self._node = node
        self._replica = replica
        self._running: _Running | None = None
        self._done = ""  # the session that was streamed last

    # -- the node that gains ranges ----------------------------------------------------------------------

    def begin(self, coordinator: str, order: Order) -> list[Effect]:
        """Fetch what this node gains; all that was committed when the order came is learned."""
        view = self._node.view
        if not order.session or view.session != order.session:
            return [self._end(coordinator, order, f"session {order.session} is not open")]
        if self._done == order.session or self._node.has(Defect.streaming_is_skipped):
            return self._replica.say_once_synced(self._end(coordinator, order))
        if self._running is not None and self._running.session == order.session:
            self._running.coordinator, self._running.order = coordinator, order
            return []
        running = _Running(order.session, coordinator, order)
        for (table, source), ranges in self._wanted(view).items():
            if not source:
                return [self._end(coordinator, order, f"{TOO_FEW}{name_of(table)} are there")]
            number = self._node.number()
            running.transfers[number] = Transfer(
                "transfer", number, order.session, table, source, tuple(ranges)
            )
        self._running = running
        report_begin(self._node, Work.stream, running.transfers.values())
        pulls = [e for t in running.transfers.values() for e in t.pull(self._node, 0)]
        return [*pulls, *self._look()]

    def _wanted(self, view: View) -> dict[tuple[str, str], list[tuple[int, int]]]:
        """The ranges to fetch of each table from each source; the source "" has those without one."""
        node = self._node
        rebuilds = view.nodes[node.name].state is NodeState.rebuilding
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for table, factor in sorted(view.vnode_tables.items()):
            for low, high in view.ranges():
                chosen = view.chosen(high, factor)
                fetch = chosen.reads if rebuilds else view.fetchers(high, factor)
                if node.name not in fetch:
                    continue
                old = [n for n in chosen.writes if n not in chosen.pending]
                shunned = {node.name}
                if not node.has(Defect.given_up_sources_are_asked):
                    shunned |= view.ignored
                sources = [n for n in old if n not in shunned]
                needed = len(old) - (factor // 2 + 1) + (0 if node.name in old else 1)
                if len(sources) < min(needed, len(old)) or (
                    old and not sources and node.name not in old
                ):
                    sources = [""]
                if node.has(Defect.streaming_from_one_source):
                    sources = sources[-1:]
                for source in sources:
                    found.setdefault((table, source), []).append((low, high))
        return found

    def again(self, number: int, start: str, attempts: int) -> list[Effect]:
        """Nothing has come for a while: ask once more."""
        transfer = self._running.transfers.get(number) if self._running is not None else None
        if transfer is None or not transfer.waits_for(bytes.fromhex(start)):
            return []
        return transfer.pull(self._node, attempts)

    def received(self, chunk: RowChunk) -> list[Effect]:
        """Rows have come."""
        running = self._running
        transfer = running.transfers.get(chunk.transfer) if running is not None else None
        if running is None or transfer is None or not transfer.waits_for(chunk.start):
            return []
        if chunk.refused:
            return self._fail(f"{transfer.source}: {chunk.refused}")
        if self._closed() and not self._node.has(Defect.session_is_not_checked):
            return self._fail("the session was closed")
        batch = transfer.take(self._node, chunk)
        if self._node.view.is_dropped(transfer.table):
            batch = ()
        more = [] if transfer.over else transfer.pull(self._node, 0)
        stored = self._replica.store(batch) if batch else []
        return [*stored, *more, *self._look()]

    def _look(self) -> list[Effect]:
        """All transfers may be over: what they brought is synced before the coordinator hears of it."""
        running = self._running
        if running is None or not all(t.over for t in running.transfers.values()):
            return []
        self._running, self._done = None, running.session
        self._node.report(RowWork(Work.stream, begins=False))
        end = self._end(running.coordinator, running.order)
        return self._replica.say_once_synced(end)

    def _fail(self, reason: str) -> list[Effect]:
        running = self._running
        assert running is not None
        self._running = None
        return [self._end(running.coordinator, running.order, reason)]

    @staticmethod
    def _end(coordinator: str, order: Order, problem: str = "") -> Send:
        return Send(coordinator, OrderDone(order.term, order.number, not problem, problem))

    def _closed(self) -> bool:
        return self._running is not None and self._node.view.session != self._running.session

    def learned(self) -> list[Effect]:
        """What was learned may have closed the session: its streaming ends, and no barrier waits for it.

        Or it has dropped a table: nothing of that is waited for, whose sources may be down.
        """
        if self._closed() and not self._node.has(Defect.session_is_not_checked):
            self._running = None
        transfers = self._running.transfers.values() if self._running is not None else ()
        gone = [t for t in transfers if not t.over and self._node.view.is_dropped(t.table)]
        for transfer in gone:
            transfer.over = True
        return self._look() if gone else []

    # -- a source ----------------------------------------------------------------------------------------

    def give(self, sender: str, pull: PullRows) -> list[Effect]:
        """The next rows for somebody; what the one who asks knows is learned here, too."""
        if pull.session not in self._node.view.sessions and not self._node.has(
            Defect.session_is_not_checked
        ):
            refused = RowChunk(pull.transfer, pull.start, (), None, "the session is not open")
            return [Send(sender, refused)]
        return [Send(sender, self._chunk(pull))]

    def _chunk(self, pull: PullRows) -> RowChunk:
        cells: list[Cell] = []
        snapshot = self._node.rows.snapshot()
        following: bytes | None = None
        for low, high in pull.ranges:
            first, end = bounds(low, high)
            if following is not None or (end is not None and end <= pull.start):
                continue
            for version in snapshot.newest(pull.table, max(first, pull.start), end):
                if len(cells) == self._node.timing.chunk:
                    following = version.key
                    break
                cells.append((version.key, version.time, version.value))
        snapshot.close()
        if self._node.has(Defect.streaming_misses_rows):
            cells = [c for i, c in enumerate(cells) if i % 3 != 2]
        if self._node.has(Defect.tombstones_are_not_streamed):
            cells = [c for c in cells if c[2] is not None]
        if self._node.has(Defect.rows_between_chunks_are_lost) and following is not None:
            following += b"\0"
        return RowChunk(pull.transfer, pull.start, tuple(cells), following)
