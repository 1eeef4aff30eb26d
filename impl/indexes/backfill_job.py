"""The job of a table at its master: J0 to J8, each step taken on the definition `backfill-job`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stagewright.impl.indexes.catalog import JobRow
from stagewright.impl.indexes.control import JOB, PERMISSIONS, TABLE, TABLETS, Call, index_of
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    AllowGc,
    BackfillChunk,
    ChunkDone,
    GetSafeTime,
    SafeTime,
    Violation,
)
from stagewright.impl.indexes.records.notes import (
    AnswerTaken,
    ChunkAsked,
    ChunkFailed,
    JobBegun,
    ReadTimeChosen,
)
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.splits.tablet_map import index_table
from stagewright.machines.yugabytedb.backfill.backfill_states import Checkpoint, Step
from stagewright.machines.yugabytedb.backfill.backfill_table import Tablet
from stagewright.machines.yugabytedb.backfill.backfill_tablet import Begin, Scan
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status

if TYPE_CHECKING:
    from stagewright.impl.indexes.master import Master


@dataclass
class _Asked:
    """A chunk that is asked for."""

    number: tuple[int, int]
    start: bytes
    indexes: tuple[int, ...]
    at: int
    sent: int = 0


def _entity(index: int) -> str:
    return f"index{index}"


def _is_gone(permission: Permission) -> bool:
    """It was dropped: its tablets may be deleted, and do not answer then."""
    return permission.removed or permission is Permission.absent


class JobOfMaster:
    """What a master remembers of the job: who has answered what. Where it is with it, the instance says."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self.gc_allowed: set[str] = set()
        self._safe: dict[int, SafeTime] = {}
        self._asked: dict[int, _Asked] = {}
        self._asks = 0
        self._reached: dict[int, bytes] = {}  # beyond the checkpoints, where these are not kept
        self._sent = 0
        self._read_time: int | None = None

    # -- what is known -------------------------------------------------------------------------------------------

    @property
    def step(self) -> Step:
        """Where the job is."""
        step: Any = self._master.control.of(JOB, TABLE).state["step"]
        assert isinstance(step, Step)
        return step

    @property
    def _row(self) -> JobRow:
        assert self._master.catalog.job is not None
        return self._master.catalog.job

    @property
    def is_scanning(self) -> bool:
        """Whether rows are being read."""
        return self.step is Step.backfill_tablets

    def entity(self, tablet: int) -> str:
        """What the scan of a tablet is called in traces."""
        return f"job{self._row.number}/tablet{tablet}"

    def _take(self, action: str, *calls: Call, **arguments: Any) -> None:
        self._master.control.take(Call(JOB, TABLE, action, arguments), *calls)

    # -- the beginning -------------------------------------------------------------------------------------------

    def may_begin(self) -> bool:
        """No job is running, and one is recorded, or an index waits that is not deferred."""
        control = self._master.control
        return control.can(JOB, TABLE, "resume") or self._waiting() is not None

    def _waiting(self) -> int | None:
        for row in self._master.catalog.indexes:
            if row.permission is Permission.do_backfill and not row.deferred:
                i = index_of(row.number)
                if self._master.control.can(JOB, TABLE, "launch", i=i):
                    return row.number
        return None

    def begin(self) -> None:
        """Launch a job for all indexes at DO_BACKFILL, or take up the one that is recorded."""
        control, catalog = self._master.control, self._master.catalog
        self._safe, self._asked, self._reached, self.gc_allowed = {}, {}, {}, set()
        if control.can(JOB, TABLE, "resume"):
            self._take("resume")
        else:
            first = self._waiting()
            assert first is not None
            at = Permission.do_backfill
            numbers = tuple(i.number for i in catalog.indexes if i.permission is at)
            self._take("launch", i=index_of(first))
            calls = [Call(PERMISSIONS, _entity(i), "launch_backfill") for i in numbers]
            self._take("record_job", *calls)
            catalog.jobs += 1
            catalog.job = JobRow(catalog.jobs, numbers)
        self._master.port.note(JobBegun(self._row.number, self._row.indexes))
        self._master.save()

    def tick(self) -> None:
        """Do what the job's step asks for."""
        master = self._master
        match self.step:
            case Step.none | Step.launch:
                return
            case Step.wait_for_splits:
                careless = Defect.splits_do_not_wait_for_jobs in master.settings.defects
                if master.splits.is_going_on(TABLE) and not careless:
                    return
                recorded = self._row.read_time is not None
                self._take("take_recorded_time" if recorded else "find_no_splits")
            case Step.get_safe_time:
                self._get_safe_time()
            case Step.backfill_tablets:
                self._backfill()
            case Step.allow_gc:
                self._allow_gc()
            case Step.write_permissions:
                self._write_permissions()
            case Step.clear_checkpoints | Step.clear_job:
                self._take("clear_checkpoints")
                master.catalog.job = None
            case Step.finish:
                self._take("finish")
        master.save()

    def _is_time(self) -> bool:
        now = self._master.port.now()
        if now - self._sent < self._master.settings.retry:
            return False
        self._sent = now
        return True

    # -- the time of the scan ------------------------------------------------------------------------------------

    def _get_safe_time(self) -> None:
        tablets = self._master.tablets.numbers
        if self._safe.keys() >= {*tablets}:
            least = Defect.safe_time_is_the_least in self._master.settings.defects
            times = [answer.time for answer in self._safe.values()]
            time = min(times) if least else max(times)
            self._take("choose_read_time")
            note = ReadTimeChosen(self._row.number, self._row.indexes, time)
            self._master.port.note(note)
            self._master.catalog.job = replace(
                self._row,
                read_time=time,
                scan_began=self._master.port.now(),
                expected=sum(answer.rows for answer in self._safe.values()),
            )
            for index in self._row.indexes:
                self._master.catalog.change(index, read_time=time)
        elif self._is_time():
            for tablet in tablets:
                if tablet not in self._safe:
                    message = GetSafeTime(self._row.number, self._row.indexes)
                    self._master.port.send(table_tablet(tablet), message)

    def on_safe_time(self, message: SafeTime) -> None:
        """A tablet has answered."""
        job = self._master.catalog.job
        if job is not None and job.number == message.job and self.step is Step.get_safe_time:
            self._safe[message.tablet] = message

    # -- chunks ----------------------------------------------------------------------------------------------------

    def _backfill(self) -> None:
        for number in self._row.left:
            if _is_gone(self._master.catalog.indexes[number].permission):
                self._fail(0, number, "the index was dropped")
        if self._is_done():
            left = self._row.left
            running = [i for i in left if self._of_index(i) is Job.running]
            calls = [Call(PERMISSIONS, _entity(i), "finish_backfill") for i in running]
            self._take("find_all_done", *calls)
            return
        for tablet in self._master.tablets.numbers:
            self._ask(tablet)

    def _of_index(self, index: int) -> Job:
        """The job as the index's permissions know it; a job that was resumed may have ended for it."""
        job: Any = self._master.control.of(PERMISSIONS, _entity(index)).state["job"]
        assert isinstance(job, Job)
        return job

    def _is_done(self) -> bool:
        done = [self._is_at_the_end(t) for t in self._master.tablets.numbers]
        if Defect.publishes_too_early in self._master.settings.defects and any(done):
            return True
        return not self._row.left or all(done)

    def _is_at_the_end(self, tablet: int) -> bool:
        return self._row.until.get(tablet, b"") is None

    def _ask(self, tablet: int) -> None:
        row, settings = self._row, self._master.settings
        if self._is_at_the_end(tablet):
            return
        now = self._master.port.now()
        asked = self._asked.get(tablet)
        if asked is None:
            start = self._reached.get(tablet) or row.until.get(tablet) or b""
            self._asks += 1
            asked = _Asked((self._master.term, self._asks), start, row.left, now)
            self._asked[tablet] = asked
            self._note_asked(tablet)
        elif (
            now - asked.sent < settings.retry * 4
            or Defect.lost_chunks_are_not_retried in settings.defects
        ):
            return
        elif asked.indexes != row.left:  # a late copy of what was asked for all of them is older
            self._asks += 1
            asked.number, asked.indexes = (self._master.term, self._asks), row.left
        asked.sent = now
        assert row.read_time is not None
        message = BackfillChunk(row.number, asked.number, asked.start, row.left, row.read_time)
        self._master.port.note(
            ChunkAsked(row.number, tablet, asked.number, asked.start, row.left, row.read_time)
        )
        self._master.port.send(table_tablet(tablet), message)

    def _note_asked(self, tablet: int) -> None:
        """The step of the tablet that asks for a chunk; what follows an answer is taken with it."""
        entity = self.entity(tablet)
        state = self._master.control.of(TABLETS, entity).state
        if state["begin"] is Begin.none:
            self._master.control.take(Call(TABLETS, entity, "ask_first"))
        elif state["scan"] is not Scan.chunk:
            self._master.control.take(Call(TABLETS, entity, "ask_again"))

    def on_chunk_done(self, message: ChunkDone) -> None:
        """A tablet has come so far, or cannot go on with an index."""
        job, asked = self._master.catalog.job, self._asked.get(message.tablet)
        old = Defect.old_answers_count in self._master.settings.defects
        if job is None or self.step is not Step.backfill_tablets:
            return
        if not job.left:
            return  # all of its indexes have failed or are gone
        if (asked is None or asked.number != message.ask) and not old:
            return  # the answer to another question
        if job.number != message.job and not old:
            return
        tablet = message.tablet
        if self._is_at_the_end(tablet):
            return
        del_asked = self._asked.pop(tablet, None)
        if message.violation is not None:
            self._master.port.note(ChunkFailed(job.number, tablet))
            if message.violation.index in job.left:
                self._violated(tablet, message.violation)
        elif del_asked is not None or old:
            note = AnswerTaken(job.number, tablet, message.ask, message.until)
            self._master.port.note(note)
            self._advance(tablet, message)
        self._master.save()

    def _advance(self, tablet: int, done: ChunkDone) -> None:
        """Write the checkpoint."""
        entity, row, until = self.entity(tablet), self._row, done.until
        chunk = Call(JOB, TABLE, "backfill_chunk", {"t": self._root(tablet)})
        checkpoint = self._checkpoint(tablet)
        steps = [chunk] if checkpoint is Checkpoint.never_begun else []
        if checkpoint is not Checkpoint.done and until is None and self._is_last(tablet):
            steps.append(chunk)
        scan = Call(TABLETS, entity, "finish" if until is None else "ask_next")
        self._master.control.take(scan, *steps)
        kept = until
        if Defect.later_checkpoints_are_not_kept in self._master.settings.defects and until:
            self._reached[tablet], kept = until, row.until.get(tablet, until)
        self._master.catalog.job = replace(
            row, until={**row.until, tablet: kept}, rows=row.rows + done.rows
        )
        if until is not None:
            self._ask(tablet)

    def _root(self, tablet: int) -> Tablet:
        """A tablet to the definition: those that one has split into are one."""
        return Tablet(self._master.tablets.root(tablet))

    def _is_last(self, tablet: int) -> bool:
        """Whether all others of those are done."""
        tablets = self._master.tablets
        others = tablets.families[tablets.root(tablet)] - {tablet}
        return all(map(self._is_at_the_end, others))

    def _checkpoint(self, tablet: int) -> Checkpoint:
        """The least of the indexes that are left."""
        state: Any = self._master.control.of(JOB, TABLE).state["checkpoint"]
        order = list(Checkpoint)
        found = [state[self._root(tablet)][index_of(i)] for i in self._row.left]
        least: Checkpoint = min(found, key=order.index, default=Checkpoint.done)
        return least

    def _violated(self, tablet: int, violation: Violation) -> None:
        control, settings = self._master.control, self._master.settings
        if self._checkpoint(tablet) is Checkpoint.never_begun:
            control.take(Call(JOB, TABLE, "backfill_chunk", {"t": self._root(tablet)}))
        control.take(Call(TABLETS, self.entity(tablet), "fail"))
        column = self._master.catalog.indexes[violation.index].column
        low, high = sorted(violation.rows)
        error = f"rows {low} and {high} both have {column} = {violation.value}"
        failed = [violation.index]
        if Defect.failure_is_of_all in settings.defects:
            failed = list(self._row.left)
        for index in failed:
            control.learn(JOB, TABLE, "unbuildable", index_of(violation.index))
            control.learn(PERMISSIONS, _entity(violation.index), "violates_constraint", value=True)
            self._fail(tablet, index, error, "find_violation")

    def _fail(self, tablet: int, index: int, error: str, how: str = "") -> None:
        calls = [Call(PERMISSIONS, _entity(index), how)] if how else []
        self._take("fail_index", *calls, t=self._root(tablet), i=index_of(index))
        row = self._row
        self._master.catalog.job = replace(row, failed={**row.failed, index: error})
        self._master.catalog.change(index, status=Status.failed, error=error)

    # -- the end -------------------------------------------------------------------------------------------------

    def _allow_gc(self) -> None:
        catalog = self._master.catalog
        there = [i for i in self._row.left if not _is_gone(catalog.indexes[i].permission)]
        index_of_place = {p: i for i in there for p in catalog.map_of(index_table(i)).places}
        places = index_of_place.keys()
        if places <= self.gc_allowed:
            self._take("allow_gc")
        elif self._is_time():
            for place in sorted(places - self.gc_allowed):
                self._master.port.send(place, AllowGc(index_of_place[place]))

    def _write_permissions(self) -> None:
        catalog, row, calls = self._master.catalog, self._row, list[Call]()
        back = Defect.permission_goes_back in self._master.settings.defects
        for number in row.indexes:
            index = catalog.indexes[number]
            built = number not in row.failed
            gone = index.permission.removed or index.permission is Permission.absent
            if gone and not (back and built and index.permission is not Permission.absent):
                if self._of_index(number) is not Job.none:
                    calls.append(Call(PERMISSIONS, _entity(number), "forget_job"))
                continue
            if index.permission is Permission.read_write_and_delete:
                continue  # published before, by a master whose job was resumed
            goal = (
                Permission.read_write_and_delete
                if built
                else Permission.write_and_delete_while_removing
            )
            status = Status.success if built else Status.failed
            calls.append(Call(PERMISSIONS, _entity(number), "publish" if built else "give_up"))
            catalog.change(number, permission=goal, status=status)
        self._take("write_permissions", *calls)
        self._master.new_version()
