"""Stores that a server opens before anything wants one: the binding to RocksDB keeps the interpreter's lock while it does.

Whatever is new gets a link to one of them. Opening one takes tens of milliseconds, in which nobody is served: the server
says when that matters least.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.storage.rocks import RocksRows

MEMTABLE = 4 << 20
_PAUSE = 1.0  # seconds after one was wanted, in which more may be


class Spares:
    """Of one server, which alone makes and removes those in a directory that are called like it and not `linked`."""

    def __init__(self, directory: Path, name: str, count: int, linked: Iterable[Path]) -> None:
        self._directory = directory
        self._name = name
        self._count = count
        self._stores: deque[tuple[Path, RocksRows]] = deque()
        self._taken = float("-inf")
        directory.mkdir(exist_ok=True)
        taken = {path.resolve() for path in linked if path.is_symlink()}
        for left in directory.glob(f"{name}-*"):  # by a life that was killed
            if left.resolve() not in taken:
                shutil.rmtree(left)

    def open_another(self) -> None:
        """Open one more, if there are too few and none was wanted just now."""
        if len(self._stores) < self._count and time.monotonic() - self._taken > _PAUSE:
            path = self._directory / f"{self._name}-{uuid4().hex}"
            self._stores.append((path, RocksRows(path, memtable=MEMTABLE)))

    def store_at(self, path: Path) -> RocksRows:
        """The store at a path: if it is new, one that is open already."""
        self._taken = time.monotonic()
        if self._stores and not os.path.lexists(path):
            store, rows = self._stores.popleft()
            path.symlink_to(os.path.relpath(store, path.parent))
            sync_folder(path.parent)
            return rows
        return RocksRows(path, memtable=MEMTABLE)

    def close(self) -> None:
        """Remove those that were not wanted."""
        while self._stores:
            path, rows = self._stores.popleft()
            rows.close()
            shutil.rmtree(path)
