"""The two passes over the input: the first replays every event where it lies, the second looks at suspects.

In the first pass a task reads its files in order and yields rows for the partition of each entity; partitions
glue the rows. What rows cannot settle, and what is to be told in full, is read again and judged event by event.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.aside import Aside
from stagewright.traces.blocks import Block, EntityKey, Ints, Stream, chosen, merge
from stagewright.traces.candidates import Source
from stagewright.traces.inputs import SKIP, unreadable
from stagewright.traces.judge import DETAILS_MAX, Finding, Judged, MachineKey, judge
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Hole, Part, Tally
from stagewright.traces.replay.carried import load, save
from stagewright.traces.replay.glue import Glued, glue
from stagewright.traces.replay.memory import keep_memory
from stagewright.traces.replay.names import Interner, Names, names_of
from stagewright.traces.replay.rows import (
    CARRIED,
    ENTITY,
    KIND,
    LENGTH,
    PossibleStates,
    Rows,
    concatenated,
    select,
    split,
)
from stagewright.traces.replay.segments import Segments, rows_of, salt_of
from stagewright.traces.replay.steps import Steps
from stagewright.traces.together.each import judge_each
from stagewright.traces.together.sweep import Gathered, Swept, by_group, sweep
from stagewright.traces.together.views import Related, View
from stagewright.traces.trace_report import AccountingError

Automata = Mapping[MachineKey, Source]
EXPLAINED_MAX = (
    200  # violations that are told with the events before them, and have files of their own
)
_NO_SALT = np.zeros(1, np.uint64)

Taken = dict[tuple[PossibleStates, str], int]  # how often a symbol was read in a set


@dataclass(frozen=True)
class Task:
    """What one task reads: parts of files in order, events in memory, or what earlier runs have carried."""

    parts: tuple[Part, ...] = ()
    blocks: tuple[Block, ...] = ()
    carried: tuple[str, ...] = ()  # files with rows of earlier runs


@dataclass
class PartRead:
    """What was read of one part, beside its events."""

    part: Part
    tally: Tally
    streams: set[Stream] = field(default_factory=set)  # of a log
    error: str = ""
    help: str = ""
    holes: tuple[Hole, ...] = ()  # what to leave out, where it could not be read

    def failed(self, error: Exception, *, find_holes: bool) -> None:
        """Keep why the part could not be read to its end, and maybe what exactly cannot be read."""
        wrong = unreadable(Path(self.part.path), error)
        self.error, self.help = wrong.problem, wrong.help
        if find_holes:
            self.holes = forms.holes(self.part, wrong.problem)


def refuse_damaged(parts: Sequence[PartRead]) -> None:
    """Raise one `InputError` that names every file that could not be read."""
    wrong = list(dict.fromkeys(read.error for read in parts if read.error))
    helps = list(dict.fromkeys(read.help for read in parts if read.error))
    if wrong:
        raise InputError("\n".join(wrong), help="; ".join((*helps, SKIP)))


@dataclass
class Summary:
    """What a task has done, beside the rows that it has sent."""

    parts: list[PartRead] = field(default_factory=list)
    aside: Aside = field(default_factory=Aside)  # events of machines that were not at hand
    carried: set[MachineKey] = field(default_factory=set)  # machines of which earlier runs know
    rows: int = 0
    untold: int = 0  # events that `taken` leaves out
    held: int = 0  # events of earlier runs that come with the carried rows
    taken: Taken = field(default_factory=dict)


@dataclass
class Partition:
    """What one partition of the first pass came to; or, in the last partition, what the tasks say."""

    glued: Glued = field(default_factory=Glued)
    taken: Taken = field(default_factory=dict)
    untold: int = 0  # events that `taken` leaves out
    summaries: list[Summary] = field(default_factory=list)
    carried: str = ""  # the file with the rows for another run
    swept: Swept = field(default_factory=Swept)  # of properties of each entity by itself


@dataclass(frozen=True)
class FirstPass:
    """Replays all events; the last of `partitions` is for the tasks' summaries.

    With `carry_to`, a directory, what is known of all entities is written there for another run.

    With `views` the partitions tell how `properties` see the entities; those that relate entities of a group
    are judged in a stage of their own, `by_groups`.
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
        steps, summary = Steps(self.automata, self.views), Summary()
        closed: list[Rows] = []
        segments = Segments(steps, closed.append)
        for path in task.carried:
            rows = load(Path(path))
            machines = {stream[1:] for stream in rows.streams}
            summary.carried |= machines
            waiting = rows.table[:, KIND] != CARRIED
            summary.held += int(rows.table[waiting, LENGTH].sum())
            if machines <= self.automata.keys():
                yield from split(rows, self.partitions - 1)
        for block in _blocks_of(task, summary, skip_damaged=self.skip_damaged):
            known = summary.aside.known_part(block, self.automata)
            if len(known):
                segments.take(known)
            if closed:
                yield from self._sent(closed, summary)
        segments.flush()
        yield from self._sent(closed, summary)
        summary.taken, summary.untold = _taken(steps), steps.untold
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
            found.taken, found.untold = _taken(steps), steps.untold
            found.carried = _carry(found.glued, self.carry_to)
            if found.glued.changes is not None:
                found.swept = judge_each(found.glued.changes, self.properties)
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
        """Finish a partition; its changes go to those who judge their groups, the rest to the last one."""
        found = self.finish(items)
        changes, found.glued.changes = found.glued.changes, None
        if changes is not None:
            parts, found.swept.ungrouped = by_group(changes, self.group, self.partitions - 1)
            yield from parts
        yield self.partitions - 1, found

    def finish_groups(self, items: Iterable[Partition | Gathered]) -> list[Partition]:
        """Judge the groups of a partition; the last one has what the others came to besides."""
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


@dataclass
class Looked:
    """What a partition of the second pass came to: the unsettled entities judged, the others only told."""

    glued: Glued = field(default_factory=Glued)
    carried: str = ""
    told: list[Finding] = field(default_factory=list)
    damaged: list[PartRead] = field(default_factory=list)


@dataclass(frozen=True)
class SecondPass:
    """Judges some entities event by event."""

    automata: Automata
    partitions: int
    unsettled: tuple[EntityKey, ...]
    told: tuple[EntityKey, ...]
    carry_to: str = ""

    def work(self, task: Task) -> Iterator[tuple[int, Block | Rows | PartRead]]:
        """The events of the wanted entities, by partition; and what could be read before, but not now."""
        wanted = _Wanted((*self.unsettled, *self.told))
        summary = Summary()
        for path in task.carried:
            rows = load(Path(path))
            number = wanted.find(rows)
            target = np.where(number < 0, -1, number % self.partitions)[rows.table[:, ENTITY]]
            for partition in np.unique(target[target >= 0]).tolist():
                yield partition, select(rows, np.flatnonzero(target == partition))
        for block in _blocks_of(task, summary, wanted.named):
            number = wanted.find(block)
            target = np.where(number < 0, -1, number % self.partitions)[block.entity]
            for partition in np.unique(target[target >= 0]).tolist():
                yield partition, chosen(block, np.flatnonzero(target == partition))
        yield from ((0, read) for read in summary.parts if read.error)

    def finish(self, items: Iterable[Block | Rows | PartRead]) -> Looked:
        """Judge the entities of a partition."""
        found, blocks, carried = Looked(), list[Block](), list[Rows]()
        for item in items:
            if isinstance(item, PartRead):
                found.damaged.append(item)
            elif isinstance(item, Rows):
                carried.append(item)
            else:
                blocks.append(item)
        if not blocks:
            return found
        block = merge(blocks)
        unsettled = (_Wanted(self.unsettled).find(block) >= 0)[block.entity]
        one, other = (chosen(block, np.flatnonzero(rows)) for rows in (unsettled, ~unsettled))
        if len(one):
            rows = concatenated([rows_of(one), *carried])
            details, steps = details_of(self.partitions), Steps(self.automata)
            found.glued = glue(rows, steps, carry=bool(self.carry_to), details=details)
            found.carried = _carry(found.glued, self.carry_to)
            if not carried:
                _tell_in_full(found.glued.judged, one, self.automata)
        found.told = judge([other], self.automata).findings
        return found


class _Wanted:
    """Finds some entities in blocks."""

    def __init__(self, keys: Sequence[EntityKey]) -> None:
        self._groups: dict[Stream, int] = {}
        for key in keys:
            self._groups.setdefault(key.stream, len(self._groups))
        self._salts = np.array([*(salt_of(s) for s in self._groups), 0], np.uint64)
        self._known = Interner()
        self._known.number(
            names_of(key.entity for key in keys),
            np.array([self._groups[key.stream] for key in keys], np.int32),
            self._salts,
        )
        self._names = Interner()
        every = names_of(dict.fromkeys(key.entity for key in keys))
        self._names.number(every, np.zeros(len(every), np.int32), _NO_SALT)

    def named(self, names: Names) -> Ints:
        """Which of the names are those of wanted entities, of whatever stream."""
        found: Ints = self._names.find(names, np.zeros(len(names), np.int32), _NO_SALT) >= 0
        return found

    def find(self, block: Block | Rows) -> Ints:
        """The number of each of the block's entities, or -1."""
        if not any(stream in self._groups for stream in block.streams):
            return np.full(len(block.names), -1, np.int32)
        others = len(self._groups)
        group = np.array([self._groups.get(s, others) for s in block.streams], np.int32)
        return self._known.find(block.names, group[block.stream], self._salts)


def details_of(partitions: int) -> int:
    """How many findings a partition tells, so that all together are not too many."""
    return max(1_000, DETAILS_MAX // partitions)


def _carry(glued: Glued, folder: str) -> str:
    """Write what is to be carried to a file; its path.

    Raises:
        InputError: there is no room.
    """
    if glued.carried is None or not len(glued.carried):
        return ""
    path = Path(folder) / f"{uuid.uuid4().hex}.parquet"
    try:
        save(glued.carried, path)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be written: {error.strerror or error}",
            help="make room there; what earlier runs left is as it was",
        ) from error
    glued.carried = None
    return str(path)


def _tell_in_full(glued: Judged, block: Block, automata: Automata) -> None:
    """Give those findings that may be told in full the events that led to them."""
    told = to_be_told(glued.findings)
    few = _Wanted(tuple(told)).find(block) >= 0
    exact = judge([chosen(block, np.flatnonzero(few[block.entity]))], automata)
    in_full = {finding.key: finding for finding in exact.findings}
    glued.findings = [agreed(f, in_full.get(f.key)) if f.key in told else f for f in glued.findings]


def to_be_told(findings: Iterable[Finding]) -> dict[EntityKey, None]:
    """The entities whose violations are told with all that went before."""
    violations = (f for f in findings if f.verdict is TraceVerdict.VIOLATION)
    first = sorted(violations, key=lambda f: f.key)[:EXPLAINED_MAX]
    return {f.key: None for f in first}


def agreed(glued: Finding, exact: Finding | None) -> Finding:
    """A finding with all events that led to it, which were judged one by one.

    Raises:
        AccountingError: the two ways to judge do not agree.
    """
    plain = [replace(f, symbols=(), before=None) for f in (glued, exact) if f is not None]
    if exact is None or plain[0] != plain[1]:
        raise AccountingError(f"{glued.key}: glued {glued}, but judged event by event {exact}")
    return replace(glued, symbols=exact.symbols)


def _blocks_of(
    task: Task,
    summary: Summary,
    wanted: Callable[[Names], Ints] | None = None,
    *,
    skip_damaged: bool = False,
) -> Iterator[Block]:
    keep_memory()
    yield from task.blocks
    for part in task.parts:
        read = PartRead(part, Tally())
        summary.parts.append(read)
        if part.lost is not None:
            read.tally.lose(part.lost)
            continue
        try:
            yield from forms.blocks(part, read.tally, wanted)
        except (StagewrightError, OSError) as error:
            read.failed(error, find_holes=skip_damaged)


def _taken(steps: Steps) -> Taken:
    found: Taken = {}
    for possible, symbol, count in steps.taken():
        found[possible, symbol] = found.get((possible, symbol), 0) + count
    return found
