"""The bounded search finds what the reference interpreter finds, at the same depth."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewright.spec.verdict import Outcome, PropertyVerdict

Prove = Callable[..., dict[str, PropertyVerdict]]
Violations = Callable[[str], dict[str, int]]


@pytest.mark.parametrize("name", ["Handover", "HastyHandover", "TwoRings", "Pacing", "Mixture"])
def test_violations_are_found_at_the_depth_of_the_shortest_ones(
    name: str, verdicts: Prove, shortest_violations: Violations
) -> None:
    found = {
        v.name: len(v.run.steps)
        for v in verdicts(name, max_k=1, depth=8).values()
        if v.outcome is Outcome.VIOLATED and v.run is not None
    }
    assert found == shortest_violations(name)


def test_a_seeded_bug_is_found(verdicts: Prove) -> None:
    """The coordinator that does not wait for the others breaks both promises, the lag first."""
    found = verdicts("HastyHandover")
    lag, reads = found["lag_is_at_most_one"], found["reads_are_complete"]
    assert lag.outcome is reads.outcome is Outcome.VIOLATED
    assert lag.run is not None
    assert [s.label for s in lag.run.steps] == ["start", "stream_at_once"]
    assert reads.run is not None
    assert [s.action for s in reads.run.steps[:2]] == ["start", "stream_at_once"]
    assert list(reads.arguments) == ["n"]
    assert lag.note == "no shorter run violates it"


def test_a_bug_deeper_than_the_bound_is_not_called_absent(verdicts: Prove) -> None:
    reads = verdicts("HastyHandover", max_k=1, depth=3)["reads_are_complete"]
    assert reads.outcome is Outcome.UNDECIDED
    assert reads.note.startswith("no violation up to depth 3; not inductive up to k = 1")


def test_a_value_out_of_bounds_is_a_violation_where_it_would_be_assigned(verdicts: Prove) -> None:
    bounds = verdicts("Counting")["assigned values stay in bounds"]
    assert bounds.outcome is Outcome.VIOLATED
    assert bounds.run is not None
    assert bounds.run.states[-1]["value"] == 2
    assert len(bounds.run.steps) == 3
    assert "`grow` assigns 3 to value, outside of -1..2" in bounds.note


def test_a_deadlock_is_looked_for_only_if_asked(verdicts: Prove) -> None:
    assert "no deadlock" not in verdicts("Steps")
    deadlock = verdicts("Steps", deadlock=True)["no deadlock"]
    assert deadlock.outcome is Outcome.VIOLATED
    assert deadlock.run is not None
    assert [s.action for s in deadlock.run.steps] == ["finish", "finish"]
    by_name = verdicts("Steps", properties=["no deadlock"])
    assert {v.name: v.outcome for v in by_name.values()} == {"no deadlock": Outcome.VIOLATED}


def test_a_broken_step_is_the_last_one_of_the_run(verdicts: Prove) -> None:
    paces = verdicts("Pacing")["one_at_a_time"]
    assert paces.run is not None
    assert [s.action for s in paces.run.steps] == ["up", "up", "leap"]


def test_where_all_runs_end_the_search_is_a_proof(verdicts: Prove) -> None:
    proved = verdicts("ShortRuns", max_k=2)["never_five"]
    assert proved.outcome is Outcome.HOLDS
    assert proved.method == "bounded search"
    assert proved.note == "proved: no run has more than 2 steps"
    assert verdicts("ShortRuns", max_k=2, depth=2)["never_five"].outcome is Outcome.UNDECIDED
