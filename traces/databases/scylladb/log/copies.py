"""Exports of logs: newest line first, or with lines that another export has already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from stagewright.spec.text.counting import counted
from stagewright.traces.databases.scylladb.log.line import LogRecord

Part = tuple[int, LogRecord]  # the part of a file that a record is in, and the record

# So many lines: fewer may be what is said once more, at a time that has come again as the clock was set back.
_RUN = 4
_FALLS = 3  # so many times must fall, and none rise: a clock that was set back once does not turn a log round


def as_written(files: Iterable[Sequence[Part]]) -> tuple[list[list[Part]], list[str]]:
    """The records of each file, oldest first and each once; and what was done for that.

    A line is a copy if the same node says the same at the same time in an earlier file, or if it is one of
    several in a row that the same file has already, where its times have gone back.
    """
    turned = copies = 0
    found: list[list[Part]] = []
    elsewhere: set[object] = set()  # what earlier files say
    for records in files:
        if _falls(records):
            records, turned = records[::-1], turned + 1
        said = [_said(record) for _, record in records]
        own = _repeated([record for _, record in records], said)
        kept = [
            part
            for position, part in enumerate(records)
            if position not in own and not (part[1].time and said[position] in elsewhere)
        ]
        copies += len(records) - len(kept)
        elsewhere.update(said)
        found.append(kept)
    notes: list[str] = []
    if turned:
        notes.append(f"{counted(turned, 'file')} with the newest line first, read from the end")
    if copies:
        notes.append(f"{counted(copies, 'line')} left out: copies of lines that were read before")
    return found, notes


def _repeated(records: Sequence[LogRecord], said: Sequence[object]) -> set[int]:
    """The positions of lines that the file has before, in runs that begin where its times go back."""
    repeated: set[int] = set()
    before: set[object] = set()
    run: list[int] = []
    latest = ""
    for position, record in enumerate(records):
        time = record.time
        copied = said[position] in before and (time < latest or (bool(run) and time == latest))
        if time and copied:
            run.append(position)
        else:
            repeated.update(run if len(run) >= _RUN else ())
            run = []
        latest = max(latest, time)
        before.add(said[position])
    repeated.update(run if len(run) >= _RUN else ())
    return repeated


def _falls(records: Sequence[Part]) -> bool:
    times = [record.time for _, record in records if record.time]
    pairs = [*pairwise(times)]
    falls = sum(after < before for before, after in pairs)
    return falls >= _FALLS and not any(after > before for before, after in pairs)


def _said(record: LogRecord) -> object:
    words = tuple(sorted(record.words.items()))
    return record.node, record.shard, record.time, record.says, words
