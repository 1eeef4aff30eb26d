"""What the updater changes while a compaction runs: sort record files, which the compactor applies as well."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stagewright.impl.view_engine.tree.nodes import Shape
from stagewright.impl.view_engine.tree.packed import Operations


class DeltaLog:
    """Operations by batch, in the order in which they were applied.

    A batch counts once `publish` says that its header is committed; `drop` forgets those that do not.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._made = 0
        self._pending: list[Path] = []
        self._ready: list[Path] = []
        self._lock = threading.Lock()

    def record(self, operations: Sequence[Operations]) -> None:
        """One batch: what is applied to the back index, then to each view."""
        path = self._folder / f"{self._name}.{self._made}.delta.sort"
        self._made += 1
        with path.open("wb") as file:
            for of_tree in operations:
                data = of_tree.rows.data.tobytes()
                file.write(len(data).to_bytes(8, "big") + data)
                file.write(len(of_tree).to_bytes(8, "big") + of_tree.inserts.tobytes())
        with self._lock:
            self._pending.append(path)

    def publish(self) -> None:
        with self._lock:
            self._ready += self._pending
            self._pending = []

    def drop(self) -> None:
        with self._lock:
            dropped, self._pending = self._pending, []
        for path in dropped:
            path.unlink()

    def take(self) -> list[Path]:
        """The batches that are published and were not taken yet."""
        with self._lock:
            taken, self._ready = self._ready, []
            return taken

    def remove(self) -> None:
        """Delete all files."""
        self.drop()
        for path in self.take():
            path.unlink()


def read_delta(path: Path, shapes: Sequence[Shape]) -> list[Operations]:
    """The operations of one batch, by tree."""
    found: list[Operations] = []
    with path.open("rb") as file:
        for shape in shapes:
            data = file.read(int.from_bytes(file.read(8), "big"))
            inserts = np.frombuffer(file.read(int.from_bytes(file.read(8), "big")), np.uint8)
            found.append(Operations(shape.packed(data), inserts))
    return found
