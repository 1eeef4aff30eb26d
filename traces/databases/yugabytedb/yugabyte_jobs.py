"""Follows indexes, backfill jobs and their tablets through the records of YugabyteDB's masters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.machines.recorded.logged import LoggedReadTime
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import (
    SEED,
    YUGABYTE_2,
    YUGABYTE_2026,
    Step,
)
from stagewright.machines.yugabytedb.backfill.backfill_table import Index
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet, Begin, Scan
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_states import (
    YSQL,
    YSQL_NO_DO_BACKFILL,
    Permission,
    Status,
)
from stagewright.spec.trace import Event
from stagewright.traces.databases.names import called, leaf, step
from stagewright.traces.databases.yugabytedb.yugabyte_line import LogRecord, Said
from stagewright.traces.databases.yugabytedb.yugabyte_read_times import ReadTimes
from stagewright.traces.databases.yugabytedb.yugabyte_times import Placed

SCAN_TIME = called(LoggedReadTime)
PERMISSIONS, JOB, TABLET = called(IndexPermissions), called(BackfillJob), called(BackfillTablet)
INDEX = Index(0)  # a job is followed for each of its indexes by itself
PERMISSION = leaf(IndexPermissions.permission)
FULLY_APPLIED = leaf(IndexPermissions.fully_applied)
JOB_OF_INDEX = leaf(IndexPermissions.job)
IS_BACKFILLING = leaf(BackfillJob.is_backfilling)
IN_JOB = leaf(BackfillJob.job, INDEX)
STEP = leaf(BackfillJob.step)
SCAN, BEGIN = leaf(BackfillTablet.scan), leaf(BackfillTablet.begin)
_REMOVED = (
    Permission.write_and_delete_while_removing.name,
    Permission.delete_only_while_removing.name,
    Permission.index_unused.name,
)
_READY = Permission.read_write_and_delete.name
_WRITTEN, _BACKFILL = Permission.write_and_delete.name, Permission.do_backfill.name
_POSTGRES_ID = re.compile(r"[0-9a-f]{8}00003000[89ab]000[0-9a-f]{12}")  # YSQL makes ids of its oids

# profiles of jobs; the others are those of permissions
_OF_JOBS = (YUGABYTE_2.name, YUGABYTE_2026.name)

_NOTES = {
    Said.RACED: "writes of permissions were overtaken by another version of the table",
    Said.RETRIED: "times a chunk was tried again",
    Said.LATE: "chunks came when their indexes were past the backfill",
}


@dataclass
class _Index:
    permission: str = ""  # the last one that was logged
    served: bool = False  # clients read it
    removed_since_done: bool = False  # dropped when its job had only to write the permission
    past: bool = False  # the job that ends leaves its permission alone
    failed: bool = False


@dataclass
class _Tablet:
    entity: str
    key: str | None = None  # where the last chunk began
    leader: int = 0


@dataclass
class _Job:
    """One job of a table, as far as it is logged. `leaders` counts those who began it or went on with it."""

    number: int
    table: str
    ids: tuple[str, ...]
    node: str
    launched: Placed
    begun: bool  # the log has its begin
    names: tuple[str, ...] = ()
    leaders: int = 1
    chosen: Placed | None = None  # the read time; whether it is written is known by the first chunk
    scanning: bool = False  # a chunk was logged since the last leader took over
    done: bool = False
    tablets: dict[str, _Tablet] = field(default_factory=dict[str, _Tablet])


class JobsReading:
    """Makes events of records that come in the order of time."""

    def __init__(self, profile: str, records: Iterable[LogRecord]) -> None:
        self.events: list[tuple[int, Event]] = []
        # permissions that alter rounds write, of which each is logged
        self.written: set[str] = set()
        self._skipped = 0  # times an index became ready with no word of its backfill
        self._profile = profile
        self._eras = _eras(records)
        self._counts: Counter[str] = Counter()
        self._sent: dict[
            tuple[str, str], Placed
        ] = {}  # by node and thread, not known to be written
        self._indexes: dict[str, _Index] = {}
        self._table_of: dict[str, str] = {}
        self._jobs: dict[str, _Job] = {}  # running, by table
        self._tables_of_tablets: dict[str, str] = {}
        self._numbers = 0
        self._sequences: dict[tuple[str, str], int] = {}
        self._restarts: dict[tuple[str, str], int] = {}
        self._scans = ReadTimes()

    def take(self, one: Placed) -> None:
        """Go on with the next record."""
        record, said = one.record, one.record.said
        if said is Said.SCANNED:
            self._scans.take(one)
        elif said in (Said.WILL_SET, Said.SENT, Said.RACED, Said.PAST, Said.SKIPPED):
            self._write(one)
        elif said is Said.ALTERED:
            self._altered(one)
        elif said is Said.REMOVED:
            self._removed(one)
        elif said is Said.LAUNCHED:
            self._launched(one)
        elif said in _NOTES:
            self._counts[_NOTES[said]] += 1
        elif job := self._job_of(one) or self._job_from_before(one):
            if job.node != one.node:
                self._counts["lines are of a node that had lost the job by then"] += 1
                return
            self._of_job(one, job)
        elif said is Said.PERMITTED:
            for index, permission in record.permissions:
                self._observe_permission(one, index, permission)
        else:
            self._counts["lines are of a job that cannot be told from others"] += 1

    def finish(self) -> None:
        """What was to be written at the end was at least intended: it must be legal."""
        for one in self._sent.values():
            self._set_permissions(one, one.record.permissions)
        self._sent = {}
        for number, placed, action in self._scans.steps():
            if (SCAN_TIME, f"job{number}") not in self._sequences:
                self._event(SCAN_TIME, f"job{number}", placed, {})
            self._event(SCAN_TIME, f"job{number}", placed, {}, action)

    def notes(self) -> list[str]:
        """What was noticed."""
        self._counts.update(self._scans.counts)
        notes = [f"{count} {what}" for what, count in sorted(self._counts.items())]
        if self._skipped and _BACKFILL not in self.written:
            notes.append(
                f"{self._skipped} indexes became readable, and no line says that they were to be backfilled: "
                "a permission that is named nowhere counts as one of which the log says nothing"
            )
        return notes

    # -- permissions ---------------------------------------------------------------------------------------

    def _write(self, one: Placed) -> None:
        """An alter round: the thread that says what it is to write says next whether it is written."""
        writer = one.node, one.record.prefix.thread
        intended = self._sent.get(writer)
        match one.record.said:
            case Said.WILL_SET:
                if intended is not None:
                    self._counts["writes of permissions have no end in the log"] += 1
                self._sent[writer] = one
            case Said.SENT if intended is not None:
                del self._sent[writer]
                self._set_permissions(intended, intended.record.permissions)
            case Said.RACED if intended is not None:
                del self._sent[writer]
                self._counts[_NOTES[Said.RACED]] += 1
            case Said.PAST | Said.SKIPPED:
                kept = [i for i, _ in one.record.permissions] + list(one.record.ids)
                self._leave_out(writer, kept)
                for index, permission in one.record.permissions:
                    self._index(index).past = True
                    self._observe_permission(one, index, permission)
            case _:
                pass

    def _leave_out(self, writer: tuple[str, str], indexes: Sequence[str]) -> None:
        if intended := self._sent.get(writer):
            left = tuple(p for p in intended.record.permissions if p[0] not in indexes)
            record = replace(intended.record, permissions=left)
            self._sent[writer] = replace(intended, record=record)

    def _set_permissions(self, one: Placed, permissions: Iterable[tuple[str, str]]) -> None:
        for index, permission in permissions:
            self.written.add(permission)
            self._observe_permission(one, index, permission)

    def _observe_permission(self, one: Placed, index: str, permission: str) -> None:
        if one.record.table:
            self._table_of[index] = one.record.table
        state = self._index(index)
        skipped = (state.permission, permission) == (_WRITTEN, _READY)
        self._skipped += skipped and index not in self._eras
        state.permission, state.served = permission, False
        self._event(PERMISSIONS, index, one, {PERMISSION: permission})

    def _altered(self, one: Placed) -> None:
        """Every tablet has the version: clients are served what is ready."""
        for index, table in self._table_of.items():
            state = self._index(index)
            if table == one.record.table and state.permission == _READY and not state.served:
                state.served = True
                self._event(PERMISSIONS, index, one, {PERMISSION: _READY, FULLY_APPLIED: None})

    def _removed(self, one: Placed) -> None:
        for index, permission in one.record.permissions:
            state = self._index(index)
            if state.permission in _REMOVED:
                continue  # the guard: it is past that
            job = self._jobs.get(one.record.table)
            state.removed_since_done = job is not None and job.done and index in job.ids
            self._observe_permission(one, index, permission)

    # -- jobs ----------------------------------------------------------------------------------------------

    def _launched(self, one: Placed) -> None:
        record, old = one.record, self._jobs.get(one.record.table)
        goes_on = old is not None and set(old.ids) == set(record.ids)
        if old is not None and goes_on:
            self._taken_over(one, old)
        else:
            self._numbers += 1
            for key in [k for k, j in self._jobs.items() if not j.table]:
                del self._jobs[key]  # it may be this one that goes on
            self._jobs[record.table] = _Job(
                self._numbers, record.table, record.ids, one.node, one, begun=True
            )
        permissions = {} if goes_on else dict(record.permissions)
        for index in record.ids:
            self._table_of[index] = record.table
            state = self._index(index)
            state.past = state.removed_since_done = False
            seen: dict[str, object] = {JOB_OF_INDEX: Job.running.name}
            if permission := permissions.get(index):
                seen[PERMISSION] = state.permission = permission
            if not goes_on:
                state.failed = False
                seen[FULLY_APPLIED] = None
            if not state.failed and state.permission not in _REMOVED:
                self._event(PERMISSIONS, index, one, seen)
            action = step(BackfillJob.resume if goes_on else BackfillJob.launch)
            self._event(JOB, index, one, {IS_BACKFILLING: True}, action)

    def _taken_over(self, one: Placed, job: _Job) -> None:
        """What the last leader had under way may be written or not: follow these indexes anew."""
        for index in job.ids:
            failed = self._index(index).failed
            if failed or job.chosen is not None:
                self._restart(JOB, index)
                self._counts["indexes were left open by a change of leader"] += 1
            if failed:
                self._restart(PERMISSIONS, index)
                self._index(index).failed = False
        job.node, job.launched, job.leaders = one.node, one, job.leaders + 1
        job.chosen, job.scanning = None, False

    def _job_of(self, one: Placed) -> _Job | None:
        """The job that a line is of: by its table, or by the names of indexes, of which jobs have some."""
        record = one.record
        if record.table:
            job = self._jobs.get(record.table)
            if job is not None and record.names and not job.names:
                job.names = record.names
            return job
        running = list(self._jobs.values())
        if record.tablet:
            of_tablet = [job for job in running if record.tablet in job.tablets]
            if len(of_tablet) == 1:
                return of_tablet[0]
        if not record.names:
            return None
        names = set(record.names)
        for fits in (
            [job for job in running if set(job.names) == names],
            [job for job in running if set(job.names) > names],  # those that have not failed
            [job for job in running if not job.names and len(job.ids) == len(names)],
        ):
            if len(fits) > 1:
                fits = [job for job in fits if job.node == one.node]
            if len(fits) == 1:
                fits[0].names = fits[0].names or record.names
                return fits[0]
            if fits:
                return None
        return None

    def _job_from_before(self, one: Placed) -> _Job | None:
        """A job that was going on when the log begins: its chunks show which names its indexes have."""
        if one.record.said is not Said.CHUNK or self._is_named(one.record.names):
            return None
        self._numbers += 1
        names = one.record.names
        job = _Job(self._numbers, "", (), one.node, one, begun=False, names=names)
        self._jobs[", ".join(names)] = job
        return job

    def _is_named(self, names: tuple[str, ...]) -> bool:
        return any(set(names) & set(job.names) for job in self._jobs.values())

    def _of_job(self, one: Placed, job: _Job) -> None:
        record = one.record
        match record.said:
            case Said.SAFE_TIME:
                self._scans.choose(job.number, job.ids, one)
                self._settle(job)
                job.chosen = one
            case Said.CHUNK:
                self._settle(job)
                if not job.scanning:
                    job.scanning = True
                    self._each(job, one, {STEP: Step.backfill_tablets.name})
                self._chunk(one, job)
            case Said.TABLET_DONE | Said.TABLET_FAILED:
                self._settle(job)
                scan = (Scan.done if record.said is Said.TABLET_DONE else Scan.failed).name
                tablet = self._tablet(one, job)
                self._event(TABLET, tablet.entity, one, {SCAN: scan})
            case Said.ALL_DONE:
                self._settle(job)
                job.done = True
                self._each(job, one, {IN_JOB: Status.success.name}, step(BackfillJob.find_all_done))
            case Said.FAILED:
                self._failed(one, record.ids)
            case Said.NO_TIME:
                job.chosen = None
                self._failed(one, job.ids)
            case Said.PERMITTED:
                self._ended(one, job)
            case _:
                pass

    def _settle(self, job: _Job) -> None:
        """Work goes on after the read time was chosen: so that is written."""
        if job.chosen is not None:
            self._each(
                job,
                job.chosen,
                {STEP: Step.backfill_tablets.name},
                step(BackfillJob.choose_read_time),
            )
            job.chosen, job.scanning = None, True

    def _failed(self, one: Placed, indexes: Iterable[str]) -> None:
        for index in indexes:
            state = self._index(index)
            if state.failed:
                continue
            state.failed = True
            self._event(JOB, index, one, {IN_JOB: Status.failed.name})
            if state.permission not in _REMOVED:
                self._event(PERMISSIONS, index, one, {JOB_OF_INDEX: Job.failed.name})

    def _ended(self, one: Placed, job: _Job) -> None:
        """The permissions are written, the job is cleared, and the leader is free for another one."""
        self._settle(job)
        for index, permission in one.record.permissions:
            state = self._index(index)
            seen: dict[str, object] = {STEP: Step.none.name, IS_BACKFILLING: False}
            removed = state.permission in _REMOVED
            # An index that is gone from its table is passed over without a word.
            gone = state.permission == Permission.index_unused.name or (
                removed and not self.written
            )
            gone = gone and not state.removed_since_done
            if state.past or gone or (removed and permission in _REMOVED):
                self._event(JOB, index, one, seen)  # it was past that, or has gone on by now
            elif state.removed_since_done:
                # Dropped before or after that was written: lines of two threads do not say it.
                self._counts["indexes were dropped while their job ended"] += 1
                self._restart(PERMISSIONS, index)
                self._restart(JOB, index)
            else:
                self._event(
                    JOB, index, one, {**seen, leaf(BackfillJob.permission, INDEX): permission}
                )
                state.permission, state.served = permission, False
                self._event(
                    PERMISSIONS, index, one, {PERMISSION: permission, JOB_OF_INDEX: Job.none.name}
                )
            state.past = state.removed_since_done = state.failed = False
        del self._jobs[job.table]

    # -- tablets -------------------------------------------------------------------------------------------

    def _chunk(self, one: Placed, job: _Job) -> None:
        tablet = self._tablet(one, job)
        key, before = one.record.key, tablet.key
        tablet.key = key
        seen: dict[str, object] = {SCAN: Scan.chunk.name}
        if before is not None:
            order = Begin.same if key == before else Begin.further if key > before else Begin.back
            seen[BEGIN] = order.name
        elif not key:
            seen[BEGIN] = Begin.at_the_start.name
        elif job.begun and job.leaders == 1:
            seen[BEGIN] = Begin.further.name  # than nothing: its first chunk begins at the start
        self._event(TABLET, tablet.entity, one, seen)

    def _tablet(self, one: Placed, job: _Job) -> _Tablet:
        name = one.record.tablet
        tablet = job.tablets.get(name)
        if tablet is None:
            tablet = job.tablets[name] = _Tablet(f"{name}@job{job.number}", leader=job.leaders)
            if job.begun and job.leaders == 1:
                none: dict[str, object] = {SCAN: Scan.not_begun.name, BEGIN: Begin.none.name}
                self._event(TABLET, tablet.entity, job.launched, none)
        if tablet.leader < job.leaders:
            tablet.leader = job.leaders
            self._event(TABLET, tablet.entity, job.launched, {}, step(BackfillTablet.take_over))
        return tablet

    # -- events --------------------------------------------------------------------------------------------

    def _index(self, index: str) -> _Index:
        return self._indexes.setdefault(index, _Index())

    def _each(
        self, job: _Job, one: Placed, seen: Mapping[str, object], action: str | None = None
    ) -> None:
        for index in job.ids:
            if not self._index(index).failed:
                self._event(JOB, index, one, seen, action)

    def _restart(self, machine: str, index: str) -> None:
        key = machine, index
        if self._sequences.pop(key, 0):
            self._restarts[key] = self._restarts.get(key, 0) + 1

    def _event(
        self,
        machine: str,
        entity: str,
        one: Placed,
        seen: Mapping[str, object],
        action: str | None = None,
    ) -> None:
        key = machine, entity
        sequence = self._sequences.get(key, 0)
        self._sequences[key] = sequence + 1
        again = f"#{self._restarts[key]}" if key in self._restarts else ""
        event = Event(
            trace="",
            machine=machine,
            profile=self._profile_of(machine, entity),
            definition="",
            entity=entity + again,
            sequence=sequence,
            node=one.node,
            action=action if sequence else None,
            observed=dict(seen),
            line=one.record.line,
        )
        self.events.append((one.part, event))

    def _profile_of(self, machine: str, entity: str) -> str:
        """Of the profile that was asked for, what is this machine's; else what the index itself shows."""
        of_jobs = self._profile in _OF_JOBS
        if machine == JOB:
            return self._profile if of_jobs or self._profile == SEED.name else ""
        if machine in (TABLET, SCAN_TIME):
            return ""
        if self._profile and not of_jobs:
            return self._profile
        return self._eras.get(entity, YSQL.name) if _POSTGRES_ID.fullmatch(entity) else ""


def _eras(records: Iterable[LogRecord]) -> dict[str, str]:
    """The era of each index that a job backfills while its permission is still WRITE_AND_DELETE."""
    return {
        index: YSQL_NO_DO_BACKFILL.name
        for record in records
        if record.said is Said.LAUNCHED
        for index, permission in record.permissions
        if permission == _WRITTEN
    }
