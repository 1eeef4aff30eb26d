"""Does works in bulk: rows are read from files of a store, values sifted, files of entries written."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stagewright.impl.indexes.bulk.compiled_sieve import CompiledSieve
from stagewright.impl.indexes.bulk.numbers import (
    KEY,
    Entries,
    Numbers,
    entries_of,
    keys_of,
    ordered,
)
from stagewright.impl.indexes.bulk.pace import Pace
from stagewright.impl.indexes.bulk.sorting import by_tablet
from stagewright.impl.indexes.bulk.work import (
    Answer,
    DoneWork,
    DropSieve,
    GetReady,
    RefusedWork,
    RemoveFiles,
    ScannedRows,
    ScanRows,
    SiftedValues,
    SiftValues,
    Work,
    WriteEntries,
)
from stagewright.impl.storage.sst.blocks import as_bytes, block_of
from stagewright.impl.storage.sst.entries import entries_file
from stagewright.impl.storage.sst.files import SstFile, UnreadableError
from stagewright.impl.storage.sst.rows import rows_of
from stagewright.impl.storage.sst.windows import FIRST, LATEST, ROOM, Place, Sources
from stagewright.impl.storage.writeback import write_back

_OPEN = 256  # files whose blocks are known
_PIECE = 1 << 18  # bytes
_WINDOW = 1 << 16  # bytes of a file that are read at once where others are served meanwhile
_PART = 4_096  # entries that are written or sifted then


class Builder:
    """What it keeps can be had again: files that are open, and sieves."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, SstFile] = OrderedDict()
        self._sieves: dict[str, CompiledSieve] = {}

    def do(self, work: Work, pace: Pace | None = None) -> Answer:
        """Do it at a pace, or say why it cannot be done."""
        pace = pace or Pace()
        try:
            match work:
                case GetReady():
                    return _ready()
                case ScanRows():
                    return self._scan(work, pace)
                case RemoveFiles(paths):
                    for path in paths:
                        Path(path).unlink(missing_ok=True)
                    return DoneWork()
                case SiftValues():
                    return self._sift(work, pace)
                case DropSieve(sieve):
                    self._sieves.pop(sieve, None)
                    return DoneWork()
                case WriteEntries():
                    return _write(work, pace)
        except FileNotFoundError as error:
            return RefusedWork(f"a file is gone: {error}", again=True)
        except UnreadableError as error:
            return RefusedWork(f"a file is to be read by RocksDB: {error}")

    # -- rows --------------------------------------------------------------------------------------------------

    def _scan(self, work: ScanRows, pace: Pace) -> Answer:
        place = _place(work.low)
        if place is None:
            return RefusedWork("rows are to be read from a row's key on")
        room = ROOM if pace.is_full else _WINDOW
        sources = Sources([self._opened(path) for path in work.files], work.family, room)
        names = sorted({column for _, _, column in work.indexes})
        found = rows_of(
            sources,
            place,
            work.at,
            work.most,
            tuple(json.dumps(n).encode() for n in names),
            pace.rest,
        )
        entries = list[tuple[int, Entries]]()
        for number, unique, column in work.indexes:
            at = names.index(column)
            for tablet, values, rows in by_tablet(
                found.values[at], found.keys, found.there[at], work.tablets, pace.rest
            ):
                some = entries_of(number, unique, values, rows)
                if work.beside:
                    some = _put_beside(some, f"{work.beside}-{number}-{tablet}", pace)
                entries.append((tablet, some))
        following = None if found.following is None else _stored(found.following)
        return ScannedRows(len(found.keys), following, tuple(entries))

    def _opened(self, path: str) -> SstFile:
        if path not in self._files:
            self._files[path] = SstFile.opened(path)
        self._files.move_to_end(path)
        while len(self._files) > _OPEN:
            self._files.popitem(last=False)
        return self._files[path]

    # -- values ------------------------------------------------------------------------------------------------

    def _sift(self, work: SiftValues, pace: Pace) -> Answer:
        if work.is_new:
            self._sieves[work.sieve] = CompiledSieve()
        sieve = self._sieves.get(work.sieve)
        if sieve is None:
            return RefusedWork("there is no such sieve")
        sieve.add(_numbers(work.known))
        (values, _), found = work.entries.columns(), list[int]()
        part = len(values) if pace.is_full else _PART
        for begin in range(0, len(values), part or 1):
            some = values[begin : begin + part]
            held: NDArray[np.int64] = np.flatnonzero(sieve.holds(some)) + begin
            found += held.tolist()
            sieve.add(some)
            pace.rest()
        return SiftedValues(tuple(found))


def _ready() -> Answer:
    """Machine code is loaded by whoever calls it first."""
    block_of(as_bytes(bytes(9)), 0, 4)
    rows_of(Sources((), "rows"), FIRST, 0, 1, (b'"v"',))
    one = np.arange(1)
    list(by_tablet(one, one, np.ones(1, np.bool_), 1))
    entries_file("rows", 1, False, one, one)
    sieve = CompiledSieve()
    sieve.add(one)
    sieve.holds(one)
    return DoneWork()


def _put_beside(entries: Entries, path: str, pace: Pace) -> Entries:
    """In a file, which a crash of the machine may take: nobody needs it then."""
    with Path(path).open("wb", 0) as out:
        for column in (memoryview(entries.values), memoryview(entries.rows)):
            rest = column
            while rest:
                rest = rest[out.write(rest[:_PIECE]) :]
                pace.rest()
    return Entries(entries.index, entries.unique, b"", b"", path)


def _write(work: WriteEntries, pace: Pace) -> Answer:
    """It is on the disk when this returns."""
    values, rows = work.entries.columns()
    part = 0 if pace.is_full else _PART
    unique = work.entries.unique
    file = entries_file(work.family, work.time, unique, values, rows, part, pace.rest)
    if file is None:
        return RefusedWork("the entries are not in order")
    Path(work.path).unlink(missing_ok=True)  # a builder that died had begun it
    handle = os.open(work.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(handle, "wb", 0) as out:
        begin = 0
        # Little at once: who syncs anything meanwhile waits for what is unwritten.
        while begin < len(file):
            count = out.write(file[begin : begin + _PIECE])
            write_back(out.fileno(), begin, count)
            begin += count
            pace.rest()
        os.fsync(out.fileno())
    return DoneWork()


def _numbers(stored: bytes) -> Numbers:
    return np.frombuffer(stored, np.int64)


def _place(low: bytes) -> Place | None:
    """Where rows from a key on begin: at all of them, or at a row; None: elsewhere."""
    if not low:
        return FIRST
    return (int(keys_of(low)[0]), LATEST) if len(low) == KEY else None


def _stored(key: int) -> bytes:
    return ordered(np.array([key], np.int64)).tobytes()
