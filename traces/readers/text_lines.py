"""Text files as pieces of whole lines: plain, or compressed with gzip, zstandard, xz or bzip2."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.errors import InputError
from stagewright.traces.readers.protocol import Hole, Part

LINE_MAX = 1 << 20  # bytes; a longer line is not kept
PART_SIZE = 1 << 25  # bytes of a plain file that are one part
_CHUNK = PART_SIZE  # bytes read at once
_BOM = b"\xef\xbb\xbf"  # what some editors put before a text in UTF-8
# bytes read at once where the content is damaged: no more are lost before the damage
_PIECE = 1 << 16
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2"}
ENDINGS = (".gz", ".zst", ".xz", ".bz2")  # of compressed files, by custom: their first bytes decide
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)  # what decompressors raise


@dataclass(frozen=True)
class Lines:
    """Some whole lines: line i is `data[bounds[i] : bounds[i + 1]]`, its newline included.

    `too_long`: the one line here is longer than is kept, and `data` is only its beginning.
    """

    data: bytes
    bounds: NDArray[Any]
    first: int  # number of the first line, counted from 1 within the part
    too_long: bool = False

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def text(self, index: int) -> bytes:
        """One line without its newline."""
        return self.data[self.bounds[index] : self.bounds[index + 1]].rstrip(b"\r\n")


def line_parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines; a compressed file is one piece."""
    size = path.stat().st_size
    if compression(path):
        return [(0, size)]
    cuts = [0]
    with path.open("rb") as file:
        while cuts[-1] + PART_SIZE < size:
            cuts.append(_next_line(file, cuts[-1] + PART_SIZE))
    return list(zip(cuts, [*cuts[1:], size], strict=True))


def _next_line(file: IO[bytes], near: int) -> int:
    """The first place at or after `near` where a line begins, or the end of the file."""
    file.seek(near - 1)
    while chunk := file.read(1 << 16):
        found = chunk.find(b"\n")
        if found >= 0:
            return file.tell() - len(chunk) + found + 1
    return file.tell()


def last_line_end(path: Path) -> int:
    """Where the last line that has a newline ends."""
    end = path.stat().st_size
    with path.open("rb") as file:
        while end > 0:
            begin = max(0, end - (1 << 16))
            file.seek(begin)
            found = file.read(end - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
    return 0


def compression(path: Path) -> str | None:
    """The compression of a file by its first bytes; None if there is none."""
    with path.open("rb") as file:
        begin = file.read(max(map(len, _MAGIC)))
    return next((kind for magic, kind in _MAGIC.items() if begin.startswith(magic)), None)


def as_stream(path: Path) -> Any:
    """A file as a stream of bytes, decompressed if it is compressed."""
    kind = compression(path)
    return path.open("rb") if kind is None else _decompressed(path, kind)


def beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file's content, without a byte order mark; nothing if its compression is damaged.

    Raises:
        OSError: the file cannot be opened.
    """
    kind = compression(path)
    if kind is None:
        with path.open("rb") as file:
            return file.read(size + len(_BOM)).removeprefix(_BOM)[:size]
    try:
        with _decompressed(path, kind) as stream:
            found: bytes = stream.read(size + len(_BOM))
            return found.removeprefix(_BOM)[:size]
    except DAMAGED:
        return b""


def lines_of(part: Part, longest: int = LINE_MAX) -> Iterator[Lines]:
    """The lines of a part, some megabytes at a time; one of more than `longest` bytes is not kept.

    Raises:
        InputError: the file cannot be read, or its compressed content is damaged.
    """
    try:
        if part.holes:
            yield from _first(_lines(_bytes_of(part, _PIECE), longest), part.holes[0].first - 1)
        else:
            yield from _lines(_bytes_of(part, _CHUNK), longest)
    except DAMAGED as error:
        raise InputError(
            f"{part.path} cannot be read to its end: {_reason(error)}",
            help="the file is truncated or damaged: take another copy of it, or leave it out",
        ) from error


def holes(part: Part) -> list[Hole]:
    """Which lines of a part cannot be believed, found out by reading it.

    Of a file that only ends too early the whole lines before its end are good. Where compressed content is wrong,
    what came before the place where that shows may be wrong as well.
    """
    good = 0
    try:
        for lines in _lines(_bytes_of(part, _PIECE), LINE_MAX):
            good += len(lines)
    except DAMAGED as error:
        return [Hole((good if _is_short(error) else 0) + 1, f"cannot be read: {_reason(error)}")]
    return []


class _ShorterError(OSError):
    """A file has fewer bytes than when it was found."""


def _is_short(error: Exception) -> bool:
    return isinstance(error, (EOFError, _ShorterError)) or "Truncated" in str(error)


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else None
    return text or str(error) or type(error).__name__


def _first(lines: Iterable[Lines], wanted: int) -> Iterator[Lines]:
    """So many of the first lines; no more of the file is read."""
    if not wanted:
        return
    for some in lines:
        if len(some) >= wanted:
            yield (
                some if some.too_long else _slice(some.data, some.bounds[: wanted + 1], some.first)
            )
            return
        wanted -= len(some)
        yield some


def _bytes_of(part: Part, size: int) -> Iterator[bytes]:
    """The bytes of a part, about `size` at a time; a byte order mark before them is none of the first line."""
    chunks = content(Path(part.path), part.start, part.stop, size)
    if part.start == 0:
        yield next(chunks, b"").removeprefix(_BOM)
    yield from chunks


def content(
    path: Path, start: int = 0, stop: int | None = None, size: int = _CHUNK
) -> Iterator[bytes]:
    """The bytes of a file from `start` on, about `size` at a time; of a compressed one, of what is in it.

    `stop` is where to end in a plain file; a compressed one is read to its end.

    Raises:
        OSError, EOFError, zlib.error, lzma.LZMAError: it cannot be read, or its compressed content is damaged.
    """
    kind = compression(path)
    if kind is None:
        with path.open("rb") as file:
            file.seek(start)
            left = (path.stat().st_size if stop is None else stop) - start
            while left > 0:
                chunk = file.read(min(size, left))
                if not chunk:
                    raise _ShorterError(f"it became {left:,} bytes shorter since it was found")
                left -= len(chunk)
                yield chunk
        return
    with _decompressed(path, kind) as stream:
        read = stream.read if size > _PIECE else stream.read1
        skipped = start  # what earlier runs have read, before the file was compressed
        while chunk := read(size):
            if len(chunk) > skipped:
                yield chunk[skipped:]
            skipped = max(0, skipped - len(chunk))


def _decompressed(path: Path, kind: str) -> Any:
    """The content of a file as a stream; all but zstandard's check at the end that nothing is missing."""
    match kind:
        case "gzip":
            import gzip

            return gzip.open(path)
        case "xz":
            return lzma.open(path)
        case "bzip2":
            import bz2

            return bz2.open(path)
        case _:
            import pyarrow as pa

            return pa.CompressedInputStream(str(path), "zstd")


def _lines(chunks: Iterator[bytes], longest: int) -> Iterator[Lines]:
    number, rest, skipping = 1, b"", False
    for chunk in chunks:
        if skipping:
            end = chunk.find(b"\n")
            if end < 0:
                continue
            chunk, skipping = chunk[end + 1 :], False
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        rest = data[end:]
        for lines in _split(data[:end], number, longest):
            number += len(lines)
            yield lines
        if len(rest) > longest:
            yield _too_long(rest, number)
            number, rest, skipping = number + 1, b"", True
    yield from _split(rest, number, longest)


def _split(data: bytes, number: int, longest: int) -> Iterator[Lines]:
    """Lines of normal length together, each longer one by itself."""
    if not data:
        return
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    bounds = np.concatenate([[0], ends])
    begin = 0
    for index in np.flatnonzero(np.diff(bounds) > longest + 1).tolist():
        if index > begin:
            yield _slice(data, bounds[begin : index + 1], number + begin)
        yield _too_long(data[bounds[index] :], number + index)
        begin = index + 1
    if begin < len(ends):
        yield _slice(data, bounds[begin:], number + begin)


def _slice(data: bytes, bounds: NDArray[Any], number: int) -> Lines:
    return Lines(data[bounds[0] : bounds[-1]], bounds - bounds[0], number)


def _too_long(data: bytes, number: int) -> Lines:
    begin = data[:80]
    return Lines(begin, np.array([0, len(begin)]), number, too_long=True)
