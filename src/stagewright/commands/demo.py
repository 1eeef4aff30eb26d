"""`stagewright demo`: the main job, end to end: check, prove, run under faults, validate what was recorded; a real cluster."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.commands.clusters.demo import Beside, actions, is_possible
from stagewright.commands.console.exit_codes import ExitCode


@dataclass(frozen=True)
class Stop:
    """One stop of the tour: a command of the user's own, and the exit code that is right for it."""

    says: str
    arguments: tuple[str, ...]
    expected: ExitCode = ExitCode.HOLDS


def tour(reports: Path, sample_log: Path) -> tuple[Stop, ...]:
    """What the demo runs, in order."""
    recorded = reports / "run"
    cluster = actions(reports / "cluster") if is_possible() else ()
    return (
        Stop(
            "Is tablet migration right, also with lagging nodes, a crash and a failed action?",
            ("check", "tablet", "--profile", "scylla-2026.2", "--out", str(reports / "check")),
        ),
        Stop(
            "The same a release earlier: a bug that it really had is found (scylladb #26512).",
            (
                *("check", "tablet", "--profile", "scylla-2025.4", "--property"),
                *("cleaned_up_replicas_stay_empty", "--stop-at-first"),
                *("--out", str(reports / "check-2025.4")),
            ),
            ExitCode.VIOLATED,
        ),
        Stop(
            "Is one tablet's own machine right for runs of any length?",
            ("prove", "tablet-migration"),
        ),
        Stop(
            "A cluster whose coordinator takes its decisions from the same definition, under faults.",
            (
                *("run", "--nodes", "3", "--tablets", "8", "--seed", "7", "--faults", "all"),
                *("--out", str(recorded)),
            ),
        ),
        Stop(
            "Did that cluster do only what the definition allows?",
            (
                "validate",
                *(str(recorded / f"{kind}.jsonl") for kind in ("tablets", "barriers", "replicas")),
                *("--out", str(reports / "validate-run")),
            ),
        ),
        Stop(
            "And a coordinator of ScyllaDB, by its own log? (on Spark, as large traces are)",
            (
                *("validate", str(sample_log), "--profile", "scylla-2025.4", "--engine", "spark"),
                *("--out", str(reports / "validate-scylla")),
            ),
        ),
        *(Stop(*one) for one in cluster),
    )


def configure(parser: argparse.ArgumentParser) -> None:
    """The flags of `demo`."""
    parser.description = (
        "Check, prove, run and validate tablet migration, let a cluster of real processes grow and\n"
        "lose a node, and say where the reports are."
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"example:\n  stagewright demo --out reports\n\n{parser.epilog or ''}"
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("reports"),
        help="where reports go (default: reports)",
    )


def execute(args: argparse.Namespace) -> int:
    """Run every stop, then say which came out as it should."""
    from importlib.resources import as_file, files

    from stagewright.commands.console.output import check_directory, console

    reports: Path = args.out
    check_directory("--out", reports)
    reports.mkdir(parents=True, exist_ok=True)
    with as_file(
        files("stagewright.traces") / "samples" / "scylla-coordinator-debug.log"
    ) as sample:
        stops = tour(reports, sample)
        results: list[tuple[int, float]] = []
        with Beside(reports / "cluster") as beside:
            for number, stop in enumerate(stops, 1):
                results.append(_run(number, stop, len(stops)))
                code = results[-1][0]
                if code not in (ExitCode.HOLDS, ExitCode.VIOLATED):
                    return code  # broken off; it has said why
                if said := beside.after(stop.arguments):
                    console().print(said, markup=False)
    return _summary(reports, stops, results)


def _run(number: int, stop: Stop, total: int) -> tuple[int, float]:
    from stagewright.commands import run_command_line
    from stagewright.commands.console.output import console

    out = console()
    out.print()
    out.rule(f"[bold]{number}/{total}[/]  {stop.says}", align="left")
    out.print(f"$ stagewright {shlex.join(stop.arguments)}", style="bold cyan", soft_wrap=True)
    started = time.monotonic()
    code = run_command_line(stop.arguments)
    return code, time.monotonic() - started


def _summary(reports: Path, stops: Sequence[Stop], results: Sequence[tuple[int, float]]) -> int:
    from rich.table import Table

    from stagewright.commands.console.output import console

    out = console()
    table = Table("", "command", "exit code", "seconds", box=None, pad_edge=False)
    right = True
    for stop, (code, seconds) in zip(stops, results, strict=True):
        as_expected = code == stop.expected
        right = right and as_expected
        mark = (
            "[green]as it should[/]" if as_expected else f"[red]should be {stop.expected.value}[/]"
        )
        table.add_row(mark, " ".join(stop.arguments[:4]), str(code), f"{seconds:.1f}")
    out.print()
    out.rule("[bold]what the demo did[/]", align="left")
    out.print(table)
    out.print(f"\nReports: {reports.resolve()}", soft_wrap=True)
    for page in sorted(reports.rglob("*.html")):
        out.print(f"  look at {page}", soft_wrap=True)
    return ExitCode.HOLDS if right else ExitCode.VIOLATED
