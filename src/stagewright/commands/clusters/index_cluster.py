"""`stagewright cluster` where a directory has an indexed table: its processes are started, killed, stopped, shown."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.impl.indexes.processes.supervisor import IndexSupervisor, Report

ACTIONS = ("start", "status", "watch", "kill", "stop", "trace")


def is_of_indexes(directory: Path) -> bool:
    """Whether an indexed table lies there."""
    return (directory / "table.json").exists()


def execute(args: argparse.Namespace) -> int:
    """Do it; 1 if the cluster fails, or is not well."""
    from stagewright.impl.indexes.processes.layout import IndexLayout
    from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
    from stagewright.impl.processes.errors import OperationFailedError
    from stagewright.spec.errors import InputError

    def show(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if args.action not in ACTIONS:
        raise InputError(
            f"a cluster with an indexed table has no `{args.action}`",
            help=f"it has: {', '.join(ACTIONS)}",
        )
    supervisor = IndexSupervisor(IndexLayout(args.dir), show)
    try:
        if args.action == "start":
            _create(args, supervisor)
        supervisor.layout.file()  # refuses a directory that has none
        return _done(args, supervisor)
    except OperationFailedError as error:
        if args.json:
            print(json.dumps({"failed": error.problem}))
        print(error, file=sys.stderr)
        return ExitCode.VIOLATED


def refuse(args: argparse.Namespace) -> None:
    """Refuse what only a cluster with an indexed table has.

    Raises:
        InputError: always.
    """
    from stagewright.spec.errors import InputError

    what = "trace" if args.action == "trace" else "--tablets"
    raise InputError(
        f"{what} is for a cluster with an indexed table",
        help="`stagewright cluster start --indexes --dir D` begins one",
    )


def _create(args: argparse.Namespace, supervisor: IndexSupervisor) -> None:
    from stagewright.impl.indexes.processes.layout import REAL
    from stagewright.spec.errors import InputError

    if args.cdc or args.images or args.etcd or args.listen != "127.0.0.1":
        raise InputError(
            "a cluster with an indexed table has no --cdc, --images, --etcd or --listen",
            help="leave them out",
        )
    if not supervisor.layout.exists:
        supervisor.create(args.nodes or 3, replace(REAL, tablets=args.tablets or REAL.tablets))
        return
    file = supervisor.layout.file()
    for flag, given, has in (
        ("--nodes", args.nodes, len(file.servers)),
        ("--tablets", args.tablets, file.settings.tablets),
    ):
        if given not in (None, has):
            raise InputError(
                f"{flag} {given}: the cluster in {args.dir} has {has}",
                help=f"start it without {flag}",
            )


def _done(args: argparse.Namespace, supervisor: IndexSupervisor) -> int:
    node: str = getattr(args, "node", None) or ""
    match args.action:
        case "start":
            done = supervisor.start()
            said = f"{', '.join(done) or 'no process'} started; the table is served"
        case "status":
            return _status(args, supervisor.status())
        case "trace":
            return _trace(args, supervisor)
        case "watch":
            return _watch(args, supervisor)
        case "kill":
            supervisor.kill(node)
            done, said = [node], f"{node} is killed"
        case _:
            done = supervisor.stop([node] if node else None)
            said = f"{', '.join(done) or 'no process'} stopped"
    print(json.dumps({"action": args.action, "nodes": done}) if args.json else said)
    return ExitCode.HOLDS


def _status(args: argparse.Namespace, report: Report) -> int:
    from stagewright.commands.clusters.index_shell import build_as_text
    from stagewright.impl.indexes.processes.progress import shown_build

    builds = [shown_build(build) for build in report.builds or ()]
    if args.json:
        processes = [asdict(p) for p in report.processes]
        print(json.dumps({"well": report.is_well, "processes": processes, "builds": builds}))
    else:
        for process in report.processes:
            lives = "is dead" if process.process is None else f"process {process.process}"
            leads = " ".join(process.leads or ()) or "nothing"
            silent = process.process is not None and process.leads is None
            print(f"{process.name}\t{lives}\t{'does not answer' if silent else f'leads {leads}'}")
        for build in builds:
            print(build_as_text(build))
    return ExitCode.HOLDS if report.is_well else ExitCode.VIOLATED


def _watch(args: argparse.Namespace, supervisor: IndexSupervisor) -> int:
    """Serve the page until the user has enough."""
    from stagewright.commands.console.serving import serve_page
    from stagewright.live.index_watch import IndexWatch, server

    watch = IndexWatch(supervisor)
    try:
        return serve_page(args, lambda: server(watch, args.port))
    finally:
        watch.close()


def _trace(args: argparse.Namespace, supervisor: IndexSupervisor) -> int:
    """Write what masters have decided as traces."""
    from stagewright.impl.indexes.processes.traces import write_traces

    written = write_traces(supervisor.layout, args.out)
    if args.json:
        print(json.dumps([{"path": str(t.path), "sizes": dict(t.sizes)} for t in written]))
        return ExitCode.HOLDS
    for trace in written:
        words = " ".join(f"--size {name}={count}" for name, count in trace.sizes.items())
        print(f"stagewright validate {trace.path} {words}".rstrip())
    return ExitCode.HOLDS
