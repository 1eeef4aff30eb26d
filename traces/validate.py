"""Validates recorded traces: `validate(paths, definition)`.

The events stay where they are read: each task replays its own files and sends on only what it cannot know
to be right by itself (`passes`). Spark runs the tasks, or threads of this process do (`engines`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.lowering import ground
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton import MAX_STATES, of_model
from stagewright.traces.blocks import EntityKey, Stream
from stagewright.traces.compose import EXPLAINED_MAX, compose, read_of
from stagewright.traces.engines import Engine
from stagewright.traces.explain import Judge
from stagewright.traces.inputs import find_inputs
from stagewright.traces.judge import Finding, Judged, MachineKey
from stagewright.traces.passes import Automata, FirstPass, Partition, SecondPass, Task
from stagewright.traces.readers import forms
from stagewright.traces.reading import first_streams, read_logs, split_files, tasks_of
from stagewright.traces.recording import NOTHING_HIDDEN, HiddenSteps, Recording
from stagewright.traces.trace_report import AccountingError, TraceReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Finds the definition of a machine that events name, under a profile (empty: its newest).
Resolve = Callable[[str, str], Definition]
Progress = Callable[[str], None]

_PARTITION_BYTES = 1 << 27  # of input; the rows of so much fit into a worker's memory many times


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
    engine: Engine | None = None,
    progress: Progress = lambda _: None,
) -> TraceReport:
    """The verdicts on all traces in the files and directories.

    `machine` is the definition of every trace, or finds it by the name and profile that the events have.
    `engine` runs the work; without one, `spark` does, or a Spark that is started for it.

    Raises:
        StagewrightError: the input cannot be used; names the file and the mend.
        AccountingError: a fault of this program: lines or events were lost.
    """
    started = time.monotonic()
    options = options or Options()
    resolve = _only(machine) if isinstance(machine, Definition) else machine
    inputs = find_inputs(paths, options.form)
    parts = split_files(inputs.files)
    size = sum(file.path.stat().st_size for file in inputs.files)
    engine = engine or _spark(spark)
    progress(f"reading {len(inputs.files)} files, {size / 1e6:,.1f} MB, in {len(parts)} parts")
    logs = read_logs(engine, [p for p in parts if forms.form_named(p.form).log], options.profile)
    events = [p for p in parts if not forms.form_named(p.form).log]
    tasks = tasks_of(events, engine.workers)
    if logs.blocks:
        tasks.append(Task(blocks=tuple(logs.blocks)))
    known = {s for read in logs.read for s in read.streams} | first_streams(events)
    partitions = max(engine.workers, size // _PARTITION_BYTES) + 1
    while True:
        judges, notes = _judges(known, resolve, options, logs.recordings)
        automata = {key: judge.automaton for key, judge in judges.items()}
        first = FirstPass(automata, partitions)
        found = engine.run(tasks, first.work, partitions, first.finish)
        summaries = [s for one in found for s in one.summaries]
        unknown = {stream for s in summaries for stream in s.unknown}
        if not unknown:
            break
        progress("reading again: there are events of more machines")
        known |= unknown
    read = read_of([*logs.read, *(part for s in summaries for part in s.parts)])
    judged, second = _settle(engine, tasks, found, automata, partitions, progress)
    rows = sum(s.rows for s in summaries)
    plan = (
        f"engine: {engine.name}, {engine.workers} at once",
        f"first pass: {len(tasks)} tasks read {len(parts)} parts in order and replay them where they lie",
        f"{rows:,} rows, left of {read.events:,} events, were glued in {partitions - 1} partitions",
        f"second pass: {second:,} entities were read again and judged event by event"
        if second
        else "no second pass: nothing was left open, nothing has to be told",
    )
    passed_over = [
        f"passed over {path}: its name is not that of a trace" for path in inputs.passed_over
    ]
    report = compose(
        read,
        judged,
        judges,
        [*passed_over, *logs.notes, *notes],
        time.monotonic() - started,
    )
    return replace(report, plan=plan)


def _spark(spark: SparkSession | None) -> Engine:
    from stagewright.traces.spark_engine import OnSpark
    from stagewright.traces.spark_session import local_session

    return OnSpark(spark or local_session("stagewright validate"))


def _settle(
    engine: Engine,
    tasks: Sequence[Task],
    found: Sequence[Partition],
    automata: Automata,
    partitions: int,
    progress: Progress,
) -> tuple[list[Judged], int]:
    """What all partitions have judged, with what needed a second look; and how many entities did."""
    judged = [one.glued.judged for one in found]
    unsettled = sorted({key for one in found for key in one.glued.unsettled})
    told = _to_be_told([f for one in judged for f in one.findings])
    if not unsettled and not told:
        return judged, 0
    progress(f"reading again {len(unsettled) + len(told):,} entities")
    second = SecondPass(automata, partitions, tuple(unsettled), tuple(told))
    looked = engine.run(tasks, second.work, partitions, second.finish)
    in_full = {f.key: f for one in looked for f in one.told}
    for one in judged:
        one.findings = [_in_full(f, in_full) if f.key in told else f for f in one.findings]
    return [*judged, *(one.judged for one in looked)], len(unsettled) + len(told)


def _to_be_told(findings: Iterable[Finding]) -> dict[EntityKey, None]:
    """The entities whose violations are told with all that went before."""
    violations = (f for f in findings if f.verdict is TraceVerdict.VIOLATION)
    first = sorted(violations, key=lambda f: f.key)[:EXPLAINED_MAX]
    return {f.key: None for f in first}


def _in_full(glued: Finding, in_full: Mapping[EntityKey, Finding]) -> Finding:
    exact = in_full.get(glued.key)
    if exact is None or replace(exact, symbols=(), before=None) != replace(
        glued, symbols=(), before=None
    ):
        raise AccountingError(f"{glued.key}: glued {glued}, but judged event by event {exact}")
    return replace(glued, symbols=exact.symbols)


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
