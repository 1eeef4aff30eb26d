"""Commands: what one commit in group0 says, steps of several machines with the mutations that they cause."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stagewright.impl.runtime import Record
from stagewright.spec.values import plain


@dataclass(frozen=True)
class MachineStep:
    """A step of an instance of a machine, as JSON can hold it."""

    machine: str
    instance: str
    action: str
    arguments: Mapping[str, object]


@dataclass(frozen=True)
class Mutation:
    """New values of some columns of one row; `columns` is None if the row is deleted.

    Values are those of JSON, as `SELECT JSON` prints them. A column with None has no value from then on.
    """

    table: str
    key: tuple[str, ...]
    columns: Mapping[str, object] | None


@dataclass(frozen=True)
class Command:
    """All of it is committed, or nothing. The description is what the history shows.

    `until`: when it may be committed last (microseconds since 1970), as it says when something begins, of which all
    are to learn before. It is no part of what is committed.
    """

    description: str
    steps: tuple[MachineStep, ...] = ()
    mutations: tuple[Mutation, ...] = ()
    until: int | None = field(default=None, compare=False)

    def encoded(self) -> str:
        """The command as JSON, on one line."""
        steps = [[s.machine, s.instance, s.action, dict(s.arguments)] for s in self.steps]
        mutations = [
            [m.table, list(m.key), None if m.columns is None else dict(m.columns)]
            for m in self.mutations
        ]
        body = {"description": self.description, "steps": steps, "mutations": mutations}
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def decoded(cls, text: str) -> Command:
        """The inverse of `encoded`.

        Raises:
            ValueError: (also as KeyError or TypeError) the text is no command.
        """
        body: dict[str, Any] = json.loads(text)
        return cls(
            body["description"],
            tuple(MachineStep(*step) for step in body["steps"]),
            tuple(Mutation(table, tuple(key), row) for table, key, row in body["mutations"]),
        )


def steps_of(record: Record) -> tuple[MachineStep, ...]:
    """The steps of a command that a runtime took, with instances and arguments by name."""
    return tuple(
        MachineStep(
            taken.instance.program.definition.name,
            taken.instance.name,
            taken.step.action,
            {name: plain(value) for name, value in taken.step.arguments.items()},
        )
        for taken in record.steps
    )
