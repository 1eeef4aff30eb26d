"""Verdicts are monotone in what the environment may do: more budget breaks more promises, never fewer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report

MOST_STATES = 2_000


def broken(report: Report) -> set[str]:
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


@pytest.mark.slow
def test_a_larger_budget_never_mends_a_promise(all_met: Any) -> None:
    """Each budget of the random machines from 0 to 1, 2 and any number, the others as they are."""
    more: Counter[bool] = Counter()
    for found in all_met.machines.values():
        definition, scope = found.machine.definition, found.machine.scope
        for budget in definition.budgets:
            before: set[str] = set()
            for limit in (0, 1, 2, None):
                spent = Scope(scope.sizes, FrozenMap({**scope.budgets, budget.name: limit}))
                report = check(definition, spent, limits=Limits(states=MOST_STATES))
                if not report.exhausted or "assigned values stay in bounds" in broken(report):
                    break  # what lies beyond is not known
                assert before <= broken(report), (budget.name, limit, found.machine)
                more[broken(report) > before] += bool(limit != 0)
                before = broken(report)
    assert min(more[True], more[False]) > 20
