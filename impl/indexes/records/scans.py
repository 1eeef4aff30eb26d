"""What is recorded of jobs, their scans of tablets, and how builds end (`machines/recorded/index_builds.py`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.indexes.control import JOB, PERMISSIONS
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.records.known import KnownVersions
from stagewright.impl.indexes.records.notes import (
    AnswerTaken,
    ChunkAsked,
    ChunkBegun,
    ChunkEnded,
    IndexRead,
    Note,
    Opened,
    ReadTimeChosen,
    RowsScanned,
    SafeTimeGiven,
    StatusReported,
    Stepped,
    ViolationFound,
)
from stagewright.impl.indexes.records.schemas import Schemas
from stagewright.impl.indexes.schema import (
    entry_key,
    key_of,
    row_key,
    table_tablet,
)
from stagewright.impl.indexes.splits.tablet_map import Split
from stagewright.impl.recording.recording import Recording
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status

SCANS, BUILDS = "index-scans", "index-builds"
SECOND = 1000
LONG = 10  # times as long as the master waits before it asks again


@dataclass
class _Scan:
    """Of one tablet by one job."""

    safe: int | None = None  # the least of the safe times that were given
    checkpoint: bytes = b""
    done: bool = False
    ask: tuple[int, int] | None = None  # the last one
    begun_ask: tuple[int, int] = (0, 0)  # the last one that this leader began
    since: int | None = None  # when a chunk was asked for that is not answered
    at: bytes = b""  # the row that comes next
    read: list[int] = field(default_factory=list[int])  # rows of the chunk
    begun: ChunkBegun | None = None
    times: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])  # rows by time


class ScanRecords:
    """Makes steps of what masters and tablets say."""

    def __init__(
        self, recording: Recording, known: KnownVersions, schemas: Schemas, settings: Settings
    ) -> None:
        self._recording = recording
        self._known = known
        self._schemas = schemas
        self._settings = settings
        self._scans: dict[tuple[int, int], _Scan] = {}
        self._chosen: dict[int, int] = {}  # read times by job
        self._jobs: dict[int, int] = {}  # by index, the last one that chose a time for it
        self._violated: set[int] = set()

    def hear(self, note: Note) -> None:
        """A process has done something."""
        match note:
            case SafeTimeGiven():
                self._safe_time(note)
            case ReadTimeChosen():
                self._choose(note)
            case ChunkAsked():
                self._asked(note)
            case ChunkBegun():
                self._begun(note)
            case RowsScanned():
                self._read(note)
            case ChunkEnded():
                self._ended(note)
            case AnswerTaken():
                self._taken(note)
            case ViolationFound(address):
                self._violated.add(_index_at(address))
            case IndexRead(address, at):
                index = _index_at(address)
                time = self._chosen.get(self._jobs.get(index, 0), 0)
                self._build(index, "read", since_scan=at >= time)
            case StatusReported(index, status):
                success = status is Status.success
                self._build(index, "tell", success=success, served=self._schemas.serve(index))
            case Stepped():
                self._stepped(note)
            case Opened(address):
                for (_, tablet), scan in self._scans.items():
                    if table_tablet(tablet) == address:
                        scan.begun_ask = (0, 0)
            case _:
                pass
        self.look_for_silence()

    def look_for_silence(self) -> None:
        """Chunks that are not answered, and not asked for again, for long."""
        most = LONG * 4 * self._settings.retry
        for (job, tablet), scan in self._scans.items():
            if scan.since is not None and self._recording.now() - scan.since > most:
                scan.since = None
                self._scan(job, tablet, "await_answer", long=True)

    def divide(self, split: Split) -> None:
        """A tablet has split: its children have its safe time; unless it was done, they are scanned from their starts."""
        for (job, tablet), scan in list(self._scans.items()):
            if tablet == split.parent:
                scan.since = None
                for child in split.children if scan.safe is not None else ():
                    self._scans[job, child] = _Scan(scan.safe, done=scan.done)
                    self._scan(job, child, "inherit_safe_time")

    # -- scans -------------------------------------------------------------------------------------------------

    def _of(self, job: int, tablet: int) -> _Scan:
        return self._scans.setdefault((job, tablet), _Scan())

    def _scan(self, job: int, tablet: int, action: str, **arguments: bool) -> None:
        entity = f"job{job}/tablet{tablet}"
        self._recording.take(SCANS, entity, table_tablet(tablet), action, **arguments)

    def _safe_time(self, note: SafeTimeGiven) -> None:
        scan = self._of(note.job, note.tablet)
        scan.safe = note.time if scan.safe is None else min(scan.safe, note.time)
        settled = self._schemas.is_settled(note.tablet, note.indexes, note.time)
        self._scan(note.job, note.tablet, "give_safe_time", settled=settled)

    def _asked(self, note: ChunkAsked) -> None:
        scan = self._of(note.job, note.tablet)
        if scan.since is not None and scan.ask == note.ask:
            self._scan(note.job, note.tablet, "await_answer", long=False)
        scan.ask, scan.since = note.ask, self._recording.now()
        self._scan(
            note.job,
            note.tablet,
            "ask_chunk",
            at_checkpoint=note.start == scan.checkpoint,
            one_time=note.read_time == self._chosen.get(note.job),
        )

    def _begun(self, note: ChunkBegun) -> None:
        scan = self._of(note.job, note.tablet)
        scan.at, scan.read, scan.begun = note.start, [], note
        newest, scan.begun_ask = note.ask >= scan.begun_ask, note.ask
        schema = self._schemas.of(note.tablet)
        at = Permission.do_backfill
        self._scan(
            note.job,
            note.tablet,
            "begin_chunk",
            ready=all(schema.permission(i) is at for i in note.indexes),
            newest=newest,
            at_its_time=note.read_time == self._chosen.get(note.job),
            safe_by_then=scan.safe is not None and scan.safe <= note.read_time,
        )

    def _read(self, note: RowsScanned) -> None:
        scan = self._of(note.job, note.tablet)
        address = table_tablet(note.tablet)
        following = self._known.rows_from(address, scan.at, note.read_time)
        expected = [key_of(key) for key, _ in following][: len(note.keys)]
        now = self._recording.now()
        scan.times = [t for t in scan.times if t[0] > now - SECOND] + [(now, len(note.keys))]
        rate = self._settings.rows_per_second
        self._scan(
            note.job,
            note.tablet,
            "read_rows",
            next_ones=tuple(expected) == note.keys,
            within_rate=not rate or sum(rows for _, rows in scan.times) <= rate,
        )
        scan.read += note.keys
        if note.keys:
            scan.at = row_key(note.keys[-1]) + b"\0"

    def _ended(self, note: ChunkEnded) -> None:
        scan = self._of(note.job, note.tablet)
        if note.broken or scan.begun is None:
            self._scan(note.job, note.tablet, "leave_chunk")
            return
        following = self._known.rows_from(table_tablet(note.tablet), scan.at, scan.begun.read_time)
        next_one = next((key for key, _ in following), None)
        self._scan(
            note.job,
            note.tablet,
            "end_chunk",
            whole=next_one == note.until,
            written=self._are_written(note.tablet, scan, scan.begun),
        )

    def _are_written(self, tablet: int, scan: _Scan, begun: ChunkBegun) -> bool:
        """Whether each row that was read has its entry in each index that the tablet knows."""
        indexes = [i for i in self._schemas.of(tablet).indexes if i.number in begun.indexes]
        rows = {
            key_of(key): values
            for key, values in self._known.rows_from(
                table_tablet(tablet), begun.start, begun.read_time
            )
        }
        for row in scan.read:
            for index in indexes:
                value = rows.get(row, {}).get(index.column)
                if value is None:
                    continue
                entry = entry_key(index.unique, value, row)
                place = self._known.maps.place_of(index.number, entry)
                if not self._known.has_entry(place, entry, begun.read_time, row):
                    return False
        return True

    def _taken(self, note: AnswerTaken) -> None:
        scan = self._of(note.job, note.tablet)
        last, end = note.ask == scan.ask, note.until is None
        self._scan(note.job, note.tablet, "take_answer", to_the_last=last, end=end)
        scan.since, scan.checkpoint, scan.done = None, note.until or b"", end

    # -- builds ------------------------------------------------------------------------------------------------

    def _build(self, index: int, action: str, **arguments: bool) -> None:
        self._recording.take(BUILDS, f"index{index}", "master", action, **arguments)

    def _choose(self, note: ReadTimeChosen) -> None:
        self._chosen[note.job] = note.read_time
        given = [self._of(note.job, t).safe for t in self._known.maps.of().numbers]
        covers = all(safe is not None and safe <= note.read_time for safe in given)
        for index in note.indexes:
            self._jobs[index] = note.job
            self._build(index, "choose_time", covers=covers)

    def _stepped(self, note: Stepped) -> None:
        if note.kind == JOB and note.action in ("find_all_done", "fail_over"):
            now = self._recording.now() if note.action == "fail_over" else None
            for scan in self._scans.values():
                scan.since = None if scan.since is None else now
        if note.kind != PERMISSIONS:
            return
        index = int(note.entity.removeprefix("index"))
        match note.action:
            case "find_violation":
                self._build(index, "fail", violated=index in self._violated)
            case "drop_index":
                self._build(index, "drop")
            case "publish":
                job, tablets = self._jobs.get(index, 0), self._known.maps.of().numbers
                complete = all(self._of(job, t).done for t in tablets)
                self._build(index, "publish", complete=complete)
            case _:
                pass


def _index_at(address: str) -> int:
    """The index whose tablet has an address."""
    return int(address.removeprefix("index").partition("/")[0])
