"""`stagewright campaign`: the database, the view engine or indexes, under all that seeds draw; each run is checked."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.commands.campaigning.asked import Asked
    from stagewright.commands.campaigning.subject import Campaign

_EXAMPLE = """\
examples:
  stagewright campaign --seeds 0..200
  stagewright campaign --seeds 0..20000 --workers 8 --out artifacts/campaign
  stagewright campaign --seeds 17 --json
  stagewright campaign --of view-engine --seeds 0..300
  stagewright campaign --of indexes --seeds 0..2000 --workers 4 --out artifacts/indexes
  stagewright campaign --of view-engine --seeds 0..20 --wrong-build old_rows_stay --out artifacts/views

Each seed draws a script (nodes join, leave, are replaced, removed, rebuilt and cut off; half of the scripts make
tables of tablets, and a third views that are awaited, dropped and created again), faults, clients and sizes; half are a swarm, a quarter aims one fault at one state of the topology, a quarter is directed. Each run
is checked by what clients were promised and by the definitions, step by step. The report says how often each
fault was met in each state of the topology, and what never was; a failure comes with the smallest scenario
that shows it and the command that runs it again.

Of the view engine, a seed draws a cluster of 2 to 5 nodes, what its manager does, crashes, lost and late messages,
writes and queries; every answer has to be map/reduce over the documents at the sequence numbers that it reports, and
traces and logs have to be runs of the definitions.

Of indexes, a seed draws a table, transactions, indexes that are created, awaited, dropped and deferred, crashes,
failovers, and lost, late and repeated messages; an index has to equal its table at every read time, and every step
of masters, tablets and transactions has to be one of the definitions.

With --out results are kept: the same command goes on where it was interrupted. A run of the view engine or of indexes that
fails leaves its traces there, and its logs, for `stagewright validate`.
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
        help="what is run (default: database)",
    )
    add(
        "--seeds",
        type=_seeds,
        default=range(100),
        metavar="A..B",
        help="from A up to, not with, B (default: 0..100)",
    )
    add("--workers", type=_count, metavar="N", help="processes (default: one a core)")
    add(
        "--seconds",
        type=_count,
        metavar="N",
        help="begin no run after so long; what is left is undecided",
    )
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="keep results here, and go on with those that are there",
    )
    add(
        "--shrink",
        type=int,
        metavar="N",
        help="how many sorts of failure of the database or of indexes to make small (default: 3)",
    )
    add(
        "--wrong-build",
        action="append",
        default=[],
        metavar="NAME",
        help="run a build with this known mistake: what checks it has to notice (repeatable)",
    )
    add("--json", action="store_true", help="print one JSON object")  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Run the seeds, and say what was met and what failed."""
    from stagewright.commands.campaigning.asked import Asked
    from stagewright.commands.console.output import console

    workers = args.workers or os.cpu_count() or 1
    asked = Asked(
        args.of, args.seeds, workers, args.out, args.seconds, args.shrink, tuple(args.wrong_build)
    )
    campaign = _campaign(asked)
    tally = campaign.run()
    if args.json:
        print(json.dumps(campaign.as_json(), indent=2))
    else:
        out = console()
        out.print(campaign.as_text())
        for line in campaign.failures():
            out.print(line, soft_wrap=True, markup=False, highlight=False)
        if not tally.failed and tally.runs:
            out.print(
                "every promise was kept, and every step is one of the definitions", style="green"
            )
    if tally.failed:
        return ExitCode.VIOLATED
    return ExitCode.HOLDS if tally.runs == len(args.seeds) else ExitCode.UNDECIDED


def _campaign(asked: Asked) -> Campaign:
    from stagewright.commands.campaigning.asked import DATABASE, INDEXES

    if asked.of == DATABASE:
        from stagewright.commands.campaigning.of_database import DatabaseCampaign

        return DatabaseCampaign(asked)
    if asked.of == INDEXES:
        from stagewright.commands.campaigning.of_indexes import IndexCampaign

        return IndexCampaign(asked)
    from stagewright.commands.campaigning.of_view_engine import ViewEngineCampaign

    return ViewEngineCampaign(asked)


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
