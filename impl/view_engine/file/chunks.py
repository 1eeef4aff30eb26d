"""Blocks and chunks.

A file is cut into blocks of 4,096 bytes, the first byte of each says what it is: 0 for data, 1 for the
start of a header. A chunk is its length, the CRC-32 of its body, and the body.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise

import pyarrow as pa

from stagewright.impl.view_engine.file.errors import CorruptFileError

BLOCK = 4096
DATA_BLOCK = b"\0"
HEADER_BLOCK = b"\1"
LARGEST_CHUNK = 1 << 30  # bytes; a longer length is taken for damage
LARGEST_HEADER = 1 << 16  # bytes, as the original's reader has it
FIRST_READ = 12 << 10  # bytes: most nodes are read with one call

_PREFIX = struct.Struct(">II")
_IS_CHUNK = 0x80000000
_SNAPPY = pa.Codec("snappy")

Read = Callable[[int, int], bytes]  # (offset, size) → bytes


def in_blocks(raw: bytes, position: int) -> bytes:
    """The bytes as they stand in the file from `position` on: with the first byte of each data block."""
    room = -position % BLOCK
    if room >= len(raw) and (room or not raw):
        return raw
    view = memoryview(raw)
    parts: list[bytes | memoryview] = [view[:room]]
    for start in range(room, len(raw), BLOCK - 1):
        parts += (DATA_BLOCK, view[start : start + BLOCK - 1])
    return b"".join(parts)


def chunks(payloads: Iterable[bytes], position: int) -> tuple[bytes, list[tuple[int, int]]]:
    """Compressed chunks as they are written one after the other from `position` on.

    Gives their bytes, and the position and the size in the file of each.
    """
    parts: list[bytes] = []
    ends = [position]
    room = -position % BLOCK
    size = 0
    for payload in payloads:
        body: bytes = _SNAPPY.compress(payload, asbytes=True)
        length = len(body)
        parts.append(_PREFIX.pack(length | _IS_CHUNK, zlib.crc32(body)))
        parts.append(body)
        size += 8 + length
        ends.append(position + size + (-(-(size - room) // 4095) if size > room else 0))
    places = [(start, end - start) for start, end in pairwise(ends)]
    return in_blocks(b"".join(parts), position), places


def header_blocks(body: bytes) -> bytes:
    """A header as it is written at a multiple of 4,096; its length counts its checksum, too."""
    raw = _PREFIX.pack(len(body) + 4, zlib.crc32(body)) + body
    return HEADER_BLOCK + in_blocks(raw, 1)


def read_chunk(read: Read, position: int) -> bytes:
    """The payload of the chunk at `position`, checked; raises CorruptFileError."""
    stored = read(position, FIRST_READ)
    raw = _without_prefixes(stored, position)
    if len(raw) >= _PREFIX.size:
        size = _PREFIX.size + _prefix_at(raw, 0, position)[0]
        if len(raw) < size:
            raw = _without_prefixes(read(position, size + size // (BLOCK - 1) + 2), position)
    return _payload(raw, 0, position)


def read_chunks(stored: bytes, first: int, positions: Iterable[int]) -> Iterator[bytes | None]:
    """The payloads of several chunks of the bytes that stand from `first` on.

    Gives None for one that cannot be read from these bytes.
    """
    raw = memoryview(_without_prefixes(stored, first))
    before = first - _blocks(first)
    for position in positions:
        start = position - _blocks(position) - before
        payload = _intact(raw, start)
        if payload is None:
            with suppress(CorruptFileError):
                payload = _payload(raw, start, position)
        yield payload


def _intact(raw: memoryview, start: int) -> bytes | None:
    """The payload of the chunk at `start`, if it is one as most nodes are: in one go, as there are so many."""
    if start + 10 > len(raw):
        return None
    length, checksum = _PREFIX.unpack_from(raw, start)
    body = raw[start + 8 : start + 8 + (length & ~_IS_CHUNK)]
    if not raw[start + 8] > 127 > raw[start + 9] or zlib.crc32(body) != checksum:
        return None
    size = body[0] & 127 | body[1] << 7
    try:
        payload: bytes = _SNAPPY.decompress(body, decompressed_size=size, asbytes=True)
    except (OSError, ValueError):
        return None
    return payload


def _blocks(position: int) -> int:
    """How many blocks start before a position."""
    return -(-position // BLOCK)


def _prefix_at(raw: bytes | memoryview, start: int, position: int) -> tuple[int, int]:
    """Length and checksum of a chunk."""
    length, checksum = _PREFIX.unpack_from(raw, start)
    length &= ~_IS_CHUNK
    if length > LARGEST_CHUNK:
        raise CorruptFileError(position, f"a chunk cannot have {length} bytes")
    return length, checksum


def _payload(raw: bytes | memoryview, start: int, position: int) -> bytes:
    """Of the chunk at `start` of bytes without prefixes, checked; raises CorruptFileError."""
    if len(raw) < start + _PREFIX.size:
        raise CorruptFileError(position, "the file ends before the chunk that should be here")
    length, checksum = _prefix_at(raw, start, position)
    start += _PREFIX.size
    body = raw[start : start + length]
    if len(body) < length:
        raise CorruptFileError(position, f"the file ends within a chunk of {length} bytes")
    if zlib.crc32(body) != checksum:
        raise CorruptFileError(position, "the checksum of the chunk does not match its bytes")
    return decompressed(body, position)


def read_header(read: Read, position: int) -> bytes:
    """The body of the header whose block starts at `position`; raises CorruptFileError."""
    stored = read(position, LARGEST_HEADER + LARGEST_HEADER // (BLOCK - 1) + 16)
    if stored[:1] != HEADER_BLOCK:
        raise CorruptFileError(position, "no header starts in this block")
    raw = _without_prefixes(stored, position)
    if len(raw) < _PREFIX.size:
        raise CorruptFileError(position, "the file ends within a header")
    length, checksum = _PREFIX.unpack_from(raw)
    if not 4 <= length <= LARGEST_HEADER:
        raise CorruptFileError(position, f"a header cannot have {length} bytes")
    body = raw[_PREFIX.size : _PREFIX.size + length - 4]
    if len(body) < length - 4 or zlib.crc32(body) != checksum:
        raise CorruptFileError(position, "the checksum of the header does not match its bytes")
    return body


def compressed(payload: bytes) -> bytes:
    """Snappy, as the original compresses."""
    made: bytes = _SNAPPY.compress(payload, asbytes=True)
    return made


def decompressed(body: bytes | memoryview, position: int) -> bytes:
    """The inverse of `compressed`; `position` is named in the error."""
    size = _decompressed_size(body)
    if size > LARGEST_CHUNK:
        raise CorruptFileError(position, f"a node cannot have {size} bytes")
    try:
        payload: bytes = _SNAPPY.decompress(body, decompressed_size=size, asbytes=True)
    except (OSError, ValueError) as error:
        raise CorruptFileError(position, f"the chunk cannot be decompressed: {error}") from None
    return payload


def _decompressed_size(body: bytes | memoryview) -> int:
    """What Snappy says at its start: seven bits a byte, the lowest first."""
    size = shift = 0
    for byte in body[:5]:
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    return size


def _without_prefixes(stored: bytes, position: int) -> bytes:
    room = -position % BLOCK
    if len(stored) <= room:
        return stored
    view = memoryview(stored)
    parts = [view[at + 1 : at + BLOCK] for at in range(room, len(stored), BLOCK)]
    return b"".join([view[:room], *parts])
