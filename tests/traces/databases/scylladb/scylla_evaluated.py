"""Reads lines of ScyllaDB logs and evaluates what they log, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from stagewright.machines import SHIPPED
from stagewright.machines.recorded import OF_LOGS
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.trace import Event
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import DEAD, START, UNKNOWN, Determinised
from stagewright.traces.databases.scylladb.log import log
from stagewright.traces.databases.scylladb.log.line import LogRecord, parse_log_line
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import unbounded_scope
from stagewright.traces.readers.protocol import Interpreted, Part, Tally

NAMES = {place.partition(":")[2]: name for name, place in SHIPPED.items()}
NAMES |= {place.partition(":")[2]: place for place in OF_LOGS}


def line(
    message: str,
    second: float = 0,
    host: str = "h",
    logger: str = "raft_topology",
    level: str = "INFO",
) -> str:
    """A line as a test framework collects it."""
    return (
        f"2025-03-01T10:00:{second:06.3f}+00:00 {host} !{level} | scylla[7]: "
        f"[shard 0: gms] {logger} - {message}"
    )


def interpret(*files: list[str], profile: str = "") -> Interpreted:
    """What files of lines mean together; every line must be of a known form."""
    records: list[list[tuple[int, LogRecord]]] = []
    for number, texts in enumerate(files):
        parsed = [parse_log_line(t, i, f"file{number}") for i, t in enumerate(texts, start=1)]
        assert not [p for p in parsed if isinstance(p, str)]
        records.append([(number, r) for r in parsed if isinstance(r, LogRecord)])
    return log.interpret(records, profile)


def read(*paths: Path, profile: str = "") -> tuple[Interpreted, Tally]:
    """What files mean together."""
    tally = Tally()
    files: list[list[tuple[int, LogRecord]]] = []
    for number, path in enumerate(paths):
        (bounds,) = log.parts(path)
        found = log.extract(Part(number, str(path), "scylla-log", *bounds), tally)
        files.append([(number, r) for r in found])
    return log.interpret(files, profile), tally


@cache
def _replay(machine: str, profile: str, recording: Recording) -> Determinised:
    definition = define(find(NAMES[machine], SHIPPED), profile)
    return Determinised(
        automaton(definition, recording.scope(unbounded_scope(definition)), recording)
    )


def violations(found: Interpreted) -> list[tuple[str, str, int]]:
    """The machine, the entity and the line of every event that no run explains; none may be unknown."""
    traces: dict[tuple[str, str, str], list[Event]] = {}
    for _, event in found.events:
        traces.setdefault((event.machine, event.profile, event.entity), []).append(event)
    wrong: list[tuple[str, str, int]] = []
    for (machine, profile, entity), events in traces.items():
        assert [e.sequence for e in events] == list(range(len(events)))
        if (where := _violation(machine, profile, found.recordings[machine], events)) is not None:
            wrong.append((machine, entity, where))
    return wrong


def _violation(
    machine: str, profile: str, recording: Recording, events: Sequence[Event]
) -> int | None:
    replay = _replay(machine, profile, recording)
    number = START
    for event in events:
        symbol = symbol_of(event).text
        number_after = replay.advance(number, symbol)
        assert number_after != UNKNOWN, (event, replay.refusal(number, symbol))
        if number_after == DEAD:
            return event.line
        number = number_after
    return None


def recorded(found: Interpreted, machine: str) -> list[tuple[str, dict[str, object]]]:
    """What a machine's events observe, by entity."""
    return [(e.entity, dict(e.observed)) for _, e in found.events if e.machine == machine]
