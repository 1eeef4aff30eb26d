"""Proves or refutes a machine's invariants and step properties with the solver Z3."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stagewright.commands.checking.other_scopes import add_default_scope, other_scopes
from stagewright.commands.checking.prove_all import (
    named_machines,
    print_others_proved,
    print_proved,
    print_total,
)
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    count,
    machine_from,
    positive,
    scope_from,
    seconds,
    warn_of_empty_promises,
)
from stagewright.commands.reports.writing import add_ci_reports, ci_reports

if TYPE_CHECKING:
    from stagewright.checker.symbolic.limits import Progress
    from stagewright.commands.reports.result import Result
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope
    from stagewright.spec.verdict import Report

DEFAULT_SECONDS = 300.0

_EXAMPLE = """\
examples:
  stagewright prove tablet-migration
  stagewright prove tablet --size node=4 --k 3 --depth 15 --timeout 60
  stagewright prove my/machine.py:Counter --simple-paths --smtlib conditions
  stagewright prove --all --timeout 60
  stagewright prove my/machine.py --junit prove.xml --sarif prove.sarif

A property is proved by k-induction: if it holds in any k consecutive states, it holds in the next one
too. A proof covers every run at the scope, however long. If the proof fails, the counterexample to
induction is shown: add an invariant that rules out its first state, and try again.
"""

_PLAIN_SECONDS = 5.0  # between two lines of progress where it is no terminal


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright prove``."""
    from stagewright.checker.symbolic.limits import DEFAULT_DEPTH, DEFAULT_K

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add_machine(parser, optional=True)
    parser.add_argument("--profile", default="", help="the version to prove (default: the newest)")
    parser.add_argument(
        "--all",
        action="store_true",
        help="prove every shipped machine, and list the properties that are not proved",
    )
    add_scope(parser)
    add_default_scope(parser)
    add = parser.add_argument
    add("--property", action="append", default=[], metavar="NAME", help="decide only this property")
    add("--deadlock", action="store_true", help="also prove that there is no deadlock")
    add(
        "--k",
        type=positive,
        default=DEFAULT_K,
        metavar="N",
        help="the largest k of induction (default: %(default)s)",
    )
    add(
        "--depth",
        type=count,
        default=DEFAULT_DEPTH,
        metavar="D",
        help="look for violations of up to D steps (default: %(default)s)",
    )
    add(
        "--simple-paths",
        action="store_true",
        help="induction only over runs without repeated states",
    )
    add(
        "--timeout",
        type=seconds,
        default=DEFAULT_SECONDS,
        metavar="S",
        help="stop after S seconds for all scopes of a machine (default: %(default)g)",
    )
    add(
        "--rlimit",
        type=positive,
        metavar="N",
        help="give up a query after N of Z3's resource units",
    )
    add("--out", type=Path, metavar="DIR", help="write the runs there, in every format")
    add(
        "--smtlib",
        type=Path,
        metavar="DIR",
        help="write the proof obligations at one scope there as SMT-LIB",
    )
    add("--json", action="store_true", help="print one JSON object")
    add_ci_reports(parser)


def execute(args: argparse.Namespace) -> int:
    """Prove, print, and return the exit code that belongs to the outcome."""
    from stagewright.checker.prove import not_handled
    from stagewright.commands.console.output import check_directory
    from stagewright.commands.reports.of_check import suite_of
    from stagewright.commands.reports.result import overall, print_result

    check_directory("--out", args.out)
    check_directory("--smtlib", args.smtlib)
    reports = ci_reports(args)
    by_machine: list[list[Result]] = []
    for machine in named_machines(args):
        args.machine = machine
        here = _at_its_scopes(args)
        by_machine.append(here)
        for result in here:
            left = () if args.property else not_handled(result.report.definition)
            reports.add(partial(suite_of, "prove", result, left))
        if args.json or reports.take_standard_output:
            continue
        if args.all:
            print_proved(machine, here)
        else:
            print_result(here[0])
            print_others_proved(here[1:])
        if here[-1].report.interrupted:
            break
    results = [result for here in by_machine for result in here]
    if args.json:
        from stagewright.commands.reports.json_report import document

        print(json.dumps(document(results), indent=2, ensure_ascii=False))
    elif args.all and not reports.take_standard_output:
        print_total(by_machine)
    reports.write(overall(results).value)
    return overall(results).value


def _at_its_scopes(args: argparse.Namespace) -> list[Result]:
    """The result at the scope that is asked for; if none is, also those at the others that the definition names."""
    from stagewright.checker.symbolic.claims import is_handled
    from stagewright.commands.reports.result import Result, written
    from stagewright.spec.verdict import Outcome

    definition = machine_from(args.machine, args.profile)
    warn_of_empty_promises(definition, args.property)
    out = args.out / args.machine if args.out is not None and args.all else args.out
    left: float = args.timeout
    results: list[Result] = []

    def prove_at(scope: Scope, properties: Sequence[str]) -> None:
        nonlocal left
        report = _proved(definition, scope, properties, left, args)
        left -= report.seconds
        files = written(report, scope, out) if out else ()
        results.append(Result(report, scope, files, _reproduce(args, definition, scope)))

    prove_at(scope_from(definition, args.size, args.budget), args.property)
    others_decide = {p.name for p in definition.properties if not is_handled(p)}
    others = () if args.smtlib else tuple(other_scopes(definition, args, deadlock=args.deadlock))
    for number, other in enumerate(others):
        names = [name for name in other.properties if name not in others_decide]
        if results[-1].report.outcome is Outcome.VIOLATED or results[-1].report.interrupted:
            break
        if left <= 0:  # then something is undecided already
            print(f"no time is left for {len(others) - number} other scopes", file=sys.stderr)
            break
        if names:
            prove_at(other.scope, names)
    return results


def _proved(
    definition: Definition,
    scope: Scope,
    properties: Sequence[str],
    seconds: float,
    args: argparse.Namespace,
) -> Report:
    from stagewright.checker.prove import prove
    from stagewright.checker.symbolic.limits import Limits

    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    with _progress_on(sys.stderr, f"proving {name} at {scope}") as progress:
        return prove(
            definition,
            scope,
            max_k=args.k,
            depth=args.depth,
            limits=Limits(seconds, args.rlimit),
            progress=progress,
            properties=properties,
            deadlock=args.deadlock,
            simple_paths=args.simple_paths,
            smtlib=args.smtlib,
        )


@contextmanager
def _progress_on(stream: TextIO, title: str) -> Iterator[Callable[[Progress], None]]:
    """Print the title at once, then how the proof goes: one live line on a terminal, else now and then."""
    live = stream.isatty()
    print(title, file=stream, flush=True)
    last = 0.0

    def show(progress: Progress) -> None:
        nonlocal last
        if live:
            print(f"\r\x1b[K{_line(progress)}", end="", file=stream, flush=True)
        elif progress.seconds - last >= _PLAIN_SECONDS:
            last = progress.seconds
            print(_line(progress), file=stream, flush=True)

    try:
        yield show
    finally:
        if live:
            print("\r\x1b[K", end="", file=stream, flush=True)


def _line(progress: Progress) -> str:
    """`depth 3, k = 4: 2 proved, 0 shown by a run, 1 undecided, 0 s`."""
    trying = f", k = {progress.k}" if progress.k else ""
    return (
        f"depth {progress.depth}{trying}: {progress.proved} proved, "
        f"{progress.violated} shown by a run, {progress.undecided} undecided, {progress.seconds:.0f} s"
    )


def _reproduce(args: argparse.Namespace, definition: Definition, scope: Scope) -> str:
    """The command line that proves the same again, with everything that was left to defaults."""
    from stagewright.commands.reports.result import reproducing

    words = reproducing("prove", args.machine, definition, scope, args.property)
    words += ["--k", str(args.k), "--depth", str(args.depth)]
    if args.rlimit is not None:
        words += ["--rlimit", str(args.rlimit)]
    flags = [("--deadlock", args.deadlock), ("--simple-paths", args.simple_paths)]
    return shlex.join([*words, *(flag for flag, given in flags if given)])
