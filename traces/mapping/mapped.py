"""Reads any file by a mapping: `stagewright validate --mapping FILE PATH…`; see `docs/readers.md`.

Rows that are events are found and taken apart in parallel (`extract`). Their order, and with it the numbers
of each entity's events, is decided afterwards over all files (`interpret`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from stagewright.spec.text.counting import counted
from stagewright.spec.trace import Event
from stagewright.traces.mapping.mapped_meaning import Meanings, RowEvent, events_in, plan_of
from stagewright.traces.mapping.mapped_rows import rows_of
from stagewright.traces.mapping.plan import Plan, Rule
from stagewright.traces.mapping.templates import as_text
from stagewright.traces.readers import text_lines
from stagewright.traces.readers.generic import parquet
from stagewright.traces.readers.implicit_start import begun
from stagewright.traces.readers.protocol import Hole, Interpreted, Part, Tally, Unsure
from stagewright.traces.readers.text_lines import beginning, last_line_end, line_parts
from stagewright.traces.readers.tie_orders import orders_of

_TIMELESS = -(1 << 63)  # before all times


@dataclass(frozen=True)
class Found:
    """The events in the rows of one part, with the plan that they follow."""

    plan: Plan
    rows: list[RowEvent]


def check(path: Path) -> None:
    """What a file must have is known from the mapping, when it is read."""


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines, or of Parquet ranges of row groups."""
    return parquet.parts(path) if beginning(path, 4) == b"PAR1" else line_parts(path)


def holes(part: Part) -> list[Hole]:
    """What cannot be read: of a damaged text the rest, of Parquet all rows of the part."""
    if plan_of(part).source.form != "parquet":
        return text_lines.holes(part)
    damaged = parquet.holes(part)
    rows = [hole.lines for hole in damaged]
    return (
        [Hole(1, damaged[0].reason, None if None in rows else parquet.rows(part))] if rows else []
    )


def ends(path: Path) -> tuple[int, int] | None:
    """How far a file that may grow can be read: text to its last whole line, Parquet only as a whole."""
    end = last_line_end(path)
    return None if beginning(path, 4) == b"PAR1" else (end, end)


def extract(part: Part, tally: Tally) -> list[Found]:
    """The events in the rows of a part, all in one record; the other rows are counted or refused."""
    plan = plan_of(part)
    found = Found(plan, [])
    for row in rows_of(part, plan, tally):
        events = events_in(row, plan)
        if isinstance(events, str):
            tally.refuse(row.line, events)
            continue
        tally.other += 1  # until it is known to be an event
        found.rows.extend(events)
    return [found]


def interpret(files: Sequence[Sequence[tuple[int, Found]]], profile: str = "") -> Interpreted:
    """The events of all files, in the order that the mapping says; their profile is that of the plan."""
    del profile
    plans = [found.plan for file in files for _, found in file]
    result = Interpreted()
    for number, plan in enumerate(plans[0].every if plans else ()):
        rows = [_rows_of(number, file) for file in files]
        ordered = _ordered(rows, plan)
        reading = _Reading(plan)
        for row in ordered:
            reading.take(row.part, row.event)
        result.events += reading.events()
        result.recordings[plan.machine] = plan.recording
        notes = [*_clock_notes(rows, plan), *reading.notes()]
        result.notes += [note for note in notes if note not in result.notes]
        result.unsure += _unsure(ordered, plan)
        result.names |= reading.names()
    return result


def _rows_of(plan: int, file: Sequence[tuple[int, Found]]) -> list[tuple[int, RowEvent]]:
    """The rows of one file that are events by the plan of a number, each with its part."""
    return [(part, row) for part, found in file for row in found.rows if row.plan == plan]


class _Row(NamedTuple):
    """A row in the order of all: by its number, its time, or that of the lines before it; and in its file."""

    by: int
    file: int
    position: int
    part: int
    event: RowEvent


def _unsure(ordered: Sequence[_Row], plan: Plan) -> Iterable[Unsure]:
    """The entities with rows of equal time in several files."""
    if plan.numbered:
        return
    entities: dict[tuple[str, str], list[_Row]] = {}
    for row in ordered:
        entities.setdefault((row.event.trace, row.event.entity), []).append(row)
    for rows in entities.values():
        # Where nothing has a time, the order of files is that of their names, and the report says so.
        keys = [(row.by, row.file if row.by == _TIMELESS else 0) for row in rows]
        found = orders_of(keys, [row.file for row in rows])
        if found is None:
            continue
        events = _events_of(rows, plan)
        tied = rows[found.first]
        first = next(e.sequence for p, e in events if (p, e.line) == (tied.part, tied.event.line))
        others = [_events_of([rows[i] for i in order], plan) for order in found.others]
        yield Unsure(events, first, others)


def _events_of(rows: Iterable[_Row], plan: Plan) -> list[tuple[int, Event]]:
    """The events of one entity's rows in some order."""
    reading = _Reading(plan)
    for row in rows:
        reading.take(row.part, row.event)
    return reading.events()


def _ordered(files: Sequence[Sequence[tuple[int, RowEvent]]], plan: Plan) -> list[_Row]:
    """All rows by number, by time, or as the lines stand in their files and the files' times say."""
    keyed: list[_Row] = []
    for number, file in enumerate(files):
        latest = _TIMELESS
        for position, (part, row) in enumerate(file):
            time = latest if row.time is None else row.time
            latest = time if plan.by_time else max(latest, time)
            first = latest if row.sequence is None else row.sequence
            keyed.append(_Row(first, number, position, part, row))
    keyed.sort(key=lambda row: row[:3])
    return keyed


def _clock_notes(files: Sequence[Sequence[tuple[int, RowEvent]]], plan: Plan) -> list[str]:
    """What makes the order of events uncertain."""
    if plan.numbered:
        return []
    rows = [[row for _, row in file] for file in files]
    timeless = sum(row.time is None for file in rows for row in file)
    back = sum(
        one.time is not None and two.time is not None and two.time < one.time
        for file in rows
        for one, two in pairwise(file)
    )
    last: dict[tuple[str, str, int], int] = {}
    ties = 0
    for number, file in enumerate(rows):
        for row in file:
            if row.time is not None:
                ties += last.setdefault((row.trace, row.entity, row.time), number) != number
    several = sum(map(bool, rows)) > 1
    no_year = any(rule.time is not None and not rule.time_format.has_year for rule in plan.rules)
    notes = [
        (
            timeless and several,
            f"{counted(timeless, 'event')} without a time: the order of files is that of their names",
        ),
        (
            back and not plan.by_time,
            f"time runs back in {counted(back, 'place')}: the lines of a file keep their order",
        ),
        (
            ties,
            f"{counted(ties, 'event')} at the same time as one of the same entity in another file: their order is not known",
        ),
        (no_year and several, "the times have no year: they are taken to be of one and the same"),
    ]
    return [text for so, text in notes if so]


@dataclass
class _Entity:
    """The events of one entity so far, and the real names that became members of each sort."""

    events: list[tuple[int, Event]] = field(default_factory=list)
    members: dict[str, dict[str, int]] = field(default_factory=dict)


class _Reading:
    """Makes events of rows that come in their order."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._entities: dict[tuple[str, str], _Entity] = {}
        self._meanings = Meanings(plan)
        self._unused = set(range(len(plan.rules)))

    def take(self, part: int, row: RowEvent) -> None:
        """The next event of a row."""
        self._unused.discard(row.rule)
        rule = self._plan.rules[row.rule]
        entity = self._entities.setdefault((row.trace, row.entity), _Entity())
        says = self._with_members(rule, row.says, entity) if rule.members else row.says
        meant = self._meanings.meant(row.rule, says)
        number = len(entity.events) if row.sequence is None else row.sequence
        entity.events += [(part, e) for e in self._meanings.events(row, meant, number)]

    def events(self) -> list[tuple[int, Event]]:
        """All events; where an entity's first one is an action, the state before it is an event too."""
        return [
            pair
            for entity in self._entities.values()
            for pair in begun(entity.events, always=self._plan.first_is_step)
        ]

    def names(self) -> dict[tuple[str, str, str, str], dict[str, str]]:
        """The real name of each numbered member, of the entities that have such."""
        machine, profile = self._plan.machine, self._plan.profile
        return {
            (trace, machine, profile, name): {
                f"{sort}{n}": real
                for sort, reals in entity.members.items()
                for real, n in reals.items()
            }
            for (trace, name), entity in self._entities.items()
            if entity.members
        }

    def notes(self) -> list[str]:
        """Which events no row is, and where more members have names than the scope has."""
        most: dict[str, int] = {}
        for entity in self._entities.values():
            for sort, names in entity.members.items():
                most[sort] = max(most.get(sort, 0), len(names))
        unused = [
            f"no row is an event {number + 1} of {self._plan.file}"
            for number in sorted(self._unused)
        ]
        return unused + [
            f"an entity names {count} of {sort}, and the scope has {self._plan.sizes[sort]}: --size {sort}={count}"
            for sort, count in sorted(most.items())
            if count > self._plan.sizes[sort]
        ]

    def _with_members(
        self, rule: Rule, says: tuple[object, ...], entity: _Entity
    ) -> tuple[object, ...]:
        """The fields with members in place of real names, in the order in which the entity names them."""
        values = dict(zip(rule.says, says, strict=True))
        for name, sort in rule.members:
            real = values.get(name)
            if real is not None and real != "" and as_text(real) not in rule.words_of(name):
                names = entity.members.setdefault(sort, {})
                values[name] = f"{sort}{names.setdefault(as_text(real), len(names))}"
        return tuple(values.values())
