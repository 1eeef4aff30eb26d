"""What becomes of a mutant: caught by which promise and how soon, or why it survives."""

from __future__ import annotations

import html
from pathlib import Path
from random import Random

import pytest
from tests.checker.mutation.machines import (
    Cautious,
    Crossing,
    Explained,
    Hasty,
    Light,
    Queue,
    Railway,
    evaluated,
    mutants_of,
    mutated,
)

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.claims import Claim
from stagewright.checker.mutation.evaluation import ASSIGNED_ONCE, Fate, counterexample
from stagewright.checker.mutation.original import original_at
from stagewright.checker.mutation.page import render_page
from stagewright.checker.mutation.report import MutationReport, hint
from stagewright.checker.mutation.run import Budget
from stagewright.spec import (
    action,
    equivalent_drop,
    equivalent_weakening,
    equivalents,
    require,
)
from stagewright.spec.define import define
from stagewright.spec.loading import find
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome

MOST = 24  # mutants of a model
MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.fixture(scope="module")
def crossing() -> MutationReport:
    return mutated(Crossing)


@pytest.fixture(scope="module")
def explained() -> MutationReport:
    return mutated(Explained)


@pytest.mark.parametrize(
    ("mutant", "by", "depth"),
    [
        ("drop / close / the crossing is empty: not crossing", "nobody_crosses_at_red", 5),
        (
            "weaken / enter / one waits, and none is before it: only waiting > 0",
            "cars_enter_one_by_one",
            5,
        ),
        ("swap / Light.amber.go is yes, not no", "cars_enter_one_by_one", 4),
        ("edge / light: green → red", "nobody_crosses_at_red", 4),
        ("lose / open / light becomes green", "the_light_turns_green", 0),
        ("drop / arrive / there is room: waiting < 2", "assigned values stay in bounds", 2),
    ],
)
def test_a_mutant_is_caught_by_the_promise_that_breaks_first(
    crossing: MutationReport, mutant: str, by: str, depth: int
) -> None:
    found = evaluated(crossing, mutant)
    assert found.fate is Fate.CAUGHT
    assert found.by == (by,)
    assert found.depth == depth
    assert len(found.steps) == depth


def test_all_promises_that_break_at_one_depth_are_named(crossing: MutationReport) -> None:
    found = evaluated(crossing, "drop / enter / cars may go: light.go")
    assert found.by == ("nobody_crosses_at_red", "cars_enter_one_by_one")
    assert crossing.catches["nobody_crosses_at_red"] >= 3


def test_a_goal_is_broken_by_a_run_with_a_loop(crossing: MutationReport) -> None:
    found = evaluated(crossing, "edge / light: red → amber")
    assert (found.by, found.loop) == (("the_light_turns_green",), 0)


def test_what_means_the_same_is_not_counted(crossing: MutationReport) -> None:
    assert evaluated(crossing, "lose / leave / crossing becomes no, always").fate is Fate.SAME
    numbers = crossing.summary()
    others = [f for f in crossing.findings if f.mutant.kind not in {Kind.TIGHTEN, Kind.REPLACE}]
    # Two: an action without budget never happens, and may as well be refused.
    assert sum(f.fate is Fate.SAME for f in others) == 3
    assert numbers.mutants == len(crossing.findings) - numbers.same
    assert numbers.mutants == numbers.caught + numbers.unexplained + numbers.unobserved
    kinds = [crossing.summary(kind) for kind in Kind]
    assert sum(kind.mutants for kind in kinds) == numbers.mutants


def test_a_change_that_no_reachable_step_shows_is_redundant() -> None:
    report = mutated(Cautious)
    found = evaluated(report, "drop / enter / it is not red: light is not red")
    assert found.fate is Fate.REDUNDANT
    (finding,) = [f for f in report.unexplained if f.evaluation is found]
    assert "never refuses alone" in hint(finding, report.originals)


def test_a_mutant_is_caught_if_one_of_several_scopes_shows_it(
    crossing: MutationReport, explained: MutationReport
) -> None:
    mutant = "lose / close / light becomes red"
    assert evaluated(crossing, mutant).fate is Fate.SURVIVED
    assert evaluated(explained, mutant).fate is Fate.CAUGHT
    assert evaluated(explained, mutant).scope == "failures=1"


def test_a_survivor_with_a_reason_is_explained(explained: MutationReport) -> None:
    ids = {f.mutant.id for f in explained.explained}
    assert "edge / light: amber → green" in ids
    assert any(i.startswith("lose / leave") for i in ids)
    assert not ids & {f.mutant.id for f in explained.unexplained}


def test_a_reason_for_what_is_caught_is_stale(explained: MutationReport) -> None:
    assert {r.text for r in explained.stale} == {
        "numbers are bounded",
        "it is only careful",
        "red is red",
    }
    texts = {Path(r.where.file).name for r in explained.stale}
    assert texts == {"machines.py"}


def test_a_reason_for_no_mutant_is_told(explained: MutationReport) -> None:
    assert [r.text for r in explained.unmatched] == ["there is such a step"]


class Guarded(Crossing):
    """One reason is needed by its first mutant, one by its second, and one is stale."""

    def _there_is_room(self) -> None:
        require(self.waiting < 2, "there is room")

    @action
    def arrive(self) -> None:
        """A car comes."""
        self._there_is_room()
        self.waiting = self.waiting + 1

    @action
    def turn(self) -> None:
        """A car turns into the road at a red light."""
        self._there_is_room()
        require(self.waiting < 1, "nobody waits")
        require((self.waiting < 1) & (self.light == Light.red), "at red, where nobody waits")
        self.waiting = self.waiting + 1

    harmless = equivalents(
        equivalent_drop(_there_is_room, "there is room", because="who turns looks himself"),
        equivalent_weakening(turn, "at red, where nobody waits", because="turning is allowed"),
        equivalent_drop(Crossing.enter, "cars may go", because="nobody looks"),
    )


def test_reasons_are_decided_by_no_more_mutants_than_it_takes() -> None:
    whole, some = mutated(Guarded), mutated(Guarded, reasons=True)
    assert some.claims == whole.claims
    assert {r.text: c for r, c in some.claims.items()} == {
        "who turns looks himself": Claim.NEEDED,
        "turning is allowed": Claim.NEEDED,
        "nobody looks": Claim.STALE,
    }
    assert [r.text for r in some.stale] == ["nobody looks"]
    fates = [(f.mutant.action, f.fate) for f in some.findings]
    assert fates[0] == ("arrive", Fate.CAUGHT)
    assert ("turn", Fate.REDUNDANT) in fates
    reasoned = [f for f in whole.findings if f.mutant.reasons]
    assert len(fates) < len(reasoned)
    assert mutated(Guarded, reasons=True, workers=2).claims == some.claims


class Watched(Railway):
    """A gate that says something of its crossing, which says nothing of that itself, and of a step that joins it."""

    harmless = equivalents(
        equivalent_drop(Crossing.arrive, "there is room", because="numbers are bounded"),
        equivalent_drop(Crossing.close, "the crossing is empty", because="nobody is slow"),
    )


def test_a_system_may_give_reasons_for_the_actions_of_its_parts() -> None:
    reasoned = [m for m in mutants_of(Watched) if m.reasons]
    assert {m.action for m in reasoned} == {"crossing.arrive", "shut_gate"}
    report = mutated(Watched, reasons=True)
    assert report.unmatched == ()
    assert {r.text for r in report.stale} == {"numbers are bounded", "nobody is slow"}


def test_a_reason_is_open_where_the_budget_ends() -> None:
    report = mutated(Guarded, reasons=True, budget=Budget(seconds=0))
    assert set(report.claims.values()) == {Claim.OPEN}
    assert report.stale == ()
    assert len(report.undecided) == len(report.findings) > 3


def test_a_part_of_the_mutants_says_nothing_of_reasons() -> None:
    some = [m for m in mutants_of(Explained) if m.kind is Kind.EDGE]
    report = mutated(Explained, mutants=some)
    assert report.stale == ()
    assert report.unmatched == ()


def test_processes_find_what_one_finds(explained: MutationReport) -> None:
    parallel = mutated(Explained, workers=2)
    for one, other in zip(explained.findings, parallel.findings, strict=True):
        assert one.mutant.id == other.mutant.id
        alone, beside = one.evaluation, other.evaluation
        assert (alone.fate, alone.by, alone.steps) == (beside.fate, beside.by, beside.steps)
        assert alone.states == beside.states


def test_the_budget_leaves_mutants_undecided() -> None:
    few = mutated(Crossing, budget=Budget(states=3))
    assert few.undecided
    assert all("3 states" in f.evaluation.note for f in few.undecided)
    late = mutated(Crossing, budget=Budget(seconds=1e-9))
    assert len(late.undecided) == len(late.findings)


def test_a_promise_that_the_original_breaks_evaluates_nothing() -> None:
    definition = define(Hasty)
    original = original_at(definition, scope_of(definition), Limits())
    assert original.broken == ("nobody_crosses_at_red",)
    report = mutated(Hasty)
    assert all("nobody_crosses_at_red" not in f.evaluation.by for f in report.findings)


def test_a_step_that_would_assign_a_place_twice_is_refused_by_name() -> None:
    report = mutated(Queue)
    found = evaluated(report, "drop / change / they are two cars: car ≠ other")
    assert found.fate is Fate.CAUGHT
    assert found.by == (ASSIGNED_ONCE,)
    assert found.note == "it is refused: `change` assigns place[car0] twice"
    assert report.catches[ASSIGNED_ONCE] == 3  # also where one car is named for the other
    assert report.undecided == ()
    original = report.originals[0]
    (mutant,) = [f.mutant for f in report.findings if f.evaluation is found]
    assert counterexample(mutant, original, Limits()) is None
    assert found.note in html.unescape(render_page(report, str))


def test_the_run_of_a_caught_mutant_is_to_be_had() -> None:
    definition = define(Crossing)
    original = original_at(definition, scope_of(definition), Limits())
    (mutant,) = [m for m in mutants_of(Crossing) if m.id == "edge / light: green → red"]
    found = counterexample(mutant, original, Limits())
    assert found is not None
    changed, verdict = found
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.run is not None
    assert len(verdict.run.steps) == 4
    assert len(changed.actions) == len(definition.actions) + 1


@pytest.mark.parametrize(
    ("model", "profile"), [("ewd840.py", "three"), ("lease.py", ""), ("two_phase_commit.py", "")]
)
def test_mutants_of_a_known_machine_are_all_checked(model: str, profile: str) -> None:
    machine = find(str(MODELS / model), {})
    mutants = mutants_of(machine, profile)
    report = mutated(machine, profile, mutants=Random(1).sample(mutants, min(MOST, len(mutants))))
    numbers = report.summary()
    assert numbers.undecided == 0
    assert numbers.caught >= numbers.mutants // 3
    drops = [f for f in report.findings if f.mutant.kind is Kind.DROP]
    assert any(f.evaluation.fate is Fate.CAUGHT for f in drops)


def test_a_barrier_that_does_not_wait_for_one_breaks_the_promise_that_it_is_for() -> None:
    machine = find(str(MODELS / "two_phase_commit.py"), {})
    (mutant,) = [m for m in mutants_of(machine) if m.kind is Kind.SKIP]
    report = mutated(machine, mutants=[mutant])
    (found,) = report.findings
    assert mutant.action == "commit"
    assert found.evaluation.by == ("consistent",)


def test_the_page_shows_every_mutant_once_and_hides_nothing(explained: MutationReport) -> None:
    page = render_page(explained, lambda file: Path(file).name)
    assert "{{" not in page
    assert "<script" not in page
    survivors = (*explained.unexplained, *explained.explained, *explained.tightened)
    shown = explained.summary().mutants - len(survivors) + len(explained.grouped(survivors))
    assert page.count('<span class="kind">') == shown
    for reason in (*explained.stale, *explained.unmatched):
        assert reason.text in page


def test_compiled_code_evaluates_as_numpy_does(
    explained: MutationReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stagewright.checker.mutation.original._NATIVE_FROM", 0)
    some = [f.mutant for f in explained.findings[2:5]]
    compiled = mutated(Explained, mutants=some)
    for one, other in zip(compiled.findings, explained.findings[2:5], strict=True):
        assert one.evaluation.fate is other.evaluation.fate
        assert (one.evaluation.by, one.evaluation.steps) == (
            other.evaluation.by,
            other.evaluation.steps,
        )
