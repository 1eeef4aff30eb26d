"""What ``stagewright validate`` shows beside the report itself: progress, the plan, files, how to evaluate again."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from stagewright.traces.report.results import TraceReport


def show_progress(progress: str) -> None:
    """Show how far it is, where it does not mix with the report."""
    print(progress, file=sys.stderr, flush=True)


def show_plan(report: TraceReport) -> None:
    """Show how the verdicts were found."""
    print("how it was found:", *report.plan, sep="\n  ", file=sys.stderr, flush=True)


def write(report: TraceReport, directory: Path, args: argparse.Namespace) -> None:
    """Write the report in all forms.

    Raises:
        InputError: the directory cannot be written to.
    """
    from stagewright.commands.pages.coverage_drawings import drawings
    from stagewright.traces.report.files import write_report

    written = write_report(report, directory, command=reproduce(args), draw=drawings)
    show_progress(f"written: {', '.join(map(str, written))}")


def reproduce(args: argparse.Namespace) -> str:
    """The command line that evaluates the same again, in one run."""
    followed = [args.follow] if args.follow and "://" not in args.follow else []
    words = ["stagewright", "validate", *map(str, args.paths or followed)]
    for flag, value in (
        ("--machine", args.machine),
        *(("--profile", name) for name in args.profile),
        *(("--size", entry) for entry in args.size),
        ("--format", "" if args.format == "auto" else args.format),
        *(("--mapping", path) for path in args.mapping),
        ("--hidden-steps", args.hidden_steps),
        ("--max-states", args.max_states),
        *(("--together", system) for system in args.together),
        ("--group", args.group),
        ("--engine", "" if args.engine == "auto" else args.engine),
        ("--master", args.master),
    ):
        words += [flag, str(value)] if value else []
    words += ["--ignore-fingerprint"] if args.ignore_fingerprint else []
    return shlex.join([*words, *(["--skip-damaged"] if args.skip_damaged else [])])
