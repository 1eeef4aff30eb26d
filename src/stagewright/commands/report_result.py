"""A report together with what a command did with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, Report


@dataclass(frozen=True)
class Result:
    """One report, the files written for it, and the command line that makes it again."""

    report: Report
    scope: Scope
    written: tuple[Path, ...]
    reproduce: str


def overall(results: Sequence[Result]) -> Outcome:
    """Violated if any report is; else undecided if any is; else it all holds."""
    outcomes = {result.report.outcome for result in results}
    for worst in (Outcome.VIOLATED, Outcome.UNDECIDED):
        if worst in outcomes:
            return worst
    return Outcome.HOLDS
