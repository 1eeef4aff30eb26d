"""A report together with what a command did with it: printed, written, and made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.declarations.exercised import scope_of_difference
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report


@dataclass(frozen=True)
class Result:
    """One report, the files written for it, and the command line that makes it again."""

    report: Report
    scope: Scope
    written: tuple[Path, ...]
    reproduce: str
    witnesses: bool = False  # are printed, too


def overall(results: Sequence[Result]) -> Outcome:
    """Violated if any report is; else undecided if any is; else it all holds."""
    outcomes = {result.report.outcome for result in results}
    for worst in (Outcome.VIOLATED, Outcome.UNDECIDED):
        if worst in outcomes:
            return worst
    return Outcome.HOLDS


def written(report: Report, scope: Scope, directory: Path) -> tuple[Path, ...]:
    """Write every run that the report has, witnesses too, in every form; the files."""
    from stagewright.checker.counterexample import write_all

    shown = [v for v in report.verdicts if v.run is not None or v.witness is not None]
    return tuple(
        p
        for v in shown
        for p in write_all(report.definition, v, directory, scope_of(report, v, scope))
    )


def scope_of(report: Report, verdict: PropertyVerdict, scope: Scope) -> Scope:
    """The scope of a verdict's run: a witness may be sought at one of its own."""
    at = [p.at for p in report.definition.properties if p.name == verdict.name]
    if verdict.scope and at and at[0] is not None:
        return scope_of_difference(report.definition, at[0])
    return scope


def print_result(result: Result) -> None:
    """Print what a person reads."""
    from stagewright.commands.console.output import console
    from stagewright.commands.reports.check_text import render_result

    console().print(render_result(result), crop=False)


def reproducing(
    command: str, machine: str, definition: Definition, scope: Scope, properties: Sequence[str]
) -> list[str]:
    """The words of a command that does the same again, with everything that was left to defaults."""
    words = ["stagewright", command, machine]
    if definition.profile:
        words += ["--profile", definition.profile]
    for kind, size in scope.sizes.items():
        words += ["--size", f"{kind.__name__.lower()}={size}"]
    for name, limit in scope.budgets.items():
        words += ["--budget", f"{name}={'any' if limit is None else limit}"]
    for name in properties:
        words += ["--property", name]
    return words
