"""One run over an input: its two passes, and what it leaves for the next run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.traces import aside
from stagewright.traces.aside import Aside, all_of, as_judged
from stagewright.traces.blocks import Block, place_of
from stagewright.traces.candidates import Source
from stagewright.traces.compose import Read
from stagewright.traces.coverage import Exercised, Whose, exercised_of
from stagewright.traces.definitions import Definitions
from stagewright.traces.engines import Engine, Stage
from stagewright.traces.inputs import InputFile
from stagewright.traces.judge import Judged, MachineKey
from stagewright.traces.judges import Panel
from stagewright.traces.options import Options, Progress, Resolve
from stagewright.traces.passes import (
    FirstPass,
    Looked,
    Partition,
    PartRead,
    SecondPass,
    Task,
    agreed,
    refuse_damaged,
    to_be_told,
)
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Part
from stagewright.traces.reading import PROBED, Logs, beginnings, tasks_of
from stagewright.traces.state import FileRead, State
from stagewright.traces.together.system import Together, together
from stagewright.traces.together.verdicts import TogetherReport, report_together

_PARTITION_BYTES = 1 << 27  # of input; the rows of so much fit into a worker's memory many times


class Run:
    """The passes over an input, of which `earlier` runs may have seen a part.

    `left_out`: forms of files that could not even be opened; "" where the form of one is not known.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        logs: Logs,
        earlier: State | None,
        progress: Progress,
        left_out: Collection[str] = (),
    ) -> None:
        self.panels: dict[MachineKey, Panel] = {}
        self._engine, self._logs, self._earlier, self._progress = engine, logs, earlier, progress
        self._left_out = frozenset(left_out)
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
        self._set_aside, self._aside = Aside(), Judged()

    @property
    def read(self) -> list[PartRead]:
        """What was read of each part."""
        return [part for one in self._found for s in one.summaries for part in s.parts]

    @property
    def held(self) -> int:
        """Events of earlier runs that wait behind gaps."""
        return sum(s.held for one in self._found for s in one.summaries)

    @property
    def exercised(self) -> dict[Whose, list[Exercised]]:
        """What the replay did, without the few events that were judged one by one."""
        tasks = (s.taken for one in self._found for s in one.summaries)
        members = {key: len(panel.members) for key, panel in self.panels.items()}
        return exercised_of([*tasks, *(one.taken for one in self._found)], members)

    @property
    def damaged(self) -> set[str]:
        """The forms of which something is left out; "" where it is not known of which."""
        holed = {part.form for part in self._events if part.holes}
        return holed | self._logs.damaged | self._left_out

    def first_pass(self, resolve: Resolve, options: Options) -> list[str]:
        """Replay everything; returns what is to be noted about the definitions.

        Raises:
            StagewrightError: not one event is of a machine that can be judged; a file is damaged.
        """
        asked = Definitions(resolve, options, self._logs.recordings, self.damaged)
        self._ask_first(asked)
        while True:
            self.panels = asked.panels
            if self._earlier is not None:
                self._earlier.fits(self._definitions(), _options_text(options))
            judges = {key: panel.members[0] for key, panel in self.panels.items()}
            self._watched = together(options.together, judges, options.profile)
            first = FirstPass(
                self._automata,
                self._partitions,
                self._carry_to,
                self._watched.views,
                self._watched.properties,
                options.group,
                options.skip_damaged,
            )
            self._found = self._partitions_of(first)
            again = self._leave_out_holes(asked, options)
            if not self._ask_more(asked) and not again:
                break
        asked.check_candidates()
        self._watched.check(judges)
        self._aside = as_judged(self._set_aside, asked.refused)
        return [
            *asked.notes,
            *aside.notes(self._set_aside, asked.refused),
            *self._coverage_notes(),
        ]

    def _coverage_notes(self) -> list[str]:
        of_tasks = sum(s.untold for one in self._found for s in one.summaries)
        untold = of_tasks + sum(one.untold for one in self._found)
        if not untold:
            return []
        return [f"the coverage leaves out {untold:,} events: too many states were possible"]

    def _ask_first(self, asked: Definitions) -> None:
        """Look for the definitions of what logs tell, and of the first events of some files."""
        first: list[tuple[Part, Block]] = []
        for block in self._logs.blocks:
            asked.ask(stream[1:] for stream in block.streams)
        for looked, (part, block) in enumerate(beginnings(self._events), 1):
            asked.ask(stream[1:] for stream in block.streams)
            first.append((part, block))
            if asked.panels and looked >= PROBED:
                break
        if asked.refused and not asked.panels:
            raise self._refusal(asked, first)

    def _refusal(self, asked: Definitions, first: Sequence[tuple[Part, Block]]) -> StagewrightError:
        """Why nothing can be judged, with the place of the first event."""
        parts = {read.part.number: read.part for read in self._logs.read}
        of_logs = [(parts[place_of(int(b.place[0])).source], b) for b in self._logs.blocks]
        part, block = [*of_logs, *first][0]
        error = asked.refused[block.key(int(block.entity[0])).stream[1:]]
        line = f":{place_of(int(block.place[0])).line}" if part.start == 0 else ""
        return InputError(f"{part.path}{line}: {error.problem}", help=error.help)

    def _leave_out_holes(self, asked: Definitions, options: Options) -> bool:
        """Whether all is to be read again, without what could not be read now."""
        damaged = {read.part.number: read for read in self.read if read.error}
        if not damaged:
            return False
        if not options.skip_damaged:
            refuse_damaged(list(damaged.values()))
        self._progress(f"reading again, without what is damaged in {len(damaged)} parts")
        without = {n: replace(read.part, holes=read.holes) for n, read in damaged.items()}
        self._events = [without.get(part.number, part) for part in self._events]
        self._tasks = [
            replace(task, parts=tuple(without.get(part.number, part) for part in task.parts))
            for task in self._tasks
        ]
        asked.doubt(self.damaged)
        return True

    def _ask_more(self, asked: Definitions) -> bool:
        """Whether there are definitions of what was set aside."""
        summaries = [s for one in self._found for s in one.summaries]
        carried: set[MachineKey] = set().union(*(s.carried for s in summaries))
        self._set_aside = all_of(s.aside for s in summaries)
        found = asked.ask(carried | self._set_aside.counts.keys())
        for key in sorted(carried & asked.refused.keys()):
            raise asked.refused[key]
        if found and self._events:
            self._progress("reading again: there are events of more machines")
        return found

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
        return report_together(
            self._watched,
            [one.swept for one in self._found],
            read.where,
            damaged=bool(self.damaged),
        )

    def second_pass(self) -> tuple[list[Judged], int]:
        """What all partitions have judged, with what needed a second look; and how many entities did."""
        judged = [*(one.glued.judged for one in self._found), self._aside]
        unsettled = sorted({key for one in self._found for key in one.glued.unsettled})
        told = {} if self._earlier else to_be_told([f for one in judged for f in one.findings])
        if not unsettled and not told:
            return judged, 0
        self._progress(f"reading again {len(unsettled) + len(told):,} entities")
        second = SecondPass(
            self._automata, self._partitions, tuple(unsettled), tuple(told), self._carry_to
        )
        self._looked = self._engine.run(self._tasks, second.work, self._partitions, second.finish)
        refuse_damaged([read for one in self._looked for read in one.damaged])
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
        damaged = {one.part.path for one in read.parts if one.part.holes}
        for file in files:
            if str(file.path) in damaged:
                continue  # it is read again, for it may have been mended
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

    @property
    def _automata(self) -> dict[MachineKey, Source]:
        return {key: panel.source for key, panel in self.panels.items()}

    def _definitions(self) -> dict[str, str]:
        return {
            f"{one.definition.name} {one.definition.profile}".strip(): one.definition.fingerprint()
            for panel in self.panels.values()
            for one in panel.members
        }


def _options_text(options: Options) -> str:
    hidden = options.hidden.actions
    words = [
        f"profile {options.profile}" if options.profile else "",
        f"profiles {', '.join(options.candidates)}" if options.candidates else "",
        f"mapping {_digest(options.mapping)}" if options.mapping else "",
        "all hidden" if hidden is None else f"hidden {', '.join(sorted(hidden))}" if hidden else "",
    ]
    return "; ".join(word for word in words if word)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
