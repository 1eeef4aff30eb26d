"""Every figure in the documentation that was measured, and the command that measures it again.

    python -m tests.benchmarks.figures                 list them: page, figure, command
    python -m tests.benchmarks.figures --run           run all commands, on an idle machine: hours
    python -m tests.benchmarks.figures --run README    run those of one page, or whose command has the word

Under each command stand the figures as the documentation has them, so that both can be compared. A figure that counts
(states, machines) is no matter of this list: tests compare those. Exit code 1: a command failed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Figures:
    """Figures of a page, in its own words, and the arguments of Python that measure them."""

    page: str
    figures: tuple[str, ...]
    command: str


MEASURED = (
    Figures(
        "README.md",
        (
            "| Stagewright, `--engine embedded` | 470 |",
            "| the same in one thread, each entity by itself | 283 |",
            "| Stagewright on Spark | 491 |",
            "| Spark | 3,123 |",
            "| PyArrow | 567 |",
            "| DuckDB | 863 |",
            "| `transitions` | 49,947 |",
            "| pm4py | 176,051 |",
        ),
        "-m tests.benchmarks traces --markdown",
    ),
    Figures(
        "README.md",
        (
            "a billion events take 372 ns each including start-up, in 225 seconds and 2.1 GB of memory",
            "433 ns each, in 234 seconds, on Spark",
        ),
        "-m tests.benchmarks traces --growth --events 1000000000 --only embedded --only spark --markdown",
    ),
    Figures(
        "README.md",
        ("It is no slower if 30 % of all events belong to one entity.",),
        "-m tests.benchmarks traces --giant --markdown",
    ),
    Figures(
        "README.md",
        (
            "| two-phase commit | 6,300,000 | 5,700,000 | 550,000 | 29,000 | 175,000 |",
            "| EWD840 | 4,900,000 | 3,100,000 | 210,000 | 22,000 | 62,000 |",
            "| tablets behind barriers | 4,200,000 | 4,400,000 | 570,000 | 22,000 | 59,000 |",
            "Stagewright needs 8 to 11 bytes per state",
            "two workers are 1.7 times as fast as one at 60 million states",
        ),
        "-m tests.benchmarks explicit --markdown",
    ),
    Figures("README.md", ("21.9 million states, 146 CPU s",), "-m stagewright check --all"),
    Figures(
        "docs/view-engine.md",
        (
            "| initial build of both trees from unsorted rows | 1.3 s | 6.1 s |",
            "| 10,000 changed documents | 0.58 s | 0.94 s |",
            "| cleanup of an eighth of the partitions | 0.44 s | 0.69 s |",
            "| compaction | 0.62 s | 2.8 s |",
            "| one tree of unsorted rows | 0.76 s | 1.1 s, 1.0 s |",
            "| one tree of rows in order | 0.16 s | 0.78 s |",
            "| a scan of all rows into Python | 0.40 s | 0.14 s |",
            "The `_sum` of any range takes 0.17 ms.",
            "a CPU second is enough for 344,000 documents with declared maps, 166,000 with JavaScript, 115,000 with Python",
        ),
        "-m tests.benchmarks.view_engine 1000000",
    ),
    Figures(
        "docs/view-engine.md",
        (
            "395 MiB at most for one million documents",
            "401 for four million, at 5 µs of CPU per document",
        ),
        "-m tests.benchmarks.view_engine.scale 4000000",
    ),
    Figures(
        "docs/language/campaigns.md",
        ("A run takes about half a second of CPU.",),
        "-m stagewright campaign --of view-engine --seeds 0..200",
    ),
    Figures(
        "docs/language/online-indexes.md",
        (
            "| not unique | 4.5 s | 2.2 and 8.5 ms | 1.5 and 2.6 ms | 0.52 M |",
            "| unique | 4.0 s | 2.1 and 8.1 ms | 1.5 and 2.6 ms | 0.57 M |",
            "| not unique, at full speed | 1.1 s | 2.5 and 9.7 ms | 1.5 and 2.4 ms | 1.39 M |",
            "| unique, at full speed | 1.1 s | 4.3 and 26.9 ms | 1.5 and 2.4 ms | 1.51 M |",
            "Without these it is 1.49, 1.50, 2.11 and 2.35 million rows a CPU second",
            "together took 312 MiB of memory (unique: 304)",
            "it took 3.0 s at full speed, at 0.28 of PostgreSQL's rows",
        ),
        "-m tests.benchmarks.indexes --rows 1000000 --rate 400",
    ),
    Figures(
        "docs/language/online-indexes.md",
        ("with fifty million rows, at full speed, 421 (unique: 522)",),
        "-m tests.benchmarks.indexes --rows 50000000 --rate 20 --only stagewright --share 100",
    ),
    Figures(
        "docs/language/campaigns.md",
        (
            "takes 0.11 s of CPU, checked as it goes, and 0.12 s with all",
            "8.7 runs a second and core; where a node joins and tablets move to it, 0.22 s",
        ),
        "-m tests.benchmarks.simulated",
    ),
    Figures(
        "CHANGELOG.md",
        ("1,000 hosts with 100,000 tablets in under 0.3 CPU seconds a plan",),
        "-m tests.benchmarks.balancer",
    ),
)


def chosen(words: Sequence[str], measured: Iterable[Figures] = MEASURED) -> list[Figures]:
    """Those whose page or command has one of the words; all, if there are none."""
    return [f for f in measured if not words or any(w in f"{f.page} {f.command}" for w in words)]


def main(arguments: Sequence[str]) -> int:
    """List the figures, or measure them again."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", action="store_true", help="run the commands, not only list them")
    parser.add_argument("word", nargs="*", help="a part of a page's name or of a command")
    args = parser.parse_args(arguments)
    failed = 0
    for one in chosen(args.word):
        print(f"\n$ python {one.command}")
        for figure in one.figures:
            print(f"  {one.page}: {figure}")
        if args.run:
            sys.stdout.flush()
            command = [sys.executable, *shlex.split(one.command)]
            failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
