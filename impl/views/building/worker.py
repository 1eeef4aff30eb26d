"""The view building worker of a node: batches of tasks, one on a shard at a time, asked for by the coordinator.

What is finished it keeps in memory, for a coordinator that asks again, until another base table is processed. It
reads what lies in sstables, and flushes the base table first if it has not done so since a view was created. What is in
staging it leaves to tasks of their own: these make the views' updates of it, and move it to the base directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import Cell
from stagewright.impl.node.messages.tables import WorkedOnTasks, WorkOnTasks
from stagewright.impl.node.port import Effect, Send, Wake
from stagewright.impl.storage.port import Snapshot, Version
from stagewright.impl.views.building.records import OnRecord, Record, What
from stagewright.impl.views.building.tasks import BUILD, Place, Task, processed_in, tasks_in
from stagewright.impl.views.maintenance.memtables import Memtables
from stagewright.impl.views.maintenance.outbox import Outbox
from stagewright.impl.views.maintenance.staged import (
    Staged,
    drop_of,
    has_staged,
    is_staged,
    staged_rows,
    updates_of_staged,
)
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.views.view_task import Call, Work

FLUSH_MS = 4


@dataclass
class Batch:
    """What a shard executes; `waiting` are the calls that wait for it."""

    number: int
    place: Place
    tasks: dict[str, Task]
    start: bytes | None  # of the rows that are read next; None: all were read
    end: bytes | None
    type: str = BUILD
    staged: list[Staged] = field(default_factory=list[Staged])  # whose updates are on their way
    waiting: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])


class ViewBuildingWorker:
    """The batches of one node."""

    def __init__(
        self, node: Context, outbox: Outbox, memtables: Memtables, on_record: OnRecord
    ) -> None:
        self._on_record = on_record
        self.batches: dict[int, Batch] = {}  # by number
        self.completed: dict[str, Place] = {}
        self._node = node
        self._outbox = outbox
        self._memtables = memtables
        self._last = 0
        self._processed = ""
        self._flushed: set[str] = set()  # views for which their base table was flushed
        self._flushing: dict[str, set[str]] = {}  # by base table: the views when the flush began
        self._calls: list[tuple[str, WorkOnTasks]] = []  # that wait for a flush
        # when all that is written is
        self.synced: Callable[[Effect], list[Effect]] = lambda then: [then]
        outbox.built = self._arrived

    # -- calls ---------------------------------------------------------------------------------------------

    def work_on(self, sender: str, call: WorkOnTasks) -> list[Effect]:
        """The coordinator wants tasks worked on: look at them when all is learned that was committed by now."""
        return self._node.read_barrier(lambda _: self._handle(sender, call))

    def _handle(self, sender: str, call: WorkOnTasks) -> list[Effect]:
        tables = self._node.catalog.tables
        current = call.term == self._node.member.term
        if not current and not self._node.has(Defect.terms_are_not_compared):
            return [_fails(sender, call, f"term {call.term} is over")]
        known = [i for i in call.tasks if i in self.completed]
        if known:
            place = self.completed[known[0]]
            self._on_record(Record(What.attach, tuple(known), place, call.term))
            return [Send(sender, WorkedOnTasks(call.number, tuple(known)))]
        stored = tasks_in(tables)
        missing = [i for i in call.tasks if i not in stored]
        if missing:
            return [_fails(sender, call, f"there is no task {missing[0]}")]
        aborted = [i for i in call.tasks if stored[i].aborted]
        if aborted:
            return [_fails(sender, call, f"task {aborted[0]} is aborted")]
        running = [b for b in self.batches.values() if b.place.replica.shard == call.shard]
        for batch in running:
            if batch.tasks.keys() & {*call.tasks}:
                batch.waiting.append((sender, call.number))
                joined = tuple(i for i in call.tasks if i in batch.tasks)
                if self._node.has(Defect.a_call_joins_with_all_its_tasks):
                    joined = call.tasks
                self._on_record(Record(What.attach, joined, batch.place, call.term))
                return []
        if running:
            return [_fails(sender, call, "another batch runs on the shard")]
        tasks = [stored[i] for i in call.tasks]
        place = tasks[0].place
        if processed_in(tables) != place.base:
            return [_fails(sender, call, f"{place.base} is not processed")]
        views = {t.view for t in tasks if t.view}
        if not views <= self._flushed and not self._node.has(Defect.view_building_does_not_flush):
            self._calls.append((sender, call))
            return self._flush(place.base)
        return self._begin(sender, call, tasks)

    def _flush(self, base: str) -> list[Effect]:
        """Have the memtable written out, for the views that there are now."""
        if base in self._flushing:
            return []
        self._flushing[base] = self._views_of(base)
        self._memtables.freeze(base)
        self._on_record(Record(What.begin_flush, base=base))
        return self.synced(Wake(FLUSH_MS, ("views", "flushed", base)))

    def _views_of(self, base: str) -> set[str]:
        return {v.name for v in self._node.view.views.values() if v.base == base}

    def flushed(self, base: str) -> list[Effect]:
        """The base table's memtable is in sstables: the calls that waited for that are looked at again."""
        self._memtables.flushed(base)
        views = self._flushing.pop(base, set[str]())
        if self._node.has(Defect.views_of_the_end_are_flushed):
            views = self._views_of(base)
        self._on_record(Record(What.end_flush, base=base, views=tuple(sorted(views))))
        self._flushed |= views
        calls, self._calls = self._calls, []
        return [e for sender, call in calls for e in self.work_on(sender, call)]

    # -- batches -------------------------------------------------------------------------------------------

    def _begin(self, sender: str, call: WorkOnTasks, tasks: list[Task]) -> list[Effect]:
        place = tasks[0].place
        row = self._node.view.tablet_with(place.base, place.last_token)
        if row is None or row.range[1] != place.last_token:
            return [_fails(sender, call, f"{place.base} has no such tablet")]
        for task in tasks:
            task.instance(Call.sent).fire("start")
        self._last += 1
        start, end = bounds(*row.range)
        by_id = {t.id: t for t in tasks}
        kind, waiting = tasks[0].type, [(sender, call.number)]
        batch = Batch(self._last, place, by_id, start, end, kind, waiting=waiting)
        self.batches[batch.number] = batch
        self._on_record(Record(What.start, call.tasks, place, call.term, type=kind))
        return self._go_on(batch)

    def _go_on(self, batch: Batch) -> list[Effect]:
        return self._read(batch) if batch.type == BUILD else self._process(batch)

    def _read(self, batch: Batch) -> list[Effect]:
        """Make updates of the next rows; when there are none, the batch is through."""
        effects: list[Effect] = []
        while True:
            if batch.start is None:
                return [*effects, *self._finish(batch)]
            updates = [
                u for cell in self._rows(batch, batch.start) for u in self._updates(batch, cell)
            ]
            if not updates:
                continue
            effects += self._outbox.build(batch.place.base, batch.number, updates)
            if not self._node.has(Defect.view_building_does_not_wait):
                return effects

    def _rows(self, batch: Batch, start: bytes) -> list[Cell]:
        """Rows in sstables, as many as are read at once; the batch goes on behind them."""
        cells: list[Cell] = []
        batch.start = None
        snapshot, base = self._node.rows.snapshot(), batch.place.base
        staged = has_staged(snapshot, base, start, batch.end)
        for newest in snapshot.newest(base, start, batch.end):
            version = self._in_sstables(snapshot, base, newest, staged)
            if version is None:
                continue
            if len(cells) == self._node.timing.chunk:
                batch.start = version.key
                if self._node.has(Defect.view_building_skips_rows):
                    batch.start += b"\0"
                break
            cells.append((version.key, version.time, version.value))
        snapshot.close()
        return cells

    def _in_sstables(
        self, snapshot: Snapshot, base: str, newest: Version, staged: bool
    ) -> Version | None:
        """The newest version of a row that is in an sstable of the base directory."""

        def is_in(version: Version) -> bool:
            held = self._memtables.has(base, version.key, version.time)
            return not held and not (
                staged and is_staged(snapshot, base, version.key, version.time)
            )

        if is_in(newest):
            return newest
        return next(filter(is_in, snapshot.versions(base, newest.key, newest.key + b"\0")), None)

    def _updates(self, batch: Batch, cell: Cell) -> Iterator[ViewUpdate]:
        key, time, value = cell
        if self._node.has(Defect.view_building_makes_timestamps):
            time = self._node.around.now()
        for task in batch.tasks.values():
            view = self._node.view.views.get(task.view)
            there = None if view is None else view.row_of(key, value)
            if there is not None:
                yield ViewUpdate(task.view, key, there, time, value)

    def _arrived(self, number: int) -> list[Effect]:
        """All view replicas have the updates of the rows that were read."""
        batch = self.batches.get(number)
        if batch is None:
            return []
        return self._read(batch) if batch.type == BUILD else self._settle(batch)

    # -- staging -------------------------------------------------------------------------------------------

    def _process(self, batch: Batch) -> list[Effect]:
        """Make updates of the next rows in staging, also of those that have come since it began."""
        node, base = self._node, batch.place.base
        low = batch.start or b""
        batch.staged = staged_rows(node.rows, base, low, batch.end, node.timing.chunk)
        if not batch.staged:
            return self._finish(batch)
        updates = updates_of_staged(node.view.views_of(base), batch.staged, node.rows, base)
        if not updates:
            return self._settle(batch)
        sent = self._outbox.build(base, batch.number, updates)
        if node.has(Defect.staged_rows_do_not_wait):
            return [*sent, *self._settle(batch)]
        return sent

    def _settle(self, batch: Batch) -> list[Effect]:
        """The views have them: they are in the base directory, and the next ones follow when that is done."""
        gone, batch.staged = batch.staged, []
        if not gone:
            return []
        drops = (drop_of(batch.place.base, one) for one in gone)
        return [*drops, Wake(0, ("views", "staged", batch.number))]

    def settled(self, number: int) -> list[Effect]:
        """Rows have left staging."""
        batch = self.batches.get(number)
        return [] if batch is None else self._process(batch)

    def _finish(self, batch: Batch) -> list[Effect]:
        """The tasks are completed: tell who waits."""
        self._end(batch)
        for task in batch.tasks.values():
            task.instance(Call.attached, Work.executing).fire("finish")
        done = tuple(batch.tasks)
        self.completed |= dict.fromkeys(done, batch.place)
        self._on_record(Record(What.finish, done, batch.place, type=batch.type))
        return [Send(to, WorkedOnTasks(number, done)) for to, number in batch.waiting]

    def _end(self, batch: Batch) -> None:
        self._outbox.end(batch.number)
        del self.batches[batch.number]

    # -- what is committed ---------------------------------------------------------------------------------

    def learned(self) -> list[Effect]:
        """Tasks that are aborted or gone leave their batch; another base table ends what was known of those before.

        A coordinator that knows it sooner may have called for its first tasks already.
        """
        tables, effects = self._node.catalog.tables, list[Effect]()
        processed = processed_in(tables)
        if processed != self._processed:
            self._processed = processed
            completed = self.completed.items()
            self.completed = {i: place for i, place in completed if place.base == processed}
            self._flushed.clear()
        if not self.batches:
            return []
        stored = tasks_in(tables)
        for batch in [*self.batches.values()]:
            for task in [*batch.tasks.values()]:
                now = stored.get(task.id)
                if now is None or now.aborted:
                    del batch.tasks[task.id]
                    self._on_record(Record(What.leave, (task.id,), batch.place))
            if not batch.tasks:
                self._end(batch)
                effects += [_given_up(to, number) for to, number in batch.waiting]
        return effects


def _fails(to: str, call: WorkOnTasks, problem: str) -> Send:
    return Send(to, WorkedOnTasks(call.number, (), problem))


def _given_up(to: str, number: int) -> Send:
    return Send(to, WorkedOnTasks(number, (), "the tasks were aborted"))
