"""A table in a directory whose indexes are built while it is written to: its masters and tablet servers are processes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewright.commands.clusters.kinds import Kind, show
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.impl.indexes.processes.layout import REAL, IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor, ProcessReport
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.commands.clusters.index_shell import IndexShell
    from stagewright.live.index_watch import IndexWatch


class IndexedTable(Kind[IndexSupervisor]):
    """Its masters write down what they decide, which is its trace."""

    name = "a cluster with an indexed table"
    begins = "without --indexes, `start` begins a cluster of the database"
    mark = "table.json"
    member = "process"
    serves = "the table is served"
    actions = ("trace",)
    flags = ("tablets", "split_rows", "builder_share", "user_enforced")

    def __init__(self, directory: Path) -> None:
        self.supervisor = IndexSupervisor(IndexLayout(directory), show)

    def refuse_none(self) -> None:
        self.supervisor.layout.file()

    def start(self, args: argparse.Namespace) -> list[str]:
        supervisor = self.supervisor
        if not supervisor.layout.exists:
            tablets = args.tablets or REAL.tablets
            settings = replace(
                REAL,
                tablets=tablets,
                split_rows=args.split_rows or 0,
                builder_share=args.builder_share or REAL.builder_share,
                user_enforced=args.user_enforced,
            )
            supervisor.create(args.nodes or 3, settings)
        file = supervisor.layout.file()
        for flag, given, has in (
            ("--nodes", args.nodes, len(file.servers)),
            ("--tablets", args.tablets, file.settings.tablets),
            ("--split-rows", args.split_rows, file.settings.split_rows),
            ("--builder-share", args.builder_share, file.settings.builder_share),
        ):
            if given not in (None, has):
                raise InputError(
                    f"{flag} {given}: the cluster in {args.dir} has {has}",
                    help=f"start it without {flag}",
                )
        if args.user_enforced and not file.settings.user_enforced:
            raise InputError(
                f"--user-enforced: the table in {args.dir} has transactions",
                help="start it without --user-enforced",
            )
        return supervisor.start()

    def more(self, args: argparse.Namespace) -> ExitCode:
        """Write what masters have decided as traces."""
        from stagewright.impl.indexes.processes.traces import write_traces

        written = write_traces(self.supervisor.layout, args.out)
        if args.json:
            print(json.dumps([{"path": str(t.path), "sizes": dict(t.sizes)} for t in written]))
            return ExitCode.HOLDS
        for trace in written:
            words = " ".join(f"--size {name}={count}" for name, count in trace.sizes.items())
            print(f"stagewright validate {trace.path} {words}".rstrip())
        return ExitCode.HOLDS

    def status(self) -> tuple[bool, dict[str, Any], Iterator[str]]:
        from stagewright.commands.clusters.index_shell import build_as_text
        from stagewright.impl.indexes.processes.progress import listed, shown_build

        report = self.supervisor.status()
        builds = [shown_build(build) for build in listed(report.builds or ())]
        document = {"processes": [asdict(p) for p in report.processes], "builds": builds}
        lines = [*map(_as_text, report.processes), *map(build_as_text, builds)]
        return report.is_well, document, iter(lines)

    def watched(self) -> IndexWatch:
        from stagewright.live.index_watch import IndexWatch

        return IndexWatch(self.supervisor)

    def shell(self, args: argparse.Namespace) -> IndexShell:
        from stagewright.commands.clusters.index_shell import IndexShell

        return IndexShell(self.supervisor.client(), as_json=args.json)


def _as_text(process: ProcessReport) -> str:
    lives = "is dead" if process.process is None else f"process {process.process}"
    silent = process.process is not None and process.leads is None
    leads = f"leads {' '.join(process.leads or ()) or 'nothing'}"
    return f"{process.name}\t{lives}\t{'does not answer' if silent else leads}"
