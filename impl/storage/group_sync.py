"""One sync of the disk for all that wait for one: durable writes by the thousand, and a loop that goes on."""

from __future__ import annotations

import asyncio

from stagewright.impl.storage.port import RowStore


class GroupSync:
    """Await it after `write` and before the acknowledgement; each sync serves all that came before it began.

    A sync that fails acknowledges nobody, and none is tried again: what the disk has is not known any more.
    """

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._waiting: list[asyncio.Future[None]] = []
        self._running: asyncio.Task[None] | None = None
        self._failed: Exception | None = None

    async def __call__(self) -> None:
        """Wait until everything that is written by now is on the disk."""
        if self._failed is not None:
            raise self._failed
        done = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await done

    async def _run(self) -> None:
        while self._waiting:
            now, self._waiting = self._waiting, []
            if self._failed is None:
                try:
                    await asyncio.to_thread(self._store.sync)
                except Exception as error:  # noqa: BLE001  # it belongs to all that wait
                    self._failed = error
            for done in now:
                if done.done():
                    continue  # its caller was cancelled
                if self._failed is None:
                    done.set_result(None)
                else:
                    done.set_exception(self._failed)
        self._running = None
