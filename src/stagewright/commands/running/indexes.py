"""`stagewright run --script "create table …"`: indexes are built while the table is written to."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.exit_codes import ExitCode
from stagewright.commands.running.script import ONLY_TABLETS

if TYPE_CHECKING:
    from stagewright.impl.indexes.simulated.run import Plan, Report


def run_index_script(args: argparse.Namespace, directory: Callable[[], Path]) -> int:
    """Work through a script, print what happened, and return 1 if a promise was broken."""
    from stagewright.impl.indexes.simulated.run import run

    plan = _plan_of(args)
    place = directory()
    report = run(plan, place)
    if args.json:
        print(json.dumps(_as_json(report, plan), indent=2))
    else:
        _print(report, plan, place, args)
    return ExitCode.HOLDS if report.kept else ExitCode.VIOLATED


def _plan_of(args: argparse.Namespace) -> Plan:
    from stagewright.impl.indexes.simulated.run import Plan
    from stagewright.impl.indexes.simulated.script import parse_script
    from stagewright.impl.simulator.database.weather import parse_faults
    from stagewright.spec.errors import InputError

    for name in (*ONLY_TABLETS, "profile"):
        if getattr(args, name) not in (None, ""):
            raise InputError(
                f"--{name} is not for a script of indexes",
                help="a script writes by `write NUMBER`, and the newest release runs",
            )
    if not 1 <= args.nodes <= 30:
        raise InputError(f"--nodes {args.nodes}: out of bounds", help="write a number from 1 to 30")
    return Plan(
        servers=args.nodes,
        seed=args.seed,
        script=parse_script(args.script),
        faults=parse_faults(args.faults),
    )


def _as_json(report: Report, plan: Plan) -> dict[str, object]:
    return {
        "seed": plan.seed,
        "kept": report.kept,
        "operations": [vars(o) for o in report.outcomes],
        "breaches": report.breaches,
        "refused": report.refused,
        "counted": report.counted,
        "indexes": report.indexes,
        "simulated_ms": report.simulated_ms,
    }


def _print(report: Report, plan: Plan, directory: Path, args: argparse.Namespace) -> None:
    from rich.table import Table

    from stagewright.commands.output import console

    out = console()
    out.print(
        f"{plan.servers} servers, {plan.settings.tablets} tablets; seed {plan.seed}; faults: {args.faults}"
    )
    table = Table.grid(padding=(0, 3, 0, 0))
    for one in report.outcomes:
        span = f"{one.began / 1000:.2f}-{one.ended / 1000:.2f} s"
        table.add_row(span, one.operation, one.result)
    out.print(table)
    for name, status in report.indexes.items():
        out.print(f"index {name}: {status}", markup=False)
    counted = ", ".join(f"{number} {what}" for what, number in report.counted.items())
    out.print(f"{report.simulated_ms / 1000:.1f} s simulated; {counted}")
    for text in (*report.breaches, *report.refused):
        out.print(f"BROKEN {text}", style="red", markup=False)
    if report.kept:
        out.print("every promise was kept, and every step is one of the definitions", style="green")
    for line in (f"traces: {directory}", *validations(report, directory), _reproduce(args)):
        out.print(line, style="dim", soft_wrap=True, markup=False)


def validations(report: Report, directory: Path) -> tuple[str, ...]:
    """The commands that validate the traces of a run that had an index."""
    size = report.sizes
    of_job = f"--size Tablet={size['Tablet']} --size Index={size['Index']}"
    if not size["Index"]:
        return ()
    return (
        f"check the indexes: stagewright validate {directory / 'permissions.jsonl'} --size Server={size['Server']}",
        f"check the job: stagewright validate {directory / 'job.jsonl'} {of_job}",
        f"check the tablets: stagewright validate {directory / 'tablets.jsonl'}",
    )


def _reproduce(args: argparse.Namespace) -> str:
    words = ["stagewright", "run", "--nodes", str(args.nodes), "--seed", str(args.seed)]
    return "reproduce: " + shlex.join([*words, "--faults", args.faults, "--script", args.script])
