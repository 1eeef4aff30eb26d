"""Writes an SST file of an index's entries, which all have one time, for a store to take in as one of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled, copy_bytes, read_only
from stagewright.impl.storage.sst import FORMAT
from stagewright.impl.storage.sst.blocks import Bytes, as_bytes, checksum, seven_bits
from stagewright.impl.storage.sst.files import CRC32C, FROM_OUTSIDE, INNER, MAGIC, PROPERTIES

Numbers = NDArray[np.int64]
_BLOCK = 4096  # bytes, after which a block of entries ends
_RESTART = 16  # entries, after which one has its whole key
_MOST = 112  # bytes of an entry: three numbers, a key whose bytes are all escaped, a row
_WRITTEN = bytes([1, *bytes(INNER - 1)])  # the kind of a write that has no number yet
_LAST_TIME = (1 << 64) - 1
_WHERE = 3  # of a block: its place, its size, and where its last key is
_END, _BLOCKS, _RAW, _COUNT = range(4)  # so far: bytes, blocks, bytes of keys, entries


def entries_file(
    family: str,
    time: int,
    unique: bool,
    values: Numbers,
    rows: Numbers,
    part: int = 0,
    rest: Callable[[], None] = lambda: None,
) -> memoryview | None:
    """The file: keys are values (and rows, unless they are `unique`) in their order; None: they are not.

    `rest` is called after each `part` of them, or a few more; 0: they are written in one go.
    """
    count = len(values)
    name = family.encode()
    head = as_bytes(bytes([len(name)]) + name)
    tail = as_bytes(b"\0\0" + (_LAST_TIME - time).to_bytes(8, "big") + _WRITTEN)
    most = _MOST + len(head)
    out = np.empty(count * most + (count * most // _BLOCK + 2) * 64, np.uint8)
    places = np.empty((count * most // _BLOCK + 2, _WHERE), np.int64)
    last = np.empty((len(places), most), np.uint8)
    columns, done = (read_only(values), read_only(rows)), np.zeros(4, np.int64)
    while done[_COUNT] < count:
        _write(*columns, unique, head, tail, out, places, last, done, part or count)
        if done[_END] < 0:
            return None
        rest()
    end, blocks, raw, _ = done.tolist()
    return _closed(out, end, places[:blocks], last, count, raw)


@compiled
def _write(
    values: Any, rows: Any, unique: bool, head: Any, tail: Any,
    out: Any, places: Any, last: Any, done: Any, part: int,
) -> None:  # fmt: skip
    """Go on with blocks of entries where `done` says, until so many are written and a block is full."""
    key, before = np.zeros(last.shape[1], np.uint8), np.zeros(last.shape[1], np.uint8)
    restarts = np.zeros(_BLOCK, np.int64)
    digits = np.zeros(24, np.uint8)
    copy_bytes(key, 0, head, 0, len(head))
    at, blocks, raw, begin = done[_END], done[_BLOCKS], done[_RAW], done[_COUNT]
    start, width, entries, count = at, 0, 0, 0
    for n in range(begin, len(values)):
        if n > 0:
            same = values[n] == values[n - 1]
            if values[n] < values[n - 1] or (same and (unique or rows[n] <= rows[n - 1])):
                done[_END] = -1
                return
        copy_bytes(before, 0, key, 0, width)
        size = _escape(values[n], key, len(head))
        if not unique:
            size = _escape(rows[n], key, size)
        size = copy_bytes(key, size, tail, 0, len(tail))
        raw += size
        shared = 0
        if entries % _RESTART == 0:
            restarts[count] = at - start
            count += 1
        else:
            most = min(size, width)
            while shared < most and key[shared] == before[shared]:
                shared += 1
        width = size
        length = _decimal(rows[n], digits)
        out[at], out[at + 1], out[at + 2] = shared, size - shared, length + 1
        at = copy_bytes(out, at + 3, key, shared, size)
        out[at] = 43  # a plus: it is no tombstone
        at = copy_bytes(out, at + 1, digits, 24 - length, 24)
        entries += 1
        if at - start >= _BLOCK or n == len(values) - 1:
            copy_bytes(last[blocks], 0, key, 0, size)
            for one in range(count):
                at = _fixed32(restarts[one], out, at)
            at = _fixed32(count, out, at)
            places[blocks, 0], places[blocks, 1] = start, at - start
            places[blocks, 2] = size
            at = _close(out, start, at)
            start, entries, count = at, 0, 0
            blocks += 1
            if n + 1 - begin >= part or n == len(values) - 1:
                done[_END], done[_BLOCKS], done[_RAW], done[_COUNT] = at, blocks, raw, n + 1
                return


@compiled
def _escape(number: int, out: Any, at: int) -> int:
    """Eight bytes in the order of numbers, a zero as two; the place after them."""
    for shift in range(56, -1, -8):
        byte = (number >> shift) & 255
        if shift == 56:
            byte ^= 128
        out[at] = byte
        at += 1
        if byte == 0:
            out[at] = 255
            at += 1
    return at


@compiled
def _decimal(number: int, out: Any) -> int:
    """A number as text, at the end of 24 bytes; how long it is."""
    at, rest = 24, number
    while True:
        digit = rest % 10
        if rest < 0 and digit > 0:
            digit = 10 - digit  # a remainder is not negative
            rest = rest // 10 + 1
        else:
            rest = rest // 10
        at -= 1
        out[at] = 48 + digit
        if rest == 0:
            break
    if number < 0:
        at -= 1
        out[at] = 45
    return 24 - at


@compiled
def _fixed32(number: int, out: Any, at: int) -> int:
    for shift in range(0, 32, 8):
        out[at] = (number >> shift) & 255
        at += 1
    return at


@compiled
def _close(out: Any, start: int, at: int) -> int:
    """What follows a block that is not compressed."""
    out[at] = 0
    return _fixed32(checksum(out, start, at + 1), out, at + 1)


def _closed(out: Bytes, end: int, places: Numbers, last: Bytes, count: int, raw: int) -> memoryview:
    """The file with what comes after its entries: the index, properties, the footer."""
    index = _block(
        (last[n, :size].tobytes(), seven_bits(start) + seven_bits(length))
        for n, (start, length, size) in enumerate(places.tolist())
    )
    values = 8 * count  # about: RocksDB reports it, no more
    numbers = {
        b"rocksdb.data.size": end,
        b"rocksdb.index.size": len(index),
        b"rocksdb.num.data.blocks": len(places),
        b"rocksdb.num.entries": count,
        b"rocksdb.raw.key.size": raw,
        b"rocksdb.raw.value.size": values,
        b"rocksdb.filter.size": 0,
        b"rocksdb.fixed.key.length": 0,
        b"rocksdb.format.version": FORMAT,
        b"rocksdb.deleted.keys": 0,
        b"rocksdb.merge.operands": 0,
    }
    properties = {name: seven_bits(number) for name, number in numbers.items()} | {
        FROM_OUTSIDE: (2).to_bytes(4, "little"),
        b"rocksdb.external_sst_file.global_seqno": bytes(8),
        b"rocksdb.comparator": b"leveldb.BytewiseComparator",
        b"rocksdb.compression": b"NoCompression",
        b"rocksdb.block.based.table.index.type": bytes(4),
        b"rocksdb.block.based.table.whole.key.filtering": b"1",
        b"rocksdb.block.based.table.prefix.filtering": b"0",
    }
    described = _block(sorted(properties.items()))
    at = end + len(described)
    named = _block([(PROPERTIES, seven_bits(end) + seven_bits(len(described) - 5))])
    handles = seven_bits(at) + seven_bits(len(named) - 5)
    at += len(named)
    handles += seven_bits(at) + seven_bits(len(index) - 5)
    footer = bytes([CRC32C]) + handles.ljust(40, b"\0") + FORMAT.to_bytes(4, "little") + MAGIC
    after = described + named + index + footer
    if end + len(after) > len(out):
        out = np.concatenate([out[:end], np.empty(len(after), np.uint8)])
    out[end : end + len(after)] = as_bytes(after)
    return out.data[: end + len(after)]


def _block(entries: Any) -> bytes:
    """A block of a few entries, each with its whole key, and what follows it."""
    found, restarts = bytearray(), list[int]()
    for key, value in entries:
        restarts.append(len(found))
        found += seven_bits(0) + seven_bits(len(key)) + seven_bits(len(value)) + key + value
    for restart in [*restarts, len(restarts)]:
        found += restart.to_bytes(4, "little")
    found.append(0)
    data = as_bytes(bytes(found))
    return bytes(found) + int(checksum(data, 0, len(data))).to_bytes(4, "little")
