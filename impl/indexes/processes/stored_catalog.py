"""The sys catalog on disk: what a master has decided, and the steps that it took, as one transaction of SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple
from pathlib import Path
from typing import Any

from stagewright.impl.indexes.catalog import Catalog, IndexRow, JobRow
from stagewright.impl.indexes.control import programs
from stagewright.impl.indexes.records.notes import Learned, Note, Stepped
from stagewright.impl.indexes.splits.tablet_map import Split, TabletMap
from stagewright.impl.runtime import Instance
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity, member_of_name
from stagewright.spec.text.itf_values import from_json, to_json
from stagewright.spec.values import show

_TABLES = """
create table if not exists kept (name text primary key, value text not null);
create table if not exists steps (number integer primary key, term integer, at integer, step text not null);
"""

Row = dict[str, Any]


class FormerMasterError(Exception):
    """Another master has the catalog."""


class StoredCatalog:
    """The catalog of one life of a master: `save` after whatever it did, before anything of that is sent."""

    def __init__(self, path: Path) -> None:
        self._base = sqlite3.connect(path, isolation_level=None, timeout=20)
        self._base.execute("pragma journal_mode = wal")
        self._base.execute("pragma synchronous = full")
        self._base.executescript(_TABLES)
        self._steps: list[tuple[int, str]] = []
        self._term = 0
        self._saved: dict[str, str] = dict(self._base.execute("select name, value from kept"))
        self.catalog = _catalog(self._saved)
        self._seen = self._parts()

    def note(self, note: Note, at: int) -> None:
        """A step that the master took, at a millisecond."""
        step = _step_as_json(note)
        if step is not None:
            self._steps.append((at, step))

    def save(self) -> bool:
        """Keep what has changed; whether anything has.

        Raises:
            FormerMasterError: another master leads.
        """
        parts, catalog = self._parts(), self.catalog
        if all(parts[name] is self._seen.get(name) for name in parts) and not self._steps:
            return False
        changed = {
            name: text
            for name, part in parts.items()
            if part is not self._seen.get(name)
            and (text := _as_text(part)) != self._saved.get(name)
        }
        with self._base:
            self._base.execute("begin immediate")
            (other,) = self._base.execute(
                "select coalesce(max(cast(value as integer)), 0) from kept where name = 'term'"
            ).fetchone()
            if other > catalog.term or (other == catalog.term and self._term != other):
                raise FormerMasterError(f"term {other}")
            self._base.executemany("replace into kept values (?, ?)", changed.items())
            self._base.executemany(
                "insert into steps (term, at, step) values (?, ?, ?)",
                [(catalog.term, at, step) for at, step in self._steps],
            )
        self._term = catalog.term
        self._saved.update(changed)
        self._seen = parts
        self._steps.clear()
        return True

    def _parts(self) -> dict[str, Any]:
        catalog = self.catalog
        parts: dict[str, Any] = {
            "term": catalog.term,
            "version": catalog.version,
            "indexes": catalog.indexes,
            "job": catalog.job,
            "jobs": catalog.jobs,
            "tablets": catalog.tablets,
            "index_tablets": catalog.index_tablets,
            "split": catalog.split,
        }
        parts |= {f"{kind} {entity}": i for (kind, entity), i in catalog.machines.items()}
        return parts

    def close(self) -> None:
        """Give the file back."""
        self._base.close()


def steps_in(path: Path) -> Iterator[tuple[int, int, Note]]:
    """Every step that masters have taken: the term, the millisecond, the step; in their order."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for term, at, step in base.execute("select term, at, step from steps order by number"):
            yield term, at, _step_from_json(json.loads(step))
    finally:
        base.close()


def last_steps(path: Path, count: int) -> list[tuple[int, int, str]]:
    """The newest steps, the newest first: the term, the millisecond, the step in words."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        query = "select term, at, step from steps order by number desc limit ?"
        return [
            (term, at, _in_words(json.loads(step)))
            for term, at, step in base.execute(query, (count,))
        ]
    finally:
        base.close()


def _in_words(read: Row) -> str:
    entity = read["of"][1]
    if "variable" in read:
        return f"{entity}: {read['variable'].replace('_', ' ')} is {read['value']}"
    given = ", ".join(read["arguments"].values())
    return f"{entity}: {read['action'].replace('_', ' ')}{f' ({given})' if given else ''}"


def catalog_in(path: Path) -> Catalog:
    """The catalog as it is."""
    base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return _catalog(dict(base.execute("select name, value from kept")))
    finally:
        base.close()


# -- the catalog as text ---------------------------------------------------------------------------------------


def _as_text(part: Any) -> str:
    match part:
        case Instance():
            return json.dumps(_instance_as_json(part))
        case JobRow():
            until = {t: None if at is None else at.hex() for t, at in part.until.items()}
            return json.dumps({**asdict(part), "until": until})
        case tuple():
            return json.dumps([_row_as_json(row) for row in part])
        case TabletMap() | Split():
            return json.dumps(astuple(part))
        case _:
            return json.dumps(part)


def _row_as_json(row: IndexRow | TabletMap) -> Row | tuple[Any, ...]:
    if isinstance(row, TabletMap):
        return astuple(row)
    return {**asdict(row), "permission": row.permission.name, "status": row.status.name}


def _catalog(kept: Mapping[str, str]) -> Catalog:
    catalog = Catalog()
    for name, text in kept.items():
        read = json.loads(text)
        match name:
            case "term" | "version" | "jobs":
                setattr(catalog, name, read)
            case "indexes":
                catalog.indexes = tuple(map(_index_row, read))
            case "tablets":
                catalog.tablets = None if read is None else _tablet_map(read)
            case "index_tablets":
                catalog.index_tablets = tuple(map(_tablet_map, read))
            case "split":
                catalog.split = None if read is None else Split(*read)
            case "job":
                catalog.job = None if read is None else _job_row(read)
            case _:
                kind, _, entity = name.partition(" ")
                catalog.machines = {**catalog.machines, (kind, entity): _instance(kind, read)}
    return catalog


def _tablet_map(read: list[Any]) -> TabletMap:
    created, splits, *table = read
    return TabletMap(created, tuple(Split(*split) for split in splits), *table)


def _index_row(read: Row) -> IndexRow:
    of_names = {"permission": Permission[read["permission"]], "status": Status[read["status"]]}
    return IndexRow(**{**read, **of_names})


def _job_row(read: Row) -> JobRow:
    until = {int(t): None if at is None else bytes.fromhex(at) for t, at in read["until"].items()}
    failed = {int(i): error for i, error in read["failed"].items()}
    of_types = {"indexes": tuple(read["indexes"]), "until": until, "failed": failed}
    return JobRow(**{**read, **of_types})


# -- instances and steps ---------------------------------------------------------------------------------------


def _instance_as_json(instance: Instance) -> Row:
    definition, state = instance.program.definition, instance.state
    sorts = {v.name: v.sort for v in definition.variables}
    return {
        "members": [show(e) for kind in definition.entities for e in instance.live(kind)],
        "state": {name: to_json(value, sorts[name]) for name, value in state.items()},
    }


def _instance(kind: str, read: Row) -> Instance:
    program = programs()[kind]
    definition = program.definition
    sorts = {v.name: v.sort for v in definition.variables}
    state = {name: from_json(value, sorts[name], name) for name, value in read["state"].items()}
    return Instance(program, state, entities=[_member(definition, m) for m in read["members"]])


def _member(definition: Definition, name: str) -> Entity:
    found = [e for kind in definition.entities if (e := member_of_name(kind, name)) is not None]
    assert found, f"{definition.name} has no {name}"
    return found[0]


def _step_as_json(note: Note) -> str | None:
    match note:
        case Stepped(kind, entity, action, arguments):
            named = {name: show(value) for name, value in arguments.items()}
            return json.dumps({"of": [kind, entity], "action": action, "arguments": named})
        case Learned(kind, entity, variable, value):
            shown = value if value is None or isinstance(value, bool) else show(value)
            return json.dumps({"of": [kind, entity], "variable": variable, "value": shown})
        case _:
            return None


def _step_from_json(read: Row) -> Note:
    kind, entity = read["of"]
    definition = programs()[kind].definition
    if "action" in read:
        given = {name: _member(definition, text) for name, text in read["arguments"].items()}
        return Stepped(kind, entity, read["action"], given)
    value = read["value"]
    known = _member(definition, value) if isinstance(value, str) else value
    return Learned(kind, entity, read["variable"], known)
