"""Chunks of a trace of which no event shows the whole state are composed, and the verdict is as if read in one."""

import dataclasses
import random
from pathlib import Path
from typing import Any

import pytest
from tests.thorough import examples

from stagewright.spec.grounding.lowering import ground
from stagewright.spec.trace import Event, TraceVerdict, observation
from stagewright.traces.automaton import unknown_start
from stagewright.traces.automaton.nfa import automaton, of_model
from stagewright.traces.automaton.subset_automaton import (
    DEAD,
    LIVE,
    START,
    UNKNOWN_START,
    Determinised,
)
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import (
    ALL_HIDDEN,
    NOTHING_HIDDEN,
    HiddenSteps,
    Recording,
)
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import Options
from stagewright.traces.readers import text_lines
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

LEAVES = ["phase", "owner", "watchers", "seen[node0]", "seen[node1]", "strict"]
HIDDEN = [NOTHING_HIDDEN, HiddenSteps(frozenset({"look", "watch"})), ALL_HIDDEN]


def seen_in_part(events: list[Event], kept: set[str]) -> list[Event]:
    """The events with nothing observed but these leaves."""
    return [
        dataclasses.replace(e, observed={n: v for n, v in e.observed.items() if n in kept})
        for e in events
    ]


def evaluated(lease: Any, path: Path, hidden: HiddenSteps = NOTHING_HIDDEN) -> TraceReport:
    options = Options(scope=lambda _: lease.scope, hidden=hidden)
    return validate([path], lease.definition, options, engine=Embedded(2))


def written(path: Path, events: list[Event]) -> Path:
    path.write_text("".join(e.to_json() + "\n" for e in events))
    return path


def rows(report: TraceReport) -> int:
    """How many rows were brought together."""
    return int(next(line for line in report.plan if "rows" in line).split()[0].replace(",", ""))


def test_a_long_trace_is_composed_of_few_rows(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = {*LEAVES} - {"owner"}
    events = seen_in_part(open_walk(lease, 3, 3_000), most)
    path = written(tmp_path / "long.jsonl", events)
    monkeypatch.setattr(text_lines, "PART_SIZE", path.stat().st_size // 8)
    report = evaluated(lease, path)
    assert report.verdicts[TraceVerdict.OK] == 1
    assert rows(report) < len(events) // 10
    monkeypatch.setattr(unknown_start, "_REACHED_MAX", 2)  # as where there are too many states
    plain = evaluated(lease, path)
    assert plain == report
    assert rows(plain) > len(events) // 2


def open_walk(lease: Any, seed: int, steps: int) -> list[Event]:
    """A long random run that never closes its lease, which would leave little to do."""
    rng = random.Random(seed)
    model = ground(lease.definition, lease.scope)
    running = Determinised(of_model(model, Recording()))
    code = running.source.program.steps
    seen: dict[int, dict[str, object]] = {}
    state = running.state_number(model.initial[0])
    events: list[Event] = []
    for number in range(steps):
        action, parameters = None, dict[str, object]()
        if number:
            ways = [way for way in running.steps_from(state) if code[way[0]].action != "close"]
            step, state = rng.choice(ways)
            action, parameters = code[step].action, dict(code[step].arguments)
        if state not in seen:
            seen[state] = observation(model.decode(running.states[state]))
        events.append(lease.event("long", number, action, parameters, seen[state]))
    return [*events, lease.event("long", steps, None, {}, {}, end=True)]


@pytest.mark.parametrize("seed", range(examples(6)))
def test_chunks_find_what_one_piece_finds(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    events: list[Event] = []
    for number in range(30):
        trace = lease.walk(f"lease{number}", 100 * seed + number, rng.randrange(10, 60))
        kept = set(rng.sample(LEAVES, rng.randrange(2, len(LEAVES))))
        trace = seen_in_part(trace, kept)
        if number % 3 == 0:
            i = rng.randrange(1, len(trace) - 1)
            trace[i] = dataclasses.replace(trace[i], observed={"phase": "held"})
        if number % 4 == 0:
            i = rng.randrange(1, len(trace) - 1)
            trace[i] = dataclasses.replace(trace[i], action=None, parameters={})
        events += trace
    path = written(tmp_path / "all.jsonl", events)
    hidden = HIDDEN[seed % 3]
    whole = evaluated(lease, path, hidden)
    monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([400, 1_000, 3_000]))
    monkeypatch.setattr(unknown_start, "_FEW", rng.choice([1, 3, 128]))
    if seed > 3:
        monkeypatch.setattr(unknown_start, "_WORK_MAX", 500)
    assert evaluated(lease, path, hidden) == whole
    assert whole.verdicts[TraceVerdict.OK] > 5
    assert whole.verdicts[TraceVerdict.VIOLATION] > 3 or hidden is ALL_HIDDEN


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_the_middle_says_is_so_wherever_the_entity_came_from(
    lease: Any, hidden: HiddenSteps
) -> None:
    source = automaton(lease.definition, lease.scope)
    source = dataclasses.replace(
        source, recording=dataclasses.replace(source.recording, hidden=hidden)
    )
    running, rng = Determinised(source), random.Random(1)
    settled = 0
    for seed in range(60):
        kept = set(rng.sample(LEAVES, rng.randrange(1, len(LEAVES))))
        trace = seen_in_part(lease.walk("lease0", seed, 25), kept)
        symbols = [symbol_of(e).text for e in trace]
        cut = rng.randrange(1, 15)
        number, actual = UNKNOWN_START, START
        for symbol in symbols[:cut]:
            actual = running.advance(actual, symbol)
        for symbol in symbols[cut:-1]:
            number, actual = running.advance(number, symbol), running.advance(actual, symbol)
            if number >= LIVE or number == DEAD:
                settled += 1
                assert actual in (number, DEAD)
    assert settled > 100
