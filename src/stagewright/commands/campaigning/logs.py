"""What the logs of a run say, read and checked as `validate` does it with those of Couchbase and YugabyteDB."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

from stagewright.machines import SHIPPED
from stagewright.machines.recorded import OF_LOGS
from stagewright.spec.loading import load
from stagewright.spec.trace import Event
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import DEAD, START, Determinised
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import unbounded_scope
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Interpreted, Part, Tally

COUCHBASE, YUGABYTE, SCYLLA = "couchbase-log", "yugabyte-log", "scylla-log"
_PLACES = {place.partition(":")[2]: place for place in (*SHIPPED.values(), *OF_LOGS)}


def check_logs(paths: Sequence[Path], form: str = COUCHBASE) -> tuple[int, str]:
    """How many events the logs have, and what is wrong: a line that cannot be read, or an event that no run explains."""
    interpreted, tallies, parts = _read(paths, form)
    if unread := [reason for tally in tallies for reason in tally.reasons]:
        return len(interpreted.events), f"records that cannot be read: {unread[:3]}"
    events = sorted(interpreted.events, key=lambda one: _stream(one[1]))
    for (machine, profile, entity), group in groupby(events, key=lambda one: _stream(one[1])):
        replayed = _machine(machine, profile, interpreted.recordings[machine])
        state = START
        for number, event in group:
            symbol = symbol_of(event).text
            refusal = replayed.refusal(state, symbol)
            state = DEAD if refusal else replayed.advance(state, symbol)
            if state == DEAD:
                where = _where(Path(parts[number].path), event.line)
                why = refusal or "no run explains it"
                return len(events), f"{machine}: {entity} {where}: {why}"
    return len(events), ""


def _stream(event: Event) -> tuple[str, str, str]:
    return event.machine, event.profile, event.entity


def _read(paths: Sequence[Path], form: str) -> tuple[Interpreted, list[Tally], list[Part]]:
    reader = formats.log_reader(form)
    files: list[list[tuple[int, object]]] = []
    tallies: list[Tally] = []
    parts: list[Part] = []
    for path in paths:
        files.append([])
        for start, stop in reader.parts(path):
            tallies.append(Tally())
            parts.append(Part(len(parts), str(path), form, start, stop))
            files[-1] += [(parts[-1].number, r) for r in reader.extract(parts[-1], tallies[-1])]
    return reader.interpret(files, ""), tallies, parts


@cache
def _machine(name: str, profile: str, recording: Recording) -> Determinised:
    """All runs of a process share what they compute."""
    definition = load(_PLACES[name], profile)
    return Determinised(
        automaton(definition, recording.scope(unbounded_scope(definition)), recording)
    )


def _where(path: Path, line: int) -> str:
    lines = path.read_text("utf-8").split("\n")
    return f"at line {line} of {path.name} ({lines[line - 1].strip()})"
