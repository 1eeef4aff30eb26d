"""Log lines that a collector has wrapped: as a JSON object a line, or as a cell of a CSV export.

Docker's json-file driver, `journalctl -o json`, Filebeat (ECS) and Kibana's exports write lines so. What comes out
is the line as it was, with the collector's host and time in front where the line itself does not have them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_TEXTS = ("log", "message", "msg", "MESSAGE", "line")
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
)
_TIMES = ("@timestamp", "timestamp", "time", "ts")
_CELL = re.compile(r'(?:^|,)"((?:[^"]|"")*)"(?=,|$)')
_HAS_TIME = re.compile(r"\d\d:\d\d:\d\d")


def unwrapped(text: str, mark: str) -> str:
    """The line inside of a wrapped one; any other line as it is. `mark` is in every line that matters."""
    if text.startswith("{"):
        return _of_json(text, mark)
    if '"' in text:
        cells = (cell.replace('""', '"') for cell in _CELL.findall(text))
        return next((cell.strip() for cell in cells if mark in cell), text)
    return text


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
