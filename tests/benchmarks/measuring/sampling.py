"""Looks at all processes of a command now and then, for what the system does not tell when they have ended.

Linux forgets the CPU time of a child whose parent ignores SIGCHLD, as the parent of Spark's Python workers does.
And it tells the largest process of a tree, but not what all of them held together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_EVERY_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_SESSION, _PARENT, _USER, _SYSTEM, _RESIDENT = 3, 1, 11, 12, 21  # fields of stat after the name


@dataclass(frozen=True)
class Seen:
    """A process as it was seen: its parent, CPU seconds, and bytes resident."""

    parent: int
    cpu: float
    resident: int


class Sampling:
    """What was seen of a session's processes while it ran."""

    def __init__(self, session: int) -> None:
        self.peak = 0  # bytes resident of all processes together, at most
        self._session = session
        self._forgotten: dict[int, float] = {}  # CPU seconds, by process
        self._forgetful: dict[int, bool] = {}

    def look(self) -> None:
        """Look once at all processes."""
        seen = processes_of(self._session)
        self.peak = max(self.peak, sum(one.resident for one in seen.values()))
        for process, one in seen.items():
            if one.parent in seen and self._forgets(one.parent):
                self._forgotten[process] = one.cpu

    def forgotten(self, but: frozenset[int]) -> float:
        """CPU seconds of processes that nobody waited for, without those that somebody did at last."""
        return sum(cpu for process, cpu in self._forgotten.items() if process not in but)

    def _forgets(self, process: int) -> bool:
        if not self._forgetful.get(process):
            self._forgetful[process] = _ignores_children(process)
        return self._forgetful[process]


@contextlib.contextmanager
def sampled(session: int) -> Iterator[Sampling]:
    """Look at a session's processes until the block ends."""
    sampling, over = Sampling(session), threading.Event()

    def look() -> None:
        while not over.wait(_EVERY_SECONDS):
            sampling.look()

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield sampling
    finally:
        over.set()
        looking.join()


def processes_of(session: int) -> dict[int, Seen]:
    """The processes of a session by number."""
    found: dict[int, Seen] = {}
    for folder in Path("/proc").glob("[1-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            text = Path(folder, "stat").read_text("utf-8", "replace")
            fields = text.rpartition(")")[2].split()
            if int(fields[_SESSION]) == session:
                cpu = (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
                resident = int(fields[_RESIDENT]) * _PAGE
                found[int(folder.name)] = Seen(int(fields[_PARENT]), cpu, resident)
    return found


def _ignores_children(process: int) -> bool:
    with contextlib.suppress(OSError):
        for line in Path("/proc", str(process), "status").read_text("utf-8").splitlines():
            if line.startswith("SigIgn:"):
                return bool(int(line.split()[1], 16) >> (signal.SIGCHLD - 1) & 1)
    return False
