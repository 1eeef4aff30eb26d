"""From files to tasks: how the input is cut, and what the logs among it mean."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.trace import Event
from stagewright.traces.engines.engine import Engine
from stagewright.traces.events.event_block import Block, EntityKey, Stream, block_of
from stagewright.traces.events.observability import Recording
from stagewright.traces.inputs.ambiguous_order import UnsureEntity, entities_of
from stagewright.traces.inputs.discover import InputFile, LeftOut, refuse_or_leave_out, unreadable
from stagewright.traces.inputs.tasks import PartRead, Task, refuse_damaged
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part, Tally

_TASKS_A_WORKER = 3  # so that the last ones are not waited for long
PROBED = 2  # parts, of whose first events the definitions are looked up before all is read
_PROBED_MAX = 64  # parts, where those are of no machine that is known


def split_files(
    files: Sequence[InputFile], mapping: object = None, left_out: list[LeftOut] | None = None
) -> list[Part]:
    """The parts of all files, in order; those that cannot be read are added to `left_out`.

    Raises:
        InputError: a file cannot be read, and there is no `left_out`.
    """
    found: list[Part] = []
    for file in files:
        try:
            cuts = formats.reader(file.form).parts(file.path)
        except (OSError, InputError) as error:
            refuse_or_leave_out(unreadable(file.path, error), file.path, left_out, file.form)
            continue
        size, units = file.size, max(sum(stop - start for start, stop in cuts), 1)
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


def beginnings(parts: Sequence[Part]) -> Iterator[tuple[Part, Block]]:
    """The first events of some parts, of the first one first: mostly they are of all machines that there are."""
    order = [
        number
        for many in (PROBED, _PROBED_MAX)
        for number in range(0, len(parts), max(1, len(parts) // many))
    ]
    for number in list(dict.fromkeys(order))[: _PROBED_MAX + PROBED]:
        part = parts[number]
        with contextlib.suppress(StagewrightError):  # reported when the file is read
            block = next(iter(formats.event_reader(part.form).read(part, Tally())), None)
            if block is not None:
                yield part, block


@dataclass
class Logs:
    """What the logs among the input mean, together with those that earlier runs have read.

    `again` counts the events that lines of earlier runs have, and `records` has what was extracted of the parts
    that this run has read.
    """

    read: list[PartRead] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    recordings: dict[tuple[str, str], Recording] = field(default_factory=dict)  # form, machine
    notes: list[str] = field(default_factory=list)
    unsure: list[UnsureEntity] = field(default_factory=list)
    names: dict[EntityKey, Mapping[str, str]] = field(default_factory=dict)
    of_version: list[str] = field(default_factory=list)  # as which releases they are evaluated
    releases: tuple[str, ...] = ()  # any of which may have written them; none if one is known
    again: int = 0
    records: dict[int, list[Any]] = field(default_factory=dict)

    @property
    def damaged(self) -> set[str]:
        """The forms of which something is left out."""
        return {read.part.form for read in self.read if read.part.holes}


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
    *,
    skip_damaged: bool = False,
) -> Logs:
    """The events of the logs of each form together; of one machine alone, if it is named.

    `known` are logs that earlier runs have read, and `file_of` says which file each part goes on with.

    Raises:
        InputError: a file is damaged, and this is not to be skipped.
    """
    logs = Logs()
    found = _extracted(engine, parts) if parts else []
    while skip_damaged and (damaged := [read for read, _ in found if read.error]):
        found = [pair for pair in found if not pair[0].error]
        found += _extracted(engine, [replace(r.part, holes=r.holes) for r in damaged])
    found.sort(key=lambda pair: pair[0].part.number)
    logs.read = [read for read, _ in found]
    refuse_damaged(logs.read)
    logs.records = {read.part.number: records for read, records in found}
    open_: dict[str, tuple[str, ...]] = {}
    for form in sorted({*(part.form for part in parts), *(log.form for log in known)}):
        files = _files(form, found, known, file_of or {})
        read = formats.log_reader(form).interpret(files, profile)
        logs.notes += read.notes
        logs.unsure += entities_of(read.unsure, form)
        for (trace, whose, of_profile, entity), names in read.names.items():
            logs.names[EntityKey(Stream(trace, whose, of_profile, form), entity)] = names
        logs.of_version += read.of_version
        open_[form] = read.releases
        logs.recordings |= {(form, whose): how for whose, how in read.recordings.items()}
        _take(logs, form, _of_one(read.events, machine, logs.notes) if machine else read.events)
    if open_ and all(open_.values()):
        logs.releases = tuple(dict.fromkeys(name for names in open_.values() for name in names))
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
        notes.append(f"what the lines say of {', '.join(others)} is left out")
    return [pair for pair in events if pair[1].machine in ("", machine)]


def _take(logs: Logs, form: str, events: Sequence[tuple[int, Event]]) -> None:
    """Lines that are events were of other matters until now."""
    by_part: dict[int, list[Event]] = {}
    for part, event in events:
        by_part.setdefault(part, []).append(event)
    tallies = {read.part.number: read for read in logs.read}
    for part, of_part in by_part.items():
        block = block_of(of_part, part, definition=form)
        logs.blocks.append(block)
        read = tallies.get(part)
        if read is None:
            logs.again += len(of_part)
            continue
        number = len({event.line for event in of_part} - read.tally.partly)
        read.tally.events += len(of_part)
        read.tally.with_events += number
        read.tally.other -= number


def _extracted(engine: Engine, parts: Sequence[Part]) -> list[tuple[PartRead, list[Any]]]:
    found: list[list[tuple[PartRead, list[Any]]]] = engine.run(
        [(part,) for part in parts], _extract, 1, _collected
    )
    return found[0]


def _extract(parts: tuple[Part, ...]) -> Iterator[tuple[int, tuple[PartRead, list[Any]]]]:
    for part in parts:
        read, records = PartRead(part, Tally()), []
        try:
            if part.lost is None:
                records = formats.log_reader(part.form).extract(part, read.tally)
            else:
                read.tally.lose(part.lost)
        except (StagewrightError, OSError) as error:
            read.failed(error, find_holes=True)
        yield 0, (read, records)


def _collected(items: Iterable[Any]) -> list[Any]:
    return list(items)
