"""What a reader is given and what it gives back, whatever the form of the input.

A reader is a module with three functions (and one row in `forms`):

- `parts(path)` splits a file into pieces that can be read by themselves;
- `check(path)` raises an `InputError` if the file is not of this form at all;
- `read(part, tally)` yields the events of a piece as blocks, and counts every line in `tally`.

Where lines mean something only together (a log: a later line takes back an earlier one, time orders the
files of several nodes), there are two functions in place of `read`:

- `extract(part, tally)` finds the lines of a piece that matter, as records, in parallel;
- `interpret(files, profile)` decides, once, what the records of all files mean.

What a reader cannot know of its recorder it says with `recording(machine)`: which steps leave no event,
whether the first event is the beginning, whether an end is marked. Without this function the events are
those of our own recorder, which leaves nothing out. Of a damaged piece `holes(part)` says what cannot be read;
without this function it is what `lines` cannot read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from stagewright.spec.trace import Event
from stagewright.traces.events.event_block import Block, Ints
from stagewright.traces.events.observability import Recording
from stagewright.traces.events.string_pool import Names

UNPARSED_DETAILS_MAX = 1000  # lines of one part that are reported one by one; the counts know all


@dataclass(frozen=True)
class Hole:
    """Lines of a part that cannot be read: from the line `first` on so many, or (None) all that are left.

    `group` is their row group, where they are one.
    """

    first: int
    reason: str
    lines: int | None = None
    group: int = -1


@dataclass(frozen=True)
class Part:
    """A piece of a file: bytes `start .. stop` of text, or rows from row group `start` up to `stop`.

    `weight` is about how many bytes it has. `mapping` is the plan of the mapping file, where the form needs one.
    `holes` are what is known to be damaged, and is left out.
    """

    number: int
    path: str
    form: str
    start: int
    stop: int
    weight: int = 0
    mapping: object = None
    holes: tuple[Hole, ...] = ()

    @property
    def lost(self) -> Hole | None:
        """The hole that is all of the part, if there is one: then no reader is asked."""
        whole = [hole for hole in self.holes if hole.first == 1 and hole.group < 0]
        return whole[0] if whole else None


@dataclass
class Tally:
    """What became of every line of a part: `blank`, `other`, `with_events`, `unparsed`, `lost` add up to `lines`."""

    lines: int = 0
    blank: int = 0
    other: int = 0  # lines of a log that say nothing of a machine
    with_events: int = 0  # lines that gave at least one event
    events: int = 0  # the events that they gave
    unparsed: int = 0
    lost: int = 0  # lines in holes, as far as it is known how many these are
    reasons: list[tuple[int, str]] = field(default_factory=list)  # (line, why), the first ones
    partly: set[int] = field(default_factory=set)  # unparsed lines that gave events nevertheless
    # of `other`, by shape: see `Watch`
    passed_over: Counter[str] = field(default_factory=Counter[str])

    def lose(self, hole: Hole) -> None:
        """Count the lines of a hole."""
        self.lines += hole.lines or 0
        self.lost += hole.lines or 0

    def refuse(self, line: int, reason: str) -> None:
        """Count a line that is no event."""
        self.unparsed += 1
        self.explain(line, reason)

    def explain(self, line: int, reason: str) -> None:
        """Say what is wrong with a line that is counted."""
        if len(self.reasons) < UNPARSED_DETAILS_MAX:
            self.reasons.append((line, reason))


@dataclass(frozen=True)
class Unsure:
    """An entity of which a log does not have all: its events, each with the number of its part.

    `first`: the number from which on they are not sure. `orders` are the other orders that they may have had;
    there are too many to be tried where it is empty. `lost`: an event of it could not be read. `mixed`: its
    events may be of several recorders, none of which is named: if all is well in their order, it is.
    """

    events: Sequence[tuple[int, Event]]
    first: int
    orders: Sequence[Sequence[tuple[int, Event]]] = ()
    lost: bool = False
    mixed: bool = False


@dataclass
class Interpreted:
    """What logs mean together: the events, each with the number of the part that its line is in.

    `recordings`: what is known of the recording of each machine, by the name of its class. `notes`: what was
    noticed and is worth a note, such as lines that were not believed. `of_version`: as which release all is
    evaluated where nobody says it; `releases`: those that may have recorded it, where nothing says which one did.
    A line may have given several events.
    `unsure`: the entities of whose events not all is known. `names`: of an entity, by its trace, machine, profile
    and name, the real names in place of which its events have numbered members.
    """

    events: list[tuple[int, Event]] = field(default_factory=list)
    recordings: dict[str, Recording] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    of_version: list[str] = field(default_factory=list)
    releases: tuple[str, ...] = ()
    unsure: list[Unsure] = field(default_factory=list)
    names: dict[tuple[str, str, str, str], dict[str, str]] = field(default_factory=dict)


class EventReader(Protocol):
    """The shape of a reader of events."""

    def check(self, path: Path) -> None:
        """Raise an `InputError` if the file cannot be of this form."""
        ...

    def parts(self, path: Path) -> list[tuple[int, int]]:
        """Where a file can be cut, as (start, stop) of each piece."""
        ...

    def read(self, part: Part, tally: Tally) -> Iterator[Block]:
        """The events of a piece."""
        ...


class SkippingReader(Protocol):
    """The shape of a reader of events that can leave out much where only some entities are wanted."""

    def read(
        self, part: Part, tally: Tally, wanted: Callable[[Names], Ints] | None = None
    ) -> Iterator[Block]:
        """The events of a piece; what has no wanted name may be left out, but for its count of lines."""
        ...


class LogReader(Protocol):
    """The shape of a reader of logs."""

    def check(self, path: Path) -> None:
        """Raise an `InputError` if the file cannot be of this form."""
        ...

    def parts(self, path: Path) -> list[tuple[int, int]]:
        """Where a file can be cut, as (start, stop) of each piece."""
        ...

    def extract(self, part: Part, tally: Tally) -> list[Any]:
        """The records of a piece; their lines count as `other` until they are known to be events."""
        ...

    def interpret(self, files: Sequence[Sequence[tuple[int, Any]]], profile: str) -> Interpreted:
        """What the records mean; one list of (part, record) a file, in the order of its lines."""
        ...
