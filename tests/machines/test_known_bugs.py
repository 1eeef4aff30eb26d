"""Every known bug is found again, at a scope at which the machine without it keeps the promise."""

from __future__ import annotations

import pytest

from stagewright.checker.check import check
from stagewright.machines.known_bugs import KNOWN_BUGS, NOT_FOUND
from stagewright.spec.known_bugs import KnownBug
from stagewright.spec.verdict import Outcome


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.id)
def test_the_bug_breaks_a_promise_that_the_right_machine_keeps(bug: KnownBug) -> None:
    wrong = bug.definition()
    report = check(wrong, bug.scope_in(wrong), properties=bug.breaks, symmetry=True)
    violated = [v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED]
    assert set(violated) & set(bug.breaks), f"{bug.id} is not found"
    right = bug.right_definition()
    kept = check(right, bug.scope_in(right), properties=bug.breaks, symmetry=True)
    assert kept.exhausted
    assert all(v.outcome is Outcome.HOLDS for v in kept.verdicts if v.name in bug.breaks)


def test_no_row_is_told_twice() -> None:
    ids = [bug.id for bug in KNOWN_BUGS] + [absent.id for absent in NOT_FOUND]
    assert len(ids) == len(set(ids))
