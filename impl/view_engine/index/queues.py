"""Queues between the parts of the updater: bounded by bytes, closed by whoever fails first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from stagewright.impl.view_engine.scheduling import THREADS, Scheduler

_Item = TypeVar("_Item")


class QueueClosedError(Exception):
    """The other side is gone: no use in going on."""


class BoundedQueue(Generic[_Item]):
    """Holds items up to a number of bytes; one that is larger alone is let in when the queue is empty."""

    def __init__(self, most_bytes: int, scheduler: Scheduler = THREADS) -> None:
        self._most = most_bytes
        self._items: deque[tuple[_Item, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._failure: BaseException | None = None
        self._changed = scheduler.condition()
        self.largest = 0  # bytes that were ever in the queue at once

    def put(self, item: _Item, size: int) -> None:
        """Waits for room; raises QueueClosedError once the queue is closed."""
        with self._changed:
            while self._items and self._bytes + size > self._most and not self._ended:
                self._changed.wait()
            if self._ended:
                raise QueueClosedError
            self._items.append((item, size))
            self._bytes += size
            self.largest = max(self.largest, self._bytes)
            self._changed.notify_all()

    def end(self) -> None:
        """No more items come."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self, failure: BaseException | None = None) -> None:
        """Drop what is in the queue; readers get the failure, writers QueueClosedError."""
        with self._changed:
            self._failure = self._failure or failure
            self._items.clear()
            self._bytes = 0
            self._ended = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[_Item]:
        """The items as they come, until the end; raises what `close` was given."""
        while True:
            with self._changed:
                while not self._items and not self._ended:
                    self._changed.wait()
                if self._failure is not None:
                    raise self._failure
                if not self._items:
                    return
                item, size = self._items.popleft()
                self._bytes -= size
                self._changed.notify_all()
            yield item
