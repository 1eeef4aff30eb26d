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
from io import BufferedWriter
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
_PIECE = 1 << 16  # states read at once


class DamagedError(InputError):
    """A file of a work directory is not what was written there."""

    code = "SW420"

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is damaged", help="remove the work directory and search again")


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
    return _mapped(path, _WORD).reshape(-1, words)


def _mapped(path: Path, kind: np.dtype[Any]) -> NDArray[Any]:
    """A file that is not empty, as numbers."""
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))  # slices of a plain array are cheap


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
    size = path.stat().st_size
    data = _mapped(path, _NUMBER) if size >= 16 and not size % 8 else None
    if data is None or int(data[-1]) != _SEAL or (last := data.size - 2 - 3 * int(data[-2])) < 0:
        raise DamagedError(path)
    for target, first, count in data[last:-2].reshape(-1, 3).tolist():
        if target == shard:
            start = first // 8
            chunk = data[start : start + count * words].view(_WORD)
            yield from pieces(chunk.reshape(count, words))
