"""Goals that no permutation changes are decided on orbits as they are on states; others are told apart."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.checker.symmetry.by_hand import Compared, model_of
from tests.random_machines.definitions import RandomMachine, machines
from tests.thorough import examples

from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.goals import nearest_hopeless
from stagewright.checker.symmetry.permutations.goals import decided_on_orbits
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground import GroundProperty
from stagewright.spec.grounding.lowering import ground

MOST_STATES = 300


def hopeless_depth(found: Exploration, goal: GroundProperty) -> int | None:
    """How far the nearest state is from which the goal cannot be reached; None if there is none."""
    (reached,) = found.engine.state_conditions([goal.condition])(found.words)
    hopeless = nearest_hopeless(found.graph, reached, found.expanded)
    return None if hopeless is None else found.depth_of(hopeless)


@pytest.mark.parametrize(
    ("name", "goals"),
    [
        ("two_phase_commit.py", {"an_end": True}),
        ("tablet_barrier.py", {"all_done": True}),
        ("broken.py:Migration", {"back_to_rest": True}),
        ("turnstile.py", {"idle_again": True}),
        ("Hoping", {"primary_up": False}),
    ],
)
def test_goals_are_told_apart(name: str, goals: dict[str, bool]) -> None:
    compared = Compared(model_of(name))
    assert goals == {
        goal.property.name: decided_on_orbits(compared.model, compared.symmetry, goal)
        for goal in compared.model.reachable
    }
    for goal in compared.model.reachable:
        if goals[goal.property.name]:
            assert hopeless_depth(compared.reduced, goal) == hopeless_depth(compared.full, goal)


@settings(
    max_examples=examples(80),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(machine=machines())
def test_goals_of_random_machines_are_decided_alike(machine: RandomMachine) -> None:
    try:
        compared = Compared(ground(machine.definition, machine.scope))
    except ScopeError:
        assume(False)
    assume(compared.model.reachable and compared.symmetry.groups)
    assume(compared.full.states <= MOST_STATES)
    assume(compared.full.overflow is None)  # what lies beyond an overflow is not defined
    for goal in compared.model.reachable:
        if decided_on_orbits(compared.model, compared.symmetry, goal):
            assert hopeless_depth(compared.reduced, goal) == hopeless_depth(compared.full, goal)
