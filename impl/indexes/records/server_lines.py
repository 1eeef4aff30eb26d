"""What masters and tablet servers do, as YugabyteDB's servers write it: lines of glog.

The lines are made of what was done, so that `stagewright validate` reads logs that no definition has made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

from stagewright.impl.indexes.catalog import Catalog, IndexRow, JobRow
from stagewright.impl.indexes.control import JOB, PERMISSIONS
from stagewright.impl.indexes.records.notes import (
    AnswerTaken,
    ChunkAsked,
    ChunkBegun,
    ChunkEnded,
    ChunkFailed,
    JobBegun,
    Note,
    ReadTimeChosen,
    Stepped,
)
from stagewright.impl.indexes.times import COUNTS
from stagewright.machines.yugabytedb.indexes.index_states import Permission

TABLE = "t"
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_MOVES = {
    "allow_writes": Permission.write_and_delete,
    "allow_backfill": Permission.do_backfill,
    "stop_writes": Permission.delete_only_while_removing,
    "stop_deletes": Permission.index_unused,
}

Say = Callable[[str], None]
"""Write a message."""


def head(server: str, microseconds: int) -> tuple[str, str]:
    """How the file of a server begins."""
    created = _BEGIN + timedelta(microseconds=microseconds)
    return f"Log file created at: {created:%Y/%m/%d %H:%M:%S}", f"Running on machine: {server}"


def line(microseconds: int, message: str, thread: int = 7) -> str:
    """A line of glog; the time is since 1970."""
    time = _BEGIN + timedelta(microseconds=microseconds)
    return f"I{time:%m%d %H:%M:%S.%f} {thread:5} backfill_index.cc:539] {message}"


def id_of(*parts: object) -> str:
    """The id of a table, an index, a tablet or a server: 32 hexadecimal digits."""
    return blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()


_TABLE = f"{TABLE} [id={id_of(TABLE)}]"


class MasterLines:
    """Of one life of a master leader, with the catalog that it writes."""

    def __init__(self, say: Say, catalog: Callable[[], Catalog]) -> None:
        self._say = say
        self._catalog = catalog
        self._job = JobRow(0, ())  # the last one
        self._asked: dict[int, tuple[int, int, bytes]] = {}  # job, term and start, by tablet

    def hear(self, note: Note) -> None:
        """It has done something."""
        self._job = self._catalog().job or self._job
        match note:
            case Stepped(kind) if kind == PERMISSIONS:
                self._permission(int(note.entity.removeprefix("index")), note.action)
            case Stepped(kind) if kind == JOB:
                self._of_job(note)
            case JobBegun(_, indexes):
                infos = ", ".join(map(self._info, indexes))
                self._say(f"StartBackfillingData starting backfill on {_TABLE} for [{infos}]")
            case ReadTimeChosen(read_time=time):
                self._task(
                    f"Completed fetching SafeTime for the table {_TABLE} will be using {_time(time)}"
                )
            case ChunkAsked(job, tablet, (term, _), start, indexes):
                chunk = job, term, start
                if self._asked.get(tablet) != chunk:  # else it is a retry of its RPC
                    self._asked[tablet] = chunk
                    names = self._listed(indexes)
                    self._say(
                        f"Started BackfillChunk : Backfilling indexes {{ {names} }} for tablet "
                        f"{_tablet(tablet)} from key '{start.hex()}'"
                    )
            case ChunkFailed(tablet=tablet):
                self._asked.pop(tablet, None)
                failed = f"{_tablet(tablet)} (table {_TABLE}): duplicate key"
                self._say(f"Failed to backfill the tablet {failed}")
            case AnswerTaken(tablet=tablet, until=until):
                self._asked.pop(tablet, None)
                if until is None:
                    self._say(f"Done backfilling the tablet {_tablet(tablet)} (table {_TABLE})")
            case _:
                pass

    def _permission(self, index: int, action: str) -> None:
        if action in _MOVES:
            pair = f"{{{_index(index)}, {_MOVES[action].number}}}"
            self._say(f"vlog1: Updating index permissions for [{pair}] on {_TABLE}")
            self._say("vlog1: Sending alter table request with updated permissions")
        elif action == "drop_index":
            where = f"table {id_of(TABLE)} index {_index(index)} multi_stage=1"
            self._say(f"MarkIndexInfoFromTableForDeletion {where}")

    def _of_job(self, note: Stepped) -> None:
        job = self._job
        match note.action:
            case "fail_index":
                index = int(str(note.arguments["i"].name).removeprefix("index"))
                self._task(f"failed to backfill the index: [{_index(index)}] due to duplicate key")
            case "find_all_done":
                if job.left:
                    self._task("Completed backfilling the index table.", job.left)
            case "write_permissions":
                for index in job.left:
                    permission = self._permission_of(index)
                    if permission.removed:
                        self._say(
                            f"Index {_index(index)} on table {_TABLE} has index_permission INDEX_PERM_"
                            f"{permission.name.upper()} already past INDEX_PERM_READ_WRITE_AND_DELETE. "
                            "Will not update it"
                        )
            case "finish":
                ended = [(i, 8 if i in job.failed else 6) for i in job.indexes]
                pairs = ", ".join(f"{{{_index(i)}, {number}}}" for i, number in ended)
                self._say(f"Done backfill on {_TABLE} setting permissions to [{pairs}]")
            case "finish_alter":
                done = f"Alter table completed version={self._catalog().version}, state: RUNNING"
                self._say(f"{_TABLE} - {done}")
            case _:
                pass

    def _row(self, index: int) -> IndexRow:
        return self._catalog().indexes[index]

    def _permission_of(self, index: int) -> Permission:
        """One that is gone had the last of all permissions."""
        permission = self._row(index).permission
        return Permission.index_unused if permission is Permission.absent else permission

    def _info(self, index: int) -> str:
        permission = self._permission_of(index).name.upper()
        return (
            f'table_id: "{_index(index)}" version: 0 indexed_table_id: "{id_of(TABLE)}" '
            f"index_permissions: INDEX_PERM_{permission}"
        )

    def _listed(self, indexes: Iterable[int]) -> str:
        return ", ".join(self._row(i).name for i in indexes)

    def _task(self, message: str, indexes: Iterable[int] | None = None) -> None:
        names = self._listed(self._job.indexes if indexes is None else indexes)
        self._say(f"Backfill Index Table(s) {{ {names} }}  {message}")


class TabletServerLines:
    """Of one life of a tablet server."""

    def __init__(self, say: Say, server: str) -> None:
        self._say = say
        self._server = server

    def hear(self, note: Note) -> None:
        """A tablet that it leads has done something."""
        match note:
            case ChunkBegun(tablet=tablet, start=start, indexes=indexes, read_time=time):
                at = start.hex() or "<start-of-the-tablet>"
                ids = ", ".join(_index(i) for i in indexes)
                begins = f"Begin BackfillIndexesForYsql at {_time(time)} from {at} for [{ids}]"
                self._say(f"{self._place(tablet)}: {begins}")
            case ChunkEnded(tablet=tablet, until=until, broken=False):
                end = "<end of the tablet>" if until is None else until.hex()
                self._say(f"{self._place(tablet)}: Done BackfillIndexes until {end}")
            case _:
                pass

    def _place(self, tablet: int) -> str:
        return f"T {_tablet(tablet)} P {id_of(self._server)}"


def _index(index: int) -> str:
    return id_of("index", index)


def _tablet(tablet: int) -> str:
    return id_of("tablet", tablet)


def _time(time: int) -> str:
    """As YugabyteDB writes a hybrid time."""
    physical, logical = divmod(time, COUNTS)
    counter = f" logical: {logical}" if logical else ""
    return f"{{ physical: {physical * 1000}{counter} }}"
