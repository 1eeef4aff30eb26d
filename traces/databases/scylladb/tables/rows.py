"""The rows of a dump of a ScyllaDB table: JSON as `cqlsh` prints it, or CSV as its `COPY … TO` writes it."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

Row = Mapping[str, object]

# By which of its columns a table is known, and what is read of it.
TABLES: dict[str, tuple[str, frozenset[str]]] = {
    "topology": (
        "node_state",
        frozenset(
            {
                "host_id",
                "node_state",
                "transition_state",
                "new_cdc_generation_data_uuid",
                "committed_cdc_generations",
                "unpublished_cdc_generations",
            }
        ),
    ),
    "tablets": (
        "tablet_count",
        frozenset({"table_id", "tablet_count", "last_token", "stage", "transition"}),
    ),
    "topology_requests": (
        "request_type",
        frozenset({"id", "request_type", "start_time", "done", "error"}),
    ),
    "view_building_tasks": ("aborted", frozenset({"id", "aborted", "state"})),
    "group0_history": ("state_id", frozenset({"state_id", "description"})),
}
# view_building_tasks before 2025-12
_OLD_TASKS = frozenset({"id", "base_id", "last_token", "state"})
_POLLED_AT = "polled_at"

_STAMP = re.compile(
    r"(?<!\d)(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[:.-]?(\d\d)[:.-]?(\d\d)(?:[.,](\d{1,6}))?"
    r"(?:\s*(?:Z|UTC|([+-])(\d\d):?(\d\d)))?(?!\d)"
)
_EPOCH = re.compile(r"(?<!\d)(\d{10})(\d{3})?(?!\d)")
_COUNT = re.compile(r"\((\d+) rows?\)")
_ONLY_STAMP = re.compile(
    r"[\W_]*(?:polled at|snapshot|date|time)?[\s:=]*([\d][\dT:., +Z_-]{7,}(?:UTC)?)\W*"
)


@dataclass(frozen=True)
class Begins:
    """A result set begins: what follows is another snapshot."""


@dataclass(frozen=True)
class Polled:
    """The time of the snapshots that follow, in microseconds since 1970."""

    time: int


@dataclass(frozen=True)
class Ends:
    """A result set ends; it had that many rows."""

    count: int


@dataclass(frozen=True)
class Broken:
    """A row that could not be read: its snapshot is not complete."""


@dataclass(frozen=True)
class Of:
    """A row of a table, with the columns that are read of it."""

    table: str
    row: Row = field(default_factory=dict[str, object])
    time: int | None = None


Said = Begins | Polled | Ends | Broken | Of


def time_in(text: str) -> int | None:
    """A time that stands in a text, as of a file's name; in microseconds since 1970, UTC if nothing is said."""
    if found := _STAMP.search(text):
        year, month, day, hour, minute, second, fraction, sign, hours, minutes = found.groups()
        try:
            time = datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:{second}+00:00")
        except ValueError:
            return None
        away = 0 if sign is None else int(f"{sign}1") * (int(hours) * 60 + int(minutes))
        return (int(time.timestamp()) - away * 60) * 1_000_000 + int((fraction or "").ljust(6, "0"))
    if found := _EPOCH.search(text):
        return int(found[1]) * 1_000_000 + int(found[2] or 0) * 1000
    return None


def without_time(name: str) -> str:
    """A file's name without the time in it: what the dumps of one series have in common."""
    return _EPOCH.sub("", _STAMP.sub("", name))


def table_of(columns: frozenset[str]) -> str | None:
    """The table that has these columns."""
    for table, (known_by, _) in TABLES.items():
        if known_by in columns:
            return table
    return "view_building_tasks" if columns >= _OLD_TASKS else None


def of_json(text: str) -> Said | str:
    """What a line of `SELECT JSON`'s output says; a reason if it cannot be understood."""
    try:
        row = json.loads(text)
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(row, dict):
        return "not a row: a JSON object is expected"
    return _row({str(name): value for name, value in row.items()})


def of_mark(text: str) -> Said | None:
    """What a line between rows says; None if nothing."""
    stripped = text.strip()
    if stripped == "[json]":
        return Begins()
    if found := _COUNT.fullmatch(stripped):
        return Ends(int(found[1]))
    if found := _ONLY_STAMP.fullmatch(stripped):
        time = time_in(found[1])
        return None if time is None else Polled(time)
    return None


def header_of(text: str) -> list[str] | None:
    """The columns of a CSV file, if the line is its header."""
    names = text.strip().split(",")
    plain = all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in names)
    return names if len(names) > 1 and plain and table_of(frozenset(names)) else None


def of_csv(text: str, header: list[str]) -> Said | str:
    """What a record of a CSV file says."""
    values = next(csv.reader([text], escapechar="\\", quotechar='"'), [])
    if len(values) != len(header):
        return f"it has {len(values)} values, the header names {len(header)}"
    return _row({name: value or None for name, value in zip(header, values, strict=True)})


def is_open(text: str) -> bool:
    """Whether a record of a CSV file goes on in the next line: a quote is not closed."""
    return len(re.findall(r'(?<!\\)"', text)) % 2 == 1


def is_true(value: object) -> bool:
    """A boolean, as JSON or CSV has it."""
    return value is True or str(value).lower() == "true"


def _row(row: Row) -> Said | str:
    table = table_of(frozenset(row))
    if table is None:
        return f"of no table that is known: it has {', '.join(list(row)[:6])}"
    polled = row.get(_POLLED_AT)
    kept = {name: row[name] for name in TABLES[table][1] if row.get(name) is not None}
    return Of(table, kept, None if polled is None else time_in(str(polled)))
