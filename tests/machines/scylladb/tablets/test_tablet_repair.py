"""Tablet repair keeps its promises; who must release its locks, must know the session."""

from __future__ import annotations

from typing import Any

import pytest
from tests.machines.violated import broken, checked

from stagewright.checker.prove import prove
from stagewright.machines.scylladb.tablets.tablet_repair import TabletRepair
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome


def test_every_promise_is_kept_and_every_action_happens() -> None:
    report = checked(TabletRepair)
    assert broken(report) == set()
    assert (report.states, report.transitions) == (16_932, 129_343)
    assert report.coverage is not None
    assert set(report.coverage.never_fired) == set()


@pytest.mark.parametrize(
    ("sizes", "budgets"),
    [
        ({"node": 3}, {"requests": 1, "restarts": 0}),
        ({"node": 1}, {"failures": 0, "restarts": 2}),
        ({}, {"failures": 0, "failovers": 2}),
    ],
    ids=str,
)
def test_it_keeps_them_at_other_scopes_too(
    sizes: dict[str, int], budgets: dict[str, int | None]
) -> None:
    assert broken(checked(TabletRepair, sizes=sizes, budgets=budgets)) == set()


class UnlocksAtOnce(TabletRepair):
    """A replica releases its lock for whoever asks."""

    def _is_current(self, n: Any) -> Any:
        return self.replica[n].session == self.replica[n].session


def test_a_lock_is_not_released_below_a_repair_that_goes_on() -> None:
    """Who has not learned that the session is closed may take the lock again."""
    assert "nothing_of_a_repair_outlives_it" in broken(checked(UnlocksAtOnce))


def test_every_promise_about_states_and_steps_is_proved() -> None:
    definition = define(TabletRepair)
    report = prove(definition, scope_of(definition), max_k=1, depth=1)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    assert left == {"assigned values stay in bounds"}  # sessions are as many as the model has
