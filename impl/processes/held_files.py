"""Files that say who somebody is, and are locked as long as that one's process lives: `kill -9` gives them back."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


def hold(path: Path, text: str) -> int | None:
    """Say in a file who this is, until the handle is closed or the process ends; None: another process does."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)
    return handle


def holder(path: Path) -> str:
    """What the process that holds a file has written into it; empty if none does."""
    try:
        with path.open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                return file.read()
    except FileNotFoundError:
        pass
    return ""
