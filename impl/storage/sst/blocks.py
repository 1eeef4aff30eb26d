"""Blocks of an SST file: checksums (CRC-32C), Snappy, numbers of varying length, keys that share their beginnings.

A block is followed by a byte, which says how it is compressed, and by its checksum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes

TRAILER = 5  # bytes after a block
PLAIN, SNAPPY = 0, 1  # how a block is compressed
DAMAGED, TOO_SMALL = -1, -2  # what loops return instead of a number of bytes
Bytes = NDArray[np.uint8]
_EIGHT = 8
wide: Any = np.int64  # in loops: 64 bits, also where they are interpreted


def _tables() -> NDArray[np.uint32]:
    """What a byte adds to a checksum, by how many bytes come after it."""
    tables = np.zeros((_EIGHT, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        tables[0, byte] = crc
    for after in range(1, _EIGHT):
        before = tables[after - 1]
        tables[after] = (before >> np.uint32(8)) ^ tables[0][before & np.uint32(0xFF)]
    return tables


_CRC = _tables()


@compiled
def checksum(data: Bytes, start: int, stop: int) -> Any:
    """The CRC-32C of some bytes, masked as RocksDB stores it."""
    crc = wide(0xFFFFFFFF)
    at = start
    while at + 8 <= stop:
        low = crc ^ (
            wide(data[at])
            | (wide(data[at + 1]) << 8)
            | (wide(data[at + 2]) << 16)
            | (wide(data[at + 3]) << 24)
        )
        crc = (
            wide(_CRC[7, low & 255])
            ^ wide(_CRC[6, (low >> 8) & 255])
            ^ wide(_CRC[5, (low >> 16) & 255])
            ^ wide(_CRC[4, low >> 24])
            ^ wide(_CRC[3, data[at + 4]])
            ^ wide(_CRC[2, data[at + 5]])
            ^ wide(_CRC[1, data[at + 6]])
            ^ wide(_CRC[0, data[at + 7]])
        )
        at += 8
    while at < stop:
        crc = (crc >> 8) ^ wide(_CRC[0, (crc ^ wide(data[at])) & 255])
        at += 1
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@compiled
def number_at(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """A number of varying length, seven bits a byte, and the place after it; `DAMAGED` if it does not end."""
    found, shift = wide(0), 0
    while at < stop and shift < 63:
        byte = wide(data[at])
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7
    return found, DAMAGED


@compiled
def fixed32_at(data: Bytes, at: int) -> Any:
    """A number of four bytes, least significant first."""
    return (
        wide(data[at])
        | (wide(data[at + 1]) << 8)
        | (wide(data[at + 2]) << 16)
        | (wide(data[at + 3]) << 24)
    )


@compiled
def block_at(data: Bytes, start: int, size: int, out: Bytes) -> int:
    """Check a block, and put what it has into `out`: how many bytes; negative: it is not to be had."""
    stop = start + size
    if size < 0 or stop + TRAILER > len(data):
        return DAMAGED
    if checksum(data, start, stop + 1) != fixed32_at(data, stop + 1):
        return DAMAGED
    if data[stop] == PLAIN:
        if size > len(out):
            return TOO_SMALL
        copy_bytes(out, 0, data, start, stop)
        return size
    if data[stop] == SNAPPY:
        return _plain(data, start, stop, out)
    return DAMAGED


@compiled
def _plain(data: Bytes, at: int, stop: int, out: Bytes) -> int:
    """Undo Snappy: literals, and copies of what came before."""
    length, at = number_at(data, at, stop)
    if at < 0:
        return DAMAGED
    if length > len(out):
        return TOO_SMALL
    there = 0
    while at < stop:
        tag = wide(data[at])
        at += 1
        kind, back = tag & 3, wide(0)
        if kind == 0:
            count, more = (tag >> 2) + 1, 0
            if count > 60:
                more = count - 60
                if at + more > stop:
                    return DAMAGED
                count = wide(1)
                for one in range(more):
                    count += wide(data[at + one]) << (8 * one)
                at += more
            if at + count > stop or there + count > length:
                return DAMAGED
            there = copy_bytes(out, there, data, at, at + count)
            at += count
            continue
        extra = 4 if kind == 3 else kind
        if at + extra > stop:
            return DAMAGED
        if kind == 1:
            count = ((tag >> 2) & 7) + 4
            back = (tag >> 5) << 8
        else:
            count = (tag >> 2) + 1
        for one in range(extra):
            back += wide(data[at + one]) << (8 * one)
        at += extra
        if back == 0 or back > there or there + count > length:
            return DAMAGED
        for _ in range(count):
            out[there] = out[there - back]
            there += 1
    return there if there == length else DAMAGED


def block_of(data: Bytes, start: int, size: int) -> Bytes | None:
    """What a block has; None: it is damaged, or compressed in another way."""
    room = 4 * size + 4096
    while True:
        out = np.empty(room, np.uint8)
        found = block_at(data, start, size, out)
        if found == TOO_SMALL:
            room *= 4
            continue
        return None if found < 0 else out[:found]


def entries_of(block: Bytes) -> list[tuple[bytes, bytes]] | None:
    """The keys and values of a block, one by one; None: it is damaged."""
    stored = block.tobytes()
    end = len(stored) - 4 - 4 * int.from_bytes(stored[-4:], "little")
    at, key, found = 0, b"", list[tuple[bytes, bytes]]()
    try:
        while at < end:
            shared, at = number_in(stored, at)
            own, at = number_in(stored, at)
            length, at = number_in(stored, at)
            if shared > len(key) or at + own + length > end:
                return None
            key = key[:shared] + stored[at : at + own]
            found.append((key, stored[at + own : at + own + length]))
            at += own + length
    except IndexError:
        return None
    return found


def number_in(stored: bytes, at: int) -> tuple[int, int]:
    """A number of varying length, and the place after it.

    Raises:
        IndexError: it does not end.
    """
    found = shift = 0
    while True:
        byte = stored[at]
        at += 1
        found |= (byte & 127) << shift
        if byte < 128:
            return found, at
        shift += 7


def seven_bits(number: int) -> bytes:
    """A number of varying length as it is stored."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def as_bytes(data: bytes | bytearray | memoryview) -> Bytes:
    """For loops."""
    found: Bytes = np.frombuffer(data, np.uint8)
    return found
