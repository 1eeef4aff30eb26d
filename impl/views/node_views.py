"""What a node has of views: the updates of its replicas, its worker, and the coordinator while it leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.group0 import Leadership
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import Cell
from stagewright.impl.node.messages.tables import (
    CreateView,
    DropView,
    ViewsReply,
    ViewsRequest,
    WorkedOnTasks,
    WorkOnTasks,
)
from stagewright.impl.node.port import Drop, Effect, Reason, Send
from stagewright.impl.storage.port import Put, Version
from stagewright.impl.views.building.coordinator import ViewBuildingCoordinator
from stagewright.impl.views.building.destinations import goes_to_staging
from stagewright.impl.views.building.progress import statuses
from stagewright.impl.views.building.records import OnRecord, Record, What
from stagewright.impl.views.building.registrar import StagingRegistrar
from stagewright.impl.views.building.worker import ViewBuildingWorker
from stagewright.impl.views.maintenance.definition import ViewDefinition
from stagewright.impl.views.maintenance.handing_over import HandingOver
from stagewright.impl.views.maintenance.hints import hints_of, put_hint, stored_hints, update_in
from stagewright.impl.views.maintenance.memtables import Memtables
from stagewright.impl.views.maintenance.outbox import Outbox
from stagewright.impl.views.maintenance.pairing import is_paired
from stagewright.impl.views.maintenance.staged import (
    Staged,
    entry_key,
    put_staged,
    staged_rows,
    staging_of,
    updates_of_staged,
)
from stagewright.impl.views.maintenance.updates import (
    ViewUpdate,
    for_everyone,
    taken_back,
    updates_of,
)
from stagewright.impl.views.statements import create_view, drop_view
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role

Request = CreateView | DropView | ViewsRequest | WorkOnTasks | WorkedOnTasks


class NodeViews:
    """The part of one life of a node."""

    def __init__(self, node: Context) -> None:
        self.outbox = Outbox(node)
        self.handing = HandingOver(node)
        self.coordinator: ViewBuildingCoordinator | None = None
        self._node = node
        self._in_pairs = node.has(Defect.late_rows_update_their_partners)
        self.memtables = Memtables()
        self.listeners: list[OnRecord] = []  # who hears what is recorded
        self.worker = ViewBuildingWorker(node, self.outbox, self.memtables, self._record)
        self.registrar = StagingRegistrar(node)
        self._known: dict[str, ViewDefinition] = {}  # the views that were there last
        self._lost = frozenset[tuple[str, frozenset[str]]]()  # tablets, with whom they lose
        self._settled: set[tuple[str, str]] = set()  # tablets that leave, by key
        self.store: Callable[..., list[Effect]] = lambda _, *then: [*then]  # as the replica does

    def _record(self, record: Record) -> None:
        for listener in self.listeners:
            listener(record)

    # -- rows ----------------------------------------------------------------------------------------------

    def of_write(
        self, table: str, cell: Cell, *, late: bool
    ) -> tuple[tuple[Put, ...], list[Effect]]:
        """A request writes a version of a row: the hints to write with it, and what follows when they are synced.

        `late`: others have had it before.
        """
        if table in self._node.view.tablets and not self._stores(
            table, cell, self._node.rows.get(table, cell[0])
        ):
            self.memtables.wrote(table, cell[0], cell[1])
        views = self._node.view.views_of(table)
        if not views:
            return (), []
        hints, then = self._hints(table, self._updates(table, [cell], new=True, late=late))
        return (*hints, *self.handing.mark(table, cell)), then

    def _stores(self, table: str, cell: Cell, newest: Version | None) -> bool:
        """Whether the version is here already, as of a write that is repeated, though newer ones may be here, too."""
        key, time, _ = cell
        if newest is None or newest.time < time:
            return False
        snapshot = self._node.rows.snapshot()
        found = snapshot.get(table, key, time)
        snapshot.close()
        return found is not None and found.time == time

    def of_stream(
        self, table: str, cells: Iterable[Cell], *, rebuilt: bool, late: bool
    ) -> tuple[tuple[Put, ...], list[Effect]]:
        """The same of rows that are streamed.

        Who moved a tablet had the views updated from its rows, but for what its successor alone knows to be replaced;
        of what is rebuilt nobody may have done so.
        """
        if not self._node.view.views_of(table):
            return (), []
        return self._hints(table, self._updates(table, cells, new=rebuilt, late=late))

    def arrived(
        self, row: TabletRow, family: str, cells: Iterable[Cell], *, repairs: bool
    ) -> tuple[tuple[Put, ...], list[Effect]]:
        """Rows of a tablet have come by a stream, or what is kept beside them: what to write with them, and what follows."""
        base, late = row.table, repairs or row.kind is not Kind.migration
        if family == hints_of(base):
            self.of_hints(base, cells)
        elif family == staging_of(base) and cells:
            self.registrar.staged(row)
        elif family == base and self._node.view.views_of(base):
            if not self._goes_to_staging(base, repairs=repairs):
                return self.of_stream(base, cells, rebuilt=late and not repairs, late=late)
            return self._stage(row, cells, late=late), []
        return (), []

    def _goes_to_staging(self, base: str, *, repairs: bool) -> bool:
        node = self._node
        if node.has(Defect.staging_is_forgotten):
            return False
        return goes_to_staging(node.catalog.tables, node.view, base, repairs=repairs)

    def _stage(self, row: TabletRow, cells: Iterable[Cell], *, late: bool) -> tuple[Put, ...]:
        """The entries of rows that are not here yet, with what they replace."""
        found: list[Put] = []
        base, get = row.table, self._node.rows.get
        for cell in cells:
            before = get(base, cell[0])
            # What was in staging where it comes from knows what it replaced there.
            if self._stores(base, cell, before) or get(
                staging_of(base), entry_key(cell[0], cell[1])
            ):
                continue
            older = before if before is not None and before.time < cell[1] else None
            found.append(put_staged(base, Staged(cell, older, late and not self._in_pairs)))
        if found:
            self.registrar.staged(row)
            self._record(Record(What.stage, base=base, rows=len(found)))
        return tuple(found)

    def _updates(
        self, table: str, cells: Iterable[Cell], *, new: bool, late: bool
    ) -> list[ViewUpdate]:
        found: list[ViewUpdate] = []
        for cell in cells:
            before = self._node.rows.get(table, cell[0])
            known = before is not None and before.time == cell[1]
            if known or (before is None and not new):
                continue
            for view in self._node.view.views_of(table):
                found += updates_of(view, before, cell)
        if self._node.has(Defect.old_view_rows_are_kept):
            found = [u for u in found if u.value is not None]
        return for_everyone(found) if late and not self._in_pairs else found

    def _hints(self, table: str, updates: list[ViewUpdate]) -> tuple[tuple[Put, ...], list[Effect]]:
        if not updates:
            return (), []
        hints = tuple(put_hint(table, u) for u in updates)
        if self._node.has(Defect.view_updates_are_not_kept):
            hints = ()
        return hints, self.outbox.store(table, updates)

    def of_hints(self, table: str, cells: Iterable[Cell]) -> None:
        """Hints have come with the rows of a tablet; they are stored as these are."""
        self.outbox.load(table, [update_in(Version(*cell)) for cell in cells])

    def holds(self, row: TabletRow) -> bool:
        """Whether updates that this node alone may know of have not arrived: a tablet that leaves it must wait."""
        if not is_paired(self._node.name, row):
            return False  # it was never paired
        return self.outbox.waits(row.table, *bounds(*row.range))

    def settle(self, row: TabletRow) -> list[Effect]:
        """Make the updates of what waits here of a tablet that leaves, and that nobody takes over, with its tasks; once."""
        node, base = self._node, row.table
        moves = row.hosts[Role.pending] or node.has(Defect.staging_goes_unsettled)
        if moves or row.key in self._settled:
            return []
        self._settled.add(row.key)
        staged = staged_rows(node.rows, base, *bounds(*row.range))
        updates = for_everyone(updates_of_staged(node.view.views_of(base), staged, node.rows, base))
        hints, then = self._hints(base, updates)
        return self.store(hints, *then) if updates else []

    def forget(self, row: TabletRow) -> list[Effect]:
        """A tablet is no longer here, and nor are its hints and what was staged of it."""
        self._settled.discard(row.key)
        beside = [*self.registrar.forget(row), *self.handing.forget(row)]
        if not self._node.view.views_of(row.table):
            return beside
        low, high = bounds(*row.range)
        self.outbox.forget(row.table, low, high)
        return [Drop(hints_of(row.table), low, high), *beside]

    # -- what is committed ---------------------------------------------------------------------------------

    def learned(self) -> list[Effect]:
        """Something was committed; until the node is ready it does not know yet which views there are."""
        node, effects = self._node, list[Effect]()
        if not node.ready:
            return []
        now = node.view.views
        if now != self._known:
            bases, before = ({v.base for v in some.values()} for some in (now, self._known))
            for base in sorted(bases - before):
                self.outbox.load(base, stored_hints(node.rows, base))
                if not node.has(Defect.staging_is_not_looked_for):
                    self.registrar.discover(base)
            for base in sorted(before - bases):
                effects += self.registrar.forget_table(base)
            effects += [Drop(name, b"", None) for name in self._known if name not in now]
            self._known = dict(now)
        effects += self._take_back()
        effects += [*self.outbox.learned(), *self.worker.learned(), *self.registrar.learned()]
        return effects if self.coordinator is None else [*effects, *self.coordinator.learned()]

    def _take_back(self) -> list[Effect]:
        """Take out of views what a replica may have put there that is lost: rows that it had not seen replaced.

        Whoever stays has seen so of those versions that it had, maybe before it knew of the view.
        """
        node, effects = self._node, list[Effect]()
        lose = [row for row in node.view.moving if row.lost and node.view.views_of(row.table)]
        known, self._lost = self._lost, frozenset((row.name, row.lost) for row in lose)
        for row in lose if not node.has(Defect.nothing_is_taken_back) else ():
            if (row.name, row.lost) in known or node.name not in row.hosts[Role.staying]:
                continue
            snapshot = node.rows.snapshot()
            views = node.view.views_of(row.table)
            found = taken_back(snapshot, views, row.table, row.range)
            updates = [u for u in found if not self.outbox.has(u)]
            snapshot.close()
            hints, then = self._hints(row.table, updates)
            if hints:
                effects += self.store(hints, *then)
        return effects

    # -- what arrives --------------------------------------------------------------------------------------

    def handle(self, sender: str, message: Request) -> list[Effect]:
        """A statement, or a call of the coordinator, or the answer to one."""
        match message:
            case CreateView():
                wanted = ViewDefinition(
                    message.view, message.table, message.modulus, message.comparison, message.bound
                )
                plan = partial(create_view, self._node, wanted)
                return self._node.answered(sender, message.number, plan)
            case DropView():
                plan = partial(drop_view, self._node, message.view)
                return self._node.answered(sender, message.number, plan)
            case ViewsRequest(number):
                # With all that is committed: who has dropped a view no longer sees it.
                return self._node.read_barrier(lambda _: [Send(sender, self._report(number))])
            case WorkOnTasks():
                return self.worker.work_on(sender, message)
            case WorkedOnTasks():
                coordinator = self.coordinator
                return [] if coordinator is None else coordinator.replied(sender, message)

    def _report(self, number: int) -> ViewsReply:
        catalog, batches = self._node.catalog, self.worker.batches.values()
        now = self._node.around.now()
        return ViewsReply(number, statuses(catalog.tables, catalog.view, now, batches))

    def wake(self, reason: Reason) -> list[Effect]:
        """What the passing of time causes."""
        match reason:
            case ("views", "synced", int(number)):
                return self.outbox.synced(number)
            case ("views", "again"):
                return self.outbox.again()
            case ("views", "flushed", str(base)):
                return self.worker.flushed(base)
            case ("views", "staged", int(number)):
                return self.worker.settled(number)
            case ("views", "register"):
                return self.registrar.again()
            case _:
                return [] if self.coordinator is None else self.coordinator.wake(reason)

    def seen(self) -> list[Effect]:
        """A node is down, or back."""
        return [] if self.coordinator is None else self.coordinator.go_on()

    # -- the coordinator -----------------------------------------------------------------------------------

    def lead(self, leadership: Leadership) -> list[Effect]:
        """This node leads now."""
        self.coordinator = ViewBuildingCoordinator(self._node, leadership, self._record)
        return self.coordinator.start()

    def depose(self) -> None:
        """It does no more: what its coordinator knew is lost."""
        self.coordinator = None
