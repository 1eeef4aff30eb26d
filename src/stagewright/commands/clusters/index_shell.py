"""The shell of an indexed table: rows of numbers, indexes that are built meanwhile, reads as of a time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stagewright.commands.clusters.unknown import unknown_command
from stagewright.commands.clusters.waiting import Waiting
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.impl.indexes.messages import Build
    from stagewright.impl.indexes.processes.client import IndexClient

COMMANDS = """\
commands, one per line or separated by semicolons; keys and values are whole numbers, the columns are v and w:
  put KEY COLUMN=VALUE …   write a row in one transaction, and print its time
  delete KEY           delete it
  get KEY [at TIME]    read it, now or as of a time
  scan [LIMIT] [at TIME]   all rows, tablet by tablet
  create [unique] [deferred] index NAME on COLUMN   returns at once; a deferred index waits for `backfill`
  backfill             build the deferred indexes
  build status         show each index's progress and remaining time, and the rows that made one fail
  await NAME           wait until it is built; it fails if the build does, or if the index is dropped
  drop index NAME      drop it, at any time
  read NAME VALUE [at TIME]   read the rows that an index has for a value
  split TABLET         make two of a tablet of the table; refused while a backfill is going on
  split INDEX TABLET   make two of a tablet of an index, at any time
  tablets [INDEX]      which tablets the table has now, or an index, and which have split into them
  help, exit
"""
AWAIT = 3600.0  # seconds
_LOOK = 0.1
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(-?[0-9]+)")
_NUMBER = re.compile(r"-?[0-9]+")
_LARGEST = (1 << 63) - 2
_DIGITS = len(str(-_LARGEST))


class IndexShell:
    """Carries commands out, and prints what comes of them."""

    commands = COMMANDS

    def __init__(self, client: IndexClient, *, as_json: bool) -> None:
        self._client = client
        self._as_json = as_json

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def do(self, words: list[str]) -> None:
        """Carry a command out.

        Raises:
            InputError: there is no such command, or no such index.
            ClusterError: the cluster refuses, or does not answer.
        """
        words, at = _time_of(words)
        match words:
            case ["get", key]:
                row = self._client.get(_number(key), at)
                self._say({"key": _number(key), "row": row}, "no row" if row is None else _row(row))
            case ["scan"]:
                self._scan(None, at)
            case ["scan", limit] if limit.isdecimal():
                self._scan(int(limit), at)
            case ["read", name, value]:
                self._read(name, _number(value), at)
            case _ if at:
                raise unknown_command([*words, "at", str(at)], COMMANDS)
            case ["put", key, *assigned] if assigned:
                self._write(_number(key), _values(assigned))
            case ["delete", key]:
                self._write(_number(key), None)
            case ["help"]:
                print(COMMANDS)
            case _:
                self._of_indexes(words)

    def _of_indexes(self, words: list[str]) -> None:
        match words:
            case ["create", *kinds, "index", name, "on", column] if {*kinds} <= {
                "unique",
                "deferred",
            }:
                self._create(name, column, unique="unique" in kinds, deferred="deferred" in kinds)
            case ["drop", "index", name]:
                self._known(name)
                self._show(self._client.drop(name))
            case ["backfill"]:
                self._client.backfill()
                self._say({"backfill": True}, "done")
            case ["build", "status"]:
                self._list()
            case ["await", name]:
                self._await(name)
            case ["split", *index, tablet] if tablet.isdecimal() and len(index) <= 1:
                children = self._client.split(_number(tablet), *index)
                text = f"tablet {tablet} splits into {' and '.join(map(str, children))}"
                self._say({"tablet": int(tablet), "children": list(children)}, text)
            case ["tablets", *index] if len(index) <= 1:
                self._tablets(*index)
            case ["merge" | "move" | "repair" | "alter", *_] | ["cdc", *_]:
                raise InputError(
                    f"a cluster with `--indexes` has no `{words[0]}`: one table, whose tablets only split",
                    help="views, change logs and moving tablets are of a cluster that is started without `--indexes`",
                )
            case ["create", "view" | "table", *_]:
                raise InputError(
                    f"a cluster with `--indexes` has one table, and no {words[1]}s beside it",
                    help="`cluster start` without `--indexes` begins one that has",
                )
            case _:
                raise unknown_command(words, COMMANDS)

    # -- rows --------------------------------------------------------------------------------------------------

    def _write(self, key: int, values: Mapping[str, int] | None) -> None:
        from stagewright.impl.processes.errors import ClusterError

        found = self._client.write({key: values})
        if found.time is None:
            raise ClusterError(
                f"{key} is not written: {found.refused.replace('_', ' ')}",
                help="`duplicate`: another row has the value of a unique index (`build status` lists them); else try again",
            )
        self._say({"key": key, "time": found.time}, f"committed at {found.time}")

    def _scan(self, limit: int | None, at: int) -> None:
        count = 0
        for key, row in self._client.scan(at):
            if count == limit:
                break
            self._say({"key": key, "row": row}, f"{key}\t{_row(row)}")
            count += 1
        self._say({"rows": count}, f"{count} row{'' if count == 1 else 's'}")

    def _read(self, name: str, value: int, at: int) -> None:
        found = self._client.look_up(name, value, at)
        keys = " ".join(map(str, found.rows)) or "no row"
        what = {"index": name, "value": value, "rows": list(found.rows), "time": found.at}
        self._say(what, keys)

    def _tablets(self, index: str = "") -> None:
        """The tablets that serve, with the one that each was in the beginning."""
        known = self._client.tablets(index)
        for tablet in known.numbers:
            root = known.root(tablet)
            text = f"tablet {tablet}" + (
                f"\tof tablet {root}, which has split" if root != tablet else ""
            )
            self._say({"tablet": tablet, "of": root}, text)

    # -- builds ------------------------------------------------------------------------------------------------

    def _create(self, name: str, column: str, *, unique: bool, deferred: bool) -> None:
        _refuse_unknown_column(column)
        build = self._client.create(name, column, unique=unique, deferred=deferred)
        if (build.column, build.unique) != (column, unique):
            kind = "a unique index" if build.unique else "an index"
            raise InputError(
                f"{name} is there already, {kind} on {build.column}",
                help="drop it first, or choose another name",
            )
        self._show(build)

    def _known(self, name: str) -> Build:
        builds = {b.name: b for b in self._client.builds()}
        if name not in builds:
            raise InputError(
                f"there is no index {name}", help=f"known: {', '.join(builds) or 'none'}"
            )
        return builds[name]

    def _await(self, name: str) -> None:
        from stagewright.impl.indexes.processes.progress import shown_build
        from stagewright.impl.processes.errors import ClusterError
        from stagewright.machines.yugabytedb.indexes.index_states import Status

        until, waiting = time.monotonic() + AWAIT, Waiting()
        while not is_over(build := self._known(name)):
            waiting.report(build_as_text(shown_build(build)))
            if build.waits:
                raise InputError(f"{name} is deferred", help="`backfill` builds it")
            if time.monotonic() > until:
                raise ClusterError(
                    f"{name} is not built after {AWAIT:g} s", help="see `build status`"
                )
            time.sleep(_LOOK)
        self._show(build)
        if build.dropped:
            raise ClusterError(f"{name} was dropped", help=f"`create … index {name}` makes it anew")
        if build.status is not Status.success:
            raise ClusterError(
                f"{name} is not built: {build.error or 'its build has failed'}",
                help=f"remove what is wrong; `create … index {name}` builds it anew",
            )

    def _list(self) -> None:
        from stagewright.impl.indexes.processes.progress import listed

        for build in listed(self._client.builds()):
            self._show(build)

    def _show(self, build: Build) -> None:
        from stagewright.impl.indexes.processes.progress import shown_build

        what = shown_build(build)
        self._say(what, build_as_text(what))

    def _say(self, what: Mapping[str, object], text: str) -> None:
        print(json.dumps(what, ensure_ascii=False) if self._as_json else text, flush=True)


def is_over(build: Build) -> bool:
    """Whether it is built, has failed, or is dropped."""
    return (
        build.dropped
        or build.gone
        or (build.status is not None and build.status.name != "in_progress")
    )


def build_as_text(what: Mapping[str, object]) -> str:
    """How far an index is built (`shown_build`), as a line."""
    words = [f"{'unique ' if what['unique'] else ''}index {what['index']} on {what['column']}"]
    words += [f"{what['status']}"]
    if what["deferred"]:
        words.append("waits for `backfill`")
    elif what["status"] == "IN-PROGRESS":
        words.append(f"{100 * float(str(what['done'])):.0f} %")
        if what["seconds left"] is not None:
            words.append(f"about {what['seconds left']} s to go")
    words += [str(what["error"])] if what["error"] else []
    gone = "dropped" if what["dropped"] and what["status"] != "DROPPED" else ""
    words += ["deleted" if what["deleted"] else gone]
    return f"{words[0]}: {', '.join(filter(None, words[1:]))}"


def _time_of(words: list[str]) -> tuple[list[str], int]:
    match words:
        case [*rest, "at", at] if at.isdecimal():
            return rest, _number(at)
        case _:
            return words, 0


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise InputError(
            f"{text!r} is not a whole number",
            help="keys and values of this table are whole numbers",
        )
    if len(text) > _DIGITS or abs(int(text)) > _LARGEST:
        problem = f"{text[:_DIGITS]}{'…' if len(text) > _DIGITS else ''} is too large a number"
        raise InputError(problem, help=f"numbers are from {-_LARGEST} to {_LARGEST}")
    return int(text)


def _values(words: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        assigned = _ASSIGNED.fullmatch(word)
        if assigned is None:
            raise InputError(f"{word!r} assigns nothing", help="write COLUMN=NUMBER, as in v=3")
        _refuse_unknown_column(assigned[1])
        if assigned[1] in found:
            raise InputError(f"{word!r} assigns {assigned[1]} again", help="assign it once")
        found[assigned[1]] = _number(assigned[2])
    return found


def _refuse_unknown_column(name: str) -> None:
    from stagewright.impl.indexes.schema import COLUMNS

    if name not in COLUMNS:
        problem = f"the table has no column {name}"
        raise InputError(problem, help=f"its columns: {', '.join(COLUMNS)}")


def _row(row: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(row.items()))
