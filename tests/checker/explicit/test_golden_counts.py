"""The search finds as many states as TLC and Stateright do on the same models."""

from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.spec import scope_of
from stagewright.spec.loading import load
from stagewright.spec.verdict import Outcome

MODELS = Path(__file__).resolve().parents[2] / "models"


@pytest.mark.parametrize(
    ("model", "profile", "sizes", "states", "depth"),
    [
        ("two_phase_commit", "", {"manager": 3}, 288, 10),
        ("two_phase_commit", "", {"manager": 5}, 8_832, 16),
        ("two_phase_commit", "", {"manager": 7}, 296_448, 22),
        ("ewd840", "three", {}, 302, 8),
        ("ewd840", "six", {}, 36_990, 17),
        ("tablet_barrier", "", {"tablet": 3, "node": 3}, 171_458, 35),
    ],
)
@pytest.mark.parametrize("engine", [EngineKind.NUMPY, EngineKind.NATIVE])
def test_distinct_states_are_as_many_as_other_checkers_find(
    model: str, profile: str, sizes: dict[str, int], states: int, depth: int, engine: EngineKind
) -> None:
    definition = load(str(MODELS / f"{model}.py"), profile)
    report = check(definition, scope_of(definition, sizes), engine=engine)
    assert (report.states, report.depth) == (states, depth)
    assert report.exhausted
    assert {v.name: v.outcome for v in report.verdicts if v.outcome is not Outcome.HOLDS} == {}


@pytest.mark.parametrize(
    ("model", "sizes", "steps"),
    [
        ("two_phase_commit", {"manager": 7}, 2_744_705),
        ("tablet_barrier", {"tablet": 3, "node": 3}, 1_263_210),
    ],
)
def test_every_enabled_ground_step_of_every_state_counts_once(
    model: str, sizes: dict[str, int], steps: int
) -> None:
    definition = load(str(MODELS / f"{model}.py"))
    report = check(definition, scope_of(definition, sizes), properties=["no deadlock"])
    assert report.transitions == steps
    assert report.coverage is not None
    assert sum(report.coverage.fired.values()) == steps
