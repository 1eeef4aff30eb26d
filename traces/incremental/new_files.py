"""What of an input no earlier run has read: new files, and what was added to files that grow.

A log that has changed otherwise is read again as a whole, for all that logs say is interpreted anew in every
run. Of a trace that was read the events are not at hand any more, so there a change is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted
from stagewright.traces.inputs.discover import InputFile
from stagewright.traces.inputs.file_identity import (
    FileRead,
    Recognised,
    file_read,
    is_still,
    recognise,
)
from stagewright.traces.inputs.split import split_files
from stagewright.traces.inputs.tasks import PartRead
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part
from stagewright.traces.readers.text_lines import compression

_NAMED = 3  # files in a note


@dataclass
class NewInput:
    """The parts that are to be read, numbered on; and what will have been read of each file then.

    `first_lines`: how many lines of a file stand before what is new. `passing`: parts that are read again in the
    next run, as their last record may go on.
    """

    parts: list[Part] = field(default_factory=list[Part])
    read: dict[int, FileRead] = field(default_factory=dict[int, FileRead])
    first_lines: dict[str, int] = field(default_factory=dict[str, int])
    passing: set[int] = field(default_factory=set[int])
    file_of: dict[int, int] = field(default_factory=dict[int, int])  # by part
    paths: dict[int, Path] = field(default_factory=dict[int, Path])  # of the files in `read`
    moved: list[str] = field(default_factory=list[str])
    again: list[str] = field(default_factory=list[str])
    unended: list[str] = field(default_factory=list[str])
    replaced: list[str] = field(default_factory=list[str])

    def notes(self) -> list[str]:
        """What is worth a note of the files."""
        kinds = (
            (self.moved, "moved since the last run: {}"),
            (self.replaced, "replaced by another of the same name since the last run: {}"),
            (self.again, "changed since the last run, read again as a whole: {}"),
            (self.unended, "with an incomplete last line, which is not read yet: {}"),
        )
        return [
            f"{counted(len(names), 'file')} {what.format(_some(names))}"
            for names, what in kinds
            if names
        ]

    def files_read(self, known: Sequence[FileRead], parts: Sequence[PartRead]) -> list[FileRead]:
        """All files that were ever read.

        Raises:
            InputError: a file was replaced while it was read.
        """
        lines = {one.part.number: one.tally.lines for one in parts}
        damaged = {one.part.number for one in parts if one.part.holes}
        found = {one.number: one for one in known}
        for number, one in self.read.items():
            if damaged.intersection(one.parts):
                continue  # it is read again, for it may have been mended
            if not is_still(self.paths[number], one):
                raise InputError(
                    f"{self.paths[number]} was replaced while it was read",
                    help="run again; what earlier runs left is as it was",
                )
            new = sum(lines.get(part, 0) for part in one.parts)
            found[number] = replace(one, lines=one.lines + new)
        return list(found.values())


def new_input(
    files: Sequence[InputFile],
    known: Sequence[FileRead],
    parts_before: int,
    mapping: object = None,
) -> NewInput:
    """What of the files is new, where the known ones and `parts_before` parts were read.

    Raises:
        InputError: a file that is no log has changed otherwise than by growing.
    """
    result = NewInput()
    names = {one.path for one in known}
    next_number = max((one.number for one in known), default=-1) + 1
    for one in recognise(files, known):
        path = str(one.file.path)
        number = next_number if one.known is None else one.known.number
        if one.known is None:
            next_number += 1
            if str(one.file.path.resolve()) in names:
                result.replaced.append(path)
        elif one.known.path != str(one.file.path.resolve()):
            result.moved.append(path)
        _add(result, one, number, parts_before, mapping)
    return result


def _add(
    result: NewInput, one: Recognised, number: int, parts_before: int, mapping: object
) -> None:
    file, ends, path = one.file, formats.ends(one.file.form, one.file.path), str(one.file.path)
    known = None if one.changed or (one.has_more and not _reads_on(file, ends)) else one.known
    if one.known is not None and known is None:
        _refuse_change(file, one.known)
        result.again.append(path)
    if ends is not None and ends[1] < file.path.stat().st_size:
        result.unended.append(path)
    good = file.size if ends is None else ends[0]
    numbers: list[int] = []
    for part in _pieces(file, known, ends, mapping) if one.has_more else ():
        placed = replace(part, number=parts_before + len(result.parts))
        result.parts.append(placed)
        result.file_of[placed.number] = number
        if ends is not None and part.start >= good:
            result.passing.add(placed.number)
        else:
            numbers.append(placed.number)
    lines, before = (0, ()) if known is None else (known.lines, known.parts)
    result.first_lines[path] = lines
    result.paths[number] = file.path
    remembered = file_read(file, good, number)
    result.read[number] = replace(remembered, lines=lines, parts=(*before, *numbers))


def _reads_on(file: InputFile, ends: tuple[int, int] | None) -> bool:
    """Whether what was added to a file can be read by itself."""
    grows = formats.form_named(file.form).grows
    return grows and (ends is not None or compression(file.path) is not None)


def _pieces(
    file: InputFile, known: FileRead | None, ends: tuple[int, int] | None, mapping: object
) -> Iterator[Part]:
    """The parts of a file after what is known; one that is read only for now is a part of its own."""
    if ends is None:
        whole = split_files([file], mapping)
        yield from whole if known is None else [replace(whole[0], start=known.size)]
        return
    good, now = ends
    begin = 0 if known is None else known.size
    for part in split_files([file], mapping):
        for low, high in ((begin, good), (max(begin, good), now)):
            start, stop = max(part.start, low), min(part.stop, high)
            if start < stop:
                weight = part.weight * (stop - start) // max(part.stop - part.start, 1)
                yield replace(part, start=start, stop=stop, weight=weight)


def _refuse_change(file: InputFile, known: FileRead) -> None:
    if not formats.is_log(file.form):
        raise InputError(
            f"{file.path} had {known.size:,} bytes when it was read, and has "
            f"{file.path.stat().st_size:,} now",
            help="give new events in new files, or begin anew with an empty --state directory",
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
