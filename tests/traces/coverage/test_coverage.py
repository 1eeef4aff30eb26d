"""What production exercised is counted as a slow search over all explanations counts it."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.thorough import examples

from stagewright.spec.grounding.coverable import ActionOf, Edge, Move, RequirementOf, ValueOf
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.trace import Event, observation
from stagewright.spec.values import State, plain
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.subset_automaton import ANY, LIVE, START, Determinised
from stagewright.traces.coverage.exercised import (
    Count,
    Exercised,
    MachineCoverage,
    Seen,
    coverage_of,
    exercised_of,
)
from stagewright.traces.coverage.report import as_json, coverage_lines
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.options import Options
from stagewright.traces.pipeline import passes
from stagewright.traces.readers import text_lines
from stagewright.traces.replay import segments
from stagewright.traces.validate import validate

Mutated = Callable[[str, int], list[Event]]

KEY = ("Lease", "", "")
START_FREE: dict[str, object] = {
    "phase": "free", "owner": None, "watchers": [], "seen[node0]": False, "seen[node1]": False,
    "strict": False,
}  # fmt: skip


def evaluator_of(lease: Any, recording: Recording | None = None) -> Evaluator:
    model = ground(lease.definition, lease.scope)
    return Evaluator(
        lease.definition, lease.scope, model, of_model(model, recording or Recording())
    )


def pairs_of(evaluator: Evaluator, traces: Iterable[Sequence[Event]]) -> list[Exercised]:
    """What the replay delivers: the states before each event, its symbol, and how often."""
    running = Determinised(evaluator.automaton)
    counts: dict[tuple[int, str], int] = {}
    for trace in traces:
        number = START
        for event in trace:
            symbol = symbol_of(event).text
            after = running.advance(number, symbol)
            if after >= LIVE:
                counts[number, symbol] = counts.get((number, symbol), 0) + 1
            number = after
    return [
        (tuple(running.states[s] for s in running.sets[number]), symbol, count)
        for (number, symbol), count in counts.items()
    ]


def covered(
    lease: Any, events: Sequence[Any], recording: Recording | None = None
) -> MachineCoverage:
    evaluator = evaluator_of(lease, recording)
    trace = [lease.event("lease0", i, a, p, o) for i, (a, p, o) in enumerate(events)]
    (found,) = coverage_of({KEY: evaluator}, {KEY: pairs_of(evaluator, [trace])})
    return found


def test_unknown_beginnings_are_left_to_others(lease: Any) -> None:
    key = ("Lease", "", "")
    first, known = PossibleStates(key, START), PossibleStates(key, -1, ((1, 2),))
    taken = {(first, "a"): 3, (PossibleStates(key, ANY), "a"): 9, (known, "b"): 4}
    assert exercised_of(taken, {key: 1}) == {(key, 0): [((), "a", 3), (((1, 2),), "b", 4)]}


def test_what_is_fully_observed_is_certain(lease: Any) -> None:
    traces = [lease.walk(f"lease{i}", i, 20) for i in range(30)]
    evaluator = evaluator_of(lease)
    (found,) = coverage_of({KEY: evaluator}, {KEY: pairs_of(evaluator, traces)})
    assert found.events == sum(len(trace) - 1 for trace in traces)
    for action, count in found.of(ActionOf).items():
        fired = sum(event.action == action.action for trace in traces for event in trace)
        assert (count.certain, count.possible) == (fired, fired), action
    for phase in ("free", "held", "closed"):
        seen = sum(event.observed.get("phase") == phase for trace in traces for event in trace)
        assert found.counts[ValueOf("phase", phase)] == Count(seen, seen, reachable=True)
    assert found.exhausted


def test_what_is_partly_observed_is_counted_as_a_slow_search_counts_it(lease: Any) -> None:
    rng = random.Random(3)
    evaluator, interpreter = evaluator_of(lease), Interpreter(lease.definition, lease.scope)
    traces: list[list[Event]] = []
    for seed in range(40):
        events = lease.walk(f"lease{seed}", seed, 12)
        kept = rng.choice([("phase",), ("owner", "watchers"), ("seen[node1]",), ()])
        unnamed = {e.sequence for e in events if rng.random() < 0.4}
        traces.append([_blurred(e, kept, unnamed=e.sequence in unnamed) for e in events])
    (found,) = coverage_of({KEY: evaluator}, {KEY: pairs_of(evaluator, traces)})
    certain, possible = Counter[str](), Counter[str]()
    for trace in traces:
        states = list(interpreter.initial_states())
        for event in trace:
            ways = list(_explanations(interpreter, states, event))
            if event.end:
                break
            named = [{step} if step else set[str]() for step, _ in ways]
            phases = [{f"phase {after['phase'].name}"} for _, after in ways]  # type: ignore[union-attr]
            things = [a | b for a, b in zip(named, phases, strict=True)]
            certain.update(set.intersection(*things))
            possible.update(set[str]().union(*things))
            states = list(dict.fromkeys(after for _, after in ways))
    for thing, count in found.counts.items():
        match thing:
            case ActionOf(action):
                assert (count.certain, count.possible) == (certain[action], possible[action])
            case ValueOf("phase", value):
                name = f"phase {value}"
                assert (count.certain, count.possible) == (certain[name], possible[name])
            case _:
                pass
    assert any(certain[name] < possible[name] for name in possible)


def _blurred(event: Event, kept: Sequence[str], *, unnamed: bool) -> Event:
    observed = {n: v for n, v in event.observed.items() if n in kept}
    if unnamed:
        return replace(event, observed=observed, action=None, parameters={})
    return replace(event, observed=observed)


def _explanations(
    interpreter: Interpreter, states: Sequence[State], event: Event
) -> Iterable[tuple[str, State]]:
    """The action and the state after it, for each way in which an event can be explained."""
    steps: Iterable[tuple[str, dict[str, object], State]]
    if event.sequence == 0:
        steps = [("", {}, state) for state in states]
    else:
        steps = [
            (step.action, {n: plain(v) for n, v in step.arguments.items()}, after)
            for state in states
            for step, after in interpreter.successors(state)
        ]
    for action, values, after in steps:
        leaves = observation(after)
        named = event.action in (None, action) and values.items() >= event.parameters.items()
        if named and leaves.items() >= event.observed.items():
            yield action, after


def test_edges_have_the_names_of_the_diagram(lease: Any) -> None:
    found = covered(
        lease, [(None, {}, START_FREE), ("take", {"node": "node0"}, {}), ("give_back", {}, {})]
    )
    edges = found.of(Edge)
    assert {(e.source, e.target, e.action): c.seen for e, c in edges.items()} == {
        ("free", "held", "take"): Seen.CERTAINLY,
        ("held", "free", "give_back"): Seen.CERTAINLY,
        ("free", "closed", "close"): Seen.NEVER,
    }
    assert all(found.counts[edge.move].seen is count.seen for edge, count in edges.items())


def test_an_unnamed_step_is_possibly_of_each_action_that_explains_it(lease: Any) -> None:
    found = covered(lease, [(None, {}, START_FREE), (None, {}, {"phase": "free"})])
    assert {a.action: c.seen for a, c in found.of(ActionOf).items()} == {
        "take": Seen.NEVER,
        "give_back": Seen.NEVER,
        "watch": Seen.POSSIBLY,
        "look": Seen.POSSIBLY,
        "close": Seen.NEVER,
    }
    assert found.counts[ValueOf("watchers[Node]", "no")].seen is Seen.CERTAINLY
    assert found.counts[ValueOf("watchers[Node]", "yes")].seen is Seen.POSSIBLY


def test_only_hidden_steps_on_a_way_to_the_event_are_possible(lease: Any) -> None:
    recording = Recording(HiddenSteps(frozenset({"take", "give_back", "watch"})))
    taken = ("look", {"node": "node0"}, {"owner": "node1", "watchers": []})
    found = covered(lease, [(None, {}, START_FREE), taken], recording)
    seen = {a.action: c.seen for a, c in found.of(ActionOf).items()}
    assert seen == {
        "take": Seen.POSSIBLY,
        "give_back": Seen.POSSIBLY,
        "watch": Seen.NEVER,
        "look": Seen.CERTAINLY,
        "close": Seen.NEVER,
    }


def test_a_part_of_a_requirement_counts_where_it_was_true(lease: Any) -> None:
    found = covered(lease, [(None, {}, START_FREE), ("take", {"node": "node0"}, {})])
    name = "a strict lease is taken by watchers only"
    parts = {r.part: c.seen for r, c in found.of(RequirementOf).items() if r.requirement == name}
    assert parts == {
        "": Seen.CERTAINLY,
        "not strict": Seen.CERTAINLY,
        "node is in watchers": Seen.NEVER,
    }


def test_what_no_run_reaches_is_not_missing(lease: Any) -> None:
    found = covered(lease, [(None, {}, START_FREE)])
    reached = set()
    interpreter = Interpreter(lease.definition, lease.scope)
    waiting = list(interpreter.initial_states())
    while waiting:
        state = waiting.pop()
        if state not in reached:
            reached.add(state)
            waiting += [after for _, after in interpreter.successors(state)]
    assert found.states == len(reached)
    assert found.counts[Move("phase", "free", "closed")].reachable
    assert found.counts[ActionOf("close")].reachable
    assert all(c.reachable is not False for c in found.of(ActionOf).values())


def test_events_that_nothing_explains_exercise_nothing(lease: Any) -> None:
    evaluator = evaluator_of(lease)
    good = pairs_of(evaluator, [[lease.event("l", 0, None, {}, START_FREE)]])
    state = next(iter(evaluator.automaton.starts.having({}, 10)))
    bad = symbol_of(lease.event("l", 1, "give_back", {}, {})).text
    (found,) = coverage_of({KEY: evaluator}, {KEY: [*good, ((state,), bad, 7)]})
    assert found.events == 1
    assert found.counts[ActionOf("give_back")].seen is Seen.NEVER


def test_the_json_has_its_form_and_the_text_names_what_is_missing(lease: Any) -> None:
    found = covered(lease, [(None, {}, START_FREE), ("take", {"node": "node0"}, {})])
    document = json.loads(json.dumps(as_json([found])))
    assert document["version"] == 1
    (machine,) = document["machines"]
    assert set(machine) == {
        "machine", "profile", "fingerprint", "scope", "events", "reachability", "values", "actions",
        "moves", "edges", "requirements",
    }  # fmt: skip
    count = {"seen": "certainly", "certain": 1, "possible": 1, "reachable": True}
    assert {"action": "take", **count} in machine["actions"]
    edge = {"variable": "phase", "source": "free", "target": "held", "action": "take"}
    assert {**edge, **count} in machine["edges"]
    text = "\n".join(coverage_lines(found))
    assert "actions: 1 of 5; never give_back, watch, look, close" in text
    assert "phase: free → closed (close)" in text


@pytest.mark.parametrize("kept", [("phase", "owner", "watchers"), ("phase",)])
def test_how_events_lie_in_files_changes_no_count(
    lease: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: tuple[str, ...]
) -> None:
    traces = [lease.walk(f"lease{i}", i, 25) for i in range(30)]
    events = [_blurred(e, kept, unnamed=e.sequence % 5 == 4) for trace in traces for e in trace]
    found: list[MachineCoverage] = []
    for size in (50_000, 500):
        monkeypatch.setattr(text_lines, "PART_SIZE", size)
        path = tmp_path / f"{size}.jsonl"
        path.write_text("".join(e.to_json() + "\n" for e in events))
        options = Options(scope=lambda _: lease.scope)
        report = validate([path], lease.definition, options, engine=Embedded(1))
        found += report.coverage
        random.Random(size).shuffle(events)
    one, other = found
    assert one.events == sum(len(trace) - 1 for trace in traces)
    assert one.counts == other.counts


@pytest.mark.parametrize("seed", range(examples(4)))
def test_what_is_wrong_or_repeated_counts_as_far_as_it_was_checked(
    lease: Any, mutated: Mutated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    traces = {f"lease{i}": mutated(f"lease{i}", 1000 * seed + i) for i in range(60)}
    if seed % 2:
        traces = {name: [_partly_seen(e) for e in trace] for name, trace in traces.items()}
    events = [e for trace in traces.values() for e in trace]
    events += rng.sample(events, 50)
    evaluated = [_evaluated_part(lease, trace) for trace in traces.values()]
    evaluator = evaluator_of(lease)
    (expected,) = coverage_of({KEY: evaluator}, {KEY: pairs_of(evaluator, evaluated)})
    for size in (50_000, 2_000, 500):
        monkeypatch.setattr(text_lines, "PART_SIZE", size)
        monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([3, 20, 1 << 20]))
        path = tmp_path / f"{size}.jsonl"
        path.write_text("".join(e.to_json() + "\n" for e in events))
        options = Options(scope=lambda _: lease.scope)
        report = validate([path], lease.definition, options, engine=Embedded(2))
        (found,) = report.coverage
        assert found.events == expected.events
        assert found.counts == expected.counts
        if rng.random() < 0.7:
            rng.shuffle(events)


def _partly_seen(event: Event) -> Event:
    return event if event.end else _blurred(event, ("phase",), unnamed=event.sequence % 5 == 4)


def _evaluated_part(lease: Any, trace: Sequence[Event]) -> list[Event]:
    """The events of an entity before the one that decides."""
    _, number = lease.evaluate(trace)
    return sorted({e.sequence: e for e in trace if e.sequence < number}.values(), key=_sequence)


def _sequence(event: Event) -> int:
    return event.sequence


def test_where_very_much_is_wrong_a_note_says_that_more_is_counted_than_checked(
    lease: Any, mutated: Mutated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passes, "RECOUNTED_MAX", 2)
    path = tmp_path / "all.jsonl"
    events = [e for i in range(30) for e in mutated(f"lease{i}", i)]
    path.write_text("".join(e.to_json() + "\n" for e in events))
    options = Options(scope=lambda _: lease.scope)
    report = validate([path], lease.definition, options, engine=Embedded(1))
    assert any("coverage counts more than was checked" in note for note in report.notes)
