"""One call decides every promise, with a shortest run for each that is broken."""

import signal
from pathlib import Path
from typing import Any

import pytest

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits, Progress
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.machines import SHIPPED
from stagewright.spec import (
    Bool,
    Entity,
    Machine,
    Term,
    action,
    every,
    invariant,
    number,
    per,
    require,
    scope_of,
    some,
)
from stagewright.spec.define import define
from stagewright.spec.definition import NO_DEADLOCK, PropertyKind
from stagewright.spec.errors import InputError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.values import plain
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report, Run

MODELS = Path(__file__).resolve().parents[1] / "models"
DEFINITION = load(str(MODELS / "turnstile.py"))
SCOPE = scope_of(DEFINITION)


@pytest.fixture(scope="module")
def report() -> Report:
    return check(DEFINITION, SCOPE)


def verdict(report: Report, name: str) -> PropertyVerdict:
    return next(v for v in report.verdicts if v.name == name)


def steps(report: Report, name: str) -> list[str]:
    run = verdict(report, name).run
    assert run is not None
    return [step.label for step in run.steps]


def assert_is_a_run(run: Run) -> None:
    interpreter = Interpreter(DEFINITION, SCOPE)
    assert run.states[0] in list(interpreter.initial_states())
    for before, step, after in zip(run.states, run.steps, run.states[1:], strict=False):
        assert interpreter.take(step, before) == after
    if run.loop is not None:
        assert run.loop_step is not None
        assert interpreter.take(run.loop_step, run.states[-1]) == run.states[run.loop]


def test_every_run_that_is_shown_is_one_of_the_definition(report: Report) -> None:
    runs = [v.run for v in report.verdicts if v.run is not None]
    assert len(runs) == 7
    for run in runs:
        assert_is_a_run(run)


def test_a_broken_invariant_is_shown_by_a_shortest_run(report: Report) -> None:
    assert verdict(report, "small").outcome is Outcome.VIOLATED
    assert steps(report, "small") == ["start", "tick", "tick"]


def test_a_broken_invariant_names_the_instance(report: Report) -> None:
    assert steps(report, "open_gates") == ["start", "tick", "finish", "kick(gate0)"]
    arguments = verdict(report, "open_gates").arguments
    assert {name: plain(value) for name, value in arguments.items()} == {"g": "gate0"}


def test_a_broken_step_property_is_shown_with_the_step(report: Report) -> None:
    assert steps(report, "grows") == ["start", "tick", "tick", "reset"]


def test_a_goal_out_of_reach_is_shown_by_the_nearest_such_state(report: Report) -> None:
    assert steps(report, "idle_again") == ["start"]
    assert "can no longer be reached" in verdict(report, "idle_again").note


def test_a_promise_put_off_for_ever_is_shown_by_a_fair_loop(report: Report) -> None:
    run = verdict(report, "ends").run
    assert run is not None
    assert [s.label for s in run.steps] == ["start", "tick", "tick"]
    assert (run.loop, run.loop_step and run.loop_step.label) == (1, "reset")


def test_a_state_that_only_a_budgeted_step_leads_out_of_is_a_deadlock(report: Report) -> None:
    assert steps(report, "no deadlock") == ["start", "tick", "finish"]
    note = "no step is enabled, not counting those that spend a budget, and the state is not final"
    assert verdict(report, "no deadlock").note == note


def test_an_assignment_out_of_bounds_is_shown_by_the_state_that_enables_it(report: Report) -> None:
    assert steps(report, "assigned values stay in bounds") == ["start", "tick", "tick"]
    note = verdict(report, "assigned values stay in bounds").note
    assert "`tick`" in note
    assert "3 to count (bounds 0..2)" in note


@pytest.mark.parametrize("name", ["nowhere_is_empty", "never_ends"])
def test_a_promise_whose_premise_never_holds_is_called_vacuous(report: Report, name: str) -> None:
    assert verdict(report, name).outcome is Outcome.HOLDS
    assert "vacuous: its premise never held" in verdict(report, name).note


def test_coverage_names_what_never_happened_and_what_never_refused(report: Report) -> None:
    assert report.coverage is not None
    assert report.coverage.never_fired == ("vanish",)
    assert ("vanish", "the count is a count") in report.coverage.never_false
    assert ("kick", "kicks left") not in report.coverage.requirement_false


def test_an_action_that_is_switched_off_is_not_said_to_be_uncovered() -> None:
    report = check(DEFINITION, scope_of(DEFINITION, budgets={"kicks": 0}))
    assert report.coverage is not None
    assert "kick" not in report.coverage.fired


def test_the_same_check_gives_the_same_report(report: Report) -> None:
    again = check(DEFINITION, SCOPE)
    assert [(v.name, v.outcome, v.run, v.arguments) for v in again.verdicts] == [
        (v.name, v.outcome, v.run, v.arguments) for v in report.verdicts
    ]
    assert (again.states, again.transitions, again.depth) == (
        report.states,
        report.transitions,
        report.depth,
    )


def test_only_the_named_promises_are_decided() -> None:
    report = check(DEFINITION, SCOPE, properties=["nowhere_is_empty", "no deadlock"])
    # What leaves the bounds is told even if nobody asked: the search cannot follow it.
    names = [v.name for v in report.verdicts]
    assert names == ["nowhere_is_empty", "no deadlock", "assigned values stay in bounds"]


def test_an_unknown_promise_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="did you mean `small`"):
        check(DEFINITION, SCOPE, properties=["smal"])


def test_with_stop_at_first_the_search_ends_and_the_rest_is_undecided() -> None:
    report = check(DEFINITION, SCOPE, limits=Limits(stop_at_first=True))
    assert not report.exhausted
    assert report.outcome is Outcome.VIOLATED
    assert Outcome.UNDECIDED in {v.outcome for v in report.verdicts}
    assert "a violation was found" in report.note


def test_a_depth_limit_leaves_undecided_what_it_did_not_reach() -> None:
    report = check(DEFINITION, SCOPE, limits=Limits(depth=2))
    assert not report.exhausted
    assert report.depth == 2
    small = verdict(report, "small")
    assert small.outcome is Outcome.UNDECIDED
    assert small.note == "no violation up to depth 2 (not exhausted)"
    assert report.outcome is Outcome.UNDECIDED


def test_what_lies_beyond_the_limit_may_still_reach_the_goal() -> None:
    report = check(DEFINITION, SCOPE, limits=Limits(depth=2))
    assert verdict(report, "idle_again").outcome is Outcome.UNDECIDED
    assert verdict(report, "ends").outcome is Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(states=2), "limit of 2 states"),
        (Limits(seconds=0), "time limit of 0 s"),
        (Limits(memory=1), "memory limit"),
    ],
)
def test_a_spent_budget_is_named_and_nothing_is_claimed(limits: Limits, expected: str) -> None:
    report = check(DEFINITION, SCOPE, limits=limits)
    assert expected in report.note
    assert not report.exhausted
    assert Outcome.HOLDS not in {v.outcome for v in report.verdicts}


@pytest.mark.parametrize("engine", [EngineKind.NATIVE, EngineKind.NUMPY])
def test_a_search_that_ends_within_a_level_has_shortest_runs_all_the_same(
    engine: EngineKind,
) -> None:
    """Some states that are known but were not looked into are one step further away than others."""
    definition = load("index-postgres", "ysql-early", SHIPPED)
    scope = scope_of(definition)
    whole = {v.name: v.run for v in check(definition, scope, engine=engine).verdicts}
    violated = set()
    for most in range(400, 4_000, 300):
        report = check(definition, scope, engine=engine, workers=1, limits=Limits(states=most))
        for found in report.verdicts:
            if found.outcome is Outcome.VIOLATED:
                assert found.run is not None
                shortest = whole[found.name]
                assert shortest is not None
                assert len(found.run.steps) == len(shortest.steps)
                violated.add(found.name)
    assert len(violated) > 1


@pytest.mark.parametrize("before", [signal.default_int_handler, signal.SIG_IGN])
def test_an_interrupt_keeps_what_was_found(before: Any) -> None:
    definition = load(str(MODELS / "tablet_barrier.py"))

    def interrupt(progress: Progress) -> None:
        if progress.depth == 5:
            signal.raise_signal(signal.SIGINT)

    inherited = signal.signal(signal.SIGINT, before)
    try:
        report = check(definition, scope_of(definition), progress=interrupt)
        assert signal.getsignal(signal.SIGINT) == before
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert report.note == "not exhausted: interrupted"
    assert 0 < report.states < 171_458
    assert report.outcome is Outcome.UNDECIDED


def test_a_graph_too_large_for_the_memory_is_not_made() -> None:
    definition = load(str(MODELS / "tablet_barrier.py"))
    scope = scope_of(definition, {"tablet": 3, "node": 3})
    found = check(definition, scope, limits=Limits(memory=40 << 20))
    assert found.exhausted
    after = [
        v
        for v, p in zip(found.verdicts, definition.properties, strict=False)
        if p.kind in (PropertyKind.REACHABLE, PropertyKind.LEADS_TO)
    ]
    assert after
    for one in after:
        assert (one.outcome, one.note) == (
            Outcome.UNDECIDED,
            "not decided: the memory limit of 40 MiB was reached",
        )
    assert any(v.outcome is Outcome.HOLDS for v in found.verdicts)


class Shaft(Entity, scope=5):
    """One of several lifts."""


class Lifts(Machine):
    """Something is wrong when all are at the top: in the last of a million states."""

    height = per(Shaft, number(0, 15, init=0))

    @action
    def rise(self, s: Term[Shaft]) -> None:
        """By one floor."""
        require(self.height[s] < 15, "it is not the top")
        self.height[s] = self.height[s] + 1

    @invariant
    def one_is_below(self) -> Bool:
        return some(self.height[s] < 15 for s in Shaft)

    @invariant
    def nobody_is_under_ground(self) -> Bool:
        return every(self.height[s] >= 0 for s in Shaft)


def test_a_violation_whose_run_takes_too_much_memory_is_reported_without_it() -> None:
    definition = define(Lifts)
    report = check(
        definition,
        scope_of(definition),
        engine=EngineKind.NATIVE,
        keep=False,
        limits=Limits(memory=6 << 20),
    )
    assert (report.exhausted, report.outcome) == (True, Outcome.VIOLATED)
    expected = {v.name: (v.outcome, v.note) for v in report.verdicts}
    note = "no run is shown: for the run to a violation: the memory limit of 6 MiB was reached"
    assert expected["one_is_below"] == (Outcome.VIOLATED, note)
    assert expected[NO_DEADLOCK] == (Outcome.VIOLATED, note)
    assert expected["nobody_is_under_ground"] == (Outcome.HOLDS, "holds in all 1,048,576 states")
    assert expected[IN_BOUNDS][0] is Outcome.HOLDS
