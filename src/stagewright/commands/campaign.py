"""`stagewright campaign`: the database under scripts, faults and workloads that seeds draw, checked twice."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.impl.simulator.campaign.shrinking import Shrunk
    from stagewright.impl.simulator.campaign.tally import Found, Tally

_EXAMPLE = """\
examples:
  stagewright campaign --seeds 0..200
  stagewright campaign --seeds 0..20000 --workers 8 --out artifacts/campaign
  stagewright campaign --seeds 17 --json

Each seed draws a script (nodes join, leave, are replaced, removed, rebuilt and cut off; half of the scripts make
tables of tablets, and a third views that are awaited, dropped and created again), faults, clients and sizes; half are a swarm, a quarter aims one fault at one state of the topology, a quarter is directed. Each run
is judged by what clients were promised and by the definitions, step by step. The report says how often each
fault was met in each state of the topology, and what never was; a failure comes with the smallest scenario
that shows it and the command that runs it again.

With --out results are kept: the same command goes on where it was interrupted.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright campaign``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add = parser.add_argument
    add(
        "--seeds",
        type=_seeds,
        default=range(100),
        metavar="A..B",
        help="from A up to, not with, B (0..100)",
    )
    add("--workers", type=_count, metavar="N", help="processes (one for each core)")
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
        default=3,
        metavar="N",
        help="how many sorts of failure to make small (3)",
    )
    add("--json", action="store_true", help="print one JSON object")  # fmt: skip


def execute(args: argparse.Namespace) -> int:
    """Run the seeds, make small what fails, and say what was met."""
    from stagewright.commands.campaigning.runs import run_seeds
    from stagewright.impl.simulator.campaign.drawing import draw
    from stagewright.impl.simulator.campaign.shrinking import shrink

    workers = args.workers or os.cpu_count() or 1
    tally = run_seeds(args.seeds, workers, args.out, args.seconds)
    failures = sorted(tally.found.values(), key=lambda f: f.seed)
    shrunk: list[Shrunk] = []
    for one in failures[: max(0, args.shrink)]:
        print(f"seed {one.seed}: looking for a smaller scenario", file=sys.stderr, flush=True)
        shrunk.append(shrink(draw(one.seed), one.failure))
    if args.json:
        print(json.dumps(_as_json(tally, failures, shrunk, len(args.seeds)), indent=2))
    else:
        _print(tally, failures, shrunk, len(args.seeds))
    if tally.failed:
        return ExitCode.VIOLATED
    return ExitCode.HOLDS if tally.runs == len(args.seeds) else ExitCode.UNDECIDED


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


def _as_json(
    tally: Tally, failures: list[Found], shrunk: list[Shrunk], asked: int
) -> dict[str, object]:
    from stagewright.impl.simulator.campaign.drawing import draw

    small = {s.scenario.seed: s for s in shrunk}
    return {
        "runs": tally.runs,
        "asked": asked,
        "failed": tally.failed,
        "cpu_seconds": round(tally.cpu, 1),
        "writes_acknowledged": tally.writes,
        "reads_checked": tally.reads,
        "strategies": dict(tally.strategies),
        "outcomes": dict(sorted(tally.outcomes.items())),
        "met": {state: {"entered": n, **kinds} for state, n, kinds in tally.rows()},
        "never_entered": tally.never_entered,
        "never_met": [list(pair) for pair in tally.never_met],
        "edges": dict(sorted(tally.edges.items())),
        "never_taken": tally.never_taken,
        "failures": [
            {
                "by": one.failure.by,
                "text": one.failure.text,
                "seed": one.seed,
                "seeds": one.seeds,
                "reproduce": draw(one.seed).command,
                "shrunk": small[one.seed].scenario.command if one.seed in small else None,
            }
            for one in failures
        ],
    }


def _print(tally: Tally, failures: list[Found], shrunk: list[Shrunk], asked: int) -> None:
    from stagewright.commands.campaigning.text import lines_of_failures, render
    from stagewright.commands.console.output import console

    out = console()
    out.print(render(tally, asked))
    for line in lines_of_failures(failures, shrunk):
        out.print(line, soft_wrap=True, markup=False, highlight=False)
    if not tally.failed and tally.runs:
        out.print("every promise was kept, and every step is one of the definitions", style="green")
