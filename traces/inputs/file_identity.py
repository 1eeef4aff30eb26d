"""Recognises the files that earlier runs have read: also where they have grown, were moved or compressed.

A file is known by its first bytes and by those before where it was read to, whatever its name is now: logs are
rotated. So no line is read twice, and none is passed over because a new file has the name of an old one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.traces.inputs.discover import InputFile
from stagewright.traces.readers.text_lines import DAMAGED, beginning, compression, content

_LENGTHS = tuple(64 << n for n in range(11))  # bytes from the start whose hashes tell files apart
_BEGIN = _LENGTHS[-1]
_END = 1 << 12  # bytes


@dataclass(frozen=True)
class FileRead:
    """A file of which earlier runs have read `size` bytes as it lay there, which were `lines` lines.

    `number` stays the same wherever the file is moved, `parts` are the numbers of its parts. `kind` was its
    compression, `starts` the hashes of the first bytes of its content, of as many of `_LENGTHS` as it has, `begin`
    and `end` the hashes of its first `_BEGIN` bytes and of its last `_END` before `size`.
    """

    number: int
    path: str
    form: str
    size: int
    kind: str
    starts: tuple[str, ...]
    begin: str
    end: str
    lines: int = 0
    parts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Recognised:
    """A file of this run, and what earlier runs have read of it.

    `has_more`: there is something after what they have read. `changed`: it does not go on with what they have
    read.
    """

    file: InputFile
    known: FileRead | None = None
    has_more: bool = True
    changed: bool = False


def file_read(file: InputFile, size: int, number: int) -> FileRead:
    """What is remembered of a file that is read up to `size`."""
    return FileRead(
        number,
        path_of(file),
        file.form,
        size,
        compression(file.path) or "",
        _starts(file.path, size),
        *_ends(file.path, size),
    )


def is_still(path: Path, read: FileRead) -> bool:
    """Whether what was read of a file is still there."""
    return path.exists() and _goes_on(path, read)


def recognise(files: Sequence[InputFile], known: Sequence[FileRead]) -> list[Recognised]:
    """Which of the known files each one is. Each known file is one of them at most."""
    found: dict[InputFile, Recognised] = {}
    left = {one.number: one for one in known}
    by_path = {one.path: one.number for one in known}  # the newest of a path

    def claim(one: Recognised) -> None:
        assert one.known is not None
        found[one.file] = one
        del left[one.known.number]

    def namesake(file: InputFile) -> FileRead | None:
        return left.get(by_path.get(path_of(file), -1))

    for file in files:
        if (one := namesake(file)) and _goes_on(file.path, one):
            claim(_going_on(file, one))
    for file in files:
        if file not in found and (moved := _moved(file, left.values())):
            claim(moved)
    for file in files:
        if file not in found and (one := namesake(file)) and _starts_alike(file.path, one):
            claim(Recognised(file, one, changed=True))
    return [found.get(file) or Recognised(file) for file in files]


def path_of(file: InputFile) -> str:
    """The path by which a file is known."""
    return str(file.path.resolve())


def _going_on(file: InputFile, known: FileRead) -> Recognised:
    more = file.path.stat().st_size > known.size
    # What is added to a compressed file cannot be read without what was there before.
    return Recognised(file, known, more, changed=more and bool(known.kind))


def _goes_on(path: Path, known: FileRead) -> bool:
    """Whether a file begins with all that was read of a known one as it lay there."""
    if (compression(path) or "") != known.kind or path.stat().st_size < known.size:
        return False
    return _ends(path, known.size) == (known.begin, known.end)


def _moved(file: InputFile, known: Collection[FileRead]) -> Recognised | None:
    """The known file that one of another name is."""
    starts = _starts(file.path)
    for one in known:
        if one.size == 0 or starts[: len(one.starts)] != one.starts:
            continue  # without a look at the file: there may be many
        if _goes_on(file.path, one):
            return _going_on(file, one)
        if not one.kind and compression(file.path):
            length = _unpacked(file.path, one)
            if length is not None:
                return Recognised(file, one, length > one.size)
    return None


def _starts_alike(path: Path, known: FileRead) -> bool:
    """Whether half of a file at least begins as the known one of its name did: it was changed, not replaced."""
    starts = _starts(path)
    common = min(len(starts), len(known.starts))
    return common > 0 and starts[common - 1] == known.starts[common - 1]


def _starts(path: Path, size: int | None = None) -> tuple[str, ...]:
    data = beginning(path, _BEGIN)
    if size is not None and compression(path) is None:
        data = data[:size]
    return tuple(_hash(data[:length]) for length in _LENGTHS if length <= len(data))


def _ends(path: Path, size: int) -> tuple[str, str]:
    with path.open("rb") as file:
        begin = file.read(min(_BEGIN, size))
        file.seek(max(0, size - _END))
        return _hash(begin), _hash(file.read(min(_END, size)))


def _unpacked(path: Path, known: FileRead) -> int | None:
    """How long the content of a compressed file is, if it begins with all that was read of a plain one."""
    begin, end, length = b"", b"", 0
    try:
        for chunk in content(path):
            begin += chunk[: max(0, min(_BEGIN, known.size) - length)]
            end = (end + chunk[: max(0, known.size - length)])[-_END:]
            length += len(chunk)
    except DAMAGED:
        return None  # this is reported when it is read
    same = (_hash(begin), _hash(end)) == (known.begin, known.end)
    return length if same and length >= known.size else None


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()
