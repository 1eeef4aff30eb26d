"""Where an index file lies: every write and every sync goes through this, so that tests can record them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol


class Disk(Protocol):
    """One file: positioned reads and writes, and a sync that makes all earlier writes durable."""

    def read(self, at: int, size: int) -> bytes:
        """At most `size` bytes from offset `at`; fewer only at the end of the file."""
        ...

    def write(self, at: int, data: bytes) -> None: ...

    def sync(self) -> None:
        """Return when all that was written survives a crash of the machine."""
        ...

    def size(self) -> int:
        """The length of the file in bytes."""
        ...

    def close(self) -> None: ...


class RealDisk:
    """A file of the operating system, open until `close`; survives being unlinked meanwhile."""

    def __init__(self, path: Path, *, create: bool = False, read_only: bool = False) -> None:
        self.path = path
        flags = os.O_RDONLY if read_only else os.O_RDWR
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        self._descriptor = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._descriptor, size, at)

    def write(self, at: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, at)
            view = view[written:]
            at += written

    def sync(self) -> None:
        os.fdatasync(self._descriptor) if hasattr(os, "fdatasync") else os.fsync(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
