"""What the engine's workers run on: threads of the operating system, or whatever else a host brings.

A host that decides itself which worker goes on (`tests/impl/view_engine/campaign/tasks.py`) makes a run repeatable.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Condition(Protocol):
    """As `threading.Condition`: a lock that its holder may take again, with waiters."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until notified; False if `timeout` seconds passed before."""
        ...

    def notify_all(self) -> None: ...


class Running(Protocol):
    """Work that was started."""

    def join(self) -> None:
        """Return when it has ended."""
        ...


class Scheduler(Protocol):
    """Starts work beside the caller's, and makes what it waits by."""

    def condition(self) -> Condition: ...

    def start(self, work: Callable[[], None], name: str) -> Running: ...

    def step(self) -> None:
        """Long work has done a part, and holds no lock: another may go on."""
        ...


class Threads:
    """The operating system's."""

    def condition(self) -> Condition:
        return threading.Condition()

    def start(self, work: Callable[[], None], name: str) -> Running:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def step(self) -> None:
        """Threads are interrupted anyway."""


THREADS = Threads()
