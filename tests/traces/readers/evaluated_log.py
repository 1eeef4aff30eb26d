"""Logs as `validate` evaluates them, without Spark: what became of each line, and where no run explains an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.traces.readers.reading import Read, read_log, shipped

from stagewright.spec.trace import Event
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import DEAD, START, Determinised
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import unbounded_scope
from stagewright.traces.readers.protocol import Interpreted, Tally


@dataclass
class EvaluatedLog:
    """What was found: `wrong` has (machine, entity, number of the file, line) of each violation."""

    read: Read
    wrong: list[tuple[str, str, int, int]] = field(default_factory=list[tuple[str, str, int, int]])

    @property
    def found(self) -> Interpreted:
        """What the log means."""
        return self.read.interpreted

    @property
    def tallies(self) -> list[Tally]:
        """What became of each file's lines."""
        return self.read.tallies

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Why lines were refused."""
        return self.read.reasons

    def recorded(self, machine: str) -> list[tuple[str, str | None, dict[str, object]]]:
        """The events of one machine: entity, action, what was observed."""
        events = [event for event in self.read.events if event.machine == machine]
        return [(e.entity, e.action, dict(e.observed)) for e in events]


def evaluated(form: str, paths: Sequence[Path], profile: str = "") -> EvaluatedLog:
    """Read and evaluate the log that is in these files; every event must be one that its machine understands."""
    result = EvaluatedLog(read_log(form, paths, profile=profile))
    assert all(t.lines == t.blank + t.other + t.unparsed for t in result.tallies)
    entities: dict[tuple[str, str, str], list[tuple[int, Event]]] = {}
    for part, event in result.found.events:
        entities.setdefault((event.machine, event.profile, event.entity), []).append((part, event))
    for (machine, of_profile, entity), events in sorted(entities.items()):
        replayed = _machine(machine, of_profile, result.found.recordings[machine])
        state = START
        for sequence, (part, event) in enumerate(events):
            assert event.sequence == sequence
            assert replayed.refusal(state, symbol_of(event).text) is None
            state = replayed.advance(state, symbol_of(event).text)
            if state == DEAD:
                result.wrong.append((machine, entity, part, event.line))
                break
    return result


@cache
def _machine(name: str, profile: str, recording: Recording) -> Determinised:
    definition = shipped(name, profile)
    return Determinised(
        automaton(definition, recording.scope(unbounded_scope(definition)), recording)
    )
