"""Validates recorded traces: `validate(paths, definition)`.

The events stay where they are read: each task replays its own files and sends on only what it cannot know
to be right by itself (`passes`). Spark runs the tasks, or threads of this process do (`engines`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.traces.compose import compose, read_of
from stagewright.traces.engines import Engine
from stagewright.traces.inputs import find_inputs
from stagewright.traces.mapping.load import mapping_of
from stagewright.traces.options import Options, Progress, Resolve
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Part
from stagewright.traces.reading import read_logs, split_files
from stagewright.traces.replay.memory import seldom_collected
from stagewright.traces.run import Run
from stagewright.traces.state import load_state, save_state
from stagewright.traces.trace_report import TraceReport
from stagewright.traces.unsure import take_back

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
) -> TraceReport:
    """The verdicts on all traces in the files and directories.

    `machine` is the definition of every trace, or finds it by the name and profile that the events have.
    `engine` runs the work; without one, `spark` does, or a Spark that is started for it. `state` is a directory
    in which one run leaves for the next what it knows: then only new files are read, and a trace without its
    end may go on.

    Raises:
        StagewrightError: the input cannot be used; names the file and the mend.
        AccountingError: a fault of this program: lines or events were lost.
    """
    started = time.monotonic()
    options = options or Options()
    resolve = _only(machine) if isinstance(machine, Definition) else machine
    mapping = mapping_of(options, resolve)
    inputs = find_inputs(paths, options.form, mapping, skip_damaged=options.skip_damaged)
    _check_together(options, state)
    earlier = None if state is None else load_state(state)
    left_out = list(inputs.left_out)
    parts = split_files(inputs.files, mapping, left_out if options.skip_damaged else None)
    if earlier is not None:
        _refuse_logs(parts)
        inputs = replace(inputs, files=earlier.whole_lines(inputs.files))
        parts = earlier.new_parts(inputs.files, parts)
    size = sum(part.weight for part in parts)
    engine = engine or _spark(spark)
    progress(_begun(len(inputs.files), size, len(parts)))
    of_logs = [p for p in parts if forms.form_named(p.form).log]
    logs = read_logs(
        engine, of_logs, *_asked_for(machine, options), skip_damaged=options.skip_damaged
    )
    if mapping is not None:
        logs.recordings |= {
            (file.form, mapping.machine): mapping.recording for file in inputs.files
        }
    run = Run(engine, parts, logs, earlier, progress, {one.form for one in left_out})
    notes = run.first_pass(resolve, options)
    read = read_of(
        [*logs.read, *run.read],
        earlier.parts if earlier else (),
        earlier.lines_of(inputs.files) if earlier else {},
    )
    judged, second = run.second_pass()
    take_back(judged, logs.unsure, {key: panel.source for key, panel in run.panels.items()})
    of_version = [] if options.candidates else logs.of_version
    report = compose(
        read,
        judged,
        run.panels,
        [*inputs.notes, *logs.notes, *of_version, *notes, *run.notes()],
        time.monotonic() - started,
        held=run.held,
        exercised=run.exercised,
        left_out=left_out,
        names=logs.names,
    )
    if earlier is not None:
        save_state(run.left(inputs.files, read, options), report.verdicts)
    return replace(report, plan=run.plan(read.events, second), together=run.together(read))


def _begun(files: int, size: int, parts: int) -> str:
    """What is to be read, in words."""
    if not parts:
        return "there is nothing new to read"
    return f"reading {files} files, {size / 1e6:,.1f} MB, in {parts} parts"


def _check_together(options: Options, state: Path | None) -> None:
    if options.together and state is not None:
        raise InputError(
            "properties over several entities cannot be judged run by run: "
            "what they need of earlier events is not carried",
            help="leave out --together, or --state",
        )
    if options.together and options.candidates:
        raise InputError(
            "properties over several entities cannot be judged by several candidate profiles",
            help="say with one --profile which is to judge them together",
        )
    try:
        re.compile(options.group)
    except re.error as error:
        raise InputError(
            f"--group {options.group!r} is no regular expression: {error}",
            help="write for example --group '^([^:]*):'",
        ) from None


def _refuse_logs(parts: Sequence[Part]) -> None:
    for part in parts:
        if forms.form_named(part.form).log:
            raise InputError(
                f"{part.path} is a log, whose lines mean something only together",
                help="give all logs of a cluster in one run, without --state",
            )


def _spark(spark: SparkSession | None) -> Engine:
    from stagewright.traces.spark_engine import OnSpark
    from stagewright.traces.spark_session import local_session

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
                help="say which profile is to judge them",
            )
        return definition

    return resolve
