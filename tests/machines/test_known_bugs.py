"""Every known bug is found again, at a scope at which the machine without it keeps the promise."""

from __future__ import annotations

from functools import cache

import pytest
from tests.thorough import by_turns, some_of

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.machines.known_bugs import KNOWN_BUGS, NOT_FOUND
from stagewright.spec.known_bugs import KnownBug
from stagewright.spec.verdict import Outcome

RightMachine = tuple[object, ...]


def right_machine(bug: KnownBug) -> RightMachine:
    """What the search without the bug depends on: equal for bugs that can share it."""
    sizes, budgets = frozenset(bug.sizes.items()), frozenset(bug.budgets.items())
    return bug.right, bug.right_profile, sizes, budgets


SHARED: dict[RightMachine, list[KnownBug]] = {}
for known in KNOWN_BUGS:
    SHARED.setdefault(right_machine(known), []).append(known)


FIRST = tuple({known.right: known for known in reversed(KNOWN_BUGS)}.values())  # of each machine


@cache
def kept_without_bugs(machine: RightMachine) -> frozenset[str]:
    """Which of the properties that these bugs break hold where the bugs are not: searched once for all of them."""
    bugs = SHARED[machine]
    right = bugs[0].right_definition()
    properties = tuple(sorted({name for bug in bugs for name in bug.breaks}))
    report = check(
        right, bugs[0].scope_in(right), properties=properties, symmetry=True, coverage=False
    )
    assert report.exhausted
    return frozenset(v.name for v in report.verdicts if v.outcome is Outcome.HOLDS)


def of_one_machine(bug: KnownBug) -> pytest.MarkDecorator:
    return pytest.mark.xdist_group(f"bugs of {bug.right.__name__}")


@pytest.mark.parametrize(
    "bug",
    by_turns(
        some_of(KNOWN_BUGS, quick=FIRST.__contains__), ids=lambda bug: bug.id, mark=of_one_machine
    ),
)
def test_the_bug_breaks_a_promise_that_the_right_machine_keeps(bug: KnownBug) -> None:
    wrong = bug.definition()
    report = check(
        wrong,
        bug.scope_in(wrong),
        properties=bug.breaks,
        symmetry=True,
        limits=Limits(stop_at_first=True),
        coverage=False,
    )
    violated = [v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED]
    assert set(violated) & set(bug.breaks), f"{bug.id} is not found"
    assert set(bug.breaks) <= kept_without_bugs(right_machine(bug))


def test_no_row_is_reported_twice() -> None:
    ids = [bug.id for bug in KNOWN_BUGS] + [absent.id for absent in NOT_FOUND]
    assert len(ids) == len(set(ids))
