"""What the topology coordinator commits was planned for what is so, whoever else commits."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken, checked

from stagewright.checker.prove import prove
from stagewright.machines.scylladb.topology.topology_coordinator import TopologyCoordinator
from stagewright.spec.define import define
from stagewright.spec.definition import PropertyKind
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome


def test_every_promise_is_kept_and_every_action_happens() -> None:
    report = checked(TopologyCoordinator)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (29_880, 62_762)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


@pytest.mark.parametrize(
    ("sizes", "budgets"),
    [
        ({"tablet": 2}, {"failures": 0, "failovers": 0}),
        ({"coordinator": 3}, {"drops": 0, "failures": 0}),
        ({}, {"failovers": 3, "requests": 0}),
    ],
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(
    sizes: dict[str, int], budgets: dict[str, int | None]
) -> None:
    assert broken(checked(TopologyCoordinator, sizes=sizes, budgets=budgets)) == set()


def test_every_promise_about_states_and_steps_is_proved_for_any_number_of_commits() -> None:
    definition = define(TopologyCoordinator)
    budgets = ("requests", "migrations", "drops", "failures", "failovers")
    unbounded: dict[str, int | None] = dict.fromkeys(budgets)
    kinds = (PropertyKind.INVARIANT, PropertyKind.STEP)
    names = [p.name for p in definition.properties if p.kind in kinds]
    scope = scope_of(definition, {}, unbounded)
    report = prove(definition, scope, max_k=1, depth=1, properties=names)
    assert report.outcome is Outcome.HOLDS
