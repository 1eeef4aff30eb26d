"""Logs as `validate` judges them, without Spark: what became of each line, and where no run explains an event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from stagewright.machines import SHIPPED
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import Event
from stagewright.traces.automaton import automaton
from stagewright.traces.determinised import DEAD, START, Determinised
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Interpreted, Part, Tally
from stagewright.traces.recording import Recording
from stagewright.traces.symbols import symbol_of

_NAMES = {place.partition(":")[2]: short for short, place in SHIPPED.items()}


@dataclass
class JudgedLog:
    """What was found: `wrong` has (machine, entity, number of the file, line) of each violation."""

    found: Interpreted
    tallies: list[Tally] = field(default_factory=list[Tally])
    wrong: list[tuple[str, str, int, int]] = field(default_factory=list[tuple[str, str, int, int]])

    @property
    def reasons(self) -> list[tuple[int, str]]:
        """Why lines were refused."""
        return [reason for tally in self.tallies for reason in tally.reasons]

    def told(self, machine: str) -> list[tuple[str, str | None, dict[str, object]]]:
        """The events of one machine: entity, action, what was observed."""
        events = [event for _, event in self.found.events if event.machine == machine]
        return [(e.entity, e.action, dict(e.observed)) for e in events]


def judged(form: str, paths: Sequence[Path], profile: str = "") -> JudgedLog:
    """Read and judge the log that is in these files; every event must be one that its machine understands."""
    reader, files, tallies = forms.log_reader(form), [], []
    for number, path in enumerate(paths):
        records: list[tuple[int, Any]] = []
        tally = Tally()
        for start, stop in reader.parts(path):
            piece = Part(number, str(path), form, start, stop)
            records += [(number, record) for record in reader.extract(piece, tally)]
        assert tally.lines == tally.blank + tally.other + tally.unparsed
        tallies.append(tally)
        files.append(records)
    result = JudgedLog(reader.interpret(files, profile), tallies)
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
    definition = load(_NAMES[name], profile, SHIPPED)
    scope = scope_of(definition, {}, {budget.name: None for budget in definition.budgets})
    return Determinised(automaton(definition, recording.scope(scope), recording))
