"""On random machines every backend finds what the reference interpreter finds."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored
from tests.thorough import THOROUGH

from stagewright.checker.check import check
from stagewright.checker.symbolic.relation import StepRelation
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.impl.runtime import Instance, Program
from stagewright.spec.definition import NO_DEADLOCK, PropertyKind
from stagewright.spec.errors import DomainError, RefusedError, ScopeError
from stagewright.spec.grounding.ground import GroundModel, GroundStep
from stagewright.spec.grounding.ground_eval import enabled, evaluate, take
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Step

EXAMPLES = (
    1200 if THOROUGH else 200
)  # of which some repeat: see `test_enough_machines_of_all_kinds_were_met`
RUNTIME_STATES = 6
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]

# One process: what it meets is explored once.
pytestmark = pytest.mark.xdist_group("random machines")


def step_of(step: GroundStep) -> Step:
    return Step(step.action.name, FrozenMap(dict(step.arguments)))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, suppress_health_check=PATIENT, phases=[Phase.generate])
@given(machine=machines())
def test_every_backend_agrees_with_the_interpreter(met: Any, machine: RandomMachine) -> None:
    def look(found: Explored) -> None:
        if not found.initial:
            with pytest.raises(ScopeError, match="no state satisfies its initial conditions"):
                list(ground(machine.definition, machine.scope).initial)
            return
        model = ground(machine.definition, machine.scope)
        agree_on_the_ground_form(found, model)
        agree_on_the_check(found, met)
        agree_on_the_relation(found, model)
        agree_on_the_runtime(found)

    met.meet(machine, look)


def agree_on_the_ground_form(found: Explored, model: GroundModel) -> None:
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


def agree_on_the_check(found: Explored, met: Any) -> None:
    report = check(found.machine.definition, found.machine.scope)
    assert report.exhausted
    assert report.states == len(found.states)
    assert report.transitions == len(found.edges)
    verdicts = {v.name: v.outcome for v in report.verdicts}
    assert verdicts[NO_DEADLOCK] is found.no_deadlock
    assert (verdicts[IN_BOUNDS] is Outcome.VIOLATED) == bool(found.overflows)
    for prop in found.machine.definition.properties:
        afterwards = prop.kind is PropertyKind.REACHABLE or prop.kind.of_fair_runs
        if found.overflows and afterwards:
            continue  # what lies beyond an overflow is not defined
        assert verdicts[prop.name] is found.verdict(prop), prop.name
        met.outcomes[prop.kind.value, verdicts[prop.name]] += 1
    met.outcomes[NO_DEADLOCK, verdicts[NO_DEADLOCK]] += 1
    met.outcomes[IN_BOUNDS, verdicts[IN_BOUNDS]] += 1


def agree_on_the_relation(found: Explored, model: GroundModel) -> None:
    index = {step_of(s): s.index for s in model.steps}
    edges = [(model.encode(s), index[a], model.encode(t)) for s, a, t in found.edges]
    states = [model.encode(s) for s in found.states]
    assert StepRelation(model).difference(states, edges) is None


def agree_on_the_runtime(found: Explored) -> None:
    program = Program(found.machine.definition, found.machine.scope)
    after = {(s, a): t for s, a, t in found.edges}
    some = sorted(found.states, key=repr)
    for state in Random(0).sample(some, min(RUNTIME_STATES, len(some))):
        assert set(Instance(program, state).enabled()) == set(found.enabled[state])
        for step in found.steps:
            instance = Instance(program, state)
            failed = found.interpreter.failed_requirements(step, state)
            assert instance.refusals(step) == tuple(r.name for r in failed)
            if failed:
                with pytest.raises(RefusedError) as refused:
                    instance.fire(step)
                assert refused.value.requirements == tuple(r.name for r in failed)
            elif (state, step) in found.overflows:
                with pytest.raises(DomainError):
                    instance.fire(step)
            else:
                instance.fire(step)
                assert instance.state == after[state, step]
                continue
            assert instance.state == state
