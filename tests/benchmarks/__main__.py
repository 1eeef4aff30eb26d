"""The benchmarks' command.

    ./run bench                                   from a bare machine: installs the peers that are packages
    python -m tests.benchmarks explicit --quick   the same, where they are installed

Tables go to standard output, progress to standard error. Exit code 1: something failed or counted
wrongly, and is in no table.
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks import explicit
from tests.benchmarks.measuring.machine_facts import machine_facts
from tests.benchmarks.runtime import suite as runtime
from tests.benchmarks.traces import suite as traces

SUITES = {"explicit": explicit, "runtime": runtime, "traces": traces}
_DEFAULT = "explicit"


def main(words: Sequence[str]) -> int:
    """Run a suite, print its tables, write its figures."""
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help")):
        words = [_DEFAULT, *words]
    parser = _parser()
    args = parser.parse_args(words)
    suite = SUITES[args.suite]
    known = suite.names()
    for name in args.only:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean `{near[0]}`? " if near else ""
            parser.error(
                f"--only {name}: no such contestant or model; {hint}known: {', '.join(known)}"
            )
    facts = machine_facts()
    with tempfile.TemporaryDirectory(prefix="benchmarks-") as scratch:
        report = suite.run(args, Path(scratch), _show)
    if args.json is not None:
        record = report.record(facts, args.suite)
        args.json.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", "utf-8")
        _show(f"wrote {args.json}")
    print(report.markdown() if args.markdown else report.text())
    print(f"\n{facts['processor']}, {facts['cores']} cores, load at start {facts['load_at_start']}")
    return 1 if report.contest.errors else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    suites = parser.add_subparsers(dest="suite", required=True, metavar="SUITE")
    for name, suite in SUITES.items():
        summary = (suite.__doc__ or "").partition("\n")[0]
        one = suites.add_parser(name, help=summary, description=summary)
        one.add_argument(
            "--quick",
            action="store_true",
            help="ratios only, smaller models, fewer runs: a minute or two",
        )
        one.add_argument(
            "--only", action="append", default=[], metavar="NAME", help="a contestant or a model"
        )
        one.add_argument("--repeats", type=_positive, metavar="N", help="runs of each (default: 5)")
        one.add_argument("--json", type=Path, metavar="FILE", help="write every figure there")
        one.add_argument("--markdown", action="store_true", help="tables to paste into a page")
        suite.configure(one)
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def _show(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        raise SystemExit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        _show("interrupted")
        raise SystemExit(130) from None
