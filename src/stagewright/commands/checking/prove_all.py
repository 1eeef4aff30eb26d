"""`prove --all`: every shipped machine, and which of its properties resist."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

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


@dataclass(frozen=True)
class _Tally:
    """The names of properties by what became of them: proved is what is proved at each scope at which it was tried."""

    proved: tuple[str, ...]
    rest: tuple[str, ...]
    wrong: tuple[str, ...]

    @classmethod
    def of(cls, results: Sequence[Result]) -> _Tally:
        """Of one machine."""
        from stagewright.spec.verdict import Outcome

        found: dict[str, set[Outcome]] = {}
        for verdict in (v for result in results for v in result.report.verdicts):
            found.setdefault(verdict.name, set()).add(verdict.outcome)
        wrong = [name for name, outcomes in found.items() if Outcome.VIOLATED in outcomes]
        proved = [name for name, outcomes in found.items() if outcomes == {Outcome.HOLDS}]
        rest = [name for name in found if name not in wrong and name not in proved]
        return cls(tuple(proved), tuple(rest), tuple(wrong))

    @property
    def number(self) -> int:
        return len(self.proved) + len(self.rest) + len(self.wrong)

    def __str__(self) -> str:
        text = f"{len(self.proved)} of {self.number} proved"
        return text + (f"; resist: {', '.join(self.rest)}" if self.rest else "")


def print_proved(name: str, results: Sequence[Result]) -> None:
    """One line of how many promises are proved at each scope, and the names of those that resist."""
    from rich.text import Text

    from stagewright.commands.console.output import console

    definition, tally = results[0].report.definition, _Tally.of(results)
    mark, style = ("?", "yellow") if tally.rest else ("✓", "green")
    if tally.wrong:
        mark, style = "✗", "bold red"
    version = f" ({definition.profile})" if definition.profile else ""
    line = Text(f"{mark} ", style=style).append(f"{name}{version}", style="bold")
    line.append(f"  {len(tally.proved)} of {tally.number} proved")
    line.append(f" at {len(results)} scopes" if len(results) > 1 else "")
    line.append(f", {sum(result.report.seconds for result in results):.1f} s")
    line.append(f"; violated: {', '.join(tally.wrong)}" if tally.wrong else "", style="bold red")
    line.append(f"; resist: {', '.join(tally.rest)}" if tally.rest else "")
    console().print(line, soft_wrap=True)


def print_others_proved(results: Sequence[Result]) -> None:
    """A line for each further scope of a machine, and the whole report where something is violated."""
    from stagewright.commands.checking.other_scopes import print_others
    from stagewright.spec.verdict import Outcome

    def says(result: Result) -> str:
        return str(_Tally.of([result]))

    print_others(results, says, (Outcome.HOLDS, Outcome.UNDECIDED))


def print_total(machines: Sequence[Sequence[Result]]) -> None:
    """How many promises are proved in all."""
    from stagewright.commands.console.output import console

    tallies = [_Tally.of(results) for results in machines]
    proved, number = sum(len(t.proved) for t in tallies), sum(t.number for t in tallies)
    seconds = sum(result.report.seconds for results in machines for result in results)
    console().print(
        f"{counted(len(machines), 'machine')}: {proved} of {number} properties proved, {seconds:.1f} s"
    )
