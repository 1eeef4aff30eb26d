"""Rows of SST files as of a time, as columns: files are merged, versions and deletions are told apart, JSON is read.

A key of a store is `length of the family | family | key, 00 as 00 FF | 00 00 | time, inverted`, and RocksDB adds 8
bytes: the kind of the write, and its number. Keys of rows are numbers here, so entries are compared as three numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.impl.storage.sst.blocks import (
    DAMAGED,
    TOO_SMALL,
    block_at,
    fixed32_at,
    number_at,
    wide,
)
from stagewright.impl.storage.sst.files import UnreadableError
from stagewright.impl.storage.sst.json_numbers import ABSENT, FOUND, number_of
from stagewright.impl.storage.sst.windows import LATEST, Place, Sources

Numbers = NDArray[np.int64]
_LIVE = ord("+")
_DELETED, _WRITTEN = 0, 1  # kinds of writes
_KEY_ROOM = 256
UNKNOWN = -3  # something that loops do not know
_ENDED = 2  # a file has no more entries of the family
_MORE, _OVER, _FULL = 0, 1, 2
_KEY, _TIME, _NUMBER, _KIND, _VALUE, _LENGTH, _ENTRY = range(7)  # of an entry of a block
_NEXT, _COUNT, _BLOCK, _CURSOR = range(4)  # entries of a file's block, and the block after it
_SHORTEST = 8  # bytes of an entry
# Where a loop has come to.
_LAST_KEY, _LAST_TIME, _HAS_DECIDED, _DECIDED, _ROWS, _STATE = range(6)


@dataclass(frozen=True)
class Rows:
    """Rows in the order of their keys; `following`: the key of the row after them, if there is one."""

    keys: Numbers
    values: Numbers  # of each column, those of the rows
    there: NDArray[np.bool_]  # whether a row has the column
    following: int | None


def rows_of(
    sources: Sources,
    low: Place,
    at: int,
    most: int,
    columns: tuple[bytes, ...],
    rest: Callable[[], None] = lambda: None,
) -> Rows:
    """Up to `most` rows from a place on as of a time, with the numbers that columns have, named as JSON names them.

    `rest` is called after each window.

    Raises:
        UnreadableError: a file is damaged, or has what is not known here.
    """
    keys = np.empty(most + 1, np.int64)
    values = np.zeros((len(columns), most + 1), np.int64)
    there = np.zeros((len(columns), most + 1), np.bool_)
    names = np.frombuffer(b"".join(columns), np.uint8)
    ends = np.cumsum([len(c) for c in columns], dtype=np.int64)
    state = np.zeros(6, np.int64)
    state[_LAST_KEY], state[_LAST_TIME] = low
    room, wide = 1 << 13, 1
    while state[_ROWS] <= most:
        before = int(state[_LAST_KEY]), int(state[_LAST_TIME])
        window = sources.window(before, wide)
        files = len(window.files) - 1
        cursors = np.zeros((files, _CURSOR), np.int64)
        entries = np.empty((files, room // _SHORTEST, _ENTRY), np.int64)
        blocks = np.empty((files, room), np.uint8)
        found = _merge(
            window.data, window.starts, window.sizes, window.files, window.first_done,
            sources.prefix, at, cursors, entries, blocks, names, ends, keys, values, there, state,
        )  # fmt: skip
        if found == _MORE and (state[_LAST_KEY], state[_LAST_TIME]) == before:
            wide *= 2  # it had nothing after the place
        if found == TOO_SMALL:
            room *= 4
            if room > 1 << 28:
                raise UnreadableError("a block is too large")
        elif found < 0:
            raise UnreadableError("a block is damaged, or has what is not known here")
        elif found == _OVER:
            break
        rest()
    count = min(int(state[_ROWS]), most)
    following = int(keys[most]) if state[_ROWS] > most else None
    return Rows(keys[:count], values[:, :count], there[:, :count], following)


@compiled
def _merge(
    data: Any, starts: Any, sizes: Any, files: Any, first_done: int,
    prefix: Any, at: int, cursors: Any, entries: Any, blocks: Any,
    names: Any, ends: Any, keys: Any, values: Any, there: Any, state: Any,
) -> int:  # fmt: skip
    """Go on where `state` says, until a file has to be read on, all are over or `keys` is full."""
    for f in range(len(cursors)):
        cursors[f, _BLOCK] = files[f]
        cursors[f, _NEXT] = cursors[f, _COUNT] = 0
        found = _skip(data, starts, sizes, files, prefix, cursors, entries, blocks, f, state)
        if found < 0:
            return found
        if f == first_done:
            if found == ABSENT:
                return _MORE
            if found == _ENDED:
                first_done = -1  # neither have the others what is not here
    none = np.full(_ENTRY, -1, np.int64)  # whose key no key is beyond
    none[_KEY] = LATEST
    while True:
        first = _least(cursors, entries, -1)
        if first < 0:
            return _OVER if first_done < 0 else _MORE
        second = _least(cursors, entries, first)
        bound = none if second < 0 else entries[second, cursors[second, _NEXT]]
        found = _run(
            cursors[first], entries[first], blocks[first], bound, at,
            names, ends, keys, values, there, state,
        )  # fmt: skip
        if found < 0 or state[_ROWS] == len(keys):
            return found if found < 0 else _FULL
        if cursors[first, _NEXT] < cursors[first, _COUNT]:
            continue
        cursors[first, _NEXT] -= 1
        found = _next(data, starts, sizes, files, prefix, cursors, entries, blocks, first)
        if found < 0 or (found == ABSENT and first == first_done):
            return found if found < 0 else _MORE
        if found == _ENDED and first == first_done:
            first_done = -1


@compiled
def _run(
    cursor: Any, entries: Any, block: Any, bound: Any, at: int,
    names: Any, ends: Any, keys: Any, values: Any, there: Any, state: Any,
) -> int:  # fmt: skip
    """Take the entries of a file's block that come before one of another file: the newest of each row at a time."""
    n, count, row = cursor[_NEXT], cursor[_COUNT], state[_ROWS]
    last_key, last_time = state[_LAST_KEY], state[_LAST_TIME]
    decided, has_decided = state[_DECIDED], state[_HAS_DECIDED] == 1
    result = FOUND
    while n < count and row < len(keys):
        key, time = entries[n, _KEY], entries[n, _TIME]
        if key >= bound[_KEY] and not _is_before(entries[n], bound):
            break
        is_older = key == last_key and time == last_time  # a write that was repeated
        last_key, last_time = key, time
        kind, start = entries[n, _KIND], entries[n, _VALUE]
        stop = start + entries[n, _LENGTH]
        n += 1
        if is_older or time > at or kind != _WRITTEN or (has_decided and key == decided):
            continue
        decided, has_decided = key, True
        if start == stop:
            result = UNKNOWN
            break
        if block[start] != _LIVE:
            continue
        begin = wide(0)
        for column in range(len(ends)):
            found, value = number_of(block, start + 1, stop, names, begin, ends[column])
            if found < 0:
                result = UNKNOWN
            values[column, row], there[column, row] = value, found == FOUND
            begin = ends[column]
        if result < 0:
            break
        keys[row] = key
        row += 1
    cursor[_NEXT], state[_ROWS] = n, row
    state[_LAST_KEY], state[_LAST_TIME] = last_key, last_time
    state[_DECIDED], state[_HAS_DECIDED] = decided, 1 if has_decided else 0
    return result


@compiled
def _least(cursors: Any, entries: Any, but: int) -> int:
    """The file whose entry comes first, of those that have one; -1: none has."""
    least = -1
    for f in range(len(cursors)):
        n, first = cursors[f, _NEXT], cursors[least, _NEXT]
        has = f != but and n < cursors[f, _COUNT]
        if has and (least < 0 or _is_before(entries[f, n], entries[least, first])):
            least = f
    return least


@compiled
def _is_before(one: Any, other: Any) -> bool:
    """By the key; the newest version comes first, and of one version the last write."""
    if one[_KEY] != other[_KEY]:
        return bool(one[_KEY] < other[_KEY])
    if one[_TIME] != other[_TIME]:
        return bool(one[_TIME] > other[_TIME])
    return bool(one[_NUMBER] > other[_NUMBER])


@compiled
def _skip(
    data: Any, starts: Any, sizes: Any, files: Any, prefix: Any,
    cursors: Any, entries: Any, blocks: Any, f: int, state: Any,
) -> int:  # fmt: skip
    """Go to the first entry of a file after the place where it goes on."""
    while True:
        found = _next(data, starts, sizes, files, prefix, cursors, entries, blocks, f)
        if found != FOUND:
            return found
        entry = entries[f, cursors[f, _NEXT]]
        if entry[_KEY] > state[_LAST_KEY]:
            return FOUND
        if entry[_KEY] == state[_LAST_KEY] and entry[_TIME] < state[_LAST_TIME]:
            return FOUND


@compiled
def _next(
    data: Any, starts: Any, sizes: Any, files: Any, prefix: Any,
    cursors: Any, entries: Any, blocks: Any, f: int,
) -> int:  # fmt: skip
    """Go to the next entry of a file that is of the family; `ABSENT`: there is none here, `_ENDED`: nor later."""
    cursors[f, _NEXT] += 1
    while cursors[f, _NEXT] >= cursors[f, _COUNT]:
        number = cursors[f, _BLOCK]
        cursors[f, _NEXT] = cursors[f, _COUNT] = 0
        if number < 0:
            return _ENDED
        if number >= files[f + 1]:
            return ABSENT
        size = block_at(data, starts[number], sizes[number], blocks[f])
        if size < 0:
            return size
        found = _entries(blocks[f], size, prefix, entries[f], cursors, f)
        if found < 0:
            return found
        cursors[f, _BLOCK] = -1 if found == _ENDED else number + 1
    return FOUND


@compiled
def _entries(block: Any, size: int, prefix: Any, entries: Any, cursors: Any, f: int) -> int:
    """Take the entries of a block apart that are of the family; `_ENDED`: others come after them."""
    if size < 4:
        return DAMAGED
    end = size - 4 - 4 * fixed32_at(block, size - 4)
    key = np.empty(_KEY_ROOM, np.uint8)
    at = width = count = 0
    while at < end:
        shared, at = number_at(block, at, end)
        own, at = number_at(block, at, end) if at >= 0 else (shared, at)
        length, at = number_at(block, at, end) if at >= 0 else (shared, at)
        if at < 0 or shared > width or at + own + length > end:
            return DAMAGED
        width = shared + own
        if width > _KEY_ROOM:
            return UNKNOWN
        for one in range(own):
            key[shared + one] = block[at + one]
        order = _family(key, width, prefix)
        if order > 0:
            cursors[f, _COUNT] = count
            return _ENDED
        if order == 0:
            if count == len(entries):
                return TOO_SMALL
            if _read_key(key, width, len(prefix), entries[count]) != FOUND:
                return UNKNOWN
            entries[count, _VALUE], entries[count, _LENGTH] = at + own, length
            count += 1
        at += own + length
    cursors[f, _COUNT] = count
    return FOUND


@compiled
def _family(key: Any, width: int, prefix: Any) -> int:
    """Whether a key is of a family (0), of one before it (-1) or of one after it (1)."""
    for one in range(len(prefix)):
        if one >= width or key[one] < prefix[one]:
            return -1
        if key[one] > prefix[one]:
            return 1
    return 0


@compiled
def _read_key(key: Any, width: int, at: int, entry: Any) -> int:
    """Take a key apart."""
    number = wide(0)
    for one in range(8):
        if at >= width:
            return UNKNOWN
        byte = wide(key[at])
        at += 1
        if byte == 0:
            if at >= width or key[at] != 255:
                return UNKNOWN
            at += 1
        number = (number << 8) | byte if one > 0 else byte - 128  # in the order of numbers
    if width != at + 18 or key[at] != 0 or key[at + 1] != 0 or key[at + 2] < 128:
        return UNKNOWN  # another key, or a time beyond all clocks
    time = wide(0)
    for one in range(2, 10):
        time = (time << 8) | wide(255 - wide(key[at + one]))
    kind = wide(key[at + 10])
    if kind != _DELETED and kind != _WRITTEN:
        return UNKNOWN
    write = wide(0)
    for one in range(17, 10, -1):
        write = (write << 8) | wide(key[at + one])
    entry[_KEY], entry[_TIME], entry[_NUMBER], entry[_KIND] = number, time, write, kind
    return FOUND
