"""Group0 keeps its promises while leaders and voters change, members restart and messages are repeated."""

from __future__ import annotations

import pytest
from tests.machines.violated import broken
from tests.thorough import some_of

from stagewright.checker.check import check
from stagewright.machines.scylladb.topology.group0 import Group0
from stagewright.spec.define import define
from stagewright.spec.scope import scope_of


@pytest.mark.parametrize(
    ("budgets", "orbits"),
    some_of(
        [
            ({"elections": 1}, 17_913),
            ({"changes": 1, "restarts": 1}, 17_222),
            ({"elections": 1, "changes": 1, "repeats": 1}, 2_018),
            ({"elections": 1, "changes": 1, "voter_changes": 1}, 7_506),
            ({"changes": 0, "voter_changes": 2}, 26_015),
        ]
    ),
    ids=str,
)
def test_every_promise_is_kept(budgets: dict[str, int], orbits: int) -> None:
    definition = define(Group0)
    report = check(definition, scope_of(definition, {}, budgets), symmetry=True, workers=1)
    assert (broken(report), report.exhausted, report.states) == (set(), True, orbits)
