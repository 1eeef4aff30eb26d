"""From files to tasks: how the input is cut, and what the logs among it tell."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stagewright.spec.errors import StagewrightError
from stagewright.spec.trace import Event
from stagewright.traces.blocks import Block, Stream, block_of
from stagewright.traces.engines import Engine
from stagewright.traces.inputs import InputFile
from stagewright.traces.passes import PartRead, Task, refuse_damaged
from stagewright.traces.readers import forms
from stagewright.traces.readers.parts import Part, Tally
from stagewright.traces.recording import Recording

_TASKS_A_WORKER = 3  # so that the last ones are not waited for long
_PROBED = 2  # parts


def split_files(files: Sequence[InputFile], mapping: object = None) -> list[Part]:
    """The parts of all files, in order."""
    found: list[Part] = []
    for file in files:
        cuts = forms.reader(file.form).parts(file.path)
        size, units = file.path.stat().st_size, max(sum(stop - start for start, stop in cuts), 1)
        for start, stop in cuts:
            weight = size * (stop - start) // units
            part = Part(len(found), str(file.path), file.form, start, stop, weight, mapping)
            found.append(part)
    return found


def tasks_of(parts: Sequence[Part], workers: int) -> list[Task]:
    """The parts as tasks of about equal size, each of parts that follow each other.

    Neighbours stay together, for an entity's events are mostly near to each other.
    """
    sizes = [max(part.weight, 1) for part in parts]
    wanted = max(1, min(len(parts), _TASKS_A_WORKER * workers))
    share = sum(sizes) / wanted
    tasks: list[list[Part]] = [[]]
    filled = 0.0
    for part, size in zip(parts, sizes, strict=True):
        if tasks[-1] and filled + size / 2 > share * len(tasks):
            tasks.append([])
        tasks[-1].append(part)
        filled += size
    return [Task(tuple(task)) for task in tasks if task]


def first_streams(parts: Sequence[Part]) -> set[Stream]:
    """Whose events the beginnings of some files hold: mostly those of all files."""
    found: set[Stream] = set()
    for part in parts[:: max(1, len(parts) // _PROBED)][:_PROBED]:
        with contextlib.suppress(StagewrightError):  # told when the file is read
            for block in forms.event_reader(part.form).read(part, Tally()):
                found.update(block.streams)
                break
    return found


@dataclass
class Logs:
    """What the logs among the input tell, together with those that earlier runs have read.

    `again` counts the events that lines of earlier runs tell, and `records` has what was extracted of the parts
    that this run has read.
    """

    read: list[PartRead] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    streams: set[Stream] = field(default_factory=set)
    recordings: dict[tuple[str, str], Recording] = field(default_factory=dict)  # form, machine
    notes: list[str] = field(default_factory=list)
    of_version: list[str] = field(default_factory=list)  # as which releases they are judged
    again: int = 0
    records: dict[int, list[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownLog:
    """A log that earlier runs have read, now at `path`: the records that they extracted, each with its part."""

    number: int
    path: str
    form: str
    records: Sequence[tuple[int, Any]]


def read_logs(
    engine: Engine,
    parts: Sequence[Part],
    profile: str,
    machine: str = "",
    known: Sequence[KnownLog] = (),
    file_of: Mapping[int, int] | None = None,
) -> Logs:
    """The events that the logs of each form tell together; of one machine alone, if it is named.

    `known` are logs that earlier runs have read, and `file_of` says which file each part goes on with.

    Raises:
        InputError: a file is damaged.
    """
    logs = Logs()
    found: list[tuple[PartRead, list[Any]]] = []
    if parts:
        found = engine.run([(p,) for p in parts], _extract, 1, _collected)[0]
    found.sort(key=lambda pair: pair[0].part.number)
    logs.read = [read for read, _ in found]
    refuse_damaged(logs.read)
    logs.records = {read.part.number: records for read, records in found}
    for form in sorted({*(part.form for part in parts), *(log.form for log in known)}):
        files = _files(form, found, known, file_of or {})
        told = forms.log_reader(form).interpret(files, profile)
        logs.notes += told.notes
        logs.of_version += told.of_version
        logs.recordings |= {(form, machine): how for machine, how in told.recordings.items()}
        _take(logs, form, _of_one(told.events, machine, logs.notes) if machine else told.events)
    return logs


def _files(
    form: str,
    found: Sequence[tuple[PartRead, list[Any]]],
    known: Sequence[KnownLog],
    file_of: Mapping[int, int],
) -> list[list[tuple[int, Any]]]:
    """The records of each file of a form, in the order of the files' paths."""
    files: dict[tuple[str, int], list[tuple[int, Any]]] = {}
    paths = {log.number: log.path for log in known}
    for log in known:
        if log.form == form:
            files[log.path, log.number] = list(log.records)
    for read, records in found:
        if read.part.form == form:
            number = file_of.get(read.part.number, 0)
            of_file = files.setdefault((paths.get(number, read.part.path), number), [])
            of_file += [(read.part.number, record) for record in records]
    return [files[key] for key in sorted(files)]


def _of_one(
    events: Sequence[tuple[int, Event]], machine: str, notes: list[str]
) -> list[tuple[int, Event]]:
    """The events of one machine, or of none that is named; that there are others is noted."""
    if others := sorted({event.machine for _, event in events} - {machine, ""}):
        notes.append(f"what is told of {', '.join(others)} is left out")
    return [pair for pair in events if pair[1].machine in ("", machine)]


def _take(logs: Logs, form: str, events: Sequence[tuple[int, Event]]) -> None:
    """Lines that have told events were of other matters until now."""
    by_part: dict[int, list[Event]] = {}
    for part, event in events:
        by_part.setdefault(part, []).append(event)
    tallies = {read.part.number: read for read in logs.read}
    for part, of_part in by_part.items():
        block = block_of(of_part, part, definition=form)
        logs.blocks.append(block)
        logs.streams.update(block.streams)
        read = tallies.get(part)
        if read is None:
            logs.again += len(of_part)
            continue
        told = len({event.line for event in of_part})
        read.tally.events += len(of_part)
        read.tally.told += told
        read.tally.other -= told


def _extract(parts: tuple[Part, ...]) -> Iterator[tuple[int, tuple[PartRead, list[Any]]]]:
    for part in parts:
        read, records = PartRead(part, Tally()), []
        try:
            records = forms.log_reader(part.form).extract(part, read.tally)
        except StagewrightError as error:
            read.error, read.help = error.problem, error.help
        yield 0, (read, records)


def _collected(items: Iterable[Any]) -> list[Any]:
    return list(items)
