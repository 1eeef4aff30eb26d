"""Which of updater, cleaner and compactor run for an index, and who has to wait until none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stagewright.impl.view_engine.group.current import GroupClosedError
from stagewright.impl.view_engine.index.cleaner import Cleaner
from stagewright.impl.view_engine.index.compactor import Compactor
from stagewright.impl.view_engine.index.updater import Updater
from stagewright.impl.view_engine.scheduling import Scheduler


class Workers:
    """The workers of one group. All methods are called with `changed` held, which is the group's lock."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.changed = scheduler.condition()
        self.updater: Updater | None = None
        self.cleaner: Cleaner | None = None
        self.compactor: Compactor | None = None
        self.requests = 0  # that wait until nothing else changes the index
        self.closed = False

    @property
    def about_to_change(self) -> bool:
        """Whether a request waits, or the group ends: nothing may start."""
        return self.closed or self.requests > 0

    def may_update(self) -> bool:
        """Whether an updater may start now. A cleaner is asked to stop for it; it ends soon."""
        if self.updater is not None or self.about_to_change:
            return False
        if self.cleaner is not None:
            self.cleaner.stop()
            return False
        return True

    def may_clean(self) -> bool:
        """Whether a cleaner may start now: it works alone."""
        return not (self.updater or self.compactor or self.cleaner or self.about_to_change)

    @contextmanager
    def alone(self, *, compactor: bool = True) -> Iterator[None]:
        """All workers are stopped (the compactor only if asked for), and none starts until the end.

        Raises GroupClosedError where the group ended meanwhile.
        """
        self.requests += 1
        try:
            while running := self._running(compactor=compactor):
                for worker in running:
                    worker.stop()
                self.changed.wait()
            if self.closed:
                raise GroupClosedError
            yield
        finally:
            self.requests -= 1
            self.changed.notify_all()

    def stop_updater(self) -> None:
        """Stop the updater at its next step and wait for it."""
        if self.updater is not None:
            self.updater.stop()
        while self.updater is not None:
            self.changed.wait()

    def close(self) -> None:
        """Stop all workers, for good, and wait for them."""
        self.closed = True
        self.changed.notify_all()
        for worker in self._running(compactor=True):
            worker.stop()
        while self._running(compactor=True):
            self.changed.wait()

    def _running(self, *, compactor: bool) -> list[Updater | Cleaner | Compactor]:
        workers = [self.updater, self.cleaner, self.compactor if compactor else None]
        return [worker for worker in workers if worker is not None]
