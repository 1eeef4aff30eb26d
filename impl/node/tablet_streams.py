"""Streaming and repair of tablets: a node fetches rows of one that it gains or has, in the tablet's session.

A migration fetches from the replica that leaves: what a quorum acknowledged is on as many replicas afterwards.
What is kept beside rows for views comes before them: the rows that it is of, or newer ones, are then among these.
A rebuild fetches from all that stay, or from one of them after these have repaired. To repair, each replica
fetches from all others what it lacks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Order, OrderDone, RowChunk, Work
from stagewright.impl.node.port import Effect, RowWork, Send
from stagewright.impl.node.replica import Replica
from stagewright.impl.node.transfers import Transfer, report_begin
from stagewright.impl.views.maintenance.hints import hints_of
from stagewright.impl.views.maintenance.staged import staging_of
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Role, Run

ATTEMPTS = 20  # without an answer, until a source is taken for gone


@dataclass
class _Running:
    """The streaming of one tablet, for the coordinator that asked for it last."""

    row: TabletRow
    coordinator: str
    order: Order
    transfers: dict[int, Transfer] = field(default_factory=dict[int, Transfer])
    later: list[Transfer] = field(default_factory=list[Transfer])  # those that wait for others

    def next(self) -> list[Transfer]:
        """The transfers that begin now: those of what is beside rows, and then the others."""
        if not all(t.over or t in self.later for t in self.transfers.values()):
            return []
        table = self.row.table
        found = [t for t in self.later if t.table in (hints_of(table), staging_of(table))]
        found = found or self.later
        self.later = [t for t in self.later if t not in found]
        return found


class TabletStreams:
    """What one node streams of tablets, by session."""

    def __init__(self, node: Context, replica: Replica) -> None:
        self._node = node
        self._replica = replica
        self._running: dict[str, _Running] = {}
        self._done: set[tuple[str, Work]] = set()
        self._cleaned: set[tuple[str, str]] = set()  # tablets, while they are cleaned up, by key

    # -- the node that fetches ---------------------------------------------------------------------------

    def begin(self, coordinator: str, order: Order) -> list[Effect]:
        """Fetch a tablet; all that was committed when the order came is learned."""
        node, session = self._node, order.session
        row = node.view.tablet(order.table, order.tablet)
        if row is None or not session or row.session != session:
            return [_end(coordinator, order, f"session {session} is not open")]
        if row.tablet.stage.action is not _RUNS[order.work]:
            return [_end(coordinator, order, f"{row.name} is in {row.tablet.stage.name}")]
        if (session, order.work) in self._done or node.has(_SKIPPED[order.work]):
            return self._replica.say_once_synced(_end(coordinator, order))
        if session in self._running:
            self._running[session].coordinator = coordinator
            self._running[session].order = order
            return []
        repairs = order.work is Work.repair_tablet
        sources = self._sources(row, repairs)
        moves_within = row.kind is Kind.intranode_migration
        if not sources and not moves_within and not repairs:
            return [_end(coordinator, order, f"no replica of {row.name} is left")]
        running = _Running(row, coordinator, order)
        families = [*node.view.families(row.table)]
        if node.has(Defect.logs_stay_behind):
            families = [row.table]
        if node.view.views_of(row.table) and row.kind is Kind.migration:
            families.append(hints_of(row.table))
            if not node.has(Defect.staging_stays_behind):
                families.append(staging_of(row.table))
        for source in () if moves_within else sources:
            for family in families:
                number = node.number()
                running.transfers[number] = Transfer(
                    "tablet transfer", number, session, family, source, (row.range,)
                )
        self._running[session] = running
        report_begin(node, order.work, running.transfers.values(), row)
        running.later = [*running.transfers.values()]
        return [*self._go_on(running), *self._look(running)]

    def _go_on(self, running: _Running) -> list[Effect]:
        return [e for t in running.next() for e in self._pull(running, t, 0)]

    def _sources(self, row: TabletRow, repairs: bool) -> list[str]:
        role = Role.leaving if row.kind is Kind.migration else Role.staying
        hosts = row.tablet.hosts(Replicas.previous) if repairs else row.hosts[role]
        shunned = {self._node.name}
        if not self._node.has(Defect.given_up_sources_are_asked):
            shunned |= self._node.view.given_up
        found = [h for h in hosts if h not in shunned]
        careless = repairs and self._node.has(Defect.repairs_fetch_from_one_replica)
        from_one = row.kind is Kind.rebuild_v2 and not repairs
        return found[:1] if from_one or careless else found

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
        repairs = running.order.work is Work.repair_tablet
        beside, then = self._replica.views.arrived(
            running.row, transfer.table, chunk.cells, repairs=repairs
        )
        batch = (*transfer.take(self._node, chunk), *beside)
        more = self._go_on(running) if transfer.over else self._pull(running, transfer, 0)
        stored = self._replica.store(batch, *then) if batch else []
        return [*stored, *more, *self._look(running)]

    def _look(self, running: _Running) -> list[Effect]:
        """All transfers may be over: what they brought is synced, and has tasks, before the coordinator hears of it."""
        if not all(t.over for t in running.transfers.values()):
            return []
        return self._replica.views.registrar.register(
            running.row, lambda problem: self._over(running, problem)
        )

    def _over(self, running: _Running, problem: str) -> list[Effect]:
        if self._running.get(running.row.session) is not running:
            return []  # the session was closed
        if problem:
            return self._fail(running, problem)
        del self._running[running.row.session]
        self._done.add((running.row.session, running.order.work))
        self._node.report(RowWork(running.order.work, begins=False, row=running.row))
        end = _end(running.coordinator, running.order)
        return self._replica.say_once_synced(end)

    def _fail(self, running: _Running, reason: str) -> list[Effect]:
        del self._running[running.row.session]
        return [_end(running.coordinator, running.order, reason)]

    def end_closed(self) -> None:
        """What was learned may have closed sessions, whose streaming ends, and ended cleanups."""
        if self._cleaned:
            self._cleaned &= {r.key for r in self._node.view.moving if _is_cleaned(r)}
        if self._node.has(Defect.session_is_not_checked):
            return
        open_sessions = self._node.view.sessions
        for session in [s for s in self._running if s not in open_sessions]:
            del self._running[session]

    # -- the node that has lost one ------------------------------------------------------------------------

    def clean(self, coordinator: str, order: Order) -> list[Effect]:
        """Remove the rows of a tablet; all that was committed when the order came is learned.

        Orders may come together: what one removes is still on the disk when the next is looked at, and has no
        heirs or view updates any more.
        """
        row = self._node.view.tablet(order.table, order.tablet)
        if row is None or not _is_cleaned(row) or self._node.name in row.chosen.writes:
            return [_end(coordinator, order, "there is nothing to clean up")]
        if row.key not in self._cleaned and (waits := self._hand_on(coordinator, order, row)):
            return waits
        if not self._node.has(Defect.repeated_cleanups_settle_again):
            self._cleaned.add(row.key)
        if self._node.has(Defect.tablet_cleanup_leaves_rows):
            return [_end(coordinator, order)]
        self._node.report(RowWork(order.work, begins=False, row=row))
        return self._replica.clean_tablet(row, _end(coordinator, order))

    def _hand_on(self, coordinator: str, order: Order, row: TabletRow) -> list[Effect]:
        """What others need of a tablet before its rows are removed; nothing: they have it."""
        late = self._replica.views.handing.go_on(row)
        if late is not None:
            return [*late, _end(coordinator, order, "rows of it are handed over")]
        settled = self._replica.views.settle(row)
        if settled or self._replica.views.holds(row):
            return [*settled, _end(coordinator, order, "view updates of it are on their way")]
        return []


_RUNS = {Work.stream_tablet: Run.streaming, Work.repair_tablet: Run.repair}
_SKIPPED = {
    Work.stream_tablet: Defect.tablet_streaming_is_skipped,
    Work.repair_tablet: Defect.repairs_are_skipped,
}


def _is_cleaned(row: TabletRow) -> bool:
    return row.tablet.stage.action is Run.cleanup


def _end(coordinator: str, order: Order, problem: str = "") -> Send:
    return Send(coordinator, OrderDone(order.term, order.number, not problem, problem))
