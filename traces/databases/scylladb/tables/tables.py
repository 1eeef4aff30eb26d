"""Reads dumps of ScyllaDB's system tables: topology, tablets, topology_requests, view_building_tasks, group0_history.

    cqlsh -e "SELECT JSON * FROM system.topology" > node1/topology-2025-03-01T10:00:00.json
    cqlsh -e "COPY system.tablets TO 'tablets-1740823200.csv' WITH HEADER = TRUE"
    while sleep 60; do date -Is; cqlsh -e "SELECT JSON * FROM system.view_building_tasks"; done > tasks.json

Each dump is a snapshot of the whole table as one node has it. Its time is that of the last line before it
that is a time and nothing else, else that in the name of the file or its folder; a column `polled_at` comes before. Dumps whose
names differ in more than the time are of several nodes, each of which may lag: they are evaluated apart. What
happens between two snapshots is not seen: they are accepted if some run explains them. The history is no
snapshot but a list of commits, which may be dumped as often as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.tables.rows import (
    Begins,
    Broken,
    Ends,
    Of,
    Polled,
    Said,
    header_of,
    is_open,
    of_csv,
    of_json,
    of_mark,
    time_in,
    without_time,
)
from stagewright.traces.databases.scylladb.tables.snapshots import Snapshot, Snapshots
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import compression, lines_of

_PROBE_LINES = 1000


@dataclass(frozen=True)
class Line:
    """What a line of a dump says, and of which file it is."""

    says: Said
    line: int
    file: str


def check(path: Path) -> None:
    """Raise an `InputError` if none of the first lines is of a dump."""
    part = Part(0, str(path), "scylla-tables", 0, min(path.stat().st_size, 1 << 20))
    if compression(path):
        part = Part(0, str(path), "scylla-tables", 0, path.stat().st_size)
    for lines in lines_of(part):
        texts = [
            lines.text(i).decode(errors="replace") for i in range(min(len(lines), _PROBE_LINES))
        ]
        if any(_is_of_a_dump(text) for text in texts):
            return
        break
    raise InputError(
        f"{path} does not look like a dump of a system table",
        help="it has rows of `SELECT JSON`, or CSV with a header; is the --format right?",
    )


def _is_of_a_dump(text: str) -> bool:
    if text.strip().startswith("{"):
        return isinstance(of_json(text), Of)
    return isinstance(of_mark(text), Begins) or header_of(text) is not None


def parts(path: Path) -> list[tuple[int, int]]:
    """One piece: a header and the times between rows are about all that follows them."""
    return [(0, path.stat().st_size)]


def extract(part: Part, tally: Tally) -> list[Line]:
    """What the lines of a file say."""
    found = _Lines(part.path, tally)
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            found.refuse(lines.first, "the line is too long")
            continue
        for index in range(len(lines)):
            found.take(lines.text(index), lines.first + index)
    found.end()
    return found.lines


class _Lines:
    """Takes the lines of a file one by one."""

    def __init__(self, path: str, tally: Tally) -> None:
        self.lines: list[Line] = []
        self._path = path
        self._tally = tally
        self._header: list[str] | None = None
        self._open: tuple[int, str] | None = None  # a record that goes on

    def take(self, data: bytes, number: int) -> None:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.refuse(number, f"not UTF-8 text at byte {error.start + 1}")
            return
        if self._open is not None:
            number, text = self._open[0], f"{self._open[1]}\n{text}"
            self._tally.other += 1
        elif not text.strip():
            self._tally.blank += 1
            return
        self._open = None
        if self._header is None or text.lstrip().startswith("{"):
            self._of_json(text, number)
        elif is_open(text):
            self._open = number, text
        else:
            self._add(of_csv(text, self._header), number)

    def end(self) -> None:
        if self._open is not None:
            self.refuse(self._open[0], "the file ends within a quoted value")

    def refuse(self, number: int, reason: str) -> None:
        self._tally.refuse(number, reason)
        self.lines.append(Line(Broken(), number, self._path))

    def _of_json(self, text: str, number: int) -> None:
        if text.lstrip().startswith("{"):
            self._add(of_json(text.strip()), number)
            return
        self._tally.other += 1
        if header := header_of(text):
            self._header = header
            self.lines.append(Line(Begins(), number, self._path))
        elif mark := of_mark(text):
            self.lines.append(Line(mark, number, self._path))

    def _add(self, says: Said | str, number: int) -> None:
        if isinstance(says, str):
            self.refuse(number, says)
            return
        self._tally.other += 1  # until it is known to be an event
        self.lines.append(Line(says, number, self._path))


def interpret(files: Sequence[Sequence[tuple[int, Line]]], profile: str = "") -> Interpreted:
    """What the dumps of all files mean together."""
    dumps = [dump for lines in files for dump in _snapshots(lines)]
    found = Snapshots(profile)
    found.take(dumps)
    latest = max((e.time for _, e in found.book.events if e.time is not None), default=None)
    return Interpreted(
        found.book.events,
        found.recordings(),
        found.notes(),
        releases=() if profile else versions.released_by(latest),
    )


def _snapshots(lines: Sequence[tuple[int, Line]]) -> list[Snapshot]:
    """The snapshots of one file."""
    found: list[Snapshot] = []
    if not lines:
        return found
    file = lines[0][1].file
    series = without_time(file)
    times = (time_in(name) for name in reversed(Path(file).parts))
    time = next((t for t in times if t is not None), None)
    current: Snapshot | None = None
    for part, line in lines:
        match line.says:
            case Begins():
                current = None
                found.append(current := Snapshot(series, time, len(found)))
            case Polled(at):
                time, current = at, None
            case Ends(count):
                if current is not None:
                    current.ends(count)
                current = None
            case Broken():
                if current is not None:
                    current.complete = False
            case Of(table, row, at):
                another = current is not None and current.table not in ("", table)
                if current is None or another or current.holds(table, row):
                    found.append(current := Snapshot(series, time, len(found)))
                current.add(table, row, part, line.line, at)
    return found
