"""What the master decides, as steps of the shipped definitions: of each index, of the table's job, of each tablet of a job.

What joins them is a command: an index goes on to the next permission, and the job knows of it, or neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from stagewright.impl.indexes.records.notes import Learned, Note, Stepped
from stagewright.impl.runtime import Instance, Program, command
from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import YUGABYTE_2026
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet
from stagewright.machines.yugabytedb.indexes.index_actors import Server
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_states import YCQL
from stagewright.spec import define
from stagewright.spec.entities import Entity

PERMISSIONS, JOB, TABLETS = "permissions", "job", "tablets"
TABLE = "table"  # the one instance of the job


@lru_cache(maxsize=1)
def programs() -> Mapping[str, Program]:
    """The definitions by kind; all runs of a process share them."""
    return {
        PERMISSIONS: Program(define(IndexPermissions, YCQL.name)),
        JOB: Program(define(BackfillJob, YUGABYTE_2026.name)),
        TABLETS: Program(define(BackfillTablet)),
    }


@lru_cache(maxsize=1)
def careless_programs() -> Mapping[str, Program]:
    """The same without any requirement, for builds that are wrong on purpose."""
    return {
        kind: Program(
            replace(
                program.definition,
                actions=tuple(replace(a, requirements=()) for a in program.definition.actions),
            )
        )
        for kind, program in programs().items()
    }


def unknown(kind: str) -> dict[str, Any]:
    """What a definition has as a constant, and what is assumed of it until it is found out."""
    found: dict[str, dict[str, Any]] = {
        PERMISSIONS: {"violates_constraint": False},
        JOB: {"unbuildable": None},
    }
    return found.get(kind, {})


def begun(program: Program, kind: str, tablets: int) -> Instance:
    """An instance as it begins."""
    members: dict[str, list[Entity]] = {
        PERMISSIONS: [Server(n) for n in range(tablets)],
        JOB: [Tablet(n) for n in range(tablets)],
    }
    return Instance(program, unknown(kind), entities=members.get(kind, []))


def again(instance: Instance, program: Program | None = None, **known: Any) -> Instance:
    """The same state, with a constant that was not known until now, or under other rules."""
    kinds = instance.program.definition.entities
    members = [e for kind in kinds for e in instance.live(kind)]
    return Instance(program or instance.program, {**instance.state, **known}, entities=members)


def index_of(number: int) -> Index:
    """The index of that number."""
    return Index(number)


@dataclass(frozen=True)
class Call:
    """A step to be taken."""

    kind: str
    entity: str
    action: str
    arguments: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Control:
    """The instances of one master. `careless`: it goes on though a step is refused (a wrong build)."""

    def __init__(
        self, tablets: int, note: Callable[[Note], None], *, careless: bool = False
    ) -> None:
        self.tablets = tablets
        self.held: dict[tuple[str, str], Instance] = {}
        self._saved: dict[tuple[str, str], Instance] = {}
        self._changed: set[tuple[str, str]] = set()  # since they were saved
        self._note = note
        self._careless = careless
        self._programs = careless_programs() if careless else programs()

    def of(self, kind: str, entity: str) -> Instance:
        """The instance of that name; it begins when it is asked for first."""
        key = kind, entity
        if key not in self.held:
            self.held[key] = begun(self._programs[kind], kind, self.tablets)
        return self.held[key]

    def take(self, *calls: Call) -> None:
        """Take steps as one command.

        Raises:
            RefusedError: a definition does not allow one of them.
        """
        command(*(self.of(c.kind, c.entity).call(c.action, **c.arguments) for c in calls))
        for call in calls:
            self._changed.add((call.kind, call.entity))
            self._note(Stepped(call.kind, call.entity, call.action, call.arguments))

    def can(self, kind: str, entity: str, action: str, **arguments: Any) -> bool:
        """Whether a definition allows a step."""
        instance = self.of(kind, entity)
        if self._careless:
            instance = again(instance, programs()[kind])
        return instance.can(action, **arguments)

    def learn(self, kind: str, entity: str, variable: str, value: Any) -> None:
        """A constant is found out."""
        instance = self.of(kind, entity)
        if instance.state[variable] != value:
            self.held[kind, entity] = again(instance, **{variable: value})
            self._changed.add((kind, entity))
            self._note(Learned(kind, entity, variable, value))

    def add(self, number: int) -> None:
        """There is one more index of the table."""
        if Index(number) not in self.of(JOB, TABLE).live(Index):
            self.of(JOB, TABLE).add(Index(number))
            self._changed.add((JOB, TABLE))

    def saved(self) -> dict[tuple[str, str], Instance]:
        """What a catalog keeps of them."""
        for key in self._changed:
            self._saved[key] = again(self.held[key])
        self._changed.clear()
        return dict(self._saved)

    def restore(self, saved: Mapping[tuple[str, str], Instance]) -> None:
        """Go on from what a catalog has."""
        self.held = {key: again(instance) for key, instance in saved.items()}
        self._saved = dict(saved)
        self._changed.clear()
