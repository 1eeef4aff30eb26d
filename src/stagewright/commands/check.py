"""Searches every reachable state of a machine, and says which of its promises hold."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.report_result import Result, overall

if TYPE_CHECKING:
    from stagewright.checker.limits import Limits
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope
    from stagewright.spec.verdict import Report

_EXAMPLE = """\
examples:
  stagewright check tablet --profile seed --size node=3 --budget crashes=1
  stagewright check my/machine.py:Counter --out counterexamples
  stagewright check tablet --all-profiles --timeout 60 --json

An infinite run takes a step whenever one is enabled; the fairness of the actions says which steps
it cannot put off for ever. Ctrl-C ends the search and reports what was found until then.
"""

_PLAIN_WIDTH = 100  # columns, where the output is no terminal


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright check``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    parser.add_argument(
        "machine", help="a shipped name, path/to/file.py, path/to/file.py:Class or module:Class"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--profile", default="", help="the version to check (default: the newest)")
    which.add_argument("--all-profiles", action="store_true", help="check every profile")
    parser.add_argument(
        "--size", action="append", default=[], metavar="SORT=N", help="how many of an entity sort"
    )
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="NAME=N",
        help="how often a budget may be spent; 0: never, `any`: without bound",
    )
    parser.add_argument(
        "--property", action="append", default=[], metavar="NAME", help="decide only this promise"
    )
    parser.add_argument("--max-states", type=_positive, metavar="N", help="stop at N states")
    parser.add_argument("--max-depth", type=_count, metavar="N", help="take N steps at most")
    parser.add_argument("--timeout", type=_seconds, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--max-memory", type=_positive, metavar="MIB", help="stop before more memory is used"
    )
    parser.add_argument("--stop-at-first", action="store_true", help="stop at the first violation")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write counterexamples there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Check, print, and return the exit code that belongs to the outcome."""
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find, load
    from stagewright.spec.machine import profile_names

    profiles = [args.profile]
    if args.all_profiles:
        profiles = list(profile_names(find(args.machine, SHIPPED))) or [""]
    results: list[Result] = []
    for profile in profiles:
        definition = load(args.machine, profile, SHIPPED)
        result = _checked(definition, args, several=len(profiles) > 1)
        results.append(result)
        if not args.json:
            _print(result)
    if args.json:
        from stagewright.commands.report_json import document

        print(json.dumps(document(results), indent=2, ensure_ascii=False))
    return overall(results).value


def scope_from(definition: Definition, sizes: Sequence[str], budgets: Sequence[str]) -> Scope:
    """The scope that `--size` and `--budget` ask for.

    Raises:
        InputError: an argument is not NAME=NUMBER, or names the same thing again.
        ScopeError: the definition has no such entity or budget, or the number does not fit.
    """
    from stagewright.spec.scope import scope_of

    chosen = {name: int(value) for name, value in _pairs("--size", sizes, r"\d+").items()}
    spend = {
        name: None if value == "any" else int(value)
        for name, value in _pairs("--budget", budgets, r"\d+|any").items()
    }
    return scope_of(definition, chosen, spend)


def _pairs(flag: str, given: Sequence[str], value: str) -> dict[str, str]:
    import re

    from stagewright.spec.errors import InputError

    pairs: dict[str, str] = {}
    for text in given:
        match = re.fullmatch(rf"([\w.]+)=({value})", text)
        if match is None:
            raise InputError(
                f"{flag} {text}: not of the form NAME=NUMBER", help=f"write `{flag} name=2`"
            )
        if match[1] in pairs:
            raise InputError(f"{flag} names {match[1]} twice", help="keep one of the two")
        pairs[match[1]] = match[2]
    return pairs


def _checked(definition: Definition, args: argparse.Namespace, *, several: bool) -> Result:
    from stagewright.checker.check import check
    from stagewright.commands.progress import progress_on

    scope = scope_from(definition, args.size, args.budget)
    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    with progress_on(sys.stderr, f"checking {name} at {scope}") as progress:
        report = check(
            definition, scope, limits=_limits(args), progress=progress, properties=args.property
        )
    directory = args.out / definition.profile if several and args.out else args.out
    written = _written(report, scope, directory) if directory else ()
    return Result(report, scope, written, _reproduce(args, definition, scope))


def _written(report: Report, scope: Scope, directory: Path) -> tuple[Path, ...]:
    from stagewright.checker.counterexample import write_all

    shown = [v for v in report.verdicts if v.run is not None]
    return tuple(p for v in shown for p in write_all(report.definition, v, directory, scope))


def _limits(args: argparse.Namespace) -> Limits:
    from stagewright.checker.limits import Limits

    return Limits(
        states=args.max_states,
        depth=args.max_depth,
        seconds=args.timeout,
        memory=None if args.max_memory is None else args.max_memory << 20,
        stop_at_first=args.stop_at_first,
    )


def _print(result: Result) -> None:
    from rich.console import Console

    from stagewright.commands.report_text import render_result

    width = None if sys.stdout.isatty() else _PLAIN_WIDTH
    Console(width=width, highlight=False).print(render_result(result))


def _reproduce(args: argparse.Namespace, definition: Definition, scope: Scope) -> str:
    """The command line that finds the same again, with everything that was left to defaults."""
    words = ["stagewright", "check", args.machine]
    if definition.profile:
        words += ["--profile", definition.profile]
    for kind, size in scope.sizes.items():
        words += ["--size", f"{kind.__name__.lower()}={size}"]
    for name, limit in scope.budgets.items():
        words += ["--budget", f"{name}={'any' if limit is None else limit}"]
    for name in args.property:
        words += ["--property", name]
    for flag, value in (("--max-states", args.max_states), ("--max-depth", args.max_depth)):
        words += [] if value is None else [flag, str(value)]
    return shlex.join([*words, *(["--stop-at-first"] if args.stop_at_first else [])])


def _positive(text: str) -> int:
    number = _count(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be at least 1")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number, 0 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be a number of seconds, 0 or more")
    return seconds
