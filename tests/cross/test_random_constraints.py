"""On random machines with a constraint every backend finds what the reference interpreter finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.random_machines.definitions import RandomMachine, bounded_machines
from tests.random_machines.explored import Explored, TooLargeError

from stagewright.checker.check import check
from stagewright.checker.explicit.engines import EngineKind
from stagewright.checker.symbolic.relation import StepRelation
from stagewright.checker.verdicts import IN_BOUNDS, NO_DEADLOCK
from stagewright.spec.definition import PropertyKind
from stagewright.spec.lowering import ground
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report, Step

EXAMPLES = 300
MOST_STATES = 120
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


@pytest.fixture(scope="module")
def met() -> Counter[object]:
    """What came of the promises, and how many machines had states beyond."""
    return Counter()


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=PATIENT, phases=[Phase.generate])
@given(machine=bounded_machines())
def test_every_backend_bounds_alike(met: Counter[object], machine: RandomMachine) -> None:
    try:
        found = Explored(machine, MOST_STATES)
    except TooLargeError:
        return
    if not found.initial:
        return
    met["bounded"] += bool(found.beyond) and found.beyond != found.states
    for engine, symmetry in (
        (EngineKind.NATIVE, False),
        (EngineKind.NUMPY, False),
        (EngineKind.NATIVE, True),
    ):
        report = check(machine.definition, machine.scope, engine=engine, symmetry=symmetry)
        agree(found, report, met)
    model = ground(machine.definition, machine.scope)
    index = {Step(s.action.name, FrozenMap(dict(s.arguments))): s.index for s in model.steps}
    edges = [(model.encode(s), index[a], model.encode(t)) for s, a, t in found.edges]
    states = [model.encode(s) for s in found.states]
    assert StepRelation(model).difference(states, edges) is None


def agree(found: Explored, report: Report, met: Counter[object]) -> None:
    assert report.exhausted
    if report.reduction is None or not report.reduction.used:
        assert report.states == len(found.states - found.beyond)
        assert report.transitions == len(found.edges)
        assert report.depth == depth_of(found)
    elif report.reduction.states is not None:
        assert report.reduction.states == len(found.states - found.beyond)
    verdicts = {v.name: v.outcome for v in report.verdicts}
    assert verdicts[NO_DEADLOCK] is found.no_deadlock
    assert (verdicts[IN_BOUNDS] is Outcome.VIOLATED) == bool(found.overflows)
    for prop in found.machine.definition.properties:
        if found.overflows and prop.kind in {PropertyKind.REACHABLE, PropertyKind.LEADS_TO}:
            continue  # what lies beyond an overflow is not defined
        assert verdicts[prop.name] is found.verdict(prop), prop.name
        met[prop.kind, verdicts[prop.name]] += bool(found.beyond)


def depth_of(found: Explored) -> int:
    """How far from the initial states a state within is, at the most."""
    depths = dict.fromkeys(found.initial, 0)
    todo = list(found.initial)
    for state in todo:
        for after in (t for s, _, t in found.edges if s == state):
            if after not in depths:
                depths[after] = depths[state] + 1
                todo.append(after)
    return max((d for s, d in depths.items() if s not in found.beyond), default=0)


@pytest.mark.slow
@pytest.mark.thorough
def test_bounds_of_all_kinds_were_met(met: Counter[object]) -> None:
    if not met:
        pytest.skip("the other test did not run in this process")
    assert met["bounded"] > EXAMPLES / 20
    for kind in (PropertyKind.REACHABLE, PropertyKind.LEADS_TO):
        assert all(met[kind, outcome] for outcome in Outcome), met


@settings(max_examples=5, suppress_health_check=PATIENT)
@given(machine=bounded_machines())
def test_a_constraint_changes_the_fingerprint(machine: RandomMachine) -> None:
    free = replace(machine.definition, constraints=())
    assert free.fingerprint() != machine.definition.fingerprint()
