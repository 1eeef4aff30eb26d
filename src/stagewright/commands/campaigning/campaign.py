"""`stagewright campaign`: the database, the view engine or indexes, under all that seeds draw; each run is checked."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.commands.campaigning.asked import Asked
    from stagewright.commands.campaigning.subject import Subject

_EXAMPLE = """\
examples:
  stagewright campaign --seeds 0..200
  stagewright campaign --seeds 0..20000 --workers 8 --out artifacts/campaign
  stagewright campaign --seeds 17 --json
  stagewright campaign --of view-engine --seeds 0..300
  stagewright campaign --of indexes --seeds 0..2000 --workers 4 --out artifacts/indexes
  stagewright campaign --of view-engine --seeds 0..20 --wrong-build old_rows_stay --out artifacts/views
  stagewright campaign --seeds 0..24 --wrong-build all --logs

Each seed generates a script (nodes join, leave, are replaced, removed, rebuilt and cut off; half of the scripts create
tables with tablets, a third create, await, drop and recreate views), faults, clients and sizes. Half of the runs are
a swarm, a quarter aim one fault at one state of the topology, and a quarter are directed. Each run is checked, step by
step, against what clients were promised and against the definitions. The report says how often each fault occurred
in each state of the topology, and which combinations never did; a failure comes with the smallest scenario that
shows it and the command that reproduces it.

For the view engine, a seed generates a cluster of 2 to 5 nodes, what its manager does, crashes, lost and late messages,
writes and queries. Every answer must be map/reduce over the documents at the sequence numbers that it reports, and
traces and logs must be runs of the definitions.

For indexes, a seed generates a table, transactions, indexes that are created, awaited, dropped and deferred, crashes,
failovers, and lost, late and repeated messages. An index must equal its table at every read time, and every step
of masters, tablets and transactions must be a step of the definitions.

--out keeps results: after an interruption the same command continues. A run of the view engine or of indexes that
fails leaves its traces and logs there, for `stagewright validate`.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright campaign``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add = parser.add_argument
    add(
        "--of",
        choices=["database", "view-engine", "indexes"],
        default="database",
        help="what to run (default: database)",
    )
    add(
        "--seeds",
        type=_seeds,
        default=range(100),
        metavar="A..B",
        help="from A up to, but not including, B (default: 0..100)",
    )
    add("--workers", type=_count, metavar="N", help="processes (default: one per core)")
    add(
        "--seconds",
        type=_count,
        metavar="N",
        help="begin no run after N seconds; what is left is undecided",
    )
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="keep results there, and continue from those already there",
    )
    add(
        "--shrink",
        type=int,
        metavar="N",
        help="how many kinds of failure of the database or of indexes to minimize (default: 3)",
    )
    add(
        "--wrong-build",
        action="append",
        default=[],
        metavar="NAME",
        help="run a build with this known mistake, which the checks must notice (repeatable); `all`, or a "
        "pattern such as 'view_*': each of these builds by itself, until every check has noticed it",
    )
    add(
        "--logs",
        action="store_true",
        help="of the database: also check the logs of its nodes (half as slow again)",
    )
    add("--json", action="store_true", help="print one JSON object")  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Run the seeds, and say what was met and what failed."""
    from stagewright.commands.campaigning.asked import Asked, is_hunt
    from stagewright.commands.campaigning.report import Campaign
    from stagewright.commands.console.output import console

    workers = args.workers or os.cpu_count() or 1
    asked = Asked(
        args.of,
        args.seeds,
        workers,
        args.out,
        args.seconds,
        args.shrink,
        tuple(args.wrong_build),
        args.logs,
    )
    if is_hunt(asked.wrong_builds):
        return _hunt(asked, as_json=args.json)
    campaign = Campaign(_kind(asked.of)(asked))
    campaign.run()
    tally = campaign.tally
    if args.json:
        print(json.dumps(campaign.as_json(), indent=2))
    else:
        out = console()
        out.print(campaign.as_text())
        for line in campaign.failures():
            out.print(line, soft_wrap=True, markup=False, highlight=False)
        if not tally.failed and tally.runs:
            out.print(
                "every property holds, and every step is one of the definitions", style="green"
            )
    if tally.failed:
        return ExitCode.VIOLATED
    return ExitCode.HOLDS if tally.runs == len(args.seeds) else ExitCode.UNDECIDED


def _hunt(asked: Asked, *, as_json: bool) -> int:
    """Run wrong builds one after the other, and say which seed shows each, to whom."""
    from stagewright.commands.campaigning.wrong_builds import WrongBuildHunts

    hunts = WrongBuildHunts(asked, _kind(asked.of))
    hunts.run()
    if as_json:
        print(json.dumps(hunts.as_json(), indent=2))
    else:
        print("\n".join(hunts.rows()))
    if hunts.tally.failed:
        return ExitCode.VIOLATED
    return ExitCode.HOLDS if hunts.tally.runs == len(hunts.builds) else ExitCode.UNDECIDED


def _kind(of: str) -> type[Subject[Any, Any]]:
    if of == "database":
        from stagewright.commands.campaigning.of_database import Database

        return Database
    if of == "indexes":
        from stagewright.commands.campaigning.of_indexes import Indexes

        return Indexes
    from stagewright.commands.campaigning.of_view_engine import ViewEngine

    return ViewEngine


def _seeds(text: str) -> range:
    first, dots, end = text.partition("..")
    try:
        found = range(int(first), int(end)) if dots else range(int(first), int(first) + 1)
    except ValueError:
        found = range(0)
    if not found or found[0] < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a seed nor seeds such as 0..2000")
    return found


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 10**7:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 9999999")
    return int(text)
