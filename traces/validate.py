"""Validates recorded traces: `validate(paths, definition)`.

The events stay where they are read: each task replays its own files and sends on only what it cannot know
to be right by itself (`passes`). Spark runs the tasks, or threads of this process do (`engines`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted
from stagewright.traces.engines.engine import Engine
from stagewright.traces.events.memory import seldom_collected
from stagewright.traces.incremental.incremental_run import Continued
from stagewright.traces.incremental.state_dir import State, alone, load_state
from stagewright.traces.inputs.ambiguous_order import take_back
from stagewright.traces.inputs.discover import InputFile, Inputs, find_inputs
from stagewright.traces.inputs.split import Logs, read_logs, split_files
from stagewright.traces.mapping.load import mapping_of
from stagewright.traces.mapping.plan import Plan
from stagewright.traces.options import Options, Progress, Resolve
from stagewright.traces.pipeline.passes import Run
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part
from stagewright.traces.report.assemble import compose, read_of
from stagewright.traces.report.results import Deliver, TraceReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@seldom_collected()
def validate(
    paths: Sequence[Path],
    machine: Definition | Resolve,
    options: Options | None = None,
    *,
    spark: SparkSession | None = None,
    engine: Engine | None = None,
    state: Path | None = None,
    progress: Progress = lambda _: None,
    deliver: Deliver = lambda _: None,
) -> TraceReport:
    """The verdicts on all traces in the files and directories.

    `machine` is the definition of every trace, or finds it by the name and profile that the events have.
    `engine` runs the work; without one, `spark` does, or a Spark that is started for it. `state` is a directory
    in which one run leaves for the next what it knows: then only new files are read, and a trace without its
    end may go on. `deliver` takes the report before that is left: if it fails, the next run reports all again.

    Raises:
        StagewrightError: the input cannot be used; names the file and the mend.
        AccountingError: a fault of this program: lines or events were lost.
    """
    resolve = _only(machine) if isinstance(machine, Definition) else machine
    options = options or Options()
    _check_together(options)
    mapping = mapping_of(options, resolve)
    inputs = find_inputs(
        paths, options.form, mapping, skip_damaged=options.skip_damaged, state=state
    )
    asked = _Asked(resolve, options, mapping, *_asked_for(machine, options))
    if state is None:
        report, _ = _validated(inputs, asked, engine or _spark(spark), None, progress)
        deliver(report)
        return report
    with alone(state):
        inputs = _absolute(inputs)
        continued = Continued(load_state(state), inputs.files, options, mapping)
        try:
            engine = engine or _spark(spark)
            report, left = _validated(inputs, asked, engine, continued, progress)
            deliver(report)
            assert left is not None
            continued.save(left, report.verdicts)
            return report
        finally:
            continued.clean_up()


@dataclass(frozen=True)
class _Asked:
    """How the input is to be evaluated."""

    resolve: Resolve
    options: Options
    mapping: Plan | None
    profile: str
    machine: str


def _validated(
    inputs: Inputs, asked: _Asked, engine: Engine, continued: Continued | None, progress: Progress
) -> tuple[TraceReport, State | None]:
    """The report, and what is left for the next run."""
    started = time.monotonic()
    left_out = list(inputs.left_out)
    if continued is None:
        damaged = left_out if asked.options.skip_damaged else None
        parts = split_files(inputs.files, asked.mapping, damaged)
    else:
        parts = continued.parts
    size = sum(part.weight for part in parts)
    progress(_begun(len(inputs.files), size, len(parts)))
    logs = _logs(inputs, asked, engine, continued, parts)
    asked, of_version = _of_which_release(asked, logs, inputs.files)
    run = Run(engine, parts, logs, continued, progress, {one.form for one in left_out})
    notes = run.first_pass(asked.resolve, asked.options)
    parts_read = [*logs.read, *run.read]
    if continued is None:
        read = read_of(parts_read)
    else:
        first_lines = continued.fresh.first_lines
        read = read_of(parts_read, continued.places(), first_lines, may_come=True)
    evaluated, second = run.second_pass(read)
    take_back(evaluated, logs.unsure, {key: panel.source for key, panel in run.panels.items()})
    found_together = run.together(read)
    report = compose(
        read,
        evaluated,
        run.panels,
        [*inputs.notes(), *logs.notes, *of_version, *notes, *run.notes()],
        time.monotonic() - started,
        earlier=run.held + logs.again,
        exercised=run.exercised,
        left_out=left_out,
        names=logs.names,
    )
    left = None if continued is None else run.left(read)
    if left is not None:
        report = replace(report, run=left.runs)
    return replace(report, plan=run.plan(read.events, second), together=found_together), left


def _of_which_release(
    asked: _Asked, logs: Logs, files: Sequence[InputFile]
) -> tuple[_Asked, list[str]]:
    """Where nothing says which release wrote the logs, each one that may have is a candidate; and what to note.

    Not where other traces are beside them, of which it is known, nor for systems, which have one profile.
    """
    options = asked.options
    if options.candidates or not logs.releases or options.together:
        return asked, [] if options.candidates else logs.of_version
    if any(formats.releases_of(file.form) is None for file in files):
        return asked, logs.of_version
    note = (
        "nothing says which release this is of: each one that its times allow is tried, and an entity "
        "refused only if all of them refuse it (--profile names one)"
    )
    return replace(asked, options=replace(options, candidates=logs.releases)), [note]


def _logs(
    inputs: Inputs,
    asked: _Asked,
    engine: Engine,
    continued: Continued | None,
    parts: Sequence[Part],
) -> Logs:
    of_logs = [p for p in parts if formats.form_named(p.form).log]
    known = [] if continued is None else continued.known_logs()
    file_of = {} if continued is None else continued.fresh.file_of
    skip = asked.options.skip_damaged
    logs = read_logs(
        engine, of_logs, asked.profile, asked.machine, known, file_of, skip_damaged=skip
    )
    if asked.mapping is not None:
        logs.recordings |= {
            (file.form, plan.machine): plan.recording
            for file in inputs.files
            for plan in asked.mapping.every
        }
    if continued is not None:
        continued.take_logs(logs)
    return logs


def _absolute(inputs: Inputs) -> Inputs:
    """The same files under names that later runs know them by, wherever they are started."""
    files = (replace(file, path=file.path.absolute()) for file in inputs.files)
    return replace(inputs, files=tuple(files))


def _begun(files: int, size: int, parts: int) -> str:
    """What is to be read, in words."""
    if not parts:
        return "there is nothing new to read"
    return f"reading {counted(files, 'file')}, {size / 1e6:,.1f} MB, in {counted(parts, 'part')}"


def _check_together(options: Options) -> None:
    if options.together and options.candidates:
        raise InputError(
            "properties over several entities cannot be checked against several candidate profiles",
            help="say with one --profile which one to check them against",
        )
    try:
        re.compile(options.group)
    except re.error as error:
        raise InputError(
            f"--group {options.group!r} is no regular expression: {error}",
            help="write for example --group '^([^:]*):'",
        ) from None


def _spark(spark: SparkSession | None) -> Engine:
    from stagewright.traces.engines.spark_engine import OnSpark
    from stagewright.traces.engines.spark_session import local_session

    return OnSpark(spark or local_session("stagewright validate"))


def _asked_for(machine: Definition | Resolve, options: Options) -> tuple[str, str]:
    """The profile, and the machine if it is a single one."""
    if isinstance(machine, Definition):
        return options.profile or machine.profile, machine.name
    return options.profile, options.machine


def _only(definition: Definition) -> Resolve:
    def resolve(machine: str, profile: str) -> Definition:
        if machine not in ("", definition.name):
            raise InputError(
                f"the traces are of the machine `{machine}`, not of `{definition.name}`",
                help="name that machine instead, or leave it to the traces",
            )
        if profile not in ("", definition.profile):
            raise InputError(
                f"the traces are of profile `{profile}`, not of `{definition.profile}`",
                help="say which profile to check them against",
            )
        return definition

    return resolve
