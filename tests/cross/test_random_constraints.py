"""On random machines with a constraint every backend finds what the reference interpreter finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.random_machines.definitions import RandomMachine, bounded_machines
from tests.random_machines.explored import Explored, TooLargeError

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.symbolic.relation import StepRelation
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import NO_DEADLOCK, PropertyKind
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report, Step

EXAMPLES = 60
MOST_STATES = 80
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
    depth, expected = depth_of(found), verdicts_of(found)
    met.update((kind_of(found, name), o) for name, o in expected.items() if found.beyond)
    for engine, symmetry in (
        (EngineKind.NATIVE, False),
        (EngineKind.NUMPY, False),
        (EngineKind.NATIVE, True),
    ):
        report = check(machine.definition, machine.scope, engine=engine, symmetry=symmetry)
        agree(found, report, depth, expected)
    model = ground(machine.definition, machine.scope)
    index = {Step(s.action.name, FrozenMap(dict(s.arguments))): s.index for s in model.steps}
    edges = [(model.encode(s), index[a], model.encode(t)) for s, a, t in found.edges]
    states = [model.encode(s) for s in found.states]
    assert StepRelation(model).difference(states, edges) is None


def agree(found: Explored, report: Report, depth: int, expected: Mapping[str, Outcome]) -> None:
    assert report.exhausted
    if report.reduction is None or not report.reduction.used:
        assert report.states == len(found.states - found.beyond)
        assert report.transitions == len(found.edges)
        assert report.depth == depth
    elif report.reduction.states is not None:
        assert report.reduction.states == len(found.states - found.beyond)
    verdicts = {v.name: v.outcome for v in report.verdicts}
    assert verdicts[NO_DEADLOCK] is found.no_deadlock
    assert (verdicts[IN_BOUNDS] is Outcome.VIOLATED) == bool(found.overflows)
    for name, outcome in expected.items():
        assert verdicts[name] is outcome, name


def verdicts_of(found: Explored) -> dict[str, Outcome]:
    """What the interpreter says of the promises; not of those that hang on what lies beyond an overflow."""
    return {
        p.name: found.verdict(p)
        for p in found.machine.definition.properties
        if not (found.overflows and (p.kind is PropertyKind.REACHABLE or p.kind.of_fair_runs))
    }


def kind_of(found: Explored, name: str) -> PropertyKind:
    return next(p.kind for p in found.machine.definition.properties if p.name == name)


def depth_of(found: Explored) -> int:
    """How far from the initial states a state within is, at the most."""
    depths = dict.fromkeys(found.initial, 0)
    todo = list(found.initial)
    for state in todo:
        for after in found.after.get(state, ()):
            if after not in depths:
                depths[after] = depths[state] + 1
                todo.append(after)
    return max((d for s, d in depths.items() if s not in found.beyond), default=0)


@pytest.mark.slow
def test_bounds_of_all_kinds_were_met(met: Counter[object]) -> None:
    if not met:
        pytest.skip("the other test did not run in this process")
    assert met["bounded"] >= EXAMPLES / 20
    kinds = (PropertyKind.REACHABLE, PropertyKind.LEADS_TO, PropertyKind.EVENTUALLY)
    assert all(any(met[kind, outcome] for kind in kinds) for outcome in Outcome), met


@settings(max_examples=5, suppress_health_check=PATIENT)
@given(machine=bounded_machines())
def test_a_constraint_changes_the_fingerprint(machine: RandomMachine) -> None:
    free = replace(machine.definition, constraints=())
    assert free.fingerprint() != machine.definition.fingerprint()
