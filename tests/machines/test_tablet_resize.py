"""Tablets are split and merged, guarded by requests, and balanced, as the documents promise."""

from __future__ import annotations

import pytest

from stagewright.checker.check import check
from stagewright.machines.load_balancer import LoadBalancer
from stagewright.machines.tablet_guards import TabletGuards
from stagewright.machines.tablet_resize import TabletResize
from stagewright.spec import Machine, scope_of
from stagewright.spec.define import define
from stagewright.spec.verdict import Outcome, Report


def checked(
    machine: type[Machine],
    budgets: dict[str, int] | None = None,
    sizes: dict[str, int] | None = None,
) -> Report:
    definition = define(machine)
    report = check(definition, scope_of(definition, sizes, budgets), symmetry=True)
    assert report.exhausted
    return report


def broken(report: Report) -> set[str]:
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


@pytest.mark.parametrize(
    ("machine", "states", "steps"),
    [
        (TabletResize, 112_379, 480_168),
        (TabletGuards, 5_270, 25_205),
        (LoadBalancer, 78_048, 209_022),
    ],
)
def test_every_promise_holds_and_every_action_happens(
    machine: type[Machine], states: int, steps: int
) -> None:
    report = checked(machine)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (states, steps)
    assert report.coverage is not None
    assert report.coverage.never_fired == ()


@pytest.mark.parametrize(
    ("machine", "budgets", "sizes"),
    [
        (TabletResize, {"decisions": 1, "migrations": 2}, {}),
        (TabletResize, {"decisions": 1, "migrations": 0, "failovers": 1, "restarts": 1}, {}),
        (TabletGuards, {"migrations": 2, "resizes": 1}, {}),
        (LoadBalancer, {"requests": 0}, {"tablet": 2, "node": 3}),
        (LoadBalancer, {"requests": 0, "drains": 0}, {"tablet": 2, "shard": 4}),
    ],
    ids=str,
)
def test_they_hold_at_other_scopes_too(
    machine: type[Machine], budgets: dict[str, int], sizes: dict[str, int]
) -> None:
    assert broken(checked(machine, budgets, sizes)) == set()
