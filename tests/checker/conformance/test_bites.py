"""Conformance tests bite: a right implementation passes, and each seeded fault is found, by the suites named.

The suites play against the hand-written tablet (`hand_written.py`) with the faults of `faulty.py`.

| fault                | tour    | refusals | hypothesis |
| -------------------- | ------- | -------- | ---------- |
| WrongTarget          | differs | differs  | found      |
| SkippedBarrier       | -       | accepted | found      |
| SessionNotOpened     | differs | differs  | found      |
| SessionLeftOpen      | differs | differs  | found      |
| AcceptsSecondStart   | -       | accepted | found      |
| RefusesDrainedRepair | refused | -        | found      |
| MiscountsExcluded    | refused | -        | found      |
| LosesExclusion       | differs | differs  | found      |
| ChangedByRefusal     | -       | changed  | found      |
| KnowledgeSurvives    | differs | differs  | found      |
| KindNotCleared       | differs | differs  | found      |
| OffByOne             | differs | differs  | found      |
| ForgetsToClear       | differs | differs  | found      |
| Crashes              | failed  | failed   | found      |

A tour takes only steps that may happen, so it cannot see what an implementation accepts too much; the
refusals go everywhere, but need not take every edge. Both tell only control states apart here:
`MiscountsExcluded` depends on which replicas are excluded, and the refusals find it in all states.
`ForgetsToClear` remembers an earlier migration:
the shortest way to where it fails does not fail. Hypothesis's first failure may be another one of the
same fault with another seed, so that the table says only that it is found.
"""

from __future__ import annotations

from functools import cache

import pytest
from tests.checker.conformance.faulty import FAULTS
from tests.checker.conformance.hand_written import HandWrittenTablet
from tests.thorough import by_turns, some_of

from stagewright.checker.conformance import Fault
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import SuiteResult, play
from stagewright.checker.conformance.space import Cover, Space, explored
from stagewright.checker.conformance.stateful import run_random
from stagewright.checker.conformance.suites import Suite, refusal_suite, transition_tour
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import define, scope_of
from stagewright.spec.values import State, plain
from stagewright.spec.verdict import Step

DEFINITION = define(TabletMigration, "scylla-2026.2")
SCOPE = scope_of(DEFINITION)
SUITES = ("tour", "refusals", "hypothesis")
EXAMPLES = 2_000  # at most: a failure ends the run
Asked = tuple[type[HandWrittenTablet], str]
ASKED: list[Asked] = [(fault, name) for fault in FAULTS for name in SUITES]
NAMES = [fault.__name__ for fault in FAULTS]


@cache
def space() -> Space:
    return explored(DEFINITION, SCOPE)


@cache
def oracle() -> Oracle:
    return Oracle(DEFINITION, SCOPE)


@cache
def suite(name: str, cover: Cover) -> Suite:
    plan = {"tour": transition_tour, "refusals": refusal_suite}[name]
    return plan(DEFINITION, SCOPE, cover=cover, space=space())


def result_of(
    implementation: type[HandWrittenTablet], name: str, examples: int = EXAMPLES
) -> SuiteResult:
    if name == "hypothesis":
        return run_random(
            DEFINITION,
            SCOPE,
            implementation,
            seed=6,
            examples=examples,
            steps=50,
            way_to=space().way_to,
        )
    return play(oracle(), implementation, suite(name, Cover.CONTROL), way_to=space().way_to)


def table() -> dict[str, dict[str, str]]:
    """What the docstring of this file says: the fault found, by implementation and suite."""
    rows = [line for line in (__doc__ or "").splitlines() if line.startswith("| ")][2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {name: dict(zip(SUITES, found, strict=True)) for name, *found in cells}


def found_soon(case: Asked) -> bool:
    """Random runs look for some faults only: for `MiscountsExcluded` they need twenty seconds."""
    fault, name = case
    return name != "hypothesis" or fault in FAULTS[::4]


def test_table_has_a_row_for_each_fault() -> None:
    assert list(table()) == NAMES


@pytest.mark.parametrize(
    ("fault", "name"),
    by_turns(some_of(ASKED, quick=found_soon)),
    ids=lambda c: c if isinstance(c, str) else c.__name__,
)
def test_fault_is_found_by_the_suites_of_the_table(
    fault: type[HandWrittenTablet], name: str
) -> None:
    expected = table()[fault.__name__][name]
    failure = result_of(fault, name).failure
    if expected == "-":
        assert failure is None
    else:
        assert failure is not None
        assert expected in ("found", failure.fault.name.lower())


@pytest.mark.parametrize("name", SUITES)
def test_right_implementation_passes(name: str) -> None:
    result = result_of(HandWrittenTablet, name, examples=50)
    assert result.failure is None
    assert result.covered == result.total
    assert result.exercised.steps > 1_000


@pytest.mark.parametrize("name", some_of(["tour", "refusals"]))
def test_right_implementation_passes_in_every_state(name: str) -> None:
    result = play(oracle(), HandWrittenTablet, suite(name, Cover.STATES))
    assert result.failure is None
    assert result.total is not None
    assert result.covered == result.total > 5_000


def test_what_control_states_hide_is_found_in_all_states() -> None:
    (fault,) = [fault for fault in FAULTS if fault.__name__ == "MiscountsExcluded"]
    assert play(oracle(), fault, suite("refusals", Cover.CONTROL)).failure is None
    assert play(oracle(), fault, suite("refusals", Cover.STATES)).failure is not None


def test_every_action_and_every_requirement_is_exercised() -> None:
    tour, refusals = result_of(HandWrittenTablet, "tour"), result_of(HandWrittenTablet, "refusals")
    assert {a.name for a in DEFINITION.actions} == set(tour.exercised.fired)
    written = {(a.name, r.name) for a in DEFINITION.actions for r in a.requirements}
    assert set(refusals.exercised.refused) == written


class OnlyItsStage(HandWrittenTablet):
    """Of this tablet only the stage can be seen."""

    def observe(self) -> dict[str, object]:
        return {"stage": super().observe()["stage"]}


def test_hidden_fault_is_found_by_what_it_does_later() -> None:
    class SurvivesUnseen(OnlyItsStage):
        def on_fail_over(self) -> None:
            """Nothing is lost."""

    failure = result_of(SurvivesUnseen, "refusals").failure
    assert failure is not None
    assert failure.fault in (Fault.ACCEPTED, Fault.REFUSED)
    assert "fail_over" in [move.step.action for move in failure.moves]


def test_story_says_what_happened_and_which_requirement_should_have_refused() -> None:
    (changed,) = [fault for fault in FAULTS if fault.__name__ == "ChangedByRefusal"]
    failure = result_of(changed, "refusals").failure
    assert failure is not None
    story = failure.story().splitlines()
    assert story[0] == (
        "TabletMigration (scylla-2026.2): in step 5, `start_operation`, "
        "the implementation is changed by what it refuses"
    )
    assert story[2:4] == [
        "  initially  stage none, kind none, session no, excluded {}, unwanted no, barrier none,",
        "             operation none",
    ]
    assert story[4] == (
        "    1  start(migration)          "
        "stage: none → allow_write_both_read_old, kind: none → migration"
    )
    assert story[9].split() == ["5", "start_operation", "must", "be", "refused"]
    assert "barrier done before the target is cleaned up" in story[12]
    assert story[13] == "  operation: expected none, observed running"


def test_failure_of_a_tour_is_reported_by_the_shortest_way() -> None:
    (fault,) = [fault for fault in FAULTS if fault.__name__ == "SessionNotOpened"]
    failure = result_of(fault, "tour").failure
    assert failure is not None
    assert [repr(move) for move in failure.moves] == [
        "start(migration)",
        "pass_barrier",
        "write_both",
    ]


def test_fault_that_remembers_is_reported_with_what_it_remembers() -> None:
    (fault,) = [fault for fault in FAULTS if fault.__name__ == "ForgetsToClear"]
    failure = result_of(fault, "tour").failure
    assert failure is not None
    assert [m.step.action for m in failure.moves].count("start") == 2
    assert len(failure.moves) <= 20


class DefinitionRun:
    """The definition itself as an implementation: it takes what is enabled, by the interpreter."""

    def __init__(self) -> None:
        self.state: State = oracle().initial_states()[0]

    def reset(self, initial: State) -> None:
        self.state = initial

    def do(self, step: Step) -> None:
        self.state = oracle()._interpreter.take(step, self.state)

    def observe(self) -> dict[str, object]:
        return {name: plain(value) for name, value in self.state.items()}


def test_definition_conforms_to_itself() -> None:
    result = play(oracle(), DefinitionRun, suite("refusals", Cover.CONTROL))
    assert result.failure is None
    assert "budget.failures" in result.exercised.observed
