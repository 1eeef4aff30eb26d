"""Sorts more rows than fit into memory: sorted runs on disk, merged 16 at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stagewright.impl.view_engine.tree.loops import lower_bound
from stagewright.impl.view_engine.tree.nodes import Shape
from stagewright.impl.view_engine.tree.packed import Packed

SORT_MEMORY = 64 << 20  # bytes of rows that are sorted at once
FRAME = 1 << 20  # bytes of rows that are read at once from a run
MOST_WAYS = 16


class ExternalSort:
    """Takes packed items in any order, gives them sorted; later ones win over equal earlier ones."""

    def __init__(self, folder: Path, name: str, shape: Shape, memory: int = SORT_MEMORY) -> None:
        self._folder = folder
        self._name = name
        self._shape = shape
        self._memory = memory
        self._parts: list[bytes] = []
        self._size = 0
        self._runs: list[Path] = []
        self._made = 0
        self.items = 0

    def add(self, items: bytes, count: int) -> None:
        """Packed items, and how many they are."""
        self._parts.append(items)
        self._size += len(items)
        self.items += count
        if self._size >= self._memory:
            self._spill()

    def sorted(self) -> Iterator[Packed]:
        """All rows in order, in batches; reads the runs, in memory for 16 frames."""
        if not self._runs:
            rows = self._shape.packed(b"".join(self._parts)).sorted()
            self._parts = []
            if len(rows):
                yield rows
            return
        self._spill()
        while len(self._runs) > MOST_WAYS:
            oldest, self._runs = self._runs[:MOST_WAYS], self._runs[MOST_WAYS:]
            self._runs.insert(0, self._write_run(self._merged(oldest)))
        yield from self._merged(self._runs)

    def remove(self) -> None:
        """Delete the runs."""
        for run in self._runs:
            run.unlink(missing_ok=True)
        self._runs, self._parts, self._size = [], [], 0

    def _spill(self) -> None:
        if self._parts:
            rows = self._shape.packed(b"".join(self._parts)).sorted()
            self._parts, self._size = [], 0
            self._runs.append(self._write_run(iter([rows])))

    def _write_run(self, batches: Iterator[Packed]) -> Path:
        path = self._folder / f"{self._name}.{self._made}.sort"
        self._made += 1
        with path.open("wb") as file:
            for rows in batches:
                for first, last in _frames(rows):
                    data = rows.part(first, last).tobytes()
                    file.write(len(data).to_bytes(4, "big") + data)
        return path

    def _merged(self, runs: list[Path]) -> Iterator[Packed]:
        """Always the part of each frame that no other run can have anything below."""
        readers = [self._frames_of(run) for run in runs]
        frames = [next(reader, None) for reader in readers]
        while any(frame is not None for frame in frames):
            lasts = [_last_key(frame) for frame in frames if frame is not None]
            safe = np.frombuffer(min(lasts), np.uint8)
            taken: list[Packed] = []
            for number, frame in enumerate(frames):
                if frame is None:
                    continue
                below = lower_bound(*frame.sort_keys, safe, True)
                taken.append(self._shape.packed(frame.part(0, below)))
                rest = frame.part(below, len(frame))
                frames[number] = (
                    self._shape.packed(rest) if len(rest) else next(readers[number], None)
                )
            yield self._shape.packed(np.concatenate([part.data for part in taken])).sorted()
        for run in runs:
            run.unlink(missing_ok=True)

    def _frames_of(self, run: Path) -> Iterator[Packed]:
        with run.open("rb") as file:
            while size := file.read(4):
                yield self._shape.packed(file.read(int.from_bytes(size, "big")))


def _frames(rows: Packed) -> Iterator[tuple[int, int]]:
    """Which rows go into each frame."""
    first = 0
    ends = rows.items[:, 2]
    while first < len(rows):
        limit = int(rows.items[first, 0]) + FRAME
        last = max(int(np.searchsorted(ends, limit, "right")), first + 1)
        yield first, last
        first = last


def _last_key(frame: Packed) -> bytes:
    keys, at = frame.sort_keys
    return keys[at[-2] : at[-1]].tobytes()
