"""`stagewright run`: a cluster whose nodes join, leave and are replaced while clients write."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.running.outcome import as_json, nodes_of, print_report, refuse_others
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.simulator.database.plan import Plan
    from stagewright.impl.simulator.database.report import Report

WITHOUT_A_SCRIPT = ("tablets", "writes")
_TABLETS, _WRITES, _LEAST_NODES = 8, 400, 3


def run_script(args: argparse.Namespace, plan: Plan, directory: Path) -> int:
    """Work through a script, print what happened, and return 1 if a promise was broken."""
    from stagewright.commands.running.progress import Progress
    from stagewright.impl.simulator.database.run import run

    with Progress(sys.stderr) as progress:
        report = run(plan, directory, progress)
    if args.json:
        print(json.dumps(_as_json(report, plan, directory), indent=2))
    else:
        _print(report, plan, directory, args)
    return ExitCode.HOLDS if report.kept else ExitCode.VIOLATED


def plan_of(args: argparse.Namespace) -> Plan:
    """What the arguments ask for.

    Raises:
        InputError: a part of the script, of the faults or of the workload is none, or a number is out of bounds.
    """
    from stagewright.impl.node.port import Timing
    from stagewright.impl.simulator.database.plan import COMPACT_AFTER, Plan
    from stagewright.impl.simulator.database.script import parse_script
    from stagewright.impl.simulator.database.weather import parse_faults
    from stagewright.impl.simulator.database.workload import parse_workload
    from stagewright.impl.topology.release import release

    release(args.profile)  # refuses what there is not
    nodes = nodes_of(args)
    if args.script is None:
        args.script = _usual(args, nodes)
    else:
        refuse_others(
            args, WITHOUT_A_SCRIPT, "a script", "write `table t tablets 8 rf 3; write 400`"
        )
    workload, chunk = parse_workload(args.workload or "")
    timing = Timing(compact_after=COMPACT_AFTER, chunk=chunk)
    return Plan(
        nodes=nodes,
        replicas=_replicas(args.replicas, nodes),
        seed=args.seed,
        script=parse_script(args.script),
        faults=parse_faults(args.faults),
        workload=workload,
        timing=timing,
        cdc=args.cdc or args.images,
        images=args.images,
        ttl=_kept(args, timing.least_kept),
        profile=args.profile,
    )


def _replicas(asked: int | None, nodes: int) -> int:
    """How many replicas the rows of the token ring have."""
    from stagewright.spec.errors import InputError

    if asked is not None and not 1 <= asked <= nodes:
        help_ = f"each is on a node of its own: write a number from 1 to {nodes}, or add --nodes"
        raise InputError(f"--replicas {asked}: out of bounds", help=help_)
    return min(3, nodes) if asked is None else asked


def _kept(args: argparse.Namespace, least: int) -> int:
    """For how many milliseconds logs keep changes; 0: for ever."""
    from stagewright.spec.errors import InputError

    if args.ttl and not (args.cdc or args.images):
        raise InputError(f"--ttl {args.ttl}: there are no logs", help="write --cdc, too")
    if args.ttl and args.ttl < least:
        raise InputError(
            f"--ttl {args.ttl}: a log keeps changes for at least {least} ms, for writes may be late",
            help=f"write {least} or more; or 0, to keep them for ever",
        )
    return int(args.ttl)


def _usual(args: argparse.Namespace, nodes: int) -> str:
    """The script of a run that names none: a table of tablets, whose nodes come and go while it is written to."""
    from stagewright.impl.simulator.database.script import MOST, TABLETS
    from stagewright.spec.errors import InputError

    tablets = _TABLETS if args.tablets is None else args.tablets
    writes = _WRITES if args.writes is None else args.writes
    if tablets not in TABLETS:
        help_ = f"write a power of two up to {TABLETS[-1]}"
        raise InputError(f"--tablets {tablets}: no number of tablets", help=help_)
    if writes > MOST:
        raise InputError(f"--writes {writes}: out of bounds", help=f"write at most {MOST}")
    if nodes < _LEAST_NODES:
        problem = f"--nodes {nodes}: without --script one node leaves and another is replaced"
        raise InputError(
            problem, help=f"take {_LEAST_NODES} at least, or say with --script what is done"
        )
    return (
        f"table t tablets {tablets} rf 3; write {writes}; join n{nodes + 1}; decommission n1; "
        f"replace n2 by n{nodes + 2}"
    )


def _as_json(report: Report, plan: Plan, directory: Path) -> dict[str, object]:
    from stagewright.impl.simulator.database.weather import faults_text

    return {
        **as_json(report, plan.seed),
        "script": "; ".join(map(str, plan.script)),
        "faults": faults_text(plan.faults),
        "nodes": report.nodes,
        "commits": report.commits,
        "moves": report.moves,
        "views": report.views,
        "edges": sorted(" ".join(edge) for edge in report.edges),
        "met": [
            {"state": state, "what": what, "times": times}
            for (state, what), times in sorted(report.met.items())
        ],
        "story": [{"ms": when, "what": what} for when, what in report.story],
        "traces": sorted(str(path) for path in directory.glob("*.jsonl")),
    }


def _print(report: Report, plan: Plan, directory: Path, args: argparse.Namespace) -> None:
    from stagewright.commands.running.text import story_of, table_of_faults
    from stagewright.impl.server_log.files import LOGS
    from stagewright.machines.recorded import OF_CHANGES, OF_NODES, OF_VIEWS

    nodes = ", ".join(f"{name} {state}" for name, state in report.nodes.items())
    topology = directory / "topology.jsonl"
    of_nodes = _written(directory, ("tablets", *OF_NODES))
    of_views = _written(directory, ("view-tasks", *OF_VIEWS))
    choices = _sized(directory / "view-choices.jsonl", ("View", "Base", "Tablet", "Shard"))
    of_changes = _written(directory, OF_CHANGES)
    print_report(
        report,
        f"{counted(plan.nodes, 'node')}, {counted(plan.replicas, 'replica')}; seed {plan.seed}; faults: {args.faults}",
        (
            f"nodes: {nodes}",
            *(f"moved: {text}" for text in report.moves),
            *(f"view {name}: {status}" for name, status in report.views.items()),
        ),
        table_of_faults(report),
        story_of(report),
        f", {report.commits} commits",
        "the definitions",
        (
            f"traces: {directory}",
            f"check the topology: stagewright validate {topology} --size Node={len(report.nodes)}",
            *([f"check the nodes: stagewright validate {of_nodes}"] if of_nodes else []),
            *([f"check the views: stagewright validate {of_views}"] if of_views else []),
            *([f"check the choices: stagewright validate {choices}"] if choices else []),
            *([f"check the changes: stagewright validate {of_changes}"] if of_changes else []),
            f"check the logs: stagewright validate {directory / LOGS}",
            f"reproduce: {_reproduce(args)}",
        ),
    )


def _written(directory: Path, kinds: Iterable[str]) -> str:
    """The traces of these kinds: of what did not happen there is none."""
    paths = (directory / f"{kind}.jsonl" for kind in kinds)
    return " ".join(str(path) for path in paths if path.exists())


def _sized(path: Path, entities: Sequence[str]) -> str:
    """A trace of one machine with how many of each entity it speaks of; nothing of what did not happen."""
    if not path.exists():
        return ""
    named = dict.fromkeys(entities, 1)
    members = re.compile(rf"\b({'|'.join(entities)})([0-9]+)\b", re.IGNORECASE)
    for kind, number in members.findall(path.read_text("utf-8")):
        named[kind.capitalize()] = max(named[kind.capitalize()], int(number) + 1)
    return f"{path} {' '.join(f'--size {name}={number}' for name, number in named.items())}"


def _reproduce(args: argparse.Namespace) -> str:
    words = ["stagewright", "run", "--nodes", str(args.nodes), "--seed", str(args.seed)]
    words += ["--faults", args.faults, "--script", args.script]
    words += ["--workload", args.workload] if args.workload else []
    words += ["--cdc"] if args.cdc else []
    words += ["--images"] if args.images else []
    words += ["--ttl", str(args.ttl)] if args.ttl else []
    return shlex.join([*words, *(("--profile", args.profile) if args.profile else ())])
