"""Writes what masters and tablet servers do as YugabyteDB's servers would: lines of glog, a file for each of them.

Each life of a master is a file of its own, as another server is elected. The lines are made of what was done, so that
`stagewright validate` reads logs that no definition has made.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

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
_MOVES = {
    "allow_writes": Permission.write_and_delete,
    "allow_backfill": Permission.do_backfill,
    "stop_writes": Permission.delete_only_while_removing,
    "stop_deletes": Permission.index_unused,
}


def id_of(*parts: object) -> str:
    """The id of a table, an index, a tablet or a server: 32 hexadecimal digits."""
    return blake2b("/".join(map(str, parts)).encode(), digest_size=16).hexdigest()


_TABLE = f"{TABLE} [id={id_of(TABLE)}]"


@dataclass
class _Job:
    indexes: tuple[int, ...] = ()
    failed: set[int] = field(default_factory=set[int])
    asked: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    removed_at_the_end: set[int] = field(default_factory=set[int])

    @property
    def left(self) -> list[int]:
        return [i for i in self.indexes if i not in self.failed]


class ServerLogs:
    """Of all servers of a run."""

    def __init__(self, now: Callable[[], int], names: Callable[[int], str]) -> None:
        """`now` says milliseconds, `names` how an index is called."""
        self._now = now
        self._names = names
        self._lines: dict[str, list[str]] = defaultdict(list)
        self._last = 0
        self._lives = 0  # of masters
        self._job = _Job()
        self._permissions: dict[int, Permission] = {}
        self._version = 1

    def hear(self, note: Note, server: str) -> None:
        """A process of a server has done something."""
        match note:
            case Stepped():
                self._stepped(note)
            case JobBegun(_, indexes):
                if set(indexes) != set(self._job.indexes) or not self._job.indexes:
                    self._job = _Job(indexes)
                infos = ", ".join(self._info(i) for i in indexes)
                self._master(f"StartBackfillingData starting backfill on {_TABLE} for [{infos}]")
            case ReadTimeChosen(read_time=time):
                self._task(
                    f"Completed fetching SafeTime for the table {_TABLE} will be using {_time(time)}"
                )
            case ChunkAsked(tablet=tablet, ask=ask, start=start, indexes=indexes):
                if ask not in self._job.asked:  # the others are retries of its RPC
                    self._job.asked.add(ask)
                    names = self._listed(indexes)
                    self._master(
                        f"Started BackfillChunk : Backfilling indexes {{ {names} }} for tablet "
                        f"{_tablet(tablet)} from key '{start.hex()}'"
                    )
            case ChunkFailed(tablet=tablet):
                failed = f"{_tablet(tablet)} (table {_TABLE}): duplicate key"
                self._master(f"Failed to backfill the tablet {failed}")
            case AnswerTaken(tablet=tablet, until=None):
                self._master(f"Done backfilling the tablet {_tablet(tablet)} (table {_TABLE})")
            case ChunkBegun(tablet=tablet, start=start, indexes=indexes, read_time=time):
                at = start.hex() or "<start-of-the-tablet>"
                ids = ", ".join(_index(i) for i in indexes)
                self._tablet_server(
                    server,
                    tablet,
                    f"Begin BackfillIndexesForYsql at {_time(time)} from {at} for [{ids}]",
                )
            case ChunkEnded(tablet=tablet, until=until, broken=False):
                end = "<end of the tablet>" if until is None else until.hex()
                self._tablet_server(server, tablet, f"Done BackfillIndexes until {end}")
            case _:
                pass

    def write(self, directory: Path) -> tuple[Path, ...]:
        """A file a server; what an earlier run has left goes."""
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("yb-*.log"):
            old.unlink()
        paths: list[Path] = []
        for server, lines in sorted(self._lines.items()):
            path = directory / f"{server}.log"
            head = [
                "Log file created at: 2026/01/02 00:00:00",
                f"Running on machine: {server}",
            ]
            path.write_text("\n".join([*head, *lines, ""]), "utf-8")
            paths.append(path)
        return tuple(paths)

    # -- what masters decide -----------------------------------------------------------------------------------

    def _stepped(self, note: Stepped) -> None:
        match note.kind:
            case kind if kind == PERMISSIONS:
                self._permission(int(note.entity.removeprefix("index")), note.action)
            case kind if kind == JOB:
                self._of_job(note)
            case _:
                pass

    def _permission(self, index: int, action: str) -> None:
        if action in _MOVES:
            self._permissions[index] = permission = _MOVES[action]
            pair = f"{{{_index(index)}, {permission.number}}}"
            self._master(f"vlog1: Updating index permissions for [{pair}] on {_TABLE}")
            self._master("vlog1: Sending alter table request with updated permissions")
        elif action == "drop_index":
            self._permissions[index] = Permission.write_and_delete_while_removing
            where = f"table {id_of(TABLE)} index {_index(index)} multi_stage=1"
            self._master(f"MarkIndexInfoFromTableForDeletion {where}")
        elif action == "create_index":
            self._permissions[index] = Permission.delete_only

    def _of_job(self, note: Stepped) -> None:
        job = self._job
        match note.action:
            case "fail_over":
                self._lives += 1
            case "fail_index":
                index = int(str(note.arguments["i"].name).removeprefix("index"))
                self._task(f"failed to backfill the index: [{_index(index)}] due to duplicate key")
                job.failed.add(index)
            case "find_all_done":
                if job.left:
                    self._task("Completed backfilling the index table.", job.left)
            case "write_permissions":
                for index in job.left:
                    permission = self._permissions[index]
                    if permission.removed:
                        self._master(
                            f"Index {_index(index)} on table {_TABLE} has index_permission INDEX_PERM_"
                            f"{permission.name.upper()} already past INDEX_PERM_READ_WRITE_AND_DELETE. "
                            "Will not update it"
                        )
            case "finish":
                ended = [(i, 8 if i in job.failed else 6) for i in job.indexes]
                pairs = ", ".join(f"{{{_index(i)}, {number}}}" for i, number in ended)
                self._master(f"Done backfill on {_TABLE} setting permissions to [{pairs}]")
                self._job = _Job()
            case "finish_alter":
                self._version += 1
                self._master(
                    f"{_TABLE} - Alter table completed version={self._version}, state: RUNNING"
                )
            case _:
                pass

    # -- lines -------------------------------------------------------------------------------------------------

    def _info(self, index: int) -> str:
        permission = self._permissions[index].name.upper()
        return (
            f'table_id: "{_index(index)}" version: 0 indexed_table_id: "{id_of(TABLE)}" '
            f"index_permissions: INDEX_PERM_{permission}"
        )

    def _listed(self, indexes: Iterable[int]) -> str:
        return ", ".join(self._names(i) for i in indexes)

    def _task(self, message: str, indexes: Iterable[int] | None = None) -> None:
        names = self._listed(self._job.indexes if indexes is None else indexes)
        self._master(f"Backfill Index Table(s) {{ {names} }}  {message}")

    def _master(self, message: str) -> None:
        self._say(f"yb-master-{self._lives + 1}", message)

    def _tablet_server(self, server: str, tablet: int, message: str) -> None:
        place = f"T {_tablet(tablet)} P {id_of(server)}"
        self._say(f"yb-tserver-{server}", f"{place}: {message}")

    def _say(self, server: str, message: str) -> None:
        self._last = max(self._last + 1, self._now() * 1000)
        seconds, micros = divmod(self._last, 1_000_000)
        minutes, second = divmod(seconds, 60)
        hours, minute = divmod(minutes, 60)
        clock = f"{hours:02}:{minute:02}:{second:02}.{micros:06}"
        self._lines[server].append(f"I0102 {clock} {7:5} backfill_index.cc:539] {message}")


def _index(index: int) -> str:
    return id_of("index", index)


def _tablet(tablet: int) -> str:
    return id_of("tablet", tablet)


def _time(time: int) -> str:
    """As YugabyteDB writes a hybrid time."""
    physical, logical = divmod(time, COUNTS)
    counter = f" logical: {logical}" if logical else ""
    return f"{{ physical: {physical * 1000}{counter} }}"
