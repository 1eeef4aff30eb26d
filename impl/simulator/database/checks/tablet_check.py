"""Checks what the log says of tablets: each one's steps on an instance of its machine, beside its row.

What a plan moves is compared with what lies where afterwards, without the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stagewright.impl.catalog.tablet_rows import KEPT, TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry, MachineStep
from stagewright.impl.runtime import Instance, Program
from stagewright.impl.tablets.reports import moves_of
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.spec.errors import StagewrightError
from stagewright.spec.trace import TraceWriter, observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step


class TabletCheck:
    """The tablets of a run; `problems` is where it says what is wrong."""

    def __init__(self, rules: Program, problems: list[str], *, keeps: bool) -> None:
        self.moves: list[str] = []  # each with its reason
        self.edges: set[tuple[str, str]] = set()
        self.last_change = 0
        self._keeps = keeps  # what is to be written
        self._rules = rules
        self._problems = problems
        self._instances: dict[str, Instance] = {}
        self._states: dict[str, State] = {}  # of these
        self._before: dict[str, TabletRow] = {}
        self._events: list[tuple[str, Step | None, State, int]] = []

    def hear(self, entry: Entry, view: View, now: int) -> None:
        """An entry is committed; the view is that after it."""
        rows = {row.name: row for rows in view.tablets.values() for row in rows}
        for name, row in rows.items():
            if name not in self._instances:
                instance = Instance(self._rules, row.state(), name=name)
                self._instances[name] = instance
                self._states[name] = instance.state
                self._record(name, None, now)
        machine = self._rules.definition.name
        for step in (s for s in entry.command.steps if s.machine == machine):
            self.last_change = now
            self._step(entry, step, now)
        self._compare_maps(entry, view)
        for name, row in rows.items():
            state = self._states[name]
            said = row.state()
            for variable in KEPT:
                if said[variable] != state[variable]:
                    self._problems.append(
                        f"{entry.id.position}: the row of {name} says that {variable} is "
                        f"{said[variable]}, the steps {state[variable]}"
                    )
            self._compare(entry, row)
        self._before = rows
        self.moves += moves_of(entry.command.description, entry.command.steps)

    def _step(self, entry: Entry, step: MachineStep, now: int) -> None:
        instance = self._instances[step.instance]
        arguments = {name: _value(name, value) for name, value in step.arguments.items()}
        taken = Step(step.action, FrozenMap(arguments))
        before: Any = self._states[step.instance]["stage"]
        try:
            instance.fire(taken)
        except StagewrightError as error:
            self._problems.append(f"{entry.id.position}: {error.problem}")
            return
        self._states[step.instance] = instance.state
        after: Any = self._states[step.instance]["stage"]
        if before is not after:
            self.edges.add((before.name, after.name))
        self._record(step.instance, taken, now)

    def _record(self, name: str, taken: Step | None, now: int) -> None:
        if self._keeps:
            self._events.append((name, taken, self._states[name], now))

    def _compare_maps(self, entry: Entry, view: View) -> None:
        """Where tablets are split or merged, every row of the new ones lies where it lay."""
        for table, rows in view.tablets.items():
            before = [row for row in self._before.values() if row.table == table]
            if not before or len(before) == len(rows):
                continue
            for row in rows:
                low, high = row.range
                of = [b for b in before if b.range[0] < high and low < b.range[1]]
                if any(_hosts(b) != _hosts(row) for b in of):
                    self._problems.append(
                        f"{entry.id.position}: {row.name} is on {sorted(_hosts(row))}, and its rows are not"
                    )

    def _compare(self, entry: Entry, row: TabletRow) -> None:
        """Replicas change at the end of a migration alone, and to what was planned or not at all."""
        before = self._before.get(row.name)
        if before is None or before.range != row.range:
            return  # another tablet had its number, or none
        if before.tablet.replicas == row.tablet.replicas:
            return
        planned = before.tablet.next
        if row.tablet.replicas != planned or row.tablet.stage is not Stage.none:
            self._problems.append(
                f"{entry.id.position}: {row.name} is on {row.tablet.replicas}, and not where it was planned"
            )

    def write(self, path: Path, trace: str) -> None:
        """The trace of the tablets."""
        with TraceWriter(path, self._rules.definition, trace) as writer:
            for name, step, state, now in self._events:
                if step is None:
                    writer.start(name, state, time=now)
                else:
                    writer.record(name, step, observation(state), time=now)


def _hosts(row: TabletRow) -> set[str]:
    return {r.host for r in row.tablet.replicas}


def _value(name: str, value: object) -> Any:
    """An argument as a step has it, from its JSON."""
    return Kind[str(value)] if name == "kind" else Role[str(value)]
