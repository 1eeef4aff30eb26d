"""One run over an input: its two passes, and what it leaves for the next run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.blocks import EntityKey
from stagewright.traces.candidates import Source
from stagewright.traces.compose import EXPLAINED_MAX, Read
from stagewright.traces.continued import Continued
from stagewright.traces.coverage import Exercised, Whose, exercised_of
from stagewright.traces.engines import Engine, Stage
from stagewright.traces.judge import Finding, Judged, MachineKey
from stagewright.traces.judges import Panel, panels_of
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
from stagewright.traces.state import State
from stagewright.traces.together.system import Together, together
from stagewright.traces.together.verdicts import TogetherReport, report_together

_PARTITION_BYTES = 1 << 27  # of input; the rows of so much fit into a worker's memory many times


class Run:
    """The passes over an input, of which earlier runs may have seen a part."""

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        logs: Logs,
        continued: Continued | None,
        progress: Progress,
    ) -> None:
        self.panels: dict[MachineKey, Panel] = {}
        self._engine, self._logs, self._progress = engine, logs, progress
        self._continued = continued
        self._events = [part for part in parts if not forms.form_named(part.form).log]
        self._tasks = tasks_of(self._events, engine.workers)
        if logs.blocks:
            self._tasks.append(Task(blocks=tuple(logs.blocks)))
        if continued is not None:
            self._tasks += [Task(carried=(file,)) for file in continued.carried]
        size = sum(part.weight for part in parts)
        self._partitions = max(engine.workers, size // _PARTITION_BYTES) + 1
        self._carry_to = "" if continued is None else str(continued.folder)
        self._found: list[Partition] = []
        self._watched = Together()
        self._looked: list[Looked] = []

    @property
    def read(self) -> list[PartRead]:
        """What was read of each part."""
        return [part for one in self._found for s in one.summaries for part in s.parts]

    @property
    def held(self) -> int:
        """Events of earlier runs that waited behind gaps."""
        return sum(s.held for one in self._found for s in one.summaries)

    @property
    def exercised(self) -> dict[Whose, list[Exercised]]:
        """What the replay did, without the few events that were judged one by one; that of all runs."""
        tasks = (s.taken for one in self._found for s in one.summaries)
        members = {key: len(panel.members) for key, panel in self.panels.items()}
        found = exercised_of([*tasks, *(one.taken for one in self._found)], members)
        return found if self._continued is None else self._continued.exercised(found)

    def first_pass(self, resolve: Resolve, options: Options) -> list[str]:
        """Replay everything; returns what is to be noted about the definitions."""
        known = self._logs.streams | first_streams(self._events)
        if self._continued is not None:
            known |= self._continued.streams
        while True:
            self.panels, notes = panels_of(known, resolve, options, self._logs.recordings)
            judges = {key: panel.members[0] for key, panel in self.panels.items()}
            self._watched = together(options.together, judges, options.profile)
            if self._continued is not None:
                self._continued.fits(self.panels, self._watched)
            first = FirstPass(
                self._automata,
                self._partitions,
                self._carry_to,
                self._watched.views,
                self._watched.properties,
                options.group,
            )
            self._found = self._partitions_of(first)
            unknown = {s for one in self._found for t in one.summaries for s in t.unknown}
            if not unknown:
                self._watched.check(judges)
                return notes
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
        if not (self._watched.properties or self._watched.unjudged):
            return None
        swept = [one.swept for one in self._found]
        if self._continued is not None:
            self._continued.leave_out_groups(swept, self._watched.properties)
        return report_together(self._watched, swept, read.where)

    def second_pass(self, read: Read) -> tuple[list[Judged], int]:
        """What all partitions have judged, with what needed a second look; and how many entities did."""
        judged = [one.glued.judged for one in self._found]
        unsettled = sorted({key for one in self._found for key in one.glued.unsettled})
        if self._continued is not None:
            self._continued.leave_out_told(judged, read)
        told = self._to_be_told([f for one in judged for f in one.findings])
        if not unsettled and not told:
            return judged, 0
        self._progress(f"reading again {len(unsettled) + len(told):,} entities")
        second = SecondPass(
            self._automata,
            self._partitions,
            tuple(unsettled),
            tuple(told),
            self._carry_to,
            self._watched.views,
        )
        self._looked = self._engine.run(self._tasks, second.work, self._partitions, second.finish)
        in_full = {f.key: f for one in self._looked for f in one.told}
        for one in judged:
            one.findings = [
                agreed(f, in_full.get(f.key)) if f.key in told else f for f in one.findings
            ]
        looked = [one.glued.judged for one in self._looked]
        if self._continued is not None:
            self._continued.leave_out_told(looked, read)
        return [*judged, *looked], len(unsettled) + len(told)

    def _to_be_told(self, findings: Iterable[Finding]) -> dict[EntityKey, None]:
        """The entities whose violations are told with all that went before, where that is at hand."""
        violations = (f for f in findings if f.verdict is TraceVerdict.VIOLATION)
        first = sorted(violations, key=lambda f: f.key)[:EXPLAINED_MAX]
        at_hand = self._continued is None
        return {f.key: None for f in first if at_hand or forms.is_log(f.key.stream.definition)}

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
        if self._continued is None:
            return []
        glued = [*(one.glued for one in self._found), *(one.glued for one in self._looked)]
        return self._continued.notes(
            told=sum(one.told for one in glued),
            open_=sum(one.open for one in glued),
            uncompared=sum(one.uncompared for one in glued),
            held=self.held,
            any_event=bool(self.panels),
        )

    def left(self, read: Read) -> State:
        """What the next run needs to know."""
        assert self._continued is not None
        carried = [*(one.carried for one in self._found), *(one.carried for one in self._looked)]
        return self._continued.left(read, self.panels, self._watched, carried)

    @property
    def _automata(self) -> dict[MachineKey, Source]:
        return {key: panel.source for key, panel in self.panels.items()}
