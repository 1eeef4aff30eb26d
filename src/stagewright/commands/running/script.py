"""`stagewright run --script`: a cluster whose nodes join, leave and are replaced while clients write."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.running.outcome import as_json, nodes_of, print_report, refuse_others

if TYPE_CHECKING:
    from stagewright.impl.simulator.database.report import Report
    from stagewright.impl.simulator.database.run import Plan

ONLY_TABLETS = ("tablets", "migrations", "writes", "consistency")


def run_script(args: argparse.Namespace, directory: Path) -> int:
    """Work through a script, print what happened, and return 1 if a promise was broken."""
    from stagewright.impl.simulator.database.run import run

    plan = plan_of(args)
    report = run(plan, directory)
    if args.json:
        print(json.dumps(_as_json(report, plan), indent=2))
    else:
        _print(report, plan, directory, args)
    return ExitCode.HOLDS if report.kept else ExitCode.VIOLATED


def plan_of(args: argparse.Namespace) -> Plan:
    """What the arguments ask for.

    Raises:
        InputError: a part of the script or of the faults is none, or an argument is one of tablets alone.
    """
    from stagewright.impl.node.port import Timing
    from stagewright.impl.simulator.database.run import COMPACT_AFTER, Plan
    from stagewright.impl.simulator.database.script import parse_script
    from stagewright.impl.simulator.database.weather import parse_faults
    from stagewright.impl.simulator.database.workload import parse_workload
    from stagewright.impl.topology.planning import program
    from stagewright.spec.errors import InputError

    refuse_others(args, ONLY_TABLETS, "a script", "a script writes by `write NUMBER`")
    newest = program("").definition.profile
    if args.profile not in ("", newest):
        raise InputError(
            f"--profile {args.profile}: the nodes of a script run {newest}",
            help="leave --profile out; older releases are run without --script, and checked by `stagewright check`",
        )
    workload, chunk = parse_workload(args.workload or "")
    return Plan(
        nodes=nodes_of(args),
        replicas=min(3, args.nodes),
        seed=args.seed,
        script=parse_script(args.script),
        faults=parse_faults(args.faults),
        workload=workload,
        timing=Timing(compact_after=COMPACT_AFTER, chunk=chunk),
        cdc=args.cdc,
    )


def _as_json(report: Report, plan: Plan) -> dict[str, object]:
    return {
        **as_json(report, plan.seed),
        "nodes": report.nodes,
        "commits": report.commits,
        "moves": report.moves,
        "views": report.views,
        "edges": sorted(" ".join(edge) for edge in report.edges),
    }


def _print(report: Report, plan: Plan, directory: Path, args: argparse.Namespace) -> None:
    from stagewright.impl.server_log.files import LOGS
    from stagewright.machines.recorded import OF_NODES, OF_VIEWS

    nodes = ", ".join(f"{name} {state}" for name, state in report.nodes.items())
    topology = directory / "topology.jsonl"
    of_nodes = _written(directory, OF_NODES)
    of_views = _written(directory, ("view-tasks", *OF_VIEWS))
    print_report(
        report,
        f"{plan.nodes} nodes, {plan.replicas} replicas; seed {plan.seed}; faults: {args.faults}",
        (
            f"nodes: {nodes}",
            *(f"moved: {text}" for text in report.moves),
            *(f"view {name}: {status}" for name, status in report.views.items()),
        ),
        f", {report.commits} commits",
        "the definition",
        (
            f"traces: {directory}",
            f"check the topology: stagewright validate {topology} --size Node={len(report.nodes)}",
            *([f"check the nodes: stagewright validate {of_nodes}"] if of_nodes else []),
            *([f"check the views: stagewright validate {of_views}"] if of_views else []),
            f"check the logs: stagewright validate {directory / LOGS}",
            f"reproduce: {_reproduce(args)}",
        ),
    )


def _written(directory: Path, kinds: Iterable[str]) -> str:
    """The traces of these kinds: of what did not happen there is none."""
    paths = (directory / f"{kind}.jsonl" for kind in kinds)
    return " ".join(str(path) for path in paths if path.exists())


def _reproduce(args: argparse.Namespace) -> str:
    words = ["stagewright", "run", "--nodes", str(args.nodes), "--seed", str(args.seed)]
    words += ["--faults", args.faults, "--script", args.script]
    words += ["--workload", args.workload] if args.workload else []
    words += ["--cdc"] if args.cdc else []
    return shlex.join([*words, *(("--profile", args.profile) if args.profile else ())])
