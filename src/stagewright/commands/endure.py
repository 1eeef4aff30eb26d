"""`stagewright endure`: clusters of real processes, which are killed at random while clients write."""

from __future__ import annotations

import argparse
import json
import signal
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
        help="begin no cluster, no view, no kill after N seconds; what is left is undecided",
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
    from stagewright.impl.processes.errors import ClusterError
    from stagewright.spec.errors import InputError

    _refuse_options(args)
    directory = args.dir or Path(tempfile.mkdtemp(prefix="endure-"))
    if args.dir is not None and directory.exists() and any(directory.iterdir()):
        raise InputError(f"--dir {directory}: it is not empty", help="name a new directory")
    began, done, broken = time.monotonic(), Counter[str](), ""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:  # whoever ends this ends its processes, too
        _endure(args, directory, done)
    except (BrokenError, ClusterError) as error:
        broken = str(error)
    finally:
        signal.signal(signal.SIGTERM, before)
        if args.dir is None and not broken:
            _remove(directory)
    took, counts = round(time.monotonic() - began), dict(sorted((+done).items()))
    missing = _wanted(args) - _of_wanted(args, done)
    if args.json:
        kept = str(directory) if broken or args.dir else None
        found = {"done": counts, "broken": broken, "missing": missing, "seconds": took, "dir": kept}
        print(json.dumps(found))
    else:
        for what, count in counts.items():
            print(f"{count:>8,}  {what}")
        if broken:
            print(f"BROKEN {broken}\nthe clusters: {directory}")
        else:
            print(f"nothing was lost or wrong in {took} s")
            if missing > 0:
                what = "kills" if args.of == "topology" else "builds"
                print(f"UNDECIDED the time was over before {missing:,} more {what}")
    if broken:
        return ExitCode.VIOLATED
    return ExitCode.UNDECIDED if missing > 0 else ExitCode.HOLDS


def _endure(args: argparse.Namespace, directory: Path, done: Counter[str]) -> None:
    from stagewright.impl.endurance.index_builds import endure as build_indexes
    from stagewright.impl.endurance.topology import endure as change_topology
    from stagewright.impl.endurance.view_builds import endure as build_views

    seconds = float("inf") if args.seconds is None else args.seconds
    if args.of == "topology":
        nodes, members = args.nodes or 4, _members(args.etcd)
        kills = _wanted(args)
        change_topology(directory, nodes, kills, members, args.seed, done, seconds, _report_kills)
    elif args.of == "views":
        build_views(directory, args.builds or 3, args.seed, done, seconds, _report)
    else:
        build_indexes(directory, args.builds or 3, args.seed, done, seconds, _check_logs, _report)


def _wanted(args: argparse.Namespace) -> int:
    """How many kills, or builds of all kinds together."""
    from stagewright.impl.endurance.index_builds import KINDS

    if args.of == "topology":
        return args.kills or 20
    return (args.builds or 3) * (len(KINDS) if args.of == "indexes" else 1)


def _of_wanted(args: argparse.Namespace, done: Counter[str]) -> int:
    return done["kills"] if args.of == "topology" else _builds(done)


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


def _builds(done: Counter[str]) -> int:
    """Whatever became of them: `unique: SUCCESS`."""
    return sum(count for what, count in done.items() if ": " in what)


def _report(done: Counter[str]) -> None:
    print(
        f"{_builds(done)} builds, {done['kills']} kills",
        file=sys.stderr,
        flush=True,
    )


def _report_kills(done: Counter[str]) -> None:
    words = ", ".join(f"{count} {what}" for what, count in sorted(done.items()) if count)
    print(words, file=sys.stderr, flush=True)


def _remove(directory: Path) -> None:
    import shutil

    shutil.rmtree(directory, ignore_errors=True)
