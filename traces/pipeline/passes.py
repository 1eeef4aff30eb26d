"""One run over an input: its two passes, and what it leaves for the next run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.text.counting import counted
from stagewright.traces.automaton.product_automaton import Source
from stagewright.traces.coverage.correction import Taken
from stagewright.traces.coverage.exercised import Exercised, Whose, exercised_of
from stagewright.traces.cross_entity.system import Together, together
from stagewright.traces.cross_entity.verdicts import TogetherReport, report_together
from stagewright.traces.engines.engine import Engine, Stage
from stagewright.traces.events.event_block import Block, EntityKey, place_of
from stagewright.traces.explain.panel import Panel
from stagewright.traces.incremental.incremental_run import Continued
from stagewright.traces.incremental.state_dir import State
from stagewright.traces.inputs import unresolved
from stagewright.traces.inputs.split import PROBED, Logs, beginnings, tasks_of
from stagewright.traces.inputs.tasks import PartRead, Task, refuse_damaged
from stagewright.traces.inputs.unresolved import Aside, all_of, as_evaluated
from stagewright.traces.options import Options, Progress, Resolve
from stagewright.traces.pipeline.first_pass import FirstPass, Partition
from stagewright.traces.pipeline.resolve import Definitions
from stagewright.traces.pipeline.second_pass import Looked, SecondPass, agreed, to_explain
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part
from stagewright.traces.replay.exact_verdicts import DETAILS_MAX, Evaluated, Finding, MachineKey
from stagewright.traces.replay.join_segments import Miscounted
from stagewright.traces.report.assemble import Read

RECOUNTED_MAX = DETAILS_MAX // 2  # entities whose exercises are counted again
_PARTITION_BYTES = 1 << 27  # of input; the rows of so much fit into a worker's memory many times


class Run:
    """The passes over an input, of which earlier runs may have seen a part.

    `left_out`: forms of files that could not even be opened; "" where the form of one is not known.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Sequence[Part],
        logs: Logs,
        continued: Continued | None,
        progress: Progress,
        left_out: Collection[str] = (),
    ) -> None:
        self.panels: dict[MachineKey, Panel] = {}
        self._engine, self._logs, self._progress = engine, logs, progress
        self._continued = continued
        self._left_out = frozenset(left_out)
        self._events = [part for part in parts if not formats.form_named(part.form).log]
        self._tasks = tasks_of(self._events, engine.workers)
        if logs.blocks:
            self._tasks.append(Task(blocks=tuple(logs.blocks)))
        if continued is not None:
            self._tasks += [Task(carried=(file,)) for file in continued.carried]
        self._tasks = [replace(task, number=number) for number, task in enumerate(self._tasks)]
        size = sum(part.weight for part in parts)
        self._partitions = max(engine.workers, size // _PARTITION_BYTES) + 1
        self._carry_to = "" if continued is None else str(continued.folder)
        self._found: list[Partition] = []
        self._watched = Together()
        self._looked: list[Looked] = []
        self._not_recounted = 0
        self._set_aside, self._aside = Aside(), Evaluated()

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
        """What the events did that were evaluated; that of all runs."""
        all_taken: Taken = Counter()
        for one in self._found:
            for taken in (one.taken, *(s.taken for s in one.summaries)):
                all_taken.update(taken)
        for looked in self._looked:
            all_taken.update(looked.taken)
        members = {key: len(panel.members) for key, panel in self.panels.items()}
        found = exercised_of(+all_taken, members)
        return found if self._continued is None else self._continued.exercised(found)

    @property
    def damaged(self) -> set[str]:
        """The forms of which something is left out; "" where it is not known of which."""
        holed = {part.form for part in self._events if part.holes}
        return holed | self._logs.damaged | self._left_out

    def first_pass(self, resolve: Resolve, options: Options) -> list[str]:
        """Replay everything; returns what is to be noted about the definitions.

        Raises:
            StagewrightError: not one event is of a machine that can be evaluated; a file is damaged.
        """
        asked = Definitions(resolve, options, self._logs.recordings, self.damaged)
        if self._continued is not None:
            asked.ask(stream[1:] for stream in self._continued.streams)
        self._ask_first(asked)
        while True:
            self.panels = asked.panels
            evaluators = {key: panel.members[0] for key, panel in self.panels.items()}
            self._watched = together(options.together, evaluators, options.profile)
            if self._continued is not None:
                self._continued.fits(self.panels, self._watched)
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
        self._watched.check(evaluators)
        self._aside = as_evaluated(self._set_aside, asked.refused)
        return [
            *asked.notes,
            *unresolved.notes(self._set_aside, asked.refused),
            *self._coverage_notes(),
        ]

    def _coverage_notes(self) -> list[str]:
        of_tasks = sum(s.uncounted for one in self._found for s in one.summaries)
        uncounted = of_tasks + sum(one.uncounted for one in self._found)
        if not uncounted:
            return []
        return [
            f"the coverage leaves out {counted(uncounted, 'event')}: too many states were possible"
        ]

    def _ask_first(self, asked: Definitions) -> None:
        """Look for the definitions of what logs are about, and of the first events of some files."""
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
        """Why nothing can be evaluated, with the place of the first event."""
        parts = {read.part.number: read.part for read in self._logs.read}
        of_logs = ((place_of(int(b.place[0])).source, b) for b in self._logs.blocks)
        placed = [*((parts[part], b) for part, b in of_logs if part in parts), *first]
        if not placed:  # an earlier run has read all there is
            return next(iter(asked.refused.values()))
        part, block = placed[0]
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
        if not self._watched.any_asked:
            return None
        swept = [one.swept for one in self._found]
        if self._continued is not None:
            self._continued.leave_out_groups(swept, self._watched.properties)
        return report_together(self._watched, swept, read.where, damaged=bool(self.damaged))

    def second_pass(self, read: Read) -> tuple[list[Evaluated], int]:
        """What all partitions have evaluated, with what needed a second look; and how many entities did."""
        evaluated = [*(one.glued.evaluated for one in self._found), self._aside]
        unsettled = sorted({key for one in self._found for key in one.glued.unsettled})
        if self._continued is not None:
            self._continued.leave_out_reported(evaluated, read)
        explained = self._to_explain([f for one in evaluated for f in one.findings])
        miscounted = self._miscounted(unsettled)
        again = {*unsettled, *explained, *(m.key for m in miscounted)}
        if not again:
            return evaluated, 0
        self._progress(f"reading again {counted(len(again), 'entity', 'entities')}")
        second = SecondPass(
            self._automata,
            self._partitions,
            tuple(unsettled),
            tuple(explained),
            miscounted,
            {s.number: s.breaks for one in self._found for s in one.summaries if s.breaks},
            self._carry_to,
            self._watched.views,
        )
        self._looked = self._engine.run(self._tasks, second.work, self._partitions, second.finish)
        refuse_damaged([read for one in self._looked for read in one.damaged])
        in_full = {f.key: f for one in self._looked for f in one.explained}
        for one in evaluated:
            one.findings = [
                agreed(f, in_full.get(f.key)) if f.key in explained else f for f in one.findings
            ]
        looked = [one.glued.evaluated for one in self._looked]
        if self._continued is not None:
            self._continued.leave_out_reported(looked, read)
        return [*evaluated, *looked], len(again)

    def _miscounted(self, unsettled: Sequence[EntityKey]) -> tuple[Miscounted, ...]:
        """The entities whose exercises are to be counted again: none if there are too many."""
        settled = [one for part in self._found for one in part.glued.miscounted]
        unnamed = sum(one.glued.miscounted_left_out for one in self._found)
        if unnamed or len(settled) + len(unsettled) > RECOUNTED_MAX:
            self._not_recounted = unnamed + len(settled) + len(unsettled)
            return ()
        return tuple(sorted([*settled, *(Miscounted(key, 0) for key in unsettled)]))

    def _to_explain(self, findings: Iterable[Finding]) -> Collection[EntityKey]:
        """The entities whose violations are explained with all that went before, where that is at hand."""
        at_hand = self._continued is None
        found = to_explain(findings)
        return {key: None for key in found if at_hand or formats.is_log(key.stream.definition)}

    def plan(self, events: int, second: int) -> tuple[str, ...]:
        """How the verdicts were found, and why so."""
        rows = sum(s.rows for one in self._found for s in one.summaries)
        changes = sum(one.swept.changes for one in self._found)
        return (
            f"engine: {self._engine.name}, {self._engine.workers} at once",
            f"first pass: {counted(len(self._tasks), 'task')}, {counted(len(self._events), 'part')} replayed where they lie",
            f"{counted(rows, 'row')}, left of {counted(events, 'event')}, joined in {counted(self._partitions - 1, 'partition')}",
            f"second pass: {counted(second, 'entity', 'entities')} read again, to check event by event or to count anew"
            if second
            else "no second pass: nothing was left open, nothing has to be explained",
            *(
                (
                    f"{counted(changes, 'change')} of entities put in the order of their time, by group",
                )
                if changes
                else ()
            ),
        )

    def notes(self) -> list[str]:
        """What is worth a note of how the verdicts and counts were found, and of a run that continues others."""
        found: list[str] = []
        if self._not_recounted:
            found.append(
                f"coverage counts more than was checked: in {self._not_recounted:,} entities something is wrong or"
                " repeated, and what such ones did is counted again only where there are not more than"
                f" {RECOUNTED_MAX:,}"
            )
        if self._continued is None:
            return found
        glued = [*(one.glued for one in self._found), *(one.glued for one in self._looked)]
        return found + self._continued.notes(
            bad_before=sum(one.bad_before for one in glued),
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
