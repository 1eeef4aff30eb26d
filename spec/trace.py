"""Recorded traces: the event that every reader yields and every recorder writes, and its JSON form.

One line of JSON an event. What makes validation exact: a contiguous sequence number an entity (from 0,
whose event has no action and observes the initial state), an end marker, and the definition's fingerprint.

    {"v": 1, "trace": "run-7", "machine": "TabletMigration", "profile": "scylla-2026.2",
     "definition": "8e7a0d0d829286e4", "entity": "tablet3", "seq": 4, "node": "node1",
     "action": "finish_streaming", "params": {}, "observed": {"stage": "streaming"}}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from stagewright.spec.definition import Definition
from stagewright.spec.values import State, Value, flatten, plain
from stagewright.spec.verdict import Step

TRACE_VERSION = 1


class TraceVerdict(Enum):
    """What was found about the trace of one entity."""

    OK = "ok"
    VIOLATION = "violation"  # no run of the definition explains it
    GAP = "gap"  # events are missing
    UNPARSED = "unparsed"  # a line that is not an event
    UNDECIDED = "undecided"  # the budget was spent


@dataclass(frozen=True)
class Event:
    """One step of one entity, as it was observed.

    `action` is None where it is not known which one happened. `parameters` and `observed` hold plain JSON
    values: members and entities by name, `observed` by leaf (`learned[node0]`), after the step, maybe not
    all of them. `end` marks that the entity has no more events; such an event has no action. `time` orders
    the events of different entities: any clock, in whole units, that never runs backwards in one trace.
    """

    trace: str
    machine: str
    profile: str
    definition: str  # fingerprint; empty for logs of other systems
    entity: str
    sequence: int
    _: KW_ONLY
    node: str = ""
    action: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict[str, object])
    observed: Mapping[str, object] = field(default_factory=dict[str, object])
    end: bool = False
    time: int | None = None
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)

    def to_json(self) -> str:
        """The event as one line, without the newline."""
        fields: dict[str, object] = {
            "v": TRACE_VERSION,
            "trace": self.trace,
            "machine": self.machine,
            "profile": self.profile,
            "definition": self.definition,
            "entity": self.entity,
            "seq": self.sequence,
            **({} if self.time is None else {"time": self.time}),
            "node": self.node,
            "action": self.action,
            "params": dict(self.parameters),
            "observed": dict(self.observed),
        }
        if self.end:
            fields["end"] = True
        return json.dumps(fields, separators=(",", ":"))


def observation(state: State) -> dict[str, object]:
    """The leaves of a state as an event observes them.

    Of a sequence: its length, and the elements that are there: `channel.length`, `channel[0].kind`.
    """
    return {
        part: plain(inner)
        for variable, value in state.items()
        for name, leaf in flatten(variable, value)
        for part, inner in _elements(name, leaf)
    }


def _elements(name: str, leaf: Value) -> Iterator[tuple[str, Value]]:
    if not isinstance(leaf, tuple):
        yield name, leaf
        return
    yield f"{name}.length", len(leaf)
    for index, element in enumerate(leaf):
        yield from flatten(f"{name}[{index}]", element)


class TraceWriter:
    """Writes the events of one definition to a JSONL file, numbering them for each entity."""

    def __init__(
        self, path: Path, definition: Definition, trace: str, *, at_once: bool = False
    ) -> None:
        """`at_once`: each event is in the file when `record` returns, whatever becomes of the process."""
        self.path = path
        self.definition = definition
        self.trace = trace
        self.fingerprint = definition.fingerprint()
        self._next: dict[str, int] = {}
        self._latest: int | None = None
        self._file: IO[str] = path.open("w", 1 if at_once else -1, encoding="utf-8")

    def start(self, entity: str, state: State, *, node: str = "", time: int | None = None) -> None:
        """The first event of an entity: its initial state, or what is known of it."""
        assert entity not in self._next, f"{entity} was started already"
        self._write(entity, node, None, {}, observation(state), time, end=False)

    def record(
        self,
        entity: str,
        step: Step,
        observed: Mapping[str, object],
        *,
        node: str = "",
        time: int | None = None,
    ) -> None:
        """One step of an entity, with what was observed after it."""
        parameters = {name: plain(value) for name, value in step.arguments.items()}
        self._write(entity, node, step.action, parameters, observed, time, end=False)

    def close(self, *, time: int | None = None) -> None:
        """Mark the end of every entity (by default at the time of the last event), and close the file."""
        if self._file.closed:
            return
        time = self._latest if time is None else time
        for entity in list(self._next):
            self._write(entity, "", None, {}, {}, time, end=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def _write(
        self,
        entity: str,
        node: str,
        action: str | None,
        parameters: Mapping[str, object],
        observed: Mapping[str, object],
        time: int | None,
        *,
        end: bool,
    ) -> None:
        self._latest = time
        sequence = self._next.get(entity, 0)
        self._next[entity] = sequence + 1
        event = Event(
            self.trace,
            self.definition.name,
            self.definition.profile,
            self.fingerprint,
            entity,
            sequence,
            node=node,
            action=action,
            parameters=parameters,
            observed=observed,
            end=end,
            time=time,
        )
        self._file.write(event.to_json() + "\n")
