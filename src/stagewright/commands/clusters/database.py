"""The database in a directory: a process a node, whose nodes come and go."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewright.commands.clusters.kinds import Done, Kind, show
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.serving import until_interrupted
from stagewright.impl.processes.layout import Layout, Settings
from stagewright.impl.processes.supervisor import LOOPBACK, TABLE, Supervisor
from stagewright.impl.ring.initial_tokens import parse_tokens
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.commands.clusters.row_shell import RowShell
    from stagewright.live.watch import Watch

NODES = REPLICAS = 3


class Database(Kind[Supervisor]):
    """Its log of commands is one file, or lies in etcd."""

    name = "a cluster of the database"
    begins = "with --indexes, `start` begins a cluster with an indexed table"
    mark = "cluster.json"
    member = "node"
    serves = "all nodes serve"
    actions = ("add", "decommission", "remove", "replace", "rebuild", "abort", "cleanup", "tail")
    flags = ("replicas", "listen", "etcd", "cdc", "images")

    def __init__(self, directory: Path) -> None:
        self.supervisor = Supervisor(Layout(directory), show)

    def refuse_none(self) -> None:
        self.supervisor.layout.settings()

    def start(self, args: argparse.Namespace) -> list[str]:
        supervisor, cdc = self.supervisor, args.cdc or args.images
        if supervisor.layout.exists:
            self._refuse_other_cluster(args)
        else:
            nodes = args.nodes or NODES
            if args.replicas and args.replicas > nodes:
                raise InputError(
                    f"--replicas {args.replicas} is more than {counted(nodes, 'node')}",
                    help="each replica is on a node of its own: add --nodes, or ask for fewer",
                )
            supervisor.create(nodes, _settings(args), args.listen or LOOPBACK)
        started = supervisor.start(args.replicas or REPLICAS, cdc=cdc, images=args.images)
        if args.replicas or cdc:
            self._refuse_other_table(args, cdc=cdc)
        return started

    def more(self, args: argparse.Namespace) -> Done | ExitCode:
        supervisor = self.supervisor
        node: str = getattr(args, "node", "")
        match args.action:
            case "tail":
                return self._tail(args)
            case "add":
                name = supervisor.add(
                    lacks=args.lacking,
                    tokens=parse_tokens(args.tokens, "--tokens: ") if args.tokens else (),
                )
                return Done([name], f"{name} has joined")
            case "replace":
                name = supervisor.add(node, args.lacking)
                return Done([name], f"{name} has replaced {node}")
            case "decommission":
                supervisor.decommission(node)
                return Done([node], f"{node} has left")
            case "remove":
                supervisor.remove(node)
                return Done([node], f"{node} is removed")
            case "rebuild":
                supervisor.rebuild(node)
                return Done([node], f"{node} has its rows anew")
            case "abort":
                supervisor.abort(node)
                return Done([node], f"what was asked of {node} is given up")
            case _:
                supervisor.clean_up()
                return Done([], "nodes clean up")

    def status(self) -> tuple[bool, dict[str, Any], Iterator[Any]]:
        from stagewright.commands.clusters.status import shown

        report = self.supervisor.status()
        document = {**asdict(report), "views": [build.shown for build in report.views]}
        return report.is_well, document, shown(report)

    def watched(self) -> Watch:
        from stagewright.live.watch import Watch

        return Watch(self.supervisor.layout)

    def shell(self, args: argparse.Namespace) -> RowShell:
        from stagewright.commands.clusters.row_shell import RowShell
        from stagewright.impl.node.messages import Level

        timing = self.supervisor.layout.settings().timing
        session = self.supervisor.session()
        session.level = Level(args.consistency)
        return RowShell(session, timing, as_json=args.json)

    def _tail(self, args: argparse.Namespace) -> ExitCode:
        """Print changes, and keep the position after what is printed."""
        from stagewright.commands.reports.writing import check_file
        from stagewright.live.tail import tail

        if args.position is not None:
            check_file("--position", str(args.position))
        session = self.supervisor.session(args.table or TABLE, waits=True)
        try:
            with until_interrupted():
                timing = self.supervisor.layout.settings().timing
                tail(session, timing, args.position, show, until_now=args.until_now)
        finally:
            session.close()
        return ExitCode.HOLDS

    # -- what cannot change any more ---------------------------------------------------------------------------

    def _refuse_other_cluster(self, args: argparse.Namespace) -> None:
        layout = self.supervisor.layout
        names = layout.names()
        has = len([n for n in names if not layout.stopped(n)])
        if args.nodes not in (None, has):
            raise InputError(
                f"the cluster in {args.dir} has {counted(has, 'node')}, not {args.nodes}",
                help="start it without --nodes; `add` and `decommission` change their number",
            )
        listens = layout.node_file(names[0]).identity.host.address.rpartition(":")[0]
        etcd = layout.settings().etcd
        for flag, asked, there in (
            ("--listen", args.listen, listens),
            ("--etcd", args.etcd, ",".join(etcd)),
        ):
            if asked not in (None, there):
                raise InputError(
                    f"{flag} {asked}: the cluster in {args.dir} was begun with {there or 'none'}",
                    help=f"start it without {flag}, or begin another one",
                )

    def _refuse_other_table(self, args: argparse.Namespace, *, cdc: bool) -> None:
        """The nodes refuse to make a table once more that is another one.

        Raises:
            ClusterError: they say how it differs.
        """
        session = self.supervisor.session()
        try:
            replicas = args.replicas or session.tables()[TABLE]
            session.create(TABLE, replicas, cdc=cdc, images=args.images)
        finally:
            session.close()


def _settings(args: argparse.Namespace) -> Settings:
    return Settings(etcd=tuple(args.etcd.split(",")) if args.etcd else ())
