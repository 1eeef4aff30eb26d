"""`assert_holds`: an exhaustive check as an assertion, whose failure is the counterexample."""

from __future__ import annotations

from collections.abc import Collection
from io import StringIO

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.spec.definition import Definition
from stagewright.spec.machine import Machine
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report
from stagewright.testing.subject import Budgets, Sizes, resolved

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here

_WIDTH = 100  # columns of a counterexample


class PropertyError(AssertionError):
    """A property does not hold, or could not be decided; the text is the counterexample."""

    def __init__(self, definition: Definition, scope: Scope, verdict: PropertyVerdict) -> None:
        self.definition = definition
        self.verdict = verdict
        super().__init__(failure_text(definition, scope, verdict))


def assert_holds(
    machine: type[Machine] | Definition,
    *,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
    properties: Collection[str] = (),
    limits: Limits | None = None,
) -> Report:
    """Check a machine at a scope; every property must hold (or those named in `properties`).

    Raises:
        PropertyError: one is violated, or undecided because `limits` ended the search.
        StagewrightError: the definition, the scope or a name is wrong.
    """
    definition, scope = resolved(machine, profile, sizes, budgets)
    report = check(definition, scope, properties=properties, limits=limits, symmetry=True)
    for verdict in report.verdicts:
        if verdict.outcome is not Outcome.HOLDS:
            raise PropertyError(definition, scope, verdict)
    return report


def failure_text(definition: Definition, scope: Scope, verdict: PropertyVerdict) -> str:
    """Why a property fails: the counterexample step by step, or what is known where there is no run."""
    if verdict.outcome is Outcome.UNDECIDED:
        return f"{verdict.name} of {definition.name} is undecided at {scope}: {verdict.note}"
    if verdict.run is None:
        return f"{verdict.name} of {definition.name} is violated at {scope}: {verdict.note}"
    from rich.console import Console

    from stagewright.checker.counterexample import render_text

    text = StringIO()
    console = Console(file=text, width=_WIDTH, color_system=None, highlight=False)
    console.print(render_text(definition, verdict, scope))
    lines = [line.rstrip() for line in text.getvalue().splitlines()]
    return "\n".join([*lines, *([verdict.note] if verdict.note else [])])
