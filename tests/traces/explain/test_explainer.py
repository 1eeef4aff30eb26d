"""A violation is told with what led to it and what is missing, and its files say the same."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.thorough import some_of

from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.text.itf import from_itf
from stagewright.spec.trace import Event, TraceVerdict, observation
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.subset_automaton import DEAD, START, Determinised
from stagewright.traces.events.event_block import EntityKey, Stream
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.events.symbols import symbol_of
from stagewright.traces.events.where import Where
from stagewright.traces.explain.explainer import Explainer
from stagewright.traces.explain.explanation import Explanation
from stagewright.traces.explain.replay_window import NotExplainedError, Seen, Window
from stagewright.traces.replay.exact_verdicts import Cause, Finding
from stagewright.traces.report.results import EntityReport, Totals, TraceReport
from stagewright.traces.report.violation_files import as_itf, machine_name, violation_files

Events = Sequence[tuple[str | None, dict[str, object], dict[str, object]]]

LOOK: tuple[str | None, dict[str, object], dict[str, object]] = ("look", {"node": "node0"}, {})
WATCHED: dict[str, object] = {"watchers": ["node0"]}
START_FREE: dict[str, object] = {
    "phase": "free", "owner": None, "watchers": [], "seen[node0]": False, "seen[node1]": False,
    "strict": True,
}  # fmt: skip


def evaluator_of(lease: Any, recording: Recording | None = None) -> Evaluator:
    model = ground(lease.definition, lease.scope)
    return Evaluator(
        lease.definition, lease.scope, model, of_model(model, recording or Recording())
    )


def finding_of(evaluator: Evaluator, events: Events, cause: Cause = Cause.STEP) -> Finding:
    """What is found where the last event is the first that no run explains."""
    key = EntityKey(Stream("run", evaluator.definition.name, "", ""), "lease0")
    symbols = tuple(
        symbol_of(Event("", "", "", "", "", i, action=a, parameters=p, observed=o)).text
        for i, (a, p, o) in enumerate(events)
    )
    running, number = Determinised(evaluator.automaton), START
    for position, symbol in enumerate(symbols):
        number = running.advance(number, symbol)
        assert (number == DEAD) == (position == len(symbols) - 1), f"event {position}"
    return Finding(key, cause, len(symbols) - 1, 0, symbols=symbols)


def explained(evaluator: Evaluator, events: Events) -> Explanation:
    explanation = Explainer(evaluator).explain(finding_of(evaluator, events))
    assert explanation is not None
    return explanation


def report_of(finding: Finding, explanation: Explanation) -> TraceReport:
    where = Where("run/trace.jsonl", finding.sequence + 1)
    entity = EntityReport(
        finding.key, finding.verdict, Cause.STEP, finding.sequence, where, None,
        explanation=explanation,
    )  # fmt: skip
    counts = {TraceVerdict.VIOLATION: 1}
    return TraceReport((), {}, counts, Totals(), (entity,), 0, ())


def test_the_last_good_steps_are_reported_with_what_they_changed(lease: Any) -> None:
    events: Events = [
        (None, {}, START_FREE),
        ("watch", {"node": "node0"}, {}),
        ("look", {"node": "node1"}, {}),
        ("give_back", {}, {}),
    ]
    steps = explained(evaluator_of(lease), events).steps
    assert [(s.sequence, s.event) for s in steps][1:] == [(1, "watch(node0)"), (2, "look(node1)")]
    assert steps[1].changes == (("watchers", "{}", "{node0}"),)
    assert steps[2].changes == (("seen[node1]", "no", "yes"),)
    assert dict(steps[2].values)["phase"] == "free"


def test_the_nearest_legal_run_says_which_steps_are_missing(lease: Any) -> None:
    events: Events = [(None, {}, START_FREE), ("give_back", {}, {"phase": "free", **WATCHED})]
    nearest = explained(evaluator_of(lease), events).nearest
    assert nearest is not None
    assert [s.step for s in nearest.steps] == ["watch(node0)", "take(node0)", "give_back"]
    assert nearest.by_action
    assert ("phase", "free", "held") in nearest.steps[1].changes


def test_steps_that_leave_no_event_are_told_apart(lease: Any) -> None:
    recording = Recording(HiddenSteps(frozenset({"watch"})))
    events: Events = [(None, {}, START_FREE), ("give_back", {}, {})]
    nearest = explained(evaluator_of(lease, recording), events).nearest
    assert nearest is not None
    hidden = [(s.step, s.hidden) for s in nearest.steps]
    assert hidden == [("watch(node0)", True), ("take(node0)", False), ("give_back", False)]


def test_a_run_that_ends_otherwise_is_nearest_where_none_ends_as_the_event_says(lease: Any) -> None:
    strict_closed = {"phase": "closed", "strict": False}
    events: Events = [(None, {}, START_FREE), ("look", {"node": "node0"}, {"phase": "held"})]
    nearest = explained(evaluator_of(lease), events).nearest
    assert nearest is not None
    assert nearest.by_action  # it may have been taken before, and looked at then
    events = [(None, {}, START_FREE), ("take", {"node": "node0"}, strict_closed)]
    nearest = explained(evaluator_of(lease), events).nearest
    assert nearest is not None
    assert [s.step for s in nearest.steps] == ["close"]
    assert not nearest.by_action


def test_where_no_state_agrees_it_is_said_how_many_were_looked_at(lease: Any) -> None:
    events: Events = [(None, {}, START_FREE), ("close", {}, {"phase": "closed", "strict": True})]
    nearest = explained(evaluator_of(lease), events).nearest
    assert nearest is not None
    assert nearest.steps == ()
    assert nearest.exhausted
    reached = {
        next(s for s in Interpreter(lease.definition, lease.scope).initial_states() if s["strict"])
    }
    waiting = list(reached)
    while waiting:
        for _, after in Interpreter(lease.definition, lease.scope).successors(waiting.pop()):
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    assert nearest.states == len(reached)


def test_a_trace_whose_begin_was_left_out_is_explained_from_all_states(lease: Any) -> None:
    evaluator = evaluator_of(lease)
    events: Events = [
        (None, {}, START_FREE),
        ("watch", {"node": "node0"}, {"strict": True, "phase": "free"}),
        ("give_back", {}, {}),
    ]
    whole = finding_of(evaluator, events)
    cut = replace(whole, symbols=whole.symbols[1:])
    explanation = Explainer(evaluator).explain(cut)
    assert explanation is not None
    assert [name for name, _ in explanation.failed] == ["lease is held"]
    assert [s.sequence for s in explanation.steps] == [1]


def test_the_set_before_an_event_is_enough_to_say_what_refuses_it(lease: Any) -> None:
    evaluator = evaluator_of(lease)
    events: Events = [(None, {}, START_FREE), LOOK, ("give_back", {}, {"phase": "closed"})]
    whole = finding_of(evaluator, events)
    running, number = Determinised(evaluator.automaton), START
    for symbol in whole.symbols[:-1]:
        number = running.advance(number, symbol)
    states = tuple(running.states[s] for s in running.sets[number])
    before = PossibleStates((lease.definition.name, "", ""), -1, states)
    expected = Explainer(evaluator).explain(whole)
    for kept in (1, 2):
        cut = replace(whole, symbols=whole.symbols[-kept:], before=before)
        explanation = Explainer(evaluator).explain(cut)
        assert explanation is not None
        assert expected is not None
        assert replace(explanation, steps=()) == replace(expected, steps=())
        assert len(explanation.steps) == kept - 1


def test_a_mistake_beyond_those_explained_is_reported_by_its_event_alone(
    lease: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewright.traces.explain.explainer.DISTINCT_MAX", 1)
    explainer = Explainer(evaluator_of(lease))
    evaluator = evaluator_of(lease)
    one = finding_of(evaluator, [(None, {}, START_FREE), ("give_back", {}, {})])
    other = finding_of(evaluator, [(None, {}, START_FREE), LOOK, ("give_back", {}, {})])
    explanations = [explainer.explain(f, whole=False) for f in (one, other, one)]
    assert [t is not None and [n for n, _ in t.failed] for t in explanations] == [
        ["lease is held"], [], ["lease is held"]
    ]  # fmt: skip


def test_the_window_as_itf_is_a_legal_run_and_what_was_observed(lease: Any) -> None:
    evaluator = evaluator_of(lease)
    events: Events = [
        (None, {}, {"phase": "free"}),
        ("watch", {"node": "node0"}, {}),
        ("look", {}, {"seen[node1]": True}),
        ("give_back", {}, {"phase": "closed"}),
    ]
    finding = finding_of(evaluator, events)
    explanation = Explainer(evaluator).explain(finding)
    assert explanation is not None
    assert explanation.window is not None
    (entity,) = report_of(finding, explanation).entities
    document: Any = json.loads(json.dumps(as_itf(entity, explanation.window)))
    refused = document["#meta"]["refused"]
    assert (refused["sequence"], refused["failed"]) == (3, ["lease is held"])
    assert document["states"][-1]["#meta"] == {"index": 3, "event": 3, "legal": False}
    assert document["states"][-1]["phase"] == "closed"
    assert document["states"][-1]["seen"] == document["states"][-2]["seen"]
    document["states"].pop()
    run = from_itf(lease.definition, document)
    interpreter = Interpreter(lease.definition, lease.scope)
    for old, step, new in zip(run.states, run.steps, run.states[1:], strict=False):
        assert interpreter.take(step, old) == new
    assert [s["#meta"]["event"] for s in document["states"]] == [0, 1, 2]


HIDDEN = Recording(HiddenSteps(frozenset({"watch", "give_back"})))
CASES: list[tuple[str, Recording, Events]] = [
    ("lease is held", Recording(), [(None, {}, {"phase": "free"}), ("give_back", {}, {})]),
    (
        "watchers: expected {node0}, observed {}",
        Recording(),
        [(None, {}, START_FREE), ("watch", {"node": "node0"}, {"watchers": []})],
    ),
    ("phase: expected free", Recording(), [(None, {}, {"phase": "held"})]),
    (
        "lease is held",
        HIDDEN,
        [(None, {}, START_FREE), ("take", {}, {}), ("close", {}, {}), ("give_back", {}, {})],
    ),
    ("lease is held", Recording(from_start=False), [(None, {}, {"phase": "closed"}), ("give_back", {}, {})]),
    (
        "lease is held",
        Recording(),
        [(None, {}, {}), *[LOOK] * 70, ("give_back", {}, {})],
    ),
]  # fmt: skip


def pytest_on(test: Path) -> subprocess.CompletedProcess[str]:
    sources = Path(__file__).resolve().parents[3] / "src"
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(test.parent),
         "-c", "/dev/null", str(test)],
        env={"PYTHONPATH": str(sources), "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("message", "recording", "events"), CASES)
def test_the_window_replays_with_the_interpreter_to_the_same_refusal(
    lease: Any, message: str, recording: Recording, events: Events
) -> None:
    evaluator = evaluator_of(lease, recording)
    explanation = explained(evaluator, events)
    cut = explanation.window
    assert cut is not None
    sizes = {kind.__name__: n for kind, n in cut.scope.sizes.items()}
    window = Window(cut.definition, sizes, cut.scope.budgets, cut.hidden, cut.from_start)
    states = None if cut.states is None else [observation(s) for s in cut.states]
    with pytest.raises(NotExplainedError, match=f"event {len(events) - 1}") as caught:
        window.replay(states, cut.events)
    assert message in str(caught.value)
    window.replay(states, cut.events[:-1])


def test_an_event_after_the_end_marker_is_refused(lease: Any) -> None:
    events = [Seen(0), Seen(1, end=True), Seen(2, "look", {"node": "node0"})]
    with pytest.raises(NotExplainedError, match=r"event 2, .*after the end marker"):
        Window(lease.definition).replay(None, events)


@pytest.mark.parametrize("case", some_of([0, 3, 4]))
def test_the_written_test_fails_until_the_event_is_legal(
    lease: Any, tmp_path: Path, case: int
) -> None:
    message, recording, events = CASES[case]
    evaluator = evaluator_of(lease, recording)
    finding = finding_of(evaluator, events)
    explanation = Explainer(evaluator).explain(finding)
    assert explanation is not None
    files = violation_files(
        report_of(finding, explanation), tmp_path, "stagewright validate t.jsonl"
    )
    assert sorted(files) == ["001-run-lease0.itf.json", "test_001_run_lease0.py"]
    test = tmp_path / "test_001_run_lease0.py"
    test.write_text(files[test.name])
    done = pytest_on(test)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"no run of Lease explains event {len(events) - 1}: give_back" in done.stdout
    assert f"failed     {message}" in done.stdout
    mended = files[test.name].replace(", 'give_back')", ", 'look')")
    test.write_text(mended)
    assert pytest_on(test).returncode == 0


def test_a_shipped_machine_is_loaded_by_its_module_and_another_by_its_file(tmp_path: Path) -> None:
    shipped = load("stagewright.machines.scylladb.tablets.tablet_migration:TabletMigration")
    name = "stagewright.machines.scylladb.tablets.tablet_migration:TabletMigration"
    assert machine_name(shipped, tmp_path) == repr(name)
    (tmp_path / "it's").mkdir()
    file = tmp_path / "it's" / "my machine.py"
    shutil.copy(Path(__file__).parents[2] / "models" / "lease.py", file)
    written = machine_name(load(f"{file}:LeaseTable"), tmp_path / "out" / "violations")
    found = eval(written, {"HERE": tmp_path / "out" / "violations", "str": str})  # noqa: S307
    (tmp_path / "out" / "violations").mkdir(parents=True)
    assert load(found).name == "LeaseTable"


def test_a_hostile_trace_cannot_write_code_into_its_test(lease: Any, tmp_path: Path) -> None:
    evaluator = evaluator_of(lease)
    finding = finding_of(evaluator, CASES[0][2])
    evil = 'x"""\nimport os  # \\'
    stream = finding.key.stream._replace(trace=evil)
    explanation = Explainer(evaluator).explain(finding)
    assert explanation is not None
    report = report_of(replace(finding, key=EntityKey(stream, evil)), explanation)
    files = violation_files(report, tmp_path, evil)
    (test,) = (text for name, text in files.items() if name.endswith(".py"))
    assert "\nimport os" not in test
    compile(test, "test.py", "exec")
