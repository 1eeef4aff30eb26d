"""k-induction proves what is inductive, shows why the rest is not, and never calls more than that proved."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewright.checker.prove import prove
from stagewright.checker.symbolic.claims import HANDLES
from stagewright.checker.symbolic.limits import Limits, Progress
from stagewright.spec import scope_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.errors import InputError
from stagewright.spec.verdict import Outcome, PropertyVerdict

Load = Callable[[str], Definition]
Prove = Callable[..., dict[str, PropertyVerdict]]
Violations = Callable[[str], dict[str, int]]
NOT_REACHABLE = "the run shown starts in a state that is not reachable as far as is known"


def test_an_inductive_invariant_is_proved(verdicts: Prove) -> None:
    lag = verdicts("Handover")["lag_is_at_most_one"]
    assert (lag.outcome, lag.method, lag.note) == (
        Outcome.HOLDS,
        "k-induction",
        "proved by 1-induction",
    )
    assert lag.run is None


def test_a_true_invariant_that_is_not_inductive_stays_undecided_with_a_run(verdicts: Prove) -> None:
    five = verdicts("TwoRings", max_k=4)["never_five"]
    assert five.outcome is Outcome.UNDECIDED
    assert five.note.startswith("no violation up to depth 20; not inductive up to k = 4")
    assert five.note.endswith(NOT_REACHABLE)
    assert five.run is not None
    spots = [state["spot"] for state in five.run.states]
    assert len(spots) == 5
    assert spots[-1] == 5
    assert 5 not in spots[:-1]


def test_simple_paths_prove_it(verdicts: Prove) -> None:
    """Only 3 and 4 lie before 5, so two states that differ are the most that can be in a row."""
    five = verdicts("TwoRings", simple_paths=True)["never_five"]
    assert five.outcome is Outcome.HOLDS
    assert five.note == "proved by 3-induction over simple paths"


def test_the_undecided_verdict_says_that_simple_paths_would_prove_it(verdicts: Prove) -> None:
    assert "--simple-paths" in verdicts("TwoRings", max_k=3)["never_five"].note
    assert "--simple-paths" not in verdicts("TwoRings", max_k=2)["never_five"].note


def test_a_stated_strengthening_proves_it_and_is_named(verdicts: Prove) -> None:
    found = verdicts("TwoRingsStrengthened")
    assert found["stays_home"].note == "proved by 1-induction"
    assert found["never_five"].note == "proved by 1-induction (with stays_home)"


def test_invariants_that_need_each_other_are_proved_together(verdicts: Prove) -> None:
    found = verdicts("Exchange")
    assert found["left_is_positive"].note == "proved by 1-induction (with right_is_positive)"
    assert found["right_is_positive"].note == "proved by 1-induction (with left_is_positive)"


def test_one_of_them_by_itself_needs_a_larger_k(verdicts: Prove) -> None:
    alone = verdicts("Exchange", properties=["left_is_positive"])
    assert {name: v.note for name, v in alone.items()} == {
        "left_is_positive": "proved by 2-induction"
    }


def test_step_properties_are_proved(verdicts: Prove) -> None:
    assert verdicts("Counting")["never_falls"].note == "proved by 1-induction"
    assert verdicts("Pacing")["moves"].note == "proved by 1-induction"


def test_what_no_step_writes_is_known_to_keep_its_value(verdicts: Prove) -> None:
    """`limit` is a constant: without that the promise about it would not be inductive."""
    found = verdicts("Steps")
    assert found["limit_stays"].outcome is Outcome.HOLDS
    assert found["no_more_than_the_limit"].outcome is Outcome.HOLDS


@pytest.mark.parametrize(
    "name",
    [
        "Handover",
        "HastyHandover",
        "TwoRings",
        "ShortRuns",
        "Exchange",
        "Pacing",
        "Steps",
        "Mixture",
    ],
)
@pytest.mark.parametrize("simple", [False, True])
def test_nothing_that_is_broken_is_proved(
    name: str, simple: bool, verdicts: Prove, shortest_violations: Violations
) -> None:
    broken = shortest_violations(name)
    for verdict in verdicts(name, max_k=4, depth=3, simple_paths=simple).values():
        if verdict.outcome is Outcome.HOLDS:
            assert verdict.name not in broken
        elif verdict.outcome is Outcome.VIOLATED:
            assert verdict.name in broken


@pytest.mark.parametrize("limits", [Limits(rlimit=1), Limits(seconds=1e-6)])
def test_a_limit_leaves_things_undecided_and_is_named(limits: Limits, verdicts: Prove) -> None:
    for verdict in verdicts("Mixture", limits=limits).values():
        assert verdict.outcome is Outcome.UNDECIDED
        assert verdict.run is None
        assert "limit of work" in verdict.note or "time ran out" in verdict.note
        assert "proved" not in verdict.note


def test_an_interruption_keeps_what_was_found(machine: Load) -> None:
    definition = machine("Handover")

    def interrupt(progress: Progress) -> None:
        if progress.depth == 2:
            raise KeyboardInterrupt

    report = prove(definition, scope_of(definition), progress=interrupt)
    found = {v.name: v for v in report.verdicts}
    assert found["lag_is_at_most_one"].outcome is Outcome.HOLDS
    reads = found["reads_are_complete"]
    assert reads.outcome is Outcome.UNDECIDED
    assert reads.note == "no violation up to depth 1; not inductive up to k = 2; interrupted"
    assert report.note == "interrupted"
    assert not report.exhausted


def test_progress_counts_what_is_decided(machine: Load) -> None:
    definition, reports = machine("HastyHandover"), list[Progress]()
    prove(definition, scope_of(definition), progress=reports.append)
    assert [p.depth for p in reports] == list(range(len(reports)))
    assert [p.k for p in reports] == [p.depth + 1 for p in reports]
    assert all(p.proved + p.violated + p.undecided == 3 for p in reports)
    assert reports[-1].violated == 1


def test_the_same_proof_gives_the_same_report(verdicts: Prove) -> None:
    def plain(found: dict[str, PropertyVerdict]) -> list[object]:
        return [(v.name, v.outcome, v.note, v.run, v.arguments) for v in found.values()]

    assert plain(verdicts("Mixture", max_k=3)) == plain(verdicts("Mixture", max_k=3))


def test_kinds_that_are_not_handled_are_left_to_check(machine: Load) -> None:
    definition = machine("Steps")
    report = prove(definition, scope_of(definition))
    assert {PropertyKind.INVARIANT, PropertyKind.STEP, PropertyKind.ACCEPTS} == HANDLES
    assert report.outcome is Outcome.HOLDS
    assert report.note == "left to `stagewright check`: all_done, each_is_done"
    asked = prove(definition, scope_of(definition), properties=["all_done", "limit_stays"])
    assert asked.outcome is Outcome.UNDECIDED
    assert [(v.name, v.outcome) for v in asked.verdicts] == [
        ("limit_stays", Outcome.HOLDS),
        ("all_done", Outcome.UNDECIDED),
    ]
    assert "use `stagewright check`" in asked.verdicts[1].note


def test_an_unknown_promise_and_an_empty_search_are_refused(machine: Load) -> None:
    definition = machine("Steps")
    with pytest.raises(InputError, match="did you mean `limit_stays`"):
        prove(definition, scope_of(definition), properties=["limit_stay"])
    with pytest.raises(InputError, match="leave nothing to prove"):
        prove(definition, scope_of(definition), max_k=0)
