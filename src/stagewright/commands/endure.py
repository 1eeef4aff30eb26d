"""`stagewright endure`: clusters of real processes, which are killed at random while clients write."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from stagewright.commands.console.exit_codes import ExitCode

_EXAMPLE = """\
examples:
  stagewright endure                          # three builds of each kind
  stagewright endure --builds 100 --seed 7
  stagewright endure --of views --builds 20
  stagewright endure --of topology --nodes 24 --kills 200 --etcd 3
  stagewright endure --builds 1000 --seconds 1200 --json

Indexes: non-unique, unique and deferred ones are built one after the other in clusters of three tablet servers and two
masters, while two clients write, tablets split, and servers, masters and builders are killed (SIGKILL) and started again. At the
end of each cluster all versions on its disks are compared with what was committed: each index is its table at every time from
its scan on, no constraint is missed or invented, nothing is lost; the steps of masters and the logs of all processes are
steps of the definitions.

Views: a view of a table of tablets is built again and again while a client writes and nodes are killed; each third time a node
joins and another one leaves.

Topology: nodes of a cluster with a table of tablets are killed while two clients write; every ten kills a node joins and another
one leaves. If there is an etcd (on the path, or named by STAGEWRIGHT_ETCD), the log of commands is in three members of it,
and its leader is killed, too. At the end, and again after a restart, every acknowledged write is looked for.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright endure``."""
    from stagewright.commands.console.machine_flags import positive

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "Build indexes or views, or change the topology, in real processes that are killed at random."
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add = parser.add_argument
    add(
        "--of",
        choices=["indexes", "views", "topology"],
        default="indexes",
        help="what is done meanwhile (default: indexes)",
    )
    add("--builds", type=positive, metavar="N", help="builds of each kind (default: 3)")
    add(
        "--seconds",
        type=positive,
        metavar="N",
        help="begin no cluster, no view, no kill after N seconds",
    )
    add("--kills", type=positive, metavar="N", help="kills, of topology (default: 20)")
    add("--nodes", type=positive, metavar="N", help="nodes, of topology (default: 4)")
    add(
        "--etcd",
        type=int,
        metavar="MEMBERS",
        help="members of etcd, of topology; 0: none (default: 3 if there is an etcd)",
    )
    add("--seed", type=int, default=0, metavar="N", help="of what happens when (default: 0)")
    add("--dir", type=Path, metavar="DIR", help="keep the clusters there (default: nowhere)")
    add("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Endure, and say what was done."""
    from stagewright.impl.endurance.broken import BrokenError
    from stagewright.impl.endurance.index_builds import endure as build_indexes
    from stagewright.impl.endurance.topology import endure as change_topology
    from stagewright.impl.endurance.view_builds import endure as build_views
    from stagewright.spec.errors import InputError

    _refuse_options(args)
    directory = args.dir or Path(tempfile.mkdtemp(prefix="endure-"))
    if args.dir is not None and directory.exists() and any(directory.iterdir()):
        raise InputError(f"--dir {directory}: it is not empty", help="name a new directory")
    began, done, broken = time.monotonic(), Counter[str](), ""
    seconds = float("inf") if args.seconds is None else args.seconds
    try:
        if args.of == "topology":
            nodes, wanted = args.nodes or 4, args.kills or 20
            members = _members(args.etcd)
            change_topology(
                directory, nodes, wanted, members, args.seed, done, seconds, _report_kills
            )
        elif args.of == "views":
            build_views(directory, args.builds or 3, args.seed, done, seconds, _report)
        else:
            build_indexes(
                directory, args.builds or 3, args.seed, done, seconds, _check_logs, _report
            )
    except BrokenError as error:
        broken = str(error)
    finally:
        if args.dir is None and not broken:
            _remove(directory)
    took = round(time.monotonic() - began)
    if args.json:
        kept = str(directory) if broken or args.dir else None
        print(
            json.dumps(
                {"done": dict(sorted(done.items())), "broken": broken, "seconds": took, "dir": kept}
            )
        )
    else:
        for what, count in sorted(done.items()):
            print(f"{count:>8,}  {what}")
        print(
            f"BROKEN {broken}\nthe clusters: {directory}"
            if broken
            else f"nothing was lost or wrong in {took} s"
        )
    return ExitCode.VIOLATED if broken else ExitCode.HOLDS


def _refuse_options(args: argparse.Namespace) -> None:
    from stagewright.spec.errors import InputError

    of_topology = [n for n in ("kills", "nodes", "etcd") if getattr(args, n) is not None]
    if args.of != "topology" and of_topology:
        raise InputError(f"--{of_topology[0]}: nothing but `--of topology` takes it")
    if args.of == "topology" and args.builds is not None:
        raise InputError("--builds: nothing is built", help="`--kills N`: so many kills")
    if args.etcd is not None and args.etcd < 0:
        raise InputError(f"--etcd {args.etcd}: from 0 on")


def _members(wanted: int | None) -> int:
    """Of etcd."""
    from stagewright.impl.group0.etcd_process import find_etcd

    if wanted is not None:
        return wanted
    return 3 if find_etcd() is not None else 0


def _check_logs(logs: Sequence[Path]) -> str:
    from stagewright.commands.campaigning.logs import YUGABYTE, check_logs

    return check_logs(logs, YUGABYTE)[1]


def _report(done: Counter[str]) -> None:
    print(
        f"{sum(done[k] for k in done if ': ' in k)} builds, {done['kills']} kills",
        file=sys.stderr,
        flush=True,
    )


def _report_kills(done: Counter[str]) -> None:
    words = ", ".join(f"{count} {what}" for what, count in sorted(done.items()) if count)
    print(words, file=sys.stderr, flush=True)


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
