"""One run over an input: its two passes, and what it leaves for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.spec.lowering import ground
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton import of_model
from stagewright.traces.blocks import EntityKey, Stream
from stagewright.traces.compose import EXPLAINED_MAX, Read
from stagewright.traces.coverage import Exercised, exercised_of
from stagewright.traces.engines import Engine, Stage
from stagewright.traces.explain import Judge
from stagewright.traces.inputs import InputFile
from stagewright.traces.judge import Finding, Judged, MachineKey
from stagewright.traces.options import Options, Progress, Resolve
from stagewright.traces.passes import (
    FirstPass,
    Looked,
    Partition,
    PartRead,
    SecondPass,
    Task,
    agreed,
)
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Part
from stagewright.traces.reading import Logs, first_streams, tasks_of
from stagewright.traces.recording import Recording
from stagewright.traces.state import FileRead, State
from stagewright.traces.together.system import Together, together
from stagewright.traces.together.verdicts import TogetherReport, report_together

_PARTITION_BYTES = 1 << 27  # of input; the rows of so much fit into a worker's memory many times


class Run:
    """The passes over an input, of which `earlier` runs may have seen a part."""

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        logs: Logs,
        earlier: State | None,
        progress: Progress,
    ) -> None:
        self.judges: dict[MachineKey, Judge] = {}
        self._engine, self._logs, self._earlier, self._progress = engine, logs, earlier, progress
        self._events = [part for part in parts if not forms.form_named(part.form).log]
        self._tasks = tasks_of(self._events, engine.workers)
        if logs.blocks:
            self._tasks.append(Task(blocks=tuple(logs.blocks)))
        if earlier is not None:
            files = tuple(str(earlier.folder / name) for name in earlier.carried)
            self._tasks += [Task(carried=(file,)) for file in files]
        size = sum(part.weight for part in parts)
        self._partitions = max(engine.workers, size // _PARTITION_BYTES) + 1
        self._carry_to = "" if earlier is None else str(earlier.new_folder())
        self._found: list[Partition] = []
        self._watched = Together()
        self._looked: list[Looked] = []

    @property
    def read(self) -> list[PartRead]:
        """What was read of each part."""
        return [part for one in self._found for s in one.summaries for part in s.parts]

    @property
    def held(self) -> int:
        """Events of earlier runs that wait behind gaps."""
        return sum(s.held for one in self._found for s in one.summaries)

    @property
    def exercised(self) -> dict[MachineKey, list[Exercised]]:
        """What the replay did, without the few events that were judged one by one."""
        tasks = (s.taken for one in self._found for s in one.summaries)
        return exercised_of([*tasks, *(one.taken for one in self._found)])

    def first_pass(self, resolve: Resolve, options: Options) -> list[str]:
        """Replay everything; returns what is to be noted about the definitions."""
        known = {s for read in self._logs.read for s in read.streams} | first_streams(self._events)
        while True:
            self.judges, notes = judges_of(known, resolve, options, self._logs.recordings)
            if self._earlier is not None:
                self._earlier.fits(self._definitions(), _options_text(options))
            automata = {key: judge.automaton for key, judge in self.judges.items()}
            self._watched = together(options.together, self.judges, options.profile)
            first = FirstPass(
                automata,
                self._partitions,
                self._carry_to,
                self._watched.views,
                self._watched.properties,
                options.group,
            )
            self._found = self._partitions_of(first)
            unknown = {s for one in self._found for t in one.summaries for s in t.unknown}
            if not unknown:
                self._watched.check(self.judges)
                return notes
            if self._events:
                self._progress("reading again: there are events of more machines")
            known |= unknown

    def _partitions_of(self, first: FirstPass) -> list[Partition]:
        if not first.relates:
            return self._engine.run(self._tasks, first.work, self._partitions, first.finish)
        groups = Stage(self._partitions, first.finish_groups)
        found: list[list[Partition]] = self._engine.run(
            self._tasks, first.work, self._partitions, first.by_groups, groups
        )
        return [one for some in found for one in some]

    def together(self, read: Read) -> TogetherReport | None:
        """What was found of properties over several entities; None where none were asked for."""
        if not self._watched.asked:
            return None
        return report_together(self._watched, [one.swept for one in self._found], read.where)

    def second_pass(self) -> tuple[list[Judged], int]:
        """What all partitions have judged, with what needed a second look; and how many entities did."""
        judged = [one.glued.judged for one in self._found]
        unsettled = sorted({key for one in self._found for key in one.glued.unsettled})
        told = {} if self._earlier else _to_be_told([f for one in judged for f in one.findings])
        if not unsettled and not told:
            return judged, 0
        self._progress(f"reading again {len(unsettled) + len(told):,} entities")
        automata = {key: judge.automaton for key, judge in self.judges.items()}
        second = SecondPass(
            automata, self._partitions, tuple(unsettled), tuple(told), self._carry_to
        )
        self._looked = self._engine.run(self._tasks, second.work, self._partitions, second.finish)
        in_full = {f.key: f for one in self._looked for f in one.told}
        for one in judged:
            one.findings = [
                agreed(f, in_full.get(f.key)) if f.key in told else f for f in one.findings
            ]
        return [*judged, *(one.glued.judged for one in self._looked)], len(unsettled) + len(told)

    def plan(self, events: int, second: int) -> tuple[str, ...]:
        """How the verdicts were found, and why so."""
        rows = sum(s.rows for one in self._found for s in one.summaries)
        changes = sum(one.swept.changes for one in self._found)
        return (
            f"engine: {self._engine.name}, {self._engine.workers} at once",
            f"first pass: {len(self._tasks)} tasks replay {len(self._events)} parts where they lie",
            f"{rows:,} rows, left of {events:,} events, were glued in {self._partitions - 1} partitions",
            f"second pass: {second:,} entities were read again and judged event by event"
            if second
            else "no second pass: nothing was left open, nothing has to be told",
            *(
                (f"{changes:,} changes of entities were put in the order of their time, by group",)
                if changes
                else ()
            ),
        )

    def notes(self) -> list[str]:
        """What is worth telling of a run that continues others."""
        if self._earlier is None:
            return []
        glued = [*(one.glued for one in self._found), *(one.glued for one in self._looked)]
        counts = (
            (sum(one.open for one in glued), "traces have no end yet, and may go on"),
            (sum(one.told for one in glued), "entities were found to be bad in an earlier run"),
            (self.held, "events of earlier runs waited for one that was missing"),
        )
        return [
            f"run {self._earlier.runs + 1} with this state",
            *(f"{count:,} {what}" for count, what in counts if count),
        ]

    def left(self, files: Sequence[InputFile], read: Read, options: Options) -> State:
        """What the next run needs to know."""
        assert self._earlier is not None
        lines: dict[str, int] = {}
        for one in read.parts:
            lines[one.part.path] = lines.get(one.part.path, 0) + one.tally.lines
        known = dict(self._earlier.files)
        for file in files:
            name = str(file.path.resolve())
            was = known.get(name, FileRead(0, 0))
            known[name] = FileRead(file.size, was.lines + lines.get(str(file.path), 0))
        carried = [*(one.carried for one in self._found), *(one.carried for one in self._looked)]
        return replace(
            self._earlier,
            runs=self._earlier.runs + 1,
            definitions={**self._earlier.definitions, **self._definitions()},
            options=_options_text(options),
            files=known,
            parts=read.places,
            carried=tuple(
                str(Path(name).relative_to(self._earlier.folder)) for name in carried if name
            ),
        )

    def _definitions(self) -> dict[str, str]:
        return {
            f"{one.definition.name} {one.definition.profile}".strip(): one.definition.fingerprint()
            for one in self.judges.values()
        }


def _options_text(options: Options) -> str:
    hidden = options.hidden.actions
    words = [
        f"profile {options.profile}" if options.profile else "",
        f"mapping {_digest(options.mapping)}" if options.mapping else "",
        "all hidden" if hidden is None else f"hidden {', '.join(sorted(hidden))}" if hidden else "",
    ]
    return "; ".join(word for word in words if word)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _to_be_told(findings: Iterable[Finding]) -> dict[EntityKey, None]:
    """The entities whose violations are told with all that went before."""
    violations = (f for f in findings if f.verdict is TraceVerdict.VIOLATION)
    first = sorted(violations, key=lambda f: f.key)[:EXPLAINED_MAX]
    return {f.key: None for f in first}


def judges_of(
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
        of_log = (recorded, machine) in of_logs  # its reader knows which machine a profile is of
        definition = resolve(machine, profile if of_log else options.profile or profile)
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
            if options.hidden.exist:  # what the user says goes before what the reader knows
                recording = replace(recording, hidden=options.hidden)
        scope = recording.scope(options.scope(definition))
        model = ground(definition, scope)
        automaton = of_model(model, recording, max_states=options.max_states)
        judges[key] = Judge(definition, scope, model, automaton)
    return judges, notes
