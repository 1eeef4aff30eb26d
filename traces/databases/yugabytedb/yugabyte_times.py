"""The order of a YugabyteDB log's records: glog says no year, and a leader's lines are in several files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from stagewright.traces.databases.yugabytedb.yugabyte_line import LogRecord, Said

# yb-master.host1.yugabyte.log.INFO.20210910-180346.1234
_FILE_OF_HOST = re.compile(r"yb-(?:master|tserver)\.([\w-]+)\.[^/]*$")
_HALF_A_YEAR = 6  # months: files of one recording begin within less than that of each other


@dataclass(frozen=True)
class Placed:
    """A record, and where and when it was written. `time` sorts as a text."""

    part: int
    record: LogRecord
    node: str
    time: str


def in_time(files: Sequence[Sequence[tuple[int, LogRecord]]]) -> list[Placed]:
    """All records by time; those of one file keep their order, whatever the clocks of its threads say.

    glog writes a warning to the file of warnings, and to that of all else, too: the second is left out.
    """
    met: dict[tuple[str, LogRecord], int] = {}
    keyed: list[tuple[tuple[str, int, int], Placed]] = []
    for number, (records, year) in enumerate(zip(files, _years(files), strict=True)):
        node, latest = _node(records), ""
        before = 0
        for position, (part, record) in enumerate(records):
            if record.said in (Said.CREATED, Said.HOST):
                before = max(before, record.prefix.month)
                continue
            if before - record.prefix.month > _HALF_A_YEAR:
                year += 1  # December is over
            before = record.prefix.month
            if met.setdefault((node, replace(record, file="", line=0)), number) != number:
                continue
            latest = max(latest, f"{year:04}-{record.prefix.time}")
            keyed.append(((latest, number, position), Placed(part, record, node, latest)))
    keyed.sort(key=lambda k: k[0])
    return [placed for _, placed in keyed]


def _node(records: Sequence[tuple[int, LogRecord]]) -> str:
    """The host that the head of a file names, or its name; else the file is what tells nodes apart."""
    for _, record in records:
        if record.said is Said.HOST:
            return record.text
    file = records[0][1].file if records else ""
    named = _FILE_OF_HOST.search(file)
    return named[1] if named else file


def _years(files: Sequence[Sequence[tuple[int, LogRecord]]]) -> list[int]:
    """The year in which each file begins; where its head does not say, the one next to the others."""
    parts = [_logged_year(records) for records in files]
    months = [_first_month(records) for records in files]
    near = next(((y, m) for y, m in zip(parts, months, strict=True) if y and m), None)
    if near is None:
        # No file says it: the first month after the longest pause of the year is where they begin.
        near = (1, _begin(sorted({m for m in months if m})))
    return [
        year or (_nearest(month, near) if month else near[0])
        for year, month in zip(parts, months, strict=True)
    ]


def _logged_year(records: Sequence[tuple[int, LogRecord]]) -> int:
    return next((int(r.text) for _, r in records if r.said is Said.CREATED), 0)


def _first_month(records: Sequence[tuple[int, LogRecord]]) -> int:
    # of its head, if it has one
    return next((r.prefix.month for _, r in records if r.prefix.month), 0)


def _begin(months: list[int]) -> int:
    if not months:
        return 1
    pauses = [(month - months[i - 1]) % 12 or 12 for i, month in enumerate(months)]
    return months[pauses.index(max(pauses))]


def _nearest(month: int, near: tuple[int, int]) -> int:
    """The year in which a month is less than half a year from another one."""
    year, other = near
    return min((year, year - 1, year + 1), key=lambda y: abs((y - year) * 12 + month - other))
