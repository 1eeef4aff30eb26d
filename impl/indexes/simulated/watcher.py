"""Checks what is recorded of a run by the shipped definitions while it goes on; written down, it is a trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stagewright.impl.indexes.control import (
    JOB,
    PERMISSIONS,
    TABLE,
    again,
    begun,
    programs,
)
from stagewright.impl.indexes.records.notes import (
    Learned,
    Note,
    SchemaApplied,
    Stepped,
    TabletDivided,
)
from stagewright.impl.indexes.schema import Schema
from stagewright.impl.indexes.splits.tablet_map import TabletMap
from stagewright.impl.runtime import Instance
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.spec.errors import StagewrightError
from stagewright.spec.trace import TraceWriter
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step

BY_TABLETS = {"learn", "apply_version"}  # what a master learns of later


class Watcher:
    """Instances of its own: what a master takes for possible does not count."""

    def __init__(self, tablets: int, *, by_master: bool = False) -> None:
        """`by_master`: what tablets have learned is what the master has heard of it."""
        self.problems: list[str] = []
        self.now = 0
        self.steps = 0
        self._tablets = tablets
        self._by_tablets = set[str]() if by_master else BY_TABLETS
        self._held: dict[tuple[str, str], Instance | None] = {}  # None: refused, checked no more
        self._events: list[tuple[str, str, Step, int]] = []
        self._cut: set[tuple[str, str]] = set()  # traces that end before the run does
        self._map = TabletMap(tablets)
        self._applied: dict[int, Schema] = {}  # of those that were current
        self._learned: dict[int, Schema] = {}  # by all tablets that one has split into

    @property
    def indexes(self) -> int:
        """How many there ever were."""
        job = self._held.get((JOB, TABLE))
        return len(job.live(Index)) if job is not None else 0

    def hear(self, note: Note) -> None:
        """A process has done something."""
        match note:
            case Stepped(kind, entity, action, arguments) if action not in self._by_tablets:
                self._take(kind, entity, action, arguments)
            case Learned(kind, entity, variable, value):
                self._learn(kind, entity, variable, value)
            case SchemaApplied():
                self._apply(note)
            case TabletDivided(split) if split.table == TABLE and split.parent in self._map.ranges:
                # Its next leader says it, too: then the map has it.
                self._map = self._map.after(split)
                schema = self._applied.pop(split.parent, Schema())
                self._applied |= dict.fromkeys(split.children, schema)
            case _:
                pass

    def _instance(self, kind: str, entity: str) -> Instance | None:
        key = kind, entity
        if key not in self._held:
            self._held[key] = begun(programs()[kind], kind, self._tablets)
        return self._held[key]

    def _take(self, kind: str, entity: str, action: str, arguments: Mapping[str, Any]) -> None:
        instance = self._instance(kind, entity)
        if instance is None:
            return
        index = arguments.get("i")
        if isinstance(index, Index) and index not in instance.live(Index):
            instance.add(index)
        step = Step(action, FrozenMap(dict(arguments)))
        if (kind, entity) not in self._cut:
            self._events.append((kind, entity, step, self.now))
        self.steps += 1
        try:
            instance.fire(step)
        except StagewrightError as error:
            self.problems.append(f"{kind} {entity}: {error.problem}")
            self._held[kind, entity] = None

    def _learn(self, kind: str, entity: str, variable: str, value: Any) -> None:
        """A constant is known now.

        The trace of the job ends there: its definition says of an index that cannot be built that no tablet gets
        done with it, and in a run other tablets may be done when a chunk finds the two rows.
        """
        instance = self._instance(kind, entity)
        if instance is None:
            return
        if kind == JOB:
            self._cut.add((kind, entity))
        self._held[kind, entity] = again(instance, **{variable: value})

    def _apply(self, note: SchemaApplied) -> None:
        """A tablet has applied a schema; if it is not the current one, the next one follows."""
        known = [n for (kind, n), i in self._held.items() if kind == PERMISSIONS and i is not None]
        numbers = {name: int(name.removeprefix("index")) for name in known}
        for name, number in numbers.items():
            instance = self._held[PERMISSIONS, name]
            assert instance is not None
            if instance.state["permission"] is not note.after.permission(number):
                return
        self._applied[note.tablet] = note.after
        root = self._map.root(note.tablet)
        if any(
            self._applied.get(t, Schema()).version != note.after.version
            for t in self._map.families[root]
        ):
            return  # to the definitions, a tablet and those that it has split into are one
        before = self._learned.get(root, Schema())
        self._learned[root] = note.after
        changed = [
            name
            for name, number in numbers.items()
            if before.permission(number) is not note.after.permission(number)
        ]
        for name in changed:
            self._take(PERMISSIONS, name, "learn", {"s": Server(root)})
        if changed and (JOB, TABLE) in self._held:
            self._take(JOB, TABLE, "apply_version", {"t": Tablet(root)})

    def write(self, directory: Path, trace: str) -> tuple[Path, ...]:
        """One file for each kind of instance."""
        paths = list[Path]()
        for kind, program in programs().items():
            path = directory / f"{kind}.jsonl"
            with TraceWriter(path, program.definition, trace) as writer:
                begun_ones: set[str] = set()
                for of, entity, step, now in self._events:
                    if of != kind:
                        continue
                    if entity not in begun_ones:
                        begun_ones.add(entity)
                        writer.start(entity, FrozenMap({}), time=now)
                    writer.record(entity, step, {}, time=now)
            paths.append(path)
        return tuple(paths)
