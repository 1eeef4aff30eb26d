"""Reads mapped files whose rows are numbered, so that each is an event by itself: nothing is brought together.

What `mapped` does in the order of all rows is done here row by row, wherever the row is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stagewright.spec.trace import Event
from stagewright.traces.events.event_block import Block, block_of
from stagewright.traces.mapping import mapped
from stagewright.traces.mapping.mapped_meaning import Meanings, events_in, plan_of
from stagewright.traces.mapping.mapped_rows import rows_of
from stagewright.traces.readers.implicit_start import moved, start_of
from stagewright.traces.readers.protocol import Hole, Part, Tally

FORM = "mapped-numbered"
_TOGETHER = 1 << 16  # events of one block


def check(path: Path) -> None:
    """What a file must have is known from the mapping, when it is read."""


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines, or of Parquet ranges of row groups."""
    return mapped.parts(path)


def holes(part: Part) -> list[Hole]:
    """What cannot be read."""
    return mapped.holes(part)


def ends(path: Path) -> tuple[int, int] | None:
    """How far a file that may grow can be read."""
    return mapped.ends(path)


def read(part: Part, tally: Tally) -> Iterator[Block]:
    """The events of a part."""
    plan = plan_of(part)
    meanings = Meanings(plan)
    events: list[Event] = []
    for row in rows_of(part, plan, tally):
        one = events_in(row, plan)
        if isinstance(one, str):
            tally.refuse(row.line, one)
            continue
        if not one:
            tally.other += 1
            continue
        (mapped_event,) = one  # `alone`: a row is one event at most
        sequence = mapped_event.sequence
        assert sequence is not None
        meant = meanings.meant(mapped_event.rule, mapped_event.says)
        found = meanings.events(mapped_event, meant, sequence)
        if plan.begins_before:
            begin = [start_of(found[0])] if sequence == 0 else []
            found = [*begin, *map(moved, found)]
        tally.with_events += 1
        tally.events += len(found)
        events += found
        if len(events) >= _TOGETHER:
            yield block_of(events, part.number, definition=FORM)
            events = []
    if events:
        yield block_of(events, part.number, definition=FORM)
