"""The master leader: statements about indexes, rounds of the schema, and the job that backfills.

All that it decides is a step of the shipped definitions (`control.py`), written to the sys catalog. What it only
remembers is lost with it; the next one goes on from the catalog.
"""

from __future__ import annotations

from stagewright.impl.indexes.backfill_job import JobOfMaster
from stagewright.impl.indexes.catalog import Catalog, IndexRow
from stagewright.impl.indexes.control import (
    JOB,
    PERMISSIONS,
    TABLE,
    TABLETS,
    Call,
    Control,
    index_of,
)
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    Altered,
    AlterTable,
    AskBuild,
    AskBuilds,
    AskTablets,
    BackfillTable,
    Build,
    Builds,
    ChunkDone,
    CreateIndex,
    Divided,
    DropIndex,
    GcAllowed,
    Message,
    SafeTime,
    SplitTablet,
    Tablets,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.records.notes import StatusReported
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.splitting import SplitsOfMaster
from stagewright.impl.indexes.splits.tablet_map import TabletMap, index_table
from stagewright.impl.indexes.times import HybridClock
from stagewright.machines.yugabytedb.backfill.backfill_states import Step
from stagewright.machines.yugabytedb.backfill.backfill_table import (
    MOVED_BY_ALTER,
    Tablet,
    next_permission,
)
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status

TICK = 10
_MOVES = {
    Permission.delete_only: "allow_writes",
    Permission.write_and_delete: "allow_backfill",
    Permission.write_and_delete_while_removing: "stop_writes",
    Permission.delete_only_while_removing: "stop_deletes",
}
_BEFORE_ITS_JOB = (Permission.delete_only, Permission.write_and_delete, Permission.do_backfill)


class Master:
    """One life of a master leader."""

    def __init__(self, port: Port, catalog: Catalog, settings: Settings) -> None:
        self.port = port
        self.catalog = catalog
        self.settings = settings
        self.clock = HybridClock(port.now)
        catalog.term += 1
        self.term = catalog.term
        catalog.tablets = catalog.tablets or TabletMap(settings.tablets)
        self.control = Control(settings.tablets, port.note, careless=bool(settings.defects))
        self.control.restore(catalog.machines)
        self._reported: set[int] = set()
        self._is_settled = False  # nothing is to be begun until something is heard
        self._sent = -settings.retry
        self._told: dict[int, Status] = {}
        self.job = JobOfMaster(self)
        self.splits = SplitsOfMaster(self)
        if self.term > 1:
            self._take_over()
        port.after(0, self._tick)

    def _take_over(self) -> None:
        calls = [Call(JOB, TABLE, "fail_over")]
        job = self.catalog.job
        if job is not None and job.read_time is not None:
            calls += [
                Call(TABLETS, self.job.entity(t), "take_over")
                for t in self.tablets.numbers
                if (TABLETS, self.job.entity(t)) in self.control.held
            ]
        self.control.take(*calls)
        self.save()

    @property
    def tablets(self) -> TabletMap:
        """The tablets of the table."""
        assert self.catalog.tablets is not None
        return self.catalog.tablets

    def save(self) -> None:
        """Write the states of the instances with what they say of the rows."""
        self.catalog.machines = self.control.saved()

    # -- messages ----------------------------------------------------------------------------------------------

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        self._is_settled = False
        match message:
            case CreateIndex():
                self._create(message)
                self._answer(sender, message.name)
            case DropIndex(name):
                self._drop(name)
                self._answer(sender, name)
            case BackfillTable():
                for index in self.catalog.indexes:
                    self.catalog.change(index.number, deferred=False)
                self.port.send(sender, Build("", Status.in_progress))
            case AskBuild(name):
                self._answer(sender, name)
            case AskBuilds():
                newest = {row.name: row for row in self.catalog.indexes}
                self.port.send(sender, Builds(tuple(map(self._build, newest.values()))))
            case Altered(tablet, version):
                self._on_altered(tablet, version)
            case SafeTime():
                self.job.on_safe_time(message)
            case ChunkDone():
                self.job.on_chunk_done(message)
            case GcAllowed(address):
                self.job.gc_allowed.add(address)
            case SplitTablet(place):
                self.splits.ask(sender, place)
            case Divided(place):
                self.splits.on_divided(place)
            case AskTablets(table):
                self.port.send(sender, Tablets(self.catalog.map_of(table)))
            case _:
                pass

    def _create(self, message: CreateIndex) -> None:
        known = self.catalog.named(message.name)
        if known is not None and not known.dropped and known.status is not Status.failed:
            return  # asked again
        number = len(self.catalog.indexes)
        row = IndexRow(
            number,
            message.name,
            message.column,
            message.unique,
            message.deferred,
            Permission.delete_only,
        )
        self.control.add(number)
        self.control.take(
            Call(JOB, TABLE, "create_index", {"i": index_of(number)}),
            Call(PERMISSIONS, message_entity(number), "create_index"),
        )
        self.catalog.indexes = (*self.catalog.indexes, row)
        self._new_version()

    def _drop(self, name: str) -> None:
        row = self.catalog.named(name)
        if row is None or row.permission.removed or row.permission is Permission.absent:
            return
        self.control.take(
            Call(JOB, TABLE, "drop_index", {"i": index_of(row.number)}),
            Call(PERMISSIONS, message_entity(row.number), "drop_index"),
        )
        gone = Permission.write_and_delete_while_removing
        self.catalog.change(row.number, permission=gone, dropped=True)
        self._new_version()

    def _answer(self, sender: str, name: str) -> None:
        row = self.catalog.named(name)
        self.port.send(sender, Build(name, None) if row is None else self._build(row))

    def _build(self, row: IndexRow) -> Build:
        job, done, rows, expected, elapsed = self.catalog.job, 0, 0, 0, 0
        scanned = () if job is None else job.indexes  # also what was deferred, with another index
        if job is not None and row.number in scanned:
            done = sum(until is None for until in job.until.values())
            rows, expected = job.rows, job.expected
            elapsed = 0 if job.read_time is None else self.port.now() - job.scan_began
        waits = row.deferred and row.permission in _BEFORE_ITS_JOB and row.number not in scanned
        return Build(
            row.name, self._tell(row), row.error, done, row.permission is Permission.absent,
            row.column, row.unique, waits, rows, expected, elapsed, row.dropped,
        )  # fmt: skip

    def _tell(self, row: IndexRow) -> Status:
        """SUCCESS when every tablet reads the index, FAILED when it goes; then that stays."""
        entity = message_entity(row.number)
        known = self.control.of(PERMISSIONS, entity).state
        published = row.permission is Permission.read_write_and_delete
        served = published and known["fully_applied"] is None
        ends = served or not (row.permission.kept or row.dropped)
        if (
            ends
            and known["told"] is None
            and self.control.can(PERMISSIONS, entity, "ask_for_status")
        ):
            self.control.take(Call(PERMISSIONS, entity, "ask_for_status"))
            self.save()
        told = self.control.of(PERMISSIONS, entity).state["told"]
        early = published and Defect.success_is_reported_early in self.settings.defects
        status = told or (row.status if row.dropped else Status.in_progress)
        status = Status.success if early else status
        assert isinstance(status, Status)
        if self._told.get(row.number, Status.in_progress) is not status and not row.dropped:
            self._told[row.number] = status
            self.port.note(StatusReported(row.number, status))
        return status

    # -- versions of the schema ----------------------------------------------------------------------------------

    def _new_version(self) -> None:
        self.catalog.version += 1
        self._reported = set()
        self._sent = -self.settings.retry
        self.save()

    def _on_altered(self, tablet: int, version: int) -> None:
        reported = self._reported
        if version != self.catalog.version or tablet in reported:
            return
        reported.add(tablet)
        root = self.tablets.root(tablet)
        if not self.tablets.families[root] <= reported:
            return  # to the definitions, a tablet and those that it has split into are one
        calls: list[Call] = []
        t, s = {"t": Tablet(root)}, {"s": Server(root)}
        if self.control.can(JOB, TABLE, "apply_version", **t):
            calls.append(Call(JOB, TABLE, "apply_version", t))
        for row in self.catalog.indexes:
            entity = message_entity(row.number)
            if self.control.can(PERMISSIONS, entity, "learn", **s):
                calls.append(Call(PERMISSIONS, entity, "learn", s))
            calls.append(Call(PERMISSIONS, entity, "report", s))
        self.control.take(*calls)
        self.save()

    def _tick(self) -> None:
        if self.term != self.catalog.term:
            return  # another one is the leader
        if self.port.now() - self._sent >= self.settings.retry and self._has_tablets():
            self._sent = self.port.now()
            for tablet in self.tablets.numbers:
                if tablet not in self._reported:
                    self.port.send(table_tablet(tablet), AlterTable(self.catalog.schema()))
        self.splits.tick()
        if not self._is_settled:
            if self._has_converged():
                self._alter()
            self.job.tick()
        self.port.after(TICK, self._tick)

    def _has_tablets(self) -> bool:
        """Whether new indexes have leaders: nobody is to write to them before, and to wait for them."""
        return all(
            self.port.is_led(place)
            for row in self.catalog.indexes
            if row.permission is Permission.delete_only
            for place in self.catalog.map_of(index_table(row.number)).places
        )

    def _has_converged(self) -> bool:
        if Defect.schemas_do_not_converge in self.settings.defects:
            return bool(self._reported)
        return self._reported.issuperset(self.tablets.numbers)

    def _alter(self) -> None:
        """Every tablet has the version: start the next one, delete an index, launch a job, or be done."""
        self._serve()
        moved = [i for i in self.catalog.indexes if i.permission in MOVED_BY_ALTER]
        unused = [i for i in self.catalog.indexes if i.permission is Permission.index_unused]
        if moved:
            calls = [
                Call(PERMISSIONS, message_entity(i.number), _MOVES[i.permission]) for i in moved
            ]
            self.control.take(Call(JOB, TABLE, "launch_next_version"), *calls)
            for row in moved:
                self.catalog.change(row.number, permission=next_permission(row.permission))
            self._new_version()
        elif unused and self.splits.is_going_on(index_table(unused[0].number)):
            return  # its tablets are deleted together
        elif unused:
            number = unused[0].number
            self.control.take(
                Call(JOB, TABLE, "delete_index", {"i": index_of(number)}),
                Call(PERMISSIONS, message_entity(number), "delete_index"),
            )
            self.catalog.change(number, permission=Permission.absent)
            self._new_version()
        elif self.job.may_begin():
            self.job.begin()
        elif self.control.can(JOB, TABLE, "finish_alter") or (
            Defect.reports_end_the_alteration in self.settings.defects and self.job.is_scanning
        ):
            self.control.take(Call(JOB, TABLE, "finish_alter"))
            self.save()
        else:
            self._is_settled = self.job.step is Step.none

    def _serve(self) -> None:
        """Every tablet reads what is published, whatever else of the table is altered or built."""
        published = [
            Call(PERMISSIONS, message_entity(i.number), "finish_alter")
            for i in self.catalog.indexes
            if i.permission is Permission.read_write_and_delete
            and self.control.can(PERMISSIONS, message_entity(i.number), "finish_alter")
        ]
        if published:
            self.control.take(*published)
            self.save()

    def new_version(self) -> None:
        """Permissions have changed."""
        self._new_version()


def message_entity(number: int) -> str:
    """What an index is called in traces."""
    return f"index{number}"
