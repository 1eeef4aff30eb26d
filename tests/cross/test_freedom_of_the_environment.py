"""Verdicts are monotone in what the environment may do: more budget breaks more promises, never fewer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from tests.random_machines.definitions import RandomMachine, machines
from tests.thorough import examples

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import Budget, Definition, PropertyKind
from stagewright.spec.errors import InitialStatesError
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report

MACHINES = examples(400)
MOST_STATES = 500
WITNESSES = (PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP, PropertyKind.RESTRICTED)
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def broken(report: Report, definition: Definition) -> set[str]:
    """What is violated; but for witnesses, which more freedom may well supply."""
    witnesses = {p.name for p in definition.properties if p.kind in WITNESSES}
    violated = {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}
    return violated - witnesses


def of_the_environment(definition: Definition, name: str) -> Definition:
    """The same where one action is the environment's."""
    actions = tuple(
        replace(a, fair=(), budget="whim") if a.name == name else a for a in definition.actions
    )
    return replace(definition, actions=actions, budgets=(*definition.budgets, Budget("whim", 1)))


def test_a_larger_budget_never_mends_a_promise() -> None:
    """An action of each of many machines, if it is the environment's: never, once, twice, without bound."""
    more: Counter[str] = Counter()

    @settings(max_examples=MACHINES, suppress_health_check=PATIENT, phases=[Phase.generate])
    @given(machines(), st.randoms(use_true_random=False))
    def look(machine: RandomMachine, random: Random) -> None:
        ours = [a.name for a in machine.definition.actions if not a.spends]
        if not ours:
            return
        definition = of_the_environment(machine.definition, random.choice(ours))
        before: set[str] = set()
        for limit in (0, 1, 2, None):
            scope = Scope(machine.scope.sizes, FrozenMap({**machine.scope.budgets, "whim": limit}))
            limits = Limits(states=MOST_STATES)
            try:
                report = check(definition, scope, engine=EngineKind.NUMPY, limits=limits)
            except InitialStatesError:
                return
            found = broken(report, definition)
            if not report.exhausted or IN_BOUNDS in found:
                break  # what lies beyond is not known
            assert before <= found, limit
            more.update(found - before if limit != 0 else ())
            before = found

    look()
    assert more  # some promises do break by it
