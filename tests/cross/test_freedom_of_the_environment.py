"""Verdicts are monotone in what the environment may do: more budget breaks more promises, never fewer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import Budget, Definition
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report

MACHINES = 100
MOST_STATES = 2_000

# One process: what it meets is explored once.
pytestmark = pytest.mark.xdist_group("random machines")


def broken(report: Report) -> set[str]:
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


def of_the_environment(definition: Definition, name: str) -> Definition:
    """The same where one action is the environment's."""
    actions = tuple(
        replace(a, fair=(), budget="whim") if a.name == name else a for a in definition.actions
    )
    return replace(definition, actions=actions, budgets=(*definition.budgets, Budget("whim", 1)))


@pytest.mark.thorough
def test_a_larger_budget_never_mends_a_promise(all_met: Any) -> None:
    """Each action of the random machines, if it is the environment's: never, once, twice, without bound."""
    met = [found.machine for found in all_met.machines.values() if not found.overflows]
    more: Counter[str] = Counter()
    for machine in met[-MACHINES:]:
        for action in machine.definition.actions:
            if action.spends:
                continue
            definition = of_the_environment(machine.definition, action.name)
            before: set[str] = set()
            for limit in (0, 1, 2, None):
                scope = Scope(
                    machine.scope.sizes, FrozenMap({**machine.scope.budgets, "whim": limit})
                )
                report = check(definition, scope, limits=Limits(states=MOST_STATES))
                if not report.exhausted or IN_BOUNDS in broken(report):
                    break  # what lies beyond is not known
                assert before <= broken(report), (action.name, limit, machine)
                more.update(broken(report) - before if limit != 0 else ())
                before = broken(report)
    assert sum(more.values()) >= 3, more  # some promises do break
