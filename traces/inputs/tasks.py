"""What one task of a pass reads, and what it says of that beside the events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.traces.automaton.product_automaton import Source
from stagewright.traces.coverage.correction import Taken
from stagewright.traces.events.event_block import Block, Ints, Stream
from stagewright.traces.events.memory import keep_memory
from stagewright.traces.events.string_pool import Names
from stagewright.traces.inputs.discover import SKIP, unreadable
from stagewright.traces.inputs.unresolved import Aside
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Hole, Part, Tally
from stagewright.traces.replay.exact_verdicts import DETAILS_MAX, MachineKey

Automata = Mapping[MachineKey, Source]
LINES_MAX = 10_000  # lines that are no events and are reported one by one


@dataclass(frozen=True)
class Task:
    """What one task reads: parts of files in order, events in memory, or what earlier runs have carried."""

    parts: tuple[Part, ...] = ()
    blocks: tuple[Block, ...] = ()
    carried: tuple[str, ...] = ()  # files with rows of earlier runs
    number: int = 0  # among the tasks


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
            self.holes = formats.holes(self.part, wrong.problem)


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
    uncounted: int = 0  # events that `taken` leaves out
    held: int = 0  # events of earlier runs that come with the carried rows
    taken: Taken = field(default_factory=Taken)
    number: int = 0  # of the task
    breaks: tuple[int, ...] = ()  # the places before which it closed all segments

    def name_fewer(self) -> None:
        """Of lines that are no events, name only so many as a report does: the first ones."""
        left = LINES_MAX
        for part in self.parts:
            del part.tally.reasons[left:]
            left -= len(part.tally.reasons)


def blocks_of(
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
            yield from formats.blocks(part, read.tally, wanted)
        except (StagewrightError, OSError) as error:
            read.failed(error, find_holes=skip_damaged)


def details_of(partitions: int) -> int:
    """How many findings a partition reports, so that all together are not too many."""
    return max(1_000, DETAILS_MAX // partitions)
