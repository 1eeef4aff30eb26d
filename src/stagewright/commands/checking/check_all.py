"""`check --all`: every shipped machine, a line each where all holds."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.commands.reports.result import Result

_OF_ONE_MACHINE = (
    "machine",
    "profile",
    "size",
    "budget",
    "property",
    "without",
    "checkpoint",
    "spark",
    "resume",
)
_WORDS = {"HOLDS": "hold", "VIOLATED": "violated", "UNDECIDED": "undecided"}


def add_all(parser: argparse.ArgumentParser) -> None:
    """Declare --all."""
    parser.add_argument(
        "--all",
        action="store_true",
        help="check every shipped machine at the scopes that it names, and print one line for each in which all "
        "properties hold; an action that never happens, or a vacuous property, counts as violated unless "
        "the definition gives a reason; with --all-profiles, check every version of each",
    )


def refuse_one_machine(args: argparse.Namespace) -> None:
    """What is said of one machine cannot be said of all.

    Raises:
        InputError: an argument names a machine, or a part or a size of one.
    """
    for name in _OF_ONE_MACHINE:
        if getattr(args, name):
            flag = "MACHINE" if name == "machine" else f"--{name}"
            raise InputError(
                f"--all checks every shipped machine, and {flag} is said of one",
                help=f"leave out --all, or {flag}",
            )
    if args.no_coverage:
        raise InputError(
            "--all asks whether everything happens, and --no-coverage does not count it",
            help="leave out --no-coverage",
        )


@dataclass(frozen=True)
class Task:
    """A machine under a profile, which may be one of several."""

    machine: str
    profile: str
    of_several: bool


def in_order(
    tasks: Sequence[Task], work: Callable[[Task], list[Result]], args: argparse.Namespace
) -> Iterator[list[Result]]:
    """What came of each task, in their order; with --all, several are worked on at once, each in a process."""
    from stagewright.checker.engines import cores
    from stagewright.checker.processes import in_processes, possible

    processes = cores() if args.workers is None else args.workers
    waiting: dict[int, list[Result]] = {}
    reached = 0
    if args.all and processes > 1 and possible():
        args.workers = 1
        nothing: list[Result] = []
        done = in_processes(
            lambda index: work(tasks[index]),
            range(len(tasks)),
            processes,
            over=lambda: False,
            died=nothing,
        )
        for index, results in done:
            waiting[index] = results
            while waiting.get(reached):
                yield waiting.pop(reached)
                reached += 1
    # What is left, and what the system ended for want of memory, is done here.
    for index in range(reached, len(tasks)):
        yield waiting.get(index) or work(tasks[index])


def print_line(name: str, results: Sequence[Result]) -> None:
    """One line of what was found at all scopes; where something does not hold, the whole report."""
    from rich.text import Text

    from stagewright.commands.checking.other_scopes import states_or_orbits
    from stagewright.commands.console.output import console
    from stagewright.commands.reports.result import overall, print_result
    from stagewright.spec.verdict import Outcome

    if overall(results) is not Outcome.HOLDS:
        for result in results:
            if result.report.outcome is not Outcome.HOLDS:
                print_result(result)
        return
    first, *others = results
    report = first.report
    version = f" ({report.definition.profile})" if report.definition.profile else ""
    refinements = sum(v.refined is not None for v in report.verdicts)
    properties = len(report.verdicts) - refinements
    line = Text("✓ ", style="green").append(f"{name}{version}", style="bold")
    line.append(f"  {counted(properties, 'property', 'properties')}, ")
    if refinements:
        line.append(f"{counted(refinements, 'refinement')}, ")
    line.append(f"{report.states:,} {states_or_orbits(first)}, depth {report.depth}")
    if others:
        more = sum(other.report.states for other in others)
        line.append(f"; {more:,} more at {counted(len(others), 'other scope')}")
    line.append(f"; {sum(r.report.seconds for r in results):.1f} s")
    console().print(line, soft_wrap=True)


def print_summary(results: Sequence[Result]) -> None:
    """How many hold, and what it took together."""
    from stagewright.commands.console.output import console
    from stagewright.spec.verdict import Outcome

    counts = {o: sum(r.report.outcome is o for r in results) for o in Outcome}
    text = ", ".join(f"{n} {_WORDS[o.name]}" for o, n in counts.items() if n)
    states = sum(r.report.states for r in results)
    seconds = sum(r.report.seconds for r in results)
    console().print(
        f"{counted(len(results), 'check')}: {text}; {counted(states, 'state')}, {seconds:.1f} s"
    )
