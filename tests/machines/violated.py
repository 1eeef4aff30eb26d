"""What the tests of machines ask of a search, and of its report."""

from __future__ import annotations

from stagewright.checker.check import check
from stagewright.spec.define import define
from stagewright.spec.machine import Machine
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report


def checked(
    machine: type[Machine],
    profile: str = "",
    *,
    sizes: dict[str, int] | None = None,
    budgets: dict[str, int | None] | None = None,
) -> Report:
    """A search of all states at a scope of one's own."""
    definition = define(machine, profile)
    report = check(definition, scope_of(definition, sizes, budgets))
    assert report.exhausted
    return report


def broken(report: Report) -> set[str]:
    """The names of the promises that a report says are violated."""
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}
