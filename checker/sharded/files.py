"""The files of a search over shards: each is written once, under a temporary name, and then stays.

    search.json             what is searched, and the program that does it
    level-0007/new-3        shard 3's states of depth 7
    level-0007/sent-3       successors of these, by the shards they are sent to
    level-0007/done.json    what the level's tasks counted and noted

States are 64-bit words, little-endian, state after state.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.spec.errors import InputError

Rows = NDArray[np.uint64]
"""States, shape (states, words), in the order of memory."""

_WORD = np.dtype("<u8")
_NUMBER = np.dtype("<i8")
_SEAL = 0x7374616765777231  # ends a file of sent states
_END = 16  # bytes: the number of chunks and the seal
_PIECE = 1 << 16  # states read at once


class DamagedError(InputError):
    """A file in a work directory is not what was written there."""

    code = "SW420"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged", help="remove the work directory and search again")


@lru_cache(maxsize=64)  # paths are made for every pair of shards
def level_folder(folder: Path, level: int) -> Path:
    """A level's folder; what is sent to level 0 lies in that of level -1."""
    return folder / (f"level-{level:04}" if level >= 0 else "initial")


def new_file(folder: Path, level: int, shard: int) -> Path:
    return level_folder(folder, level) / f"new-{shard}"


def sent_file(folder: Path, level: int, shard: int) -> Path:
    return level_folder(folder, level) / f"sent-{shard}"


def done_file(folder: Path, level: int) -> Path:
    return level_folder(folder, level) / "done.json"


def claim_file(folder: Path, level: int, shard: int) -> Path:
    return level_folder(folder, level) / f".claim-{shard}"


def take(path: Path) -> bool:
    """Make an empty file; False if there is one already."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def secure(path: Path) -> None:
    """See to it that a file outlives a crash of the machine."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def writing(path: Path) -> Iterator[BufferedWriter]:
    """A file that gets its name, all at once, when nothing went wrong."""
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write an object."""
    with writing(path) as file:
        file.write(json.dumps(content).encode())


def read_json(path: Path) -> dict[str, Any]:
    """Read what `write_json` wrote.

    Raises:
        DamagedError: it is no object.
    """
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise DamagedError(path)
    return content


def write_states(path: Path, states: Rows) -> None:
    """Write states."""
    with writing(path) as file:
        file.write(np.ascontiguousarray(states, dtype=_WORD).data)


def read_states(path: Path, words: int) -> Rows:
    """The states of a file; pages are read when they are touched.

    Raises:
        DamagedError: the file ends within a state.
    """
    size = path.stat().st_size
    if size % (8 * words):
        raise DamagedError(path)
    if not size:
        return np.empty((0, words), dtype=np.uint64)
    mapped = np.memmap(path, dtype=_WORD, mode="r")
    return np.asarray(mapped).reshape(-1, words)  # slices of a plain array are cheap


def pieces(states: Rows) -> Iterator[Rows]:
    """The states, so many at a time that their table lines may be forgotten afterwards."""
    for first in range(0, states.shape[0], _PIECE):
        yield states[first : first + _PIECE]


@dataclass
class Sent:
    """A file of sent states that is being written: chunks of states, then where each chunk lies."""

    file: BufferedWriter
    chunks: list[tuple[int, int, int]]  # shard, first byte, states
    size: int = 0

    @property
    def states(self) -> int:
        """How many states were sent."""
        return sum(count for _, _, count in self.chunks)

    def append(self, shard: int, states: Rows) -> None:
        """Send states to a shard."""
        self.chunks.append((shard, self.size, states.shape[0]))
        data = np.ascontiguousarray(states, dtype=_WORD).data
        self.file.write(data)
        self.size += data.nbytes


@contextmanager
def sending(path: Path) -> Iterator[Sent]:
    """A file of sent states."""
    with writing(path) as file:
        sent = Sent(file, [])
        yield sent
        index = np.array(sent.chunks, dtype=_NUMBER).reshape(-1, 3)
        file.write(index.tobytes())
        file.write(np.array([len(sent.chunks), _SEAL], dtype=_NUMBER).tobytes())


def received(path: Path, shard: int, words: int) -> Iterator[Rows]:
    """The states that a file sends to a shard, piece by piece.

    Raises:
        DamagedError: the file is not complete.
    """
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - many small ones are read
        for target, first, count in _index(path, file):
            if target == shard:
                file.seek(first)
                data = np.fromfile(file, dtype=_WORD, count=count * words)
                if data.size != count * words:
                    raise DamagedError(path)
                yield from pieces(data.reshape(count, words))


def _index(path: Path, file: FileIO) -> list[list[int]]:
    """Shard, first byte and number of states of every chunk of a file of sent states."""
    size = file.seek(0, os.SEEK_END)
    if size < _END:
        raise DamagedError(path)
    file.seek(size - _END)
    chunks, seal = np.frombuffer(file.read(_END), dtype=_NUMBER).tolist()
    length = 3 * _NUMBER.itemsize * chunks
    if seal != _SEAL or not 0 <= length <= size - _END:
        raise DamagedError(path)
    file.seek(size - _END - length)
    index: list[list[int]] = np.frombuffer(file.read(length), dtype=_NUMBER).reshape(-1, 3).tolist()
    return index
