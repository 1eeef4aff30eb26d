"""Reads OpenTelemetry logs and traces in OTLP's JSON, as the collector's file exporter writes them.

One export request a line, or one in the whole file. A log record, span or span event with the attributes
`stagewright.…` is an event; see `docs/readers.md`. Batches come in any order and from many files, so numbers or
times put the events of an entity in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted
from stagewright.spec.trace import Event
from stagewright.traces.events.observability import Recording
from stagewright.traces.readers.generic.otlp_records import (
    PREFIX,
    EventRecord,
    WrongRecordError,
    event_records,
)
from stagewright.traces.readers.implicit_start import begun
from stagewright.traces.readers.located_json import load_located
from stagewright.traces.readers.prefilter import sorted_out
from stagewright.traces.readers.protocol import Interpreted, Part, Tally, Unsure
from stagewright.traces.readers.text_lines import beginning, last_line_end, line_parts, lines_of
from stagewright.traces.readers.tie_orders import orders_of

CONTENT = r'\A\s*\{\s*"resource(Logs|Spans|Metrics)"\s*:'
# Attributes of ours; or a line that is no whole request, as far as its ends show.
_OURS = (
    f'"{re.escape(PREFIX)}'
    r'|[^}\s]\s*$|^\s*[^{\s]|^\s*\{\s*(?:[^"\s]|"(?:[^r]|r[^e]|re[^s]))'
)
_PROBE_BYTES = 1 << 20
_NAMED_MAX = 3  # entities in a note
_REQUEST_MAX = 1 << 28  # bytes of a line


def check(path: Path) -> None:
    """Raise an `InputError` if the file does not begin with an export request."""
    if not re.search(CONTENT.encode(), beginning(path, _PROBE_BYTES)):
        raise InputError(
            f"{path} does not look like OTLP in JSON",
            help='its lines begin with {"resourceLogs": or {"resourceSpans":; is the --format right?',
        )


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines; a file that is one document is one piece."""
    return [(0, path.stat().st_size)] if _is_document(path) else line_parts(path)


def ends(path: Path) -> tuple[int, int] | None:
    """How far a file that may grow can be read: lines to the last whole one, a document only as a whole."""
    end = last_line_end(path)
    return None if _is_document(path) else (end, end)


def extract(part: Part, tally: Tally) -> list[EventRecord]:
    """The events in the requests of a piece; of a request with a wrong record those in the others."""
    if _is_document(Path(part.path)):
        return _of_document(part, tally)
    found: list[EventRecord] = []
    for lines in lines_of(part, _REQUEST_MAX):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, "the line is too long")
            continue
        blank, ours = sorted_out(lines, _OURS)
        tally.blank += blank
        tally.other += len(lines) - blank - len(ours)
        for index in ours:
            number = lines.first + index
            try:
                record = event_records(_request(lines.text(index)), number)
            except (WrongRecordError, ValueError, RecursionError) as error:
                tally.refuse(number, _reason(error))
                continue
            tally.other += 1
            found += record
            _refuse_wrong(record, tally)
    return found


def _refuse_wrong(distinct: Sequence[EventRecord], tally: Tally) -> None:
    """Lines with wrong records are no longer of other matters; their other records count."""
    good = {one.line for one in distinct if not one.wrong}
    refused: set[int] = set()
    for one in distinct:
        if one.wrong and one.line not in refused:
            refused.add(one.line)
            tally.other -= 1
            tally.refuse(one.line, one.wrong)
        elif one.wrong:
            tally.explain(one.line, one.wrong)
    tally.partly |= refused & good


_Key = tuple[str, str, str, str]  # machine, profile, trace and entity


class _Placed(NamedTuple):
    """The event of a record, and the part and the number of the file that it is in."""

    part: int
    file: int
    record: EventRecord


def interpret(files: Sequence[Sequence[tuple[int, EventRecord]]], profile: str = "") -> Interpreted:
    """The events of all files: those of an entity by their numbers, or else by time."""
    del profile  # what evaluates them is chosen elsewhere
    entities: dict[_Key, list[_Placed]] = {}
    lost: dict[_Key, list[int]] = {}
    ends: dict[str, bool] = {}
    for number, file in enumerate(files):
        for part, record in file:
            key = record.machine, record.profile, record.trace, record.entity
            if record.wrong:
                lost.setdefault(key, []).append(record.time or 0)
                continue
            entities.setdefault(key, []).append(_Placed(part, number, record))
            ends[record.machine] = ends.get(record.machine, False) or record.end
    found = Interpreted(
        recordings={machine: Recording(end_marked=end) for machine, end in ends.items()}
    )
    mixed = ties = 0
    repeated: dict[str, int] = {}
    for key, of_entity in entities.items():
        numbered = [one.record.sequence is not None for one in of_entity]
        mixed += any(numbered) and not all(numbered)
        if all(numbered):
            found.events += begun(_numbered(of_entity))
            continue
        events, unsure, again, tied = _in_time(of_entity, lost.get(key, ()))
        ties += tied
        if again:
            repeated[key[-1]] = repeated.get(key[-1], 0) + again
        found.events += events
        found.unsure += unsure
    unordered = sum(not one.lost for one in found.unsure)
    found.notes = [text for count, text in _notes(mixed, ties, unordered, repeated) if count]
    return found


def _notes(
    mixed: int, ties: int, unordered: int, repeated: Mapping[str, int]
) -> list[tuple[int, str]]:
    again = sum(repeated.values())
    exported = f"{counted(again, 'record')} equal to another in everything, of {_names(repeated)}"
    return [
        (
            mixed,
            f"{counted(mixed, 'entity', 'entities')} with both numbered and unnumbered events: time orders all of them",
        ),
        (
            ties,
            f"{counted(ties, 'event')} without a number at the same time as another of the same entity",
        ),
        (
            unordered,
            f"{counted(unordered, 'entity', 'entities')} with events of equal time in several files: their order is not known",
        ),
        (again, f"{exported}: exported twice, taken as duplicates"),
    ]


def _names(repeated: Iterable[str]) -> str:
    names = sorted(repeated)
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + f" and {more:,} more" * (more > 0)


def _in_time(
    given: Sequence[_Placed], lost: Sequence[int]
) -> tuple[list[tuple[int, Event]], list[Unsure], int, int]:
    """The events of one entity by time, what is unsure of them, and how many are repeated or tied."""
    first: dict[bytes, _Placed] = {}
    for one in given:
        first.setdefault(one.record.same, one)
    again = [one for one in given if first[one.record.same] is not one]
    distinct = sorted(first.values(), key=_moment)
    events = _by_time(distinct, again)
    ties = len(distinct) - len({one.record.time for one in distinct})
    unsure: list[Unsure] = []
    if lost:
        after = (i for i, one in enumerate(distinct) if (one.record.time or 0) >= min(lost))
        at = next(after, None)
        number = events[-1][1].sequence + 1 if at is None else _number(events, distinct[at])
        unsure.append(Unsure(events, number, lost=True))
    elif (
        orders := orders_of([_moment(o) for o in distinct], [o.file for o in distinct])
    ) is not None:
        others = [_by_time([distinct[i] for i in order], again) for order in orders.others]
        unsure.append(Unsure(events, _number(events, distinct[orders.first]), others))
    return events, unsure, len(again), ties


def _moment(one: _Placed) -> tuple[int, bool]:
    return one.record.time or 0, one.record.end


def _number(events: Sequence[tuple[int, Event]], one: _Placed) -> int:
    """The number of a record's first event."""
    return next(
        e.sequence
        for part, e in events
        if (part, e.line, e.time) == (one.part, one.record.line, one.record.time)
    )


def _by_time(distinct: Sequence[_Placed], again: Sequence[_Placed]) -> list[tuple[int, Event]]:
    """The events in a given order; those that are recorded again have the numbers that they had."""
    numbers: dict[bytes, int] = {}
    placed: list[_Placed] = []
    number = 0
    for one in distinct:
        numbers[one.record.same] = number
        placed.append(one._replace(record=one.record._replace(sequence=number)))
        number += 1 + (one.record.end and _says_more(one.record))
    placed += [
        one._replace(record=one.record._replace(sequence=numbers[one.record.same])) for one in again
    ]
    return begun(_numbered(placed))


def _says_more(record: EventRecord) -> bool:
    """Whether a record is an event beside its end marker."""
    return record.action is not None or bool(record.observed) or not record.end


def _numbered(placed: Sequence[_Placed]) -> list[tuple[int, Event]]:
    """The events of one entity by their numbers; an event with an end marker is followed by it."""
    events: list[tuple[int, Event]] = []
    for part, _, one in placed:
        number = one.sequence
        assert number is not None
        if _says_more(one):
            events.append((part, _event(one, number)))
            number += 1
        if one.end:
            marker = one._replace(action=None, parameters={}, observed={})
            events.append((part, _event(marker, number, end=True)))
    return events


def _event(record: EventRecord, number: int, *, end: bool = False) -> Event:
    return Event(
        trace=record.trace,
        machine=record.machine,
        profile=record.profile,
        definition="",
        entity=record.entity,
        sequence=number,
        node=record.node,
        action=record.action,
        parameters=record.parameters,
        observed=record.observed,
        end=end,
        time=record.time,
        line=record.line,
    )


def _is_document(path: Path) -> bool:
    """Whether the file is one request over many lines."""
    rows = [row for row in beginning(path, _PROBE_BYTES).splitlines() if row.strip()]
    if len(rows) < 2 or re.match(CONTENT.encode(), rows[1]):
        return False
    try:
        json.loads(rows[0])
    except (ValueError, RecursionError):
        return True
    return False


def _of_document(part: Part, tally: Tally) -> list[EventRecord]:
    data = b"".join(lines.data for lines in lines_of(part, 1 << 62))
    rows = data.splitlines()
    tally.lines += len(rows)
    tally.blank += sum(not row.strip() for row in rows)
    tally.other += len(rows) - tally.blank
    try:
        record = event_records(load_located(data.decode()))
    except (WrongRecordError, ValueError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        tally.other -= 1
        tally.refuse(min(line, len(rows)), _reason(error))
        return []
    _refuse_wrong(record, tally)
    return record


def _request(line: bytes) -> dict[str, object]:
    value = json.loads(line.decode())
    if not isinstance(value, dict):
        raise WrongRecordError("not a JSON object")
    return value


def _reason(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"not UTF-8 text at byte {error.start + 1}"
        case json.JSONDecodeError():
            return f"not JSON: {error.msg} at column {error.colno}"
        case RecursionError():
            return "nested too deeply"
        case _:
            return f"{error}; nothing of this request is taken"
