"""Reads OpenTelemetry logs and traces in OTLP's JSON, as the collector's file exporter writes them.

One export request a line, or one in the whole file. A log record, span or span event with the attributes
`stagewright.…` is an event; see `docs/readers.md`. Batches come in any order and from many files, so numbers or
times put the events of an entity in their order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.traces.readers.beginnings import begun
from stagewright.traces.readers.lines import beginning, last_line_end, line_parts, lines_of
from stagewright.traces.readers.located_json import load_located
from stagewright.traces.readers.otlp_records import PREFIX, Telling, WrongRecordError, tellings
from stagewright.traces.readers.parts import Interpreted, Part, Tally
from stagewright.traces.readers.relevant import sorted_out
from stagewright.traces.recording import Recording

CONTENT = r'\A\s*\{\s*"resource(Logs|Spans|Metrics)"\s*:'
# Attributes of ours; or a line that is no whole request, as far as its ends show.
_OURS = (
    f'"{re.escape(PREFIX)}'
    r'|[^}\s]\s*$|^\s*[^{\s]|^\s*\{\s*(?:[^"\s]|"(?:[^r]|r[^e]|re[^s]))'
)
_PROBE_BYTES = 1 << 20
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


def extract(part: Part, tally: Tally) -> list[Telling]:
    """The events that the requests of a piece tell. A request of which one record is wrong is refused."""
    if _is_document(Path(part.path)):
        return _of_document(part, tally)
    found: list[Telling] = []
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
                told = tellings(_request(lines.text(index)), number)
            except (WrongRecordError, ValueError, RecursionError) as error:
                tally.refuse(number, _reason(error))
                continue
            tally.other += 1
            found += told
    return found


def interpret(files: Sequence[Sequence[tuple[int, Telling]]], profile: str = "") -> Interpreted:
    """The events of all files: those of an entity by their numbers, or else by time."""
    del profile  # what judges them is chosen elsewhere
    entities: dict[tuple[str, ...], list[tuple[int, Telling]]] = {}
    ends: dict[str, bool] = {}
    for file in files:
        for part, told in file:
            key = told.machine, told.profile, told.trace, told.entity
            entities.setdefault(key, []).append((part, told))
            ends[told.machine] = ends.get(told.machine, False) or told.end
    events: list[tuple[int, Event]] = []
    mixed = ties = 0
    for tellings_of in entities.values():
        numbered = [told.sequence is not None for _, told in tellings_of]
        mixed += any(numbered) and not all(numbered)
        if not all(numbered):
            ties += _ties(tellings_of)
        events += begun(_numbered(tellings_of, by_time=not all(numbered)))
    notes = [
        (
            mixed,
            f"{mixed:,} entities have events with and without a number: time orders all of them",
        ),
        (ties, f"{ties:,} events without a number have the time of another of their entity"),
    ]
    return Interpreted(
        events,
        {machine: Recording(end_marked=end) for machine, end in ends.items()},
        [text for count, text in notes if count],
    )


def _numbered(told: Sequence[tuple[int, Telling]], *, by_time: bool) -> list[tuple[int, Event]]:
    """The events of one entity; an event with an end marker is followed by it."""
    if by_time:
        told = sorted(told, key=lambda pair: (pair[1].time or 0, pair[1].end))
    events: list[tuple[int, Event]] = []
    for part, one in told:
        number = len(events) if by_time else one.sequence
        assert number is not None
        if one.action is not None or one.observed or not one.end:
            events.append((part, _event(one, number)))
            number += 1
        if one.end:
            events.append(
                (
                    part,
                    _event(one._replace(action=None, parameters={}, observed={}), number, end=True),
                )
            )
    return events


def _event(told: Telling, number: int, *, end: bool = False) -> Event:
    return Event(
        trace=told.trace,
        machine=told.machine,
        profile=told.profile,
        definition="",
        entity=told.entity,
        sequence=number,
        node=told.node,
        action=told.action,
        parameters=told.parameters,
        observed=told.observed,
        end=end,
        time=told.time,
        line=told.line,
    )


def _ties(told: Sequence[tuple[int, Telling]]) -> int:
    return len(told) - len({one.time for _, one in told})


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


def _of_document(part: Part, tally: Tally) -> list[Telling]:
    data = b"".join(lines.data for lines in lines_of(part, 1 << 62))
    rows = data.splitlines()
    tally.lines += len(rows)
    tally.blank += sum(not row.strip() for row in rows)
    tally.other += len(rows) - tally.blank
    try:
        document = load_located(data.decode())
        return tellings(document)
    except (WrongRecordError, ValueError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 1
        tally.other -= 1
        tally.refuse(min(line, len(rows)), _reason(error))
    return []


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
