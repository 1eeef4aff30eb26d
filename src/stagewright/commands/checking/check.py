"""Searches every reachable state of a machine, and says which of its properties hold."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.checking.check_all import (
    Task,
    add_all,
    in_order,
    print_line,
    print_summary,
    refuse_one_machine,
)
from stagewright.commands.checking.checkpointing import (
    add_checkpoint,
    checkpoint_of,
    recalled,
    report_checkpoint,
)
from stagewright.commands.checking.other_scopes import (
    add_default_scope,
    check_at,
    other_scopes,
    print_searched,
)
from stagewright.commands.checking.spark_flags import (
    add_spark,
    check_on_spark,
    refuse_contradictions,
    words_of,
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
    workers,
)
from stagewright.commands.reports.writing import add_ci_reports, ci_reports

if TYPE_CHECKING:
    from stagewright.checker.limits import Limits
    from stagewright.commands.checking.refined import Dependents
    from stagewright.commands.reports.result import Result
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope

_EXAMPLE = """\
examples:
  stagewright check tablet --profile seed --size node=3 --budget crashes=1
  stagewright check my/machine.py:Counter --out counterexamples
  stagewright check tablet --all-profiles --timeout 60 --json
  stagewright check --all
  stagewright check tablet --size node=3 --spark --work-dir search --property writes_cover_reads
  stagewright check tablet --size node=3 --checkpoint search; stagewright check --resume search
  stagewright check my/machine.py --junit check.xml --sarif check.sarif

Liveness is about fair runs. A run may stop in any state in which no fair action is enabled: what is
not fair (a crash, a client's whim) never has to happen. A weakly fair action that stays enabled happens;
a strongly fair one that is enabled again and again happens; a step that changes nothing does not count.
Actions that spend a budget belong to the environment: a state in which only they can happen is a deadlock,
and no goal is reached by them, so a larger budget can only break more properties, never fewer.
Ctrl-C ends the search and reports what was found so far.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright check``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add_machine(parser, optional=True)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--profile", default="", help="the version to check (default: the newest)")
    which.add_argument("--all-profiles", action="store_true", help="check every profile")
    add_all(parser)
    add_scope(parser)
    add_default_scope(parser)
    parser.add_argument(
        "--property", action="append", default=[], metavar="NAME", help="decide only this property"
    )
    parser.add_argument(
        "--no-deadlock",
        action="store_true",
        help="let runs end anywhere (in a definition: `deadlock = allowed(because=...)`)",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="NAME",
        help="drop an assumption that the machine declares, to see what breaks",
    )
    parser.add_argument(
        "--dependents",
        action="store_true",
        help="also check the refinements, declared elsewhere, by which other machines refine this one",
    )
    parser.add_argument("--max-states", type=positive, metavar="N", help="stop at N states")
    parser.add_argument("--max-depth", type=count, metavar="N", help="take N steps at most")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="stop after S seconds")
    parser.add_argument(
        "--max-memory", type=positive, metavar="MIB", help="stop before using more memory"
    )
    parser.add_argument("--stop-at-first", action="store_true", help="stop at the first violation")
    _add_engine(parser)
    add_checkpoint(parser)
    add_spark(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="write counterexamples there")
    parser.add_argument(
        "--witnesses", action="store_true", help="also print the runs that @sometimes asks for"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_ci_reports(parser)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how the search runs (the result is always the same)")
    group.add_argument(
        "--workers",
        type=workers,
        metavar="N",
        help="search with N threads, and with --all as many machines at once (default: one per core)",
    )
    group.add_argument(
        "--engine",
        choices=("auto", "native", "numpy"),
        default="auto",
        help="compile the search with LLVM, or use NumPy (default: compile if possible)",
    )
    group.add_argument(
        "--no-symmetry",
        action="store_true",
        help="search all states, even if the definition treats entities alike and one state of "
        "each orbit would be enough (symmetry is never used if properties depend on fairness)",
    )
    group.add_argument(
        "--lean",
        action="store_true",
        help="forget states once they are expanded, if a state fits into 64 bits: about 10 bytes per "
        "state, but the run of a violation is searched for again (not with goals and liveness, which "
        "need all states)",
    )
    group.add_argument(
        "--no-coverage",
        action="store_true",
        help="do not count how often each action happened and each guard refused",
    )


def execute(args: argparse.Namespace) -> int:
    """Check, print, and return the exit code that belongs to the outcome."""
    from stagewright.commands.console.output import check_directory
    from stagewright.commands.reports.of_check import suite_of
    from stagewright.commands.reports.result import overall, print_result
    from stagewright.spec.verdict import Outcome

    if args.all:
        refuse_one_machine(args)
    else:
        args = recalled(args)
    refuse_contradictions(args)
    check_directory("--out", args.out)
    check_directory("--checkpoint", args.checkpoint)
    reports = ci_reports(args)
    results: list[Result] = []
    tasks = list(_tasks(args))
    interrupted = False
    try:
        for task, here in zip(tasks, in_order(tasks, partial(_done, args), args), strict=False):
            results += here
            for result in here:
                reports.add(partial(suite_of, "check", result))
            if not args.json and not reports.take_standard_output:
                if args.all:
                    print_line(task.machine, here)
                else:
                    print_result(here[0])
                    print_searched(here[1:])
                _report_dropped(args.without, here)
            interrupted = here[-1].report.interrupted and task is not tasks[-1]
            if interrupted:
                break
    except KeyboardInterrupt:
        interrupted = True
    if interrupted and (not results or overall(results) is Outcome.HOLDS):
        raise KeyboardInterrupt  # it came too late to leave anything
    if args.all and not args.json and not reports.take_standard_output:
        print_summary(results)
    if args.json:
        from stagewright.commands.reports.json_report import document

        print(json.dumps(document(results), indent=2, ensure_ascii=False))
    reports.write(overall(results).value)
    return overall(results).value


def _tasks(args: argparse.Namespace) -> Iterator[Task]:
    """The machines and profiles that are asked for."""
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names

    for machine in SHIPPED if args.all else (args.machine,):
        profiles = [args.profile]
        if args.all_profiles:
            profiles = list(profile_names(find(machine, SHIPPED))) or [""]
        yield from (Task(machine, profile, len(profiles) > 1) for profile in profiles)


def _done(args: argparse.Namespace, task: Task) -> list[Result]:
    """Check one machine under one profile."""
    from stagewright.spec.derived.assumptions import without

    args.machine = task.machine
    definition = machine_from(task.machine, task.profile)
    for name in args.without:
        definition = without(definition, name)
    return _at_its_scopes(definition, args, _directory(args, definition, task.of_several))


def _report_dropped(dropped: list[str], results: list[Result]) -> None:
    """That nothing breaks without an assumption: then nothing here needs it."""
    from stagewright.commands.reports.result import overall
    from stagewright.spec.verdict import Outcome

    if dropped and overall(results) is Outcome.HOLDS:
        where = "this scope" if len(results) == 1 else "these scopes"
        print(f"nothing breaks without {', '.join(dropped)}: no property needs it at {where}")


def _directory(args: argparse.Namespace, definition: Definition, several: bool) -> Path | None:
    """Where the counterexamples go: those of several machines or profiles apart."""
    out: Path | None = args.out
    if out is not None and args.all:
        out = out / args.machine
    return out / definition.profile if out is not None and several else out


def _at_its_scopes(
    definition: Definition, args: argparse.Namespace, directory: Path | None
) -> list[Result]:
    """The result at the scope that is asked for; if none is, also those at the others that the definition names."""
    from stagewright.spec.verdict import Outcome

    results = [_checked(definition, args, directory)]
    if args.checkpoint or args.spark is not None:
        return results
    for other in other_scopes(definition, args, deadlock=not args.no_deadlock):
        if results[-1].report.outcome is not Outcome.HOLDS:
            break
        limits = replace(_limits(args), seconds=_time_left(args, results))
        again = _reproduce(args, definition, other.scope)
        results.append(check_at(other, definition, args, limits, directory, again))
    return results


def _time_left(args: argparse.Namespace, results: list[Result]) -> float | None:
    """A time limit is one for all scopes of a machine together."""
    if args.timeout is None:
        return None
    left: float = args.timeout - sum(result.report.seconds for result in results)
    return max(left, 0.001)


def _checked(definition: Definition, args: argparse.Namespace, directory: Path | None) -> Result:
    from stagewright.checker.check import check
    from stagewright.checker.engines import EngineKind
    from stagewright.checker.sharded.check import undecided
    from stagewright.commands.checking.refined import refinements_of
    from stagewright.commands.console.progress import progress_on
    from stagewright.commands.reports.result import Result, written

    warn_of_empty_promises(definition, args.property)
    scope = scope_from(definition, args.size, args.budget)
    asked = refinements_of(args.machine, definition, _dependents(args))
    checkpoint = checkpoint_of(args, definition)
    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    with progress_on(sys.stderr, f"checking {name} at {scope}") as progress:
        if args.spark is not None:
            report = check_on_spark(definition, scope, args, _limits(args), progress)
            if not args.property:
                left = tuple(undecided(m.refinement.name) for m in asked.mapped)
                report = replace(report, verdicts=(*report.verdicts, *left))
        else:
            report = check(
                definition,
                scope,
                limits=_limits(args),
                progress=progress,
                properties=args.property,
                engine=EngineKind(args.engine),
                workers=args.workers,
                coverage=not args.no_coverage,
                keep=not args.lean,
                checkpoint=checkpoint,
                symmetry=not args.no_symmetry,
                deadlock=not args.no_deadlock,
                refinements=asked.mapped,
            )
    report = replace(report, uncovered=asked.uncovered)
    if _asks_for_exercise(args, definition, scope) and report.coverage is not None:
        from stagewright.checker.exercise import exercised

        report = replace(report, verdicts=(*report.verdicts, exercised(report, report.coverage)))
    if asked.left and not args.all:
        others = ", ".join(asked.left)
        print(f"left to --dependents, as other machines' refinements: {others}", file=sys.stderr)
    if checkpoint is not None:
        report_checkpoint(checkpoint, exhausted=report.exhausted)
    files = written(report, scope, directory) if directory else ()
    return Result(report, scope, files, _reproduce(args, definition, scope), args.witnesses)


def _dependents(args: argparse.Namespace) -> Dependents:
    """Whose refinements are decided, too: each once in `--all`, else as asked for."""
    from stagewright.commands.checking.refined import Dependents

    if args.all:
        return Dependents.NONE
    return Dependents.ALL if args.dependents or args.property else Dependents.OWN_FILE


def _asks_for_exercise(args: argparse.Namespace, definition: Definition, scope: Scope) -> bool:
    """Whether all is to be exercised: of every machine with --all, else of those that give reasons why some is not.

    The reasons are those of the newest profile at the default scope.
    """
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names
    from stagewright.spec.scope import scope_of

    if args.property or args.without or args.spark is not None:
        return False
    if not args.all and definition.unexercised is None:
        return False
    newest = (profile_names(find(args.machine, SHIPPED)) or [""])[-1]
    return definition.profile == newest and scope == scope_of(definition)


def _limits(args: argparse.Namespace) -> Limits:
    from stagewright.checker.limits import Limits

    return Limits(
        states=args.max_states,
        depth=args.max_depth,
        seconds=args.timeout,
        memory=None if args.max_memory is None else args.max_memory << 20,
        stop_at_first=args.stop_at_first,
    )


def _reproduce(args: argparse.Namespace, definition: Definition, scope: Scope) -> str:
    """The command line that finds the same again, with everything that was left to defaults."""
    from stagewright.commands.reports.result import reproducing

    words = reproducing("check", args.machine, definition, scope, args.property)
    for name in args.without:
        words += ["--without", name]
    for flag, value in (("--max-states", args.max_states), ("--max-depth", args.max_depth)):
        words += [] if value is None else [flag, str(value)]
    words += ["--dependents"] if args.dependents else []
    words += ["--stop-at-first"] if args.stop_at_first else []
    words += ["--no-symmetry"] if args.no_symmetry else []
    words += ["--no-deadlock"] if args.no_deadlock else []
    return shlex.join([*words, *words_of(args)])
