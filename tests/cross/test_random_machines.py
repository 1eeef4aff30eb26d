"""On random machines every backend finds what the reference interpreter finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.cross.ways import ON_RANDOM_MACHINES, is_of_the_whole_graph, step_of
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored
from tests.thorough import THOROUGH

from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import NO_DEADLOCK
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground_eval import enabled, evaluate, take
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.verdict import Outcome

# of which some repeat: see `test_enough_machines_of_all_kinds_were_met`
EXAMPLES = 1200 if THOROUGH else 200
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

# One process: what it meets is explored once.
pytestmark = pytest.mark.xdist_group("random machines")


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=PATIENT, phases=[Phase.generate])
@given(machine=machines())
def test_every_backend_agrees_with_the_interpreter(met: Any, machine: RandomMachine) -> None:
    def look(found: Explored) -> None:
        if not found.initial:
            with pytest.raises(ScopeError, match="no state satisfies its initial conditions"):
                list(ground(machine.definition, machine.scope).initial)
            return
        agree_on_the_ground_form(found)
        for agree in ON_RANDOM_MACHINES.values():
            agree(found)
        count_outcomes(found, met)

    met.meet(machine, look)


def agree_on_the_ground_form(found: Explored) -> None:
    model = ground(found.machine.definition, found.machine.scope)
    assert {model.encode(s) for s in found.initial} == set(model.initial)
    assert len(model.initial) == len(set(model.initial))
    edges, overflows = set(), set()
    for state in found.states:
        cells = model.encode(state)
        assert model.decode(cells) == state
        for step in model.steps:
            if enabled(step, cells):
                if evaluate(step.overflows, cells):
                    overflows.add((state, step_of(step)))
                else:
                    edges.add((state, step_of(step), model.decode(take(step, cells))))
    assert edges == set(found.edges)
    assert overflows == found.overflows


def count_outcomes(found: Explored, met: Any) -> None:
    met.outcomes[NO_DEADLOCK, found.no_deadlock] += 1
    met.outcomes[IN_BOUNDS, Outcome.VIOLATED if found.overflows else Outcome.HOLDS] += 1
    for prop in found.machine.definition.properties:
        if not found.overflows or not is_of_the_whole_graph(prop):
            met.outcomes[prop.kind.value, found.verdict(prop)] += 1
