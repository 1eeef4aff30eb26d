"""Starts a cluster of real processes in a directory, and carries an operator's wishes to it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import NoReturn

from stagewright.commands.console.action_parser import ActionParser
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import count

_EXAMPLE = """\
examples:
  stagewright cluster start --nodes 3 --dir /tmp/c     create a cluster, or start the one that was stopped
  stagewright shell --dir /tmp/c -c "put a 1; get a"   write and read rows
  stagewright cluster add --dir /tmp/c                 n4 joins, while clients go on working
  stagewright cluster kill n1 --dir /tmp/c             kill -9
  stagewright cluster replace n1 --dir /tmp/c          n5 takes the dead node's place
  stagewright cluster decommission n2 --dir /tmp/c     n2 hands over its rows and leaves
  stagewright cluster tail --dir /tmp/c                changes of rows, if it was started with --cdc
  stagewright cluster watch --dir /tmp/c               a page that follows it, on the loopback
  stagewright cluster stop --dir /tmp/c
  stagewright cluster start --indexes --dir /tmp/i     a table whose indexes are built while it is written to
  stagewright cluster watch --dir /tmp/i               a page: progress of the builds, who leads what
  stagewright cluster trace --out /tmp/t --dir /tmp/i  what its masters decided, for `stagewright validate`

Each node is a process that keeps its rows in RocksDB; the log that the nodes agree on is one SQLite file, or is
kept in etcd (--etcd). Nodes listen on the loopback unless --listen names another address; callers must know the
secret stored in the directory, but traffic is not encrypted.

exit codes: 0 done, 1 the cluster refused or failed (of `status`: a node is not well), 2 bad input or usage
"""

_EXAMPLES = {
    "start": "--nodes 3 --cdc ",
    "tail": "--position /tmp/position ",
    "watch": "--port 8080 --browser ",
    "decommission": "n2 ",
    "remove": "n1 ",
    "replace": "n1 ",
    "rebuild": "n2 ",
    "abort": "n2 ",
    "kill": "n1 ",
    "trace": "--out /tmp/t ",
    "stop": "n1 ",
}  # what follows an action in the example of its help

_OF_A_NODE = (
    ("decommission", "let a node hand over its rows and leave"),
    ("remove", "remove a dead node for good"),
    ("replace", "let a new node take the place of a dead one"),
    ("rebuild", "let a node fetch its rows again"),
    ("abort", "withdraw the request for a node to leave, if it has not begun"),
    ("kill", "end a node's process without warning"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright cluster``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    parser.add_argument("--dir", type=_early, dest="early", help=argparse.SUPPRESS)
    actions = parser.add_subparsers(
        dest="action", required=True, metavar="ACTION", parser_class=ActionParser
    )

    def action(name: str, summary: str) -> argparse.ArgumentParser:
        one = actions.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example: stagewright cluster {name} {_EXAMPLES.get(name, '')}--dir /tmp/c",
        )
        one.add_argument(
            "--dir", type=Path, required=True, metavar="D", help="the cluster's directory"
        )
        one.add_argument("--json", action="store_true", help="print one JSON object")
        return one

    start = action("start", "create a cluster in a new directory, or start its stopped nodes")
    start.add_argument(
        "--nodes", type=_nodes, metavar="N", help="nodes of a new cluster (default: 3)"
    )
    start.add_argument(
        "--replicas", type=_nodes, metavar="N", help="replicas of each row (default: 3)"
    )
    start.add_argument(
        "--listen",
        metavar="HOST",
        help="the address on which nodes listen (default: 127.0.0.1)",
    )
    start.add_argument(
        "--etcd", metavar="URL,URL", help="endpoints of an etcd that keeps the log of commands"
    )
    start.add_argument("--cdc", action="store_true", help="keep a change log, see `tail`")
    start.add_argument(
        "--images", action="store_true", help="like --cdc, also with each row as it was before"
    )
    _offer_indexes(start)
    tail = action("tail", "print changes of rows as JSON lines, each once, as they come")
    tail.add_argument(
        "--position", type=Path, metavar="FILE", help="continue from this file, and update it"
    )
    tail.add_argument("--table", default="", metavar="NAME", help="the table (default: rows)")
    tail.add_argument(
        "--until-now", action="store_true", help="print what can be read by now, and end"
    )
    action("status", "report how each node is doing")
    watch = action("watch", "serve a page on the loopback that follows the cluster")
    watch.add_argument(
        "--port", type=count, default=0, metavar="N", help="the port (default: any free one)"
    )
    watch.add_argument("--browser", action="store_true", help="open the page in a browser")
    _offer_tokens(add := action("add", "let a new node join"))
    _lacking(add)
    for name, summary in _OF_A_NODE:
        one = action(name, summary)
        one.add_argument("node", metavar="NODE", help="such as n2")
        if name == "replace":
            _lacking(one)
    action("cleanup", "let nodes remove rows of ranges that they no longer own")
    trace = action("trace", "write the decisions of an indexed table's masters as traces")
    trace.add_argument("--out", type=Path, required=True, metavar="DIR", help="where to write them")
    stop = action("stop", "stop one node, or all")
    stop.add_argument("node", nargs="?", metavar="NODE", help="such as n2 (default: all)")


def _offer_tokens(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tokens",
        default="",
        metavar="T,T…",
        help="the tokens that it asks for (default: some); write --tokens=-5,17 if the first is negative",
    )


def _lacking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lacking",
        default="",
        metavar="FEATURE",
        help="the new node is of a release without this feature, such as TABLETS: it is rejected",
    )


def _offer_indexes(start: argparse.ArgumentParser) -> None:
    start.add_argument(
        "--indexes", action="store_true", help="use a table whose indexes are built online"
    )
    start.add_argument(
        "--tablets",
        type=_nodes,
        metavar="N",
        help="with --indexes: tablets of the table and of each index (default: 3)",
    )
    start.add_argument(
        "--split-rows",
        type=_rows,
        metavar="N",
        help="with --indexes: a tablet of the table that has N rows splits by itself (default: none does)",
    )
    start.add_argument(
        "--builder-share",
        type=_percent,
        metavar="PERCENT",
        help="with --indexes: of its time that a builder works while clients are served (default: 10)",
    )
    start.add_argument(
        "--user-enforced",
        action="store_true",
        help="with --indexes: writes are of one row each and hold no intents; builds wait until old ones time out",
    )


def execute(args: argparse.Namespace) -> int:
    """Do it; 1 if the cluster refuses or fails, or is not well."""
    from stagewright.commands.clusters.kinds import Done, kind_of
    from stagewright.impl.processes.errors import OperationFailedError

    kind = kind_of(args.dir, indexes=args.action == "start" and args.indexes)
    try:
        done = kind.act(args)
    except OperationFailedError as error:
        if args.json:
            print(json.dumps({"failed": error.problem}))
        print(error, file=sys.stderr)
        return ExitCode.VIOLATED
    if isinstance(done, Done):
        report = {"action": args.action, "nodes": done.nodes}
        print(json.dumps(report) if args.json else done.said)
        return ExitCode.HOLDS
    return done


def _early(text: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"comes after the action, as in `cluster status --dir {text}`")


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 2 on")
    return int(text)


def _percent(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 1 to 100")
    return int(text)


def _nodes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 100")
    return int(text)
