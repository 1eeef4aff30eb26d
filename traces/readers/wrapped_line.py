"""Log lines that a collector has wrapped: as a JSON object a line, or as a cell of a table (CSV, TSV).

Docker's json-file driver, `journalctl -o json`, Filebeat (ECS), Loki and Kibana's exports write lines so. What comes
out is the line as it was, with the collector's host and time in front where the line itself does not have them.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from stagewright.spec.errors import InputError
from stagewright.traces.readers.text_lines import DAMAGED, beginning

_TEXTS = ("log", "message", "msg", "MESSAGE", "line", "textPayload", "_raw", "@message", "Message")
_HOSTS = (
    "_HOSTNAME",
    "hostname",
    "host.name",
    "host",
    "kubernetes.pod_name",
    "kubernetes.pod.name",
    "pod_name",
    "container_name",
    "container.name",
    "labels.pod",
    "labels.instance",
    "labels.host",
    "labels.hostname",
    "labels.node",
    "labels.container",
    "resource.labels.pod_name",
    "attrs.tag",
    "pod",
    "instance",
    "Host",
    "node",
    "@logStream",
)
_TIMES = ("@timestamp", "timestamp", "time", "ts")
_CELL = re.compile(r'(?:^|,)"((?:[^"]|"")*)"(?=,|$)')
_HEADER_MAX = 1 << 16  # bytes
_DELIMITERS = ",;\t"
_HAS_TIME = re.compile(r"\d\d:\d\d:\d\d")


def unwrapped(text: str, mark: str, file: str) -> str:
    """The line inside of a wrapped one; any other line as it is.

    `mark` is in every line that matters. `file` may begin with the names of a table's columns.
    """
    if text.startswith("{"):
        return _of_json(text, mark)
    if any(delimiter in text for delimiter in _DELIMITERS) and (table := _table(file)):
        cells = next(csv.reader([text], delimiter=table.delimiter), [])
        if len(cells) == len(table.columns) and mark in cells[table.text]:
            fields = dict(zip(table.columns, cells, strict=True))
            return f"{_head(fields, cells[table.text])}{cells[table.text].strip()}"
    if '"' in text:
        quoted = (cell.replace('""', '"') for cell in _CELL.findall(text))
        return next((cell.strip() for cell in quoted if mark in cell), text)
    return text


class _Table(NamedTuple):
    delimiter: str
    columns: tuple[str, ...]
    text: int  # the column of log lines


@lru_cache(1 << 10)
def _table(file: str) -> _Table | None:
    """What the first line of a file says of its columns; None if it names none in which log lines may be."""
    path = Path(file)
    if not path.is_file():
        return None
    try:
        header = beginning(path, _HEADER_MAX).partition(b"\n")[0].decode(errors="replace").strip()
    except (InputError, *DAMAGED):
        return None
    for delimiter in _DELIMITERS:
        columns = tuple(next(csv.reader([header], delimiter=delimiter), []))
        if len(columns) > 1 and (known := [name for name in _TEXTS if name in columns]):
            return _Table(delimiter, columns, columns.index(known[0]))
    return None


def _of_json(text: str, mark: str) -> str:
    try:
        document = json.loads(text)
    except ValueError:
        return text
    fields = dict(_fields(document))
    line = next((fields[n] for n in _TEXTS if mark in fields.get(n, "")), None)
    return text if line is None else f"{_head(fields, line)}{line.strip()}"


def _fields(document: object, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a document by their dotted names."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from _fields(value, f"{path}.{name}" if path else name)
    elif isinstance(document, str) and document:
        yield path, document


def _head(fields: Mapping[str, str], line: str) -> str:
    """The collector's host as journald writes it, and its time if the line has none."""
    host = re.sub(r"\s", "_", _first(fields, _HOSTS))
    head = f"{host} scylla[{fields.get('_PID', 0)}]: " if host else ""
    if _HAS_TIME.search(line.partition("[shard")[0]):
        return head
    microseconds = fields.get("__REALTIME_TIMESTAMP", "")
    if microseconds.isdigit():
        time = datetime.fromtimestamp(int(microseconds) // 1_000_000, UTC)
        return f"{time:%Y-%m-%dT%H:%M:%S}.{int(microseconds) % 1_000_000:06} {head}"
    time_text = _first(fields, _TIMES)
    return f"{time_text} {head}" if time_text else head


def _first(fields: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if name in fields), "")
