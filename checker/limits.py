"""How far a check may go, what it says while it goes, and why it stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_MEMORY_SHARE = 0.75
_SHRINKING = 0.97  # a level this large compared with the one before says nothing of the end


@dataclass(frozen=True)
class Limits:
    """The budget of one check; None: without bound (memory: three quarters of what is free)."""

    states: int | None = None
    depth: int | None = None
    seconds: float | None = None
    memory: int | None = None  # bytes
    stop_at_first: bool = False


@dataclass(frozen=True)
class Progress:
    """Where a running check is; `deciding` names a promise that is looked at after the search."""

    states: int
    transitions: int
    frontier: int  # states not expanded yet
    depth: int
    seconds: float
    deciding: str = ""
    memory: int = 0  # bytes held
    shrink: float | None = None  # how the last complete level compares with the one before
    candidates: int | None = None  # looked at so far, while the initial states are searched for

    @property
    def expected(self) -> int | None:
        """How many states there may be, should levels go on shrinking like that; None: they do not."""
        if self.shrink is None or self.shrink >= _SHRINKING:
            return None
        return self.states + int(self.frontier * self.shrink / (1 - self.shrink))


@dataclass
class Stop:
    """Says when to stop, and why; asked between batches."""

    limits: Limits
    started: float = field(default_factory=time.monotonic)
    interrupted: bool = False
    _memory: int = 0

    def __post_init__(self) -> None:
        self._memory = self.limits.memory or int(_free_memory() * _MEMORY_SHARE)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self.started

    def memory_left(self, memory: int) -> int:
        """How many bytes may be taken besides so many."""
        return max(0, self._memory - memory)

    def reason(self, states: int = 0, memory: int = 0) -> str:
        """Why to stop now, in words; empty to go on."""
        limits = self.limits
        if self.interrupted:
            return "interrupted"
        if limits.states is not None and states >= limits.states:
            return f"the limit of {limits.states:,} states was reached"
        if limits.seconds is not None and self.seconds >= limits.seconds:
            return f"the time limit of {limits.seconds:g} s was reached"
        if memory >= self._memory:
            return f"the memory limit of {self._memory / 2**20:,.0f} MiB was reached"
        return ""


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """While this lasts, the first Ctrl-C asks the check to stop; the second one breaks it off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def ask(_signal: int, _frame: FrameType | None) -> None:
        if stop.interrupted:
            raise KeyboardInterrupt
        stop.interrupted = True

    signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _free_memory() -> int:
    """Bytes that can be had without swapping, as far as the system says."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return min(int(line.split()[1]) * 1024, _group_limit())
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4 << 30


def _group_limit() -> int:
    """The memory limit of the control group this process runs in, if it has one."""
    limit = Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text(encoding="ascii").strip() if limit.exists() else "max"
    return int(text) if text.isdigit() else 1 << 62


OnProgress = Callable[[Progress], None]
