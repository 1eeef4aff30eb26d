"""`stagewright run --script "create table …"`: indexes are built while the table is written to."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.running.outcome import as_json, nodes_of, print_report, refuse_others
from stagewright.commands.running.script import WITHOUT_A_SCRIPT
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.indexes.simulated.run import Plan, Report


def run_index_script(args: argparse.Namespace, directory: Callable[[], Path]) -> int:
    """Work through a script, print what happened, and return 1 if a promise was broken."""
    from stagewright.impl.indexes.simulated.run import run

    plan = _plan_of(args)
    place = directory()
    report = run(plan, place)
    if args.json:
        print(json.dumps({**as_json(report, plan.seed), "indexes": report.indexes}, indent=2))
    else:
        _print(report, plan, place, args)
    return ExitCode.HOLDS if report.kept else ExitCode.VIOLATED


def _plan_of(args: argparse.Namespace) -> Plan:
    from stagewright.impl.indexes.simulated.run import Plan
    from stagewright.impl.indexes.simulated.script import parse_script
    from stagewright.impl.indexes.simulated.sizes import with_sizes
    from stagewright.impl.simulator.database.weather import parse_faults

    refuse_others(
        args,
        (*WITHOUT_A_SCRIPT, "replicas", "profile", "cdc"),
        "a script of indexes",
        "a script writes by `write NUMBER`, and the newest release runs",
    )
    plan = Plan(
        servers=nodes_of(args),
        seed=args.seed,
        script=parse_script(args.script),
        faults=parse_faults(args.faults),
    )
    return with_sizes(plan, args.workload or "")


def _print(report: Report, plan: Plan, directory: Path, args: argparse.Namespace) -> None:
    tablets = plan.settings.tablets
    print_report(
        report,
        f"{counted(plan.servers, 'server')}, {counted(tablets, 'tablet')}; seed {plan.seed}; faults: {args.faults}",
        (f"index {name}: {status}" for name, status in report.indexes.items()),
        None,
        (),
        "",
        "the definitions",
        (f"traces: {directory}", *validations(report, directory), _reproduce(args)),
    )


def validations(report: Report, directory: Path) -> tuple[str, ...]:
    """The commands that validate the traces of a run that had an index."""
    from stagewright.impl.indexes.simulated.run import LOGS
    from stagewright.machines.recorded import OF_INDEXES

    size = report.sizes
    of_job = f"--size Tablet={size['Tablet']} --size Index={size['Index']}"
    if not size["Index"]:
        return ()
    paths = (directory / f"{kind}.jsonl" for kind in OF_INDEXES)
    recorded = " ".join(str(path) for path in paths if path.exists())
    return (
        f"check the indexes: stagewright validate {directory / 'permissions.jsonl'} --size Server={size['Server']}",
        f"check the job: stagewright validate {directory / 'job.jsonl'} {of_job}",
        f"check the tablets: stagewright validate {directory / 'tablets.jsonl'}",
        f"check rows and entries: stagewright validate {recorded}",
        f"check the logs: stagewright validate {directory / LOGS}",
    )


def _reproduce(args: argparse.Namespace) -> str:
    words = ["stagewright", "run", "--nodes", str(args.nodes), "--seed", str(args.seed)]
    words += ["--workload", args.workload] if args.workload else []
    return "reproduce: " + shlex.join([*words, "--faults", args.faults, "--script", args.script])
