"""Records what a running system did: steps of many entities, each checked as it is taken, then written as traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from stagewright.impl.recording.transition_table import Arguments, TransitionTable
from stagewright.spec.trace import TraceWriter
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step


class Take(Protocol):
    """Takes a step of an entity: `kind` names the definition, `node` is who did it."""

    def __call__(
        self, kind: str, entity: str, node: str, action: str, /, **arguments: Any
    ) -> object: ...


class _Event(NamedTuple):
    entity: str
    node: str
    time: int
    action: str | None  # None: the entity begins
    values: Arguments  # of the action, or what is known of the beginning


class Recording:
    """The steps of a run by kind. An entity that took a refused step is a problem, and is left alone from then on."""

    def __init__(
        self,
        tables: Mapping[str, TransitionTable],
        now: Callable[[], int] = lambda: 0,
        *,
        keeps: bool = True,
    ) -> None:
        """`tables` has the definition of each kind, `now` says the time of what is recorded.

        What is not to be written need not be kept: it is only checked.
        """
        self.problems: list[str] = []
        self.now = now
        self._tables = tables
        self._states: dict[tuple[str, str], int | None] = {}  # None: refused
        self._events: dict[str, list[_Event]] = {}
        self._steps = 0
        self._keeps = keeps

    def __len__(self) -> int:
        """How many steps were taken."""
        return self._steps

    def start(self, kind: str, entity: str, node: str, /, **known: Any) -> int | None:
        """Begin an entity of which this is known, if it is new; its state, None if a step of it was refused."""
        key = kind, entity
        if key not in self._states:
            begun = tuple(known.items())
            self._states[key] = self._tables[kind].start(begun)
            self._record(kind, entity, node, None, begun)
        return self._states[key]

    def take(self, kind: str, entity: str, node: str, action: str, /, **arguments: Any) -> None:
        """Take a step, which is a problem if the definition refuses it."""
        key = kind, entity
        state = self._states[key] if key in self._states else self.start(kind, entity, node)
        if state is None:
            return
        values = tuple(arguments.items())
        self._record(kind, entity, node, action, values)
        self._steps += 1
        found = self._tables[kind].step(state, action, values)
        if isinstance(found, str):
            self.problems.append(f"{kind} {entity}: {found}")
            self._states[key] = None
        else:
            self._states[key] = found

    def _record(
        self, kind: str, entity: str, node: str, action: str | None, values: Arguments
    ) -> None:
        if self._keeps:
            event = _Event(entity, node, self.now(), action, values)
            self._events.setdefault(kind, []).append(event)

    def write(self, directory: Path, trace: str) -> tuple[Path, ...]:
        """One file for each kind that has events; of the others, what an earlier run has left is deleted."""
        assert self._keeps, "nothing was kept"
        paths: list[Path] = []
        for kind, table in self._tables.items():
            path = directory / f"{kind}.jsonl"
            if kind not in self._events:
                path.unlink(missing_ok=True)
                continue
            with TraceWriter(path, table.rules.definition, trace) as writer:
                for event in self._events[kind]:
                    known = FrozenMap(dict(event.values))
                    if event.action is None:
                        writer.start(event.entity, known, node=event.node, time=event.time)
                    else:
                        step = Step(event.action, known)
                        writer.record(event.entity, step, {}, node=event.node, time=event.time)
            paths.append(path)
        return tuple(paths)
