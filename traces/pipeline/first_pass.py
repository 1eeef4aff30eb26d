"""The first pass over the input: it replays every event where it lies.

A task reads its files in order and yields rows for the partition of each entity; partitions glue the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stagewright.traces.coverage.correction import Taken, taken
from stagewright.traces.cross_entity.each import evaluate_each
from stagewright.traces.cross_entity.sweep import Gathered, Swept, by_group, sweep
from stagewright.traces.incremental.state_dir import no_room
from stagewright.traces.inputs.tasks import Automata, Summary, Task, blocks_of, details_of
from stagewright.traces.readers import formats
from stagewright.traces.replay.exact_verdicts import MachineKey
from stagewright.traces.replay.join_segments import Glued, glue
from stagewright.traces.replay.related.classes import Related, View
from stagewright.traces.replay.rows import (
    BODY,
    ENTITY,
    KIND,
    LENGTH,
    RAW,
    Rows,
    concatenated,
    select,
    split,
)
from stagewright.traces.replay.segment_files import load, save
from stagewright.traces.replay.segments import Segments
from stagewright.traces.replay.transition_table import Steps


@dataclass
class Partition:
    """What one partition of the first pass came to; or, in the last partition, what the tasks say."""

    glued: Glued = field(default_factory=Glued)
    taken: Taken = field(default_factory=Taken)
    uncounted: int = 0  # events that `taken` leaves out
    summaries: list[Summary] = field(default_factory=list)
    carried: str = ""  # the file with the rows for another run
    swept: Swept = field(default_factory=Swept)  # of properties of each entity by itself


@dataclass(frozen=True)
class FirstPass:
    """Replays all events; the last of `partitions` is for the tasks' summaries.

    With `carry_to`, a directory, what is known of all entities is written there for another run.

    With `views` the partitions find how `properties` see the entities; those that relate entities of a group
    are evaluated in a stage of their own, `by_groups`.
    """

    automata: Automata
    partitions: int
    carry_to: str = ""
    views: Mapping[MachineKey, View] = field(default_factory=dict[MachineKey, View])
    properties: tuple[Related, ...] = ()
    group: str = ""  # a pattern: what names of one group have in common
    skip_damaged: bool = False  # find out what exactly cannot be read

    def work(self, task: Task) -> Iterator[tuple[int, Rows | Summary]]:
        """The rows of a task, and its summary."""
        steps, summary = Steps(self.automata, self.views), Summary(number=task.number)
        closed: list[Rows] = []
        segments = Segments(steps, closed.append)
        for path in task.carried:
            rows = load(Path(path))
            machines = {stream[1:] for stream in rows.streams}
            summary.carried |= machines
            waiting = np.isin(rows.table[:, KIND], (RAW, BODY))
            summary.held += int(rows.table[waiting, LENGTH].sum())
            if machines <= self.automata.keys():
                yield from split(rows, self.partitions - 1)
        for block in blocks_of(task, summary, skip_damaged=self.skip_damaged):
            known = summary.aside.known_part(block, self.automata)
            if len(known):
                segments.take(known)
            if closed:
                yield from self._sent(closed, summary)
        segments.flush()
        yield from self._sent(closed, summary)
        summary.taken, summary.uncounted = taken(steps), steps.uncounted
        if not task.blocks:  # places of logs have no order
            summary.breaks = tuple(segments.breaks)
        summary.name_fewer()
        yield self.partitions - 1, summary

    def finish(self, items: Iterable[Rows | Summary]) -> Partition:
        """Glue the rows of a partition."""
        found = Partition()
        parts: list[Rows] = []
        for item in items:
            if isinstance(item, Summary):
                found.summaries.append(item)
            else:
                parts.append(item)
        if parts:
            steps = Steps(self.automata, self.views)
            details = details_of(self.partitions)
            rows = concatenated(parts)
            found.glued = glue(rows, steps, carry=bool(self.carry_to), details=details)
            found.taken, found.uncounted = taken(steps), steps.uncounted
            found.carried = carry(found.glued, self.carry_to)
            if found.glued.changes is not None:
                found.swept = evaluate_each(found.glued.changes, self.properties)
                if not self.relates:
                    found.glued.changes = None
        return found

    @property
    def relates(self) -> bool:
        """Whether a property relates entities, so that these are brought together."""
        return any(not p.local for p in self.properties)

    def by_groups(
        self, items: Iterable[Rows | Summary]
    ) -> Iterator[tuple[int, Partition | Gathered]]:
        """Finish a partition; its changes go to those who evaluate their groups, the rest to the last one."""
        found = self.finish(items)
        changes, found.glued.changes = found.glued.changes, None
        if changes is not None:
            parts, found.swept.ungrouped = by_group(changes, self.group, self.partitions - 1)
            yield from parts
        yield self.partitions - 1, found

    def finish_groups(self, items: Iterable[Partition | Gathered]) -> list[Partition]:
        """Evaluate the groups of a partition; the last one has what the others came to besides."""
        found: list[Partition] = []
        gathered: list[Gathered] = []
        for item in items:
            if isinstance(item, Gathered):
                gathered.append(item)
            else:
                found.append(item)
        return [*found, Partition(swept=sweep(gathered, self.properties))]

    def _sent(self, closed: list[Rows], summary: Summary) -> Iterator[tuple[int, Rows]]:
        for rows in closed:
            summary.rows += len(rows)
            yield from split(rows, self.partitions - 1)
        closed.clear()


def carry(glued: Glued, folder: str) -> str:
    """Write what is to be carried to a file; its path.

    Raises:
        InputError: there is no room.
    """
    if glued.carried is None:
        return ""
    # What logs say is interpreted, and evaluated, anew in every run.
    anew = np.array([formats.is_log(s.definition) for s in glued.carried.streams], bool)
    of_logs = anew[glued.carried.stream][glued.carried.table[:, ENTITY]]
    rows, glued.carried = select(glued.carried, np.flatnonzero(~of_logs)), None
    if not len(rows):
        return ""
    path = Path(folder) / f"{uuid.uuid4().hex}.parquet"
    try:
        save(rows, path)
    except OSError as error:
        raise no_room(path.parent, error) from error
    return str(path)
