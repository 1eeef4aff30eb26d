"""One run of `validate` over what is there now: archives unpacked, the engine chosen, the report delivered."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.validation.engine import (
    INTERPRETED_BYTES,
    chosen_engine,
    input_bytes,
    on_chosen_spark,
)
from stagewright.commands.validation.output import reproduce, show_plan, show_progress, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagewright.commands.reports.writing import CiReports
    from stagewright.traces.mapping.plan import Plan
    from stagewright.traces.options import Options, Resolve
    from stagewright.traces.report.results import Deliver, TraceReport


def validate_once(
    resolve: Resolve,
    options: Options,
    mapping: Plan | None,
    reports: CiReports,
    args: argparse.Namespace,
) -> int:
    """Print the report, and return what it comes to."""
    from stagewright.commands.console.output import console
    from stagewright.commands.reports.of_traces import suite_of
    from stagewright.compiled import interpreted
    from stagewright.traces.inputs.archives import unpacked
    from stagewright.traces.inputs.discover import find_inputs
    from stagewright.traces.report.selected import report_of
    from stagewright.traces.report.text import as_json, print_report

    with unpacked(args.paths, why_not=_why_not_unpacked(args)) as there:
        for note in there.notes:
            show_progress(note)
        skipping = args.skip_damaged
        size = input_bytes(
            find_inputs(there.paths, args.format, mapping, skip_damaged=skipping, state=args.state)
        )
        engine, why = chosen_engine(args, size)
        if why:
            show_progress(why)

        def deliver(report: TraceReport) -> None:
            # Files come first: who reads the text may go away before its end.
            if args.out is not None:
                write(report, args.out, args)
            reports.add(lambda: suite_of(report, reproduce(args)))
            reports.write(report.exit_code)
            if args.explain:
                show_plan(report)
            chosen = report_of(report, args.entity) if args.entity else report
            if args.json:
                print(json.dumps(as_json(chosen), indent=2), flush=True)
            elif not reports.take_standard_output:
                print_report(chosen, console(), whole=bool(args.entity))

        with interpreted(engine == "embedded" and size < INTERPRETED_BYTES):
            return _evaluated(there.paths, resolve, options, args, engine, deliver).exit_code


def _why_not_unpacked(args: argparse.Namespace) -> str:
    if args.state is not None:
        return "with --state a later run looks for its files again"
    return "executors of another machine do not see what is unpacked here" if args.master else ""


def _evaluated(
    paths: Sequence[Path],
    resolve: Resolve,
    options: Options,
    args: argparse.Namespace,
    engine: str,
    deliver: Deliver,
) -> TraceReport:
    """The report, which is delivered before what it has counts as reported."""
    from stagewright.traces.validate import validate

    if engine == "embedded":
        from stagewright.traces.engines.engine import Embedded, usable_cores

        return validate(
            paths,
            resolve,
            options,
            engine=Embedded(args.workers or usable_cores()),
            state=args.state,
            progress=show_progress,
            deliver=deliver,
        )

    def work(spark: SparkSession) -> TraceReport:
        return validate(
            paths,
            resolve,
            options,
            spark=spark,
            state=args.state,
            progress=show_progress,
            deliver=deliver,
        )

    return on_chosen_spark(work, args)
