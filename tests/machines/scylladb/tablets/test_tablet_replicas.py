"""Changes of a tablet's replicas lose no write that a quorum acknowledged."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken

from stagewright.checker.check import check
from stagewright.machines.scylladb.tablets.tablet_replicas import TabletReplicas
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Report


def checked(
    budgets: dict[str, int] | None = None,
    *,
    sizes: dict[str, int] | None = None,
    machine: type[Machine] = TabletReplicas,
) -> Report:
    definition = define(machine)
    report = check(definition, scope_of(definition, sizes, budgets))
    assert report.exhausted
    return report


def test_every_promise_is_kept_and_every_action_happens() -> None:
    report = checked()
    assert broken(report) == set()
    assert (report.states, report.transitions) == (199_191, 680_634)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


@pytest.mark.parametrize(
    ("sizes", "budgets"),
    [
        ({"node": 4}, {"removals": 0, "additions": 0, "failures": 0}),
        (
            {"client": 2, "node": 2},
            {"writes": 2, "removals": 0, "moves": 0, "failures": 0},
        ),
        ({}, {"additions": 0, "moves": 0, "failures": 0, "writes": 2}),
    ],
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(sizes: dict[str, int], budgets: dict[str, int]) -> None:
    assert broken(checked(budgets, sizes=sizes)) == set()


class PendingDoesNotCount(TabletReplicas):
    """A pending replica adds nothing to the replicas that must answer."""

    def _needed(self, view: Any, targets: Any) -> Any:
        return self._quorum(view.replicas)


class OneIsAQuorum(TabletReplicas):
    """One of two or three is taken for a quorum."""

    def _quorum(self, replicas: Any) -> Any:
        return replicas.size() - replicas.size() + 1


@pytest.mark.parametrize("mutant", [PendingDoesNotCount, OneIsAQuorum])
def test_a_quorum_that_is_too_small_loses_a_write(mutant: type[Machine]) -> None:
    assert "quorum_reads_see_acknowledged_writes" in broken(
        checked({"removals": 1, "additions": 1, "moves": 0, "failures": 0}, machine=mutant)
    )
