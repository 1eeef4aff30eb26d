"""Threads of one process that sync its stores, with little beside the call: an update waits for several syncs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

_THREADS = 4  # that wait for the disk at once

Then = Callable[[Exception | None], None]
_Job = tuple[Callable[[], None], Then]


class Syncs:
    """They begin with the first sync, and go with the process: nothing is closed while it is synced."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None

    def do(self, sync: Callable[[], None], then: Then) -> None:
        """Sync something, then go on in the loop, with why it failed or None."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            for _ in range(_THREADS):
                Thread(target=self._work, args=(self._loop,), daemon=True).start()
        self._jobs.put((sync, then))

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            sync, then = self._jobs.get()
            failed: Exception | None = None
            try:
                sync()
            except Exception as error:  # noqa: BLE001 - it is for those that wait
                failed = error
            loop.call_soon_threadsafe(then, failed)
