"""What the tests of machines ask of a report."""

from __future__ import annotations

from stagewright.spec.verdict import Outcome, Report


def broken(report: Report) -> set[str]:
    """The names of the promises that a report says are violated."""
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}
