"""`prove --all`: every shipped machine, and which of its properties resist."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.commands.reports.result import Result

_OF_ONE_MACHINE = ("machine", "profile", "size", "budget", "property", "smtlib")


def named_machines(args: argparse.Namespace) -> tuple[str, ...]:
    """The machine that is named, or all of them with --all.

    Raises:
        InputError: neither is given, or --all with what is said of one machine.
    """
    from stagewright.machines import SHIPPED

    if not args.all:
        if args.machine is None:
            raise InputError("no MACHINE is named", help="name one, or --all")
        return (args.machine,)
    for name in _OF_ONE_MACHINE:
        if getattr(args, name):
            flag = "MACHINE" if name == "machine" else f"--{name}"
            raise InputError(
                f"--all proves every shipped machine, and {flag} is said of one",
                help=f"leave out --all, or {flag}",
            )
    return tuple(SHIPPED)


def print_proved(name: str, result: Result) -> None:
    """One line of how many promises are proved, and the names of those that resist."""
    from rich.text import Text

    from stagewright.commands.console.output import console
    from stagewright.spec.verdict import Outcome

    report = result.report
    proved = [v for v in report.verdicts if v.outcome is Outcome.HOLDS]
    rest = [v.name for v in report.verdicts if v.outcome is Outcome.UNDECIDED]
    wrong = [v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED]
    mark, style = ("✗", "bold red") if wrong else ("?", "yellow") if rest else ("✓", "green")
    version = f" ({report.definition.profile})" if report.definition.profile else ""
    line = Text(f"{mark} ", style=style).append(f"{name}{version}", style="bold")
    line.append(f"  {len(proved)} of {len(report.verdicts)} proved, {report.seconds:.1f} s")
    line.append(f"; violated: {', '.join(wrong)}" if wrong else "", style="bold red")
    line.append(f"; resist: {', '.join(rest)}" if rest else "")
    console().print(line, soft_wrap=True)


def print_total(results: Sequence[Result]) -> None:
    """How many promises are proved in all."""
    from stagewright.commands.console.output import console
    from stagewright.spec.verdict import Outcome

    verdicts = [v for r in results for v in r.report.verdicts]
    proved = sum(v.outcome is Outcome.HOLDS for v in verdicts)
    seconds = sum(r.report.seconds for r in results)
    console().print(
        f"{len(results)} machines: {proved} of {len(verdicts)} properties proved, {seconds:.1f} s"
    )
