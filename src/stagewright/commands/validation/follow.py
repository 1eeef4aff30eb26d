"""``stagewright validate --follow``: validates what comes, batch by batch, and reports on each."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.validation.engine import on_chosen_spark
from stagewright.commands.validation.output import show_plan, show_progress, write
from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagewright.traces.mapping.plan import Plan
    from stagewright.traces.options import Options, Resolve
    from stagewright.traces.report.results import TraceReport


def follow_source(
    resolve: Resolve, options: Options, mapping: Plan | None, args: argparse.Namespace
) -> int:
    """Validate what comes until there is nothing new for some time; the exit code of one run over all of it.

    Raises:
        StagewrightError: the source cannot be followed, or what comes cannot be used.
    """
    from stagewright.traces.engines.spark_engine import OnSpark
    from stagewright.traces.inputs.discover import is_taken
    from stagewright.traces.pipeline.follow import follow
    from stagewright.traces.validate import validate

    for flag, path in (("--state", args.state), ("--out", args.out)):
        if path is not None and path.resolve().is_relative_to(Path(args.follow).resolve()):
            raise InputError(
                f"{flag} {path} lies in what is followed", help="take a directory beside it"
            )
    reports = _Reports(args)

    def work(spark: SparkSession) -> int:
        engine = OnSpark(spark)

        def batch(paths: list[Path]) -> None:
            validate(paths, resolve, options, engine=engine, state=args.state, deliver=reports.take)

        follow(
            spark,
            args.follow,
            args.state,
            batch,
            takes=lambda path: is_taken(path, args.format, mapping),
            progress=show_progress,
            idle_seconds=args.idle,
        )
        return reports.exit_code

    return on_chosen_spark(work, args)


class _Reports:
    """Prints and writes the reports as they come."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._unparsed = False
        self.exit_code = 0

    def take(self, report: TraceReport) -> None:
        """Print and write a report; those with something new in a folder of their own, too."""
        from stagewright.commands.console.output import console
        from stagewright.traces.report.selected import report_of
        from stagewright.traces.report.text import as_json, print_report

        # Entities are counted on, so the last report speaks of all; lines are reported once.
        self._unparsed |= report.totals.not_events > 0
        self.exit_code = report.exit_code or (3 if self._unparsed else 0)
        if self._args.out is not None:
            if report.has_news:  # the next report will not have it again
                write(report, self._args.out / f"run-{report.run:06}", self._args)
            write(report, self._args.out, self._args)
        chosen = report_of(report, self._args.entity) if self._args.entity else report
        if self._args.json:
            print(json.dumps(as_json(chosen)), flush=True)
        else:
            print_report(chosen, console())
        if self._args.explain:
            show_plan(report)
