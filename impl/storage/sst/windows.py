"""Windows on files that are merged: of each the blocks up to where one of them has to be read on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import read_only
from stagewright.impl.storage.sst.blocks import TRAILER, Bytes
from stagewright.impl.storage.sst.files import SstFile

Place = tuple[int, int]  # a key and a time: versions after it come next, the newest of a key first
LATEST = (1 << 63) - 1
FIRST: Place = (-(1 << 63), LATEST)
ROOM = 1 << 20  # bytes of the file that ends a window
_OFFSET = 1 << 63


@dataclass(frozen=True)
class Window:
    """Blocks one after the other; those of file f are `files[f]` to `files[f + 1]`."""

    data: Bytes
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    files: NDArray[np.int64]
    first_done: int  # the file that has to be read on first; -1: all are here to their ends


class Sources:
    """The files of a store, of which a family is read."""

    def __init__(self, files: Sequence[SstFile], family: str, room: int = ROOM) -> None:
        name = family.encode()
        self.prefix = np.frombuffer(bytes([len(name)]) + name, np.uint8)
        self._files = files
        self._room = room

    def window(self, after: Place, wide: int = 1) -> Window:
        """What comes after a place; `wide`: so many times as much of the file that ends it."""
        key = _stored(self.prefix.tobytes(), after)
        begins = [f.first_block(key) for f in self._files]
        ends = [f.end_of(b, wide * self._room) for f, b in zip(self._files, begins, strict=True)]
        unread = [n for n, f in enumerate(self._files) if ends[n] < len(f.starts)]
        first_done = min(unread, key=lambda n: self._files[n].last[ends[n] - 1], default=-1)
        if first_done >= 0:
            bound = self._files[first_done].last[ends[first_done] - 1]
            for n, f in enumerate(self._files):
                if n != first_done:
                    ends[n] = min(f.first_block(bound) + 1, len(f.starts))
        files = np.cumsum([0, *(e - b for b, e in zip(begins, ends, strict=True))], dtype=np.int64)
        parts, starts, sizes, there = list[Bytes](), list[NDArray[np.int64]](), [], 0
        for f, begin, end in zip(self._files, begins, ends, strict=True):
            if begin < end:
                first = int(f.starts[begin])
                stop = int(f.starts[end - 1] + f.sizes[end - 1]) + TRAILER
                parts.append(f.data[first:stop])
                starts.append(f.starts[begin:end] - first + there)
                sizes.append(f.sizes[begin:end])
                there += stop - first
        none = [np.empty(0, np.int64)]
        data = read_only(np.concatenate(parts or [np.empty(0, np.uint8)]))
        return Window(
            data, np.concatenate(starts or none), np.concatenate(sizes or none), files, first_done
        )


def _stored(prefix: bytes, place: Place) -> bytes:
    """The first key of a store after which entries may come."""
    key, time = place
    escaped = (key + _OFFSET).to_bytes(8, "big").replace(b"\0", b"\0\xff")
    return prefix + escaped + b"\0\0" + ((1 << 64) - 1 - max(time, 0)).to_bytes(8, "big")
