"""Validates recorded traces on Spark: `validate(paths, definition)`.

Two jobs. The first reads the files, each task its own part, into columns of coded events. The second brings
the events of each entity together, as large blocks of a few bytes an event, and replays them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.lowering import ground
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.trace import Event
from stagewright.traces.automaton import MAX_STATES, Automaton, of_model
from stagewright.traces.blocks import Block, Stream, block_of, split
from stagewright.traces.compose import compose
from stagewright.traces.explain import Judge
from stagewright.traces.inputs import find_inputs
from stagewright.traces.judge import Judged, MachineKey, judge
from stagewright.traces.readers import forms
from stagewright.traces.reading import Reading, blocks_only, read_parts, split_files
from stagewright.traces.recording import NOTHING_HIDDEN, HiddenSteps, Recording
from stagewright.traces.trace_report import TraceReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Finds the definition of a machine that events name, under a profile (empty: its newest).
Resolve = Callable[[str, str], Definition]
Progress = Callable[[str], None]


def unbounded_scope(definition: Definition) -> Scope:
    """The default scope of a definition, with budgets without bound: they limit checks, not production."""
    return scope_of(definition, {}, {budget.name: None for budget in definition.budgets})


@dataclass(frozen=True)
class Options:
    """How traces are to be judged.

    `scope`: how large one entity's machine is; by default as its definition says, and without budgets.
    `profile` overrides what the events say. `hidden`: steps
    that a recorder of JSON lines or Parquet left out. `ignore_fingerprint`: judge events that were recorded
    under another version of their definition all the same.
    """

    scope: Callable[[Definition], Scope] = unbounded_scope
    profile: str = ""
    form: str = "auto"
    hidden: HiddenSteps = NOTHING_HIDDEN
    ignore_fingerprint: bool = False
    max_states: int = MAX_STATES


def validate(
    paths: Sequence[Path],
    machine: Definition | Resolve,
    options: Options | None = None,
    *,
    spark: SparkSession | None = None,
    progress: Progress = lambda _: None,
) -> TraceReport:
    """The verdicts on all traces in the files and directories.

    `machine` is the definition of every trace, or finds it by the name and profile that the events have.

    Raises:
        StagewrightError: the input cannot be used; names the file and the mend.
        AccountingError: a fault of this program: lines were lost.
    """
    started = time.monotonic()
    options = options or Options()
    inputs = find_inputs(paths, options.form)
    parts = split_files(inputs.files)
    size = sum(file.path.stat().st_size for file in inputs.files)
    progress(f"reading {len(inputs.files)} files, {size / 1e6:,.1f} MB, in {len(parts)} parts")
    if spark is None:
        from stagewright.traces.spark_session import local_session

        spark = local_session("stagewright validate")
    context = spark.sparkContext
    partitions = max(context.defaultParallelism, size >> 30)
    reading = read_parts(context, parts, partitions)
    try:
        _refuse_nothing(reading)
        logs = _interpret_logs(reading, options.profile)
        streams = set().union(*(p.streams for p in reading.parts), logs.streams)
        resolve = _only(machine) if isinstance(machine, Definition) else machine
        judges, notes = _judges(streams, resolve, options, logs.recordings)
        events = sum(p.tally.events for p in reading.parts)
        progress(f"judging {events:,} events")
        judged = _judge(spark, reading, logs.blocks, judges, partitions)
    finally:
        reading.blocks.unpersist()
    passed_over = [
        f"passed over {path}: its name is not that of a trace" for path in inputs.passed_over
    ]
    notes = [*passed_over, *logs.notes, *notes]
    return compose(reading, judged, judges, notes, time.monotonic() - started)


def _refuse_nothing(reading: Reading) -> None:
    """Nothing at all is no trace in which all is well: a recorder that never wrote looks like this."""
    if all(one.tally.lines == one.tally.blank for one in reading.parts):
        first, *more = dict.fromkeys(one.part.path for one in reading.parts)
        others = f" nor in {len(more)} more files" if more else ""
        raise InputError(
            f"there is no event in {first}{others}", help="was anything recorded there?"
        )


@dataclass
class _Logs:
    blocks: list[Block] = field(default_factory=list)
    streams: set[Stream] = field(default_factory=set)
    recordings: dict[tuple[str, str], Recording] = field(default_factory=dict)  # form, machine
    notes: list[str] = field(default_factory=list)


def _interpret_logs(reading: Reading, profile: str) -> _Logs:
    """The events that the logs of each form tell together; their lines count as told from here on."""
    logs = _Logs()
    for form in sorted({p.part.form for p in reading.parts if forms.form_named(p.part.form).log}):
        files: dict[str, list[tuple[int, Any]]] = {}
        for one in reading.parts:
            if one.part.form == form:
                records = files.setdefault(one.part.path, [])
                records += [(one.part.number, record) for record in one.records]
        found = forms.log_reader(form).interpret(list(files.values()), profile)
        logs.notes += found.notes
        logs.recordings |= {(form, machine): how for machine, how in found.recordings.items()}
        by_part: dict[int, list[Event]] = {}
        for part, event in found.events:
            by_part.setdefault(part, []).append(event)
        for part, events in by_part.items():
            block = block_of(events, part, definition=form)
            logs.blocks.append(block)
            logs.streams |= {key.stream for key in block.keys}
            tally, told = reading.parts[part].tally, len({event.line for event in events})
            tally.events += len(events)
            tally.told += told
            tally.other -= told
    return logs


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


def _judges(
    streams: Iterable[Stream],
    resolve: Resolve,
    options: Options,
    of_logs: Mapping[tuple[str, str], Recording],
) -> tuple[dict[MachineKey, Judge], list[str]]:
    """What judges each machine, profile and definition that the events name."""
    judges: dict[MachineKey, Judge] = {}
    notes: list[str] = []
    for key in sorted({stream[1:] for stream in streams}):
        machine, profile, recorded = key
        definition = resolve(machine, options.profile or profile)
        foreign = recorded in forms.NAMES  # a form where a fingerprint would be: not our recorder
        if not foreign and recorded not in ("", definition.fingerprint()):
            problem = (
                f"the traces of {machine or definition.name} were recorded under the definition "
                f"{recorded}; this one is {definition.fingerprint()}"
            )
            if not options.ignore_fingerprint:
                raise InputError(
                    problem,
                    help="take the version that they were recorded with, or --ignore-fingerprint",
                )
            notes.append(problem)
        recording = Recording(options.hidden)
        if foreign:
            known = of_logs.get((recorded, machine))
            recording = known or forms.recording_of(recorded, machine)
        scope = options.scope(definition)
        model = ground(definition, scope)
        automaton = of_model(model, recording, max_states=options.max_states)
        judges[key] = Judge(definition, scope, model, automaton)
    return judges, notes


def _judge(
    spark: SparkSession,
    reading: Reading,
    of_logs: Sequence[Block],
    judges: Mapping[MachineKey, Judge],
    partitions: int,
) -> list[Judged]:
    context = spark.sparkContext
    automata = context.broadcast({key: judge.automaton for key, judge in judges.items()})

    def judge_partition(items: Iterable[tuple[int, Block]]) -> Iterator[Judged]:
        known: dict[MachineKey, Automaton] = automata.value
        yield judge([block for _, block in items], known)

    blocks = blocks_only(reading.blocks)
    if of_logs:
        pairs = [pair for block in of_logs for pair in split(block, partitions)]
        blocks = blocks.union(context.parallelize(pairs, 1))
    gathered = blocks.partitionBy(partitions, _itself)
    result: list[Judged] = gathered.mapPartitions(judge_partition).collect()
    automata.unpersist()
    return result


def _itself(number: int) -> int:
    return number
