"""What the readers of ScyllaDB's logs and tables write down: events, numbered for each entity, and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stagewright.spec.trace import Event
from stagewright.traces.databases.scylladb.versions import profile_for


@dataclass(frozen=True)
class Source:
    """Where something is logged: in which part of the input, in which line, by which node."""

    part: int
    line: int
    node: str = ""
    time: int | None = None


@dataclass(frozen=True)
class Effect:
    """What a line says of one entity."""

    machine: str
    key: str
    observed: Mapping[str, object]
    source: Source
    action: str | None = None


class Book:
    """The events so far. An entity that is followed anew has `#1`, `#2`, … after its name."""

    def __init__(self, profile: str) -> None:
        self.events: list[tuple[int, Event]] = []
        self.counts: Counter[str] = Counter()
        self.tenured: frozenset[str] = frozenset()  # machines followed anew by each coordinator
        self.tenure = 0
        self._profile = profile
        self._restarts: Counter[tuple[str, str]] = Counter()
        self._sequences: Counter[tuple[str, str]] = Counter()
        self._last: dict[tuple[str, str, str], object] = {}

    def add(self, effect: Effect) -> None:
        """One more event of its entity."""
        machine, source = effect.machine, effect.source
        entity = self._entity(machine, effect.key)
        sequence = self._sequences[machine, entity]
        self._sequences[machine, entity] += 1
        event = Event(
            trace="",
            machine=machine,
            profile=profile_for(machine, self._profile),
            definition="",
            entity=entity,
            sequence=sequence,
            node=source.node,
            action=effect.action if sequence else None,  # the first event has none
            observed=effect.observed,
            time=source.time,
            line=source.line,
        )
        self.events.append((source.part, event))
        for name, value in effect.observed.items():
            self._last[machine, entity, name] = value

    def last(self, effect: Effect, name: str) -> object:
        """What was observed of the same entity last; None if nothing was since it is followed."""
        return self._last.get((effect.machine, self._entity(effect.machine, effect.key), name))

    def forget(self, effect: Effect) -> None:
        """Nobody knows whether this has happened: follow the entity anew."""
        if effect.machine in self.tenured:
            self._restarts[effect.machine, effect.key] += 1

    def notes(self) -> list[str]:
        """The counts, in words."""
        return [f"{count} {what}" for what, count in self.counts.items() if count]

    def _entity(self, machine: str, key: str) -> str:
        restarts = self._restarts[machine, key]
        if machine in self.tenured:
            restarts += self.tenure
        return f"{key}#{restarts}" if restarts else key
