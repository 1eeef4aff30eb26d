"""Follows the log of a cluster as a node does, but as nobody's member: it only reads."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from threading import Lock, Thread

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry, Group0, MachineStep, Snapshot
from stagewright.impl.node.messages.tables import ViewStatus
from stagewright.impl.views.building.progress import statuses

KEPT = 500  # commits that the page can show


@dataclass(frozen=True)
class Committed:
    """A commit as it was seen: what it says, its steps, and when it was learned (seconds since 1970)."""

    position: int
    term: int
    description: str
    steps: tuple[MachineStep, ...]
    seen: float


@dataclass(frozen=True)
class ChangeLog:
    """The log of a table: for how long it keeps rows (milliseconds, 0: for ever), and its sets of streams.

    Of each set the time from which on it operates (seconds since 1970), and how many streams it has.
    """

    base: str
    images: bool
    ttl: int
    streams: tuple[tuple[float, int], ...]


@dataclass(frozen=True)
class Moment:
    """The tables after a commit, and the last commits."""

    position: int
    begun: bool
    view: View
    views: tuple[ViewStatus, ...]
    logs: tuple[ChangeLog, ...]
    history: tuple[Committed, ...]


class Following:
    """A thread that learns the log; `problem` says why it does so no longer."""

    def __init__(self, group0: Group0) -> None:
        self.problem = ""
        self._group0 = group0
        self._catalog = Catalog()
        self._position = 0
        self._history: deque[Committed] = deque(maxlen=KEPT)
        self._lock = Lock()
        self._loop = asyncio.new_event_loop()
        self._ended: asyncio.Task[None] | None = None
        self._thread = Thread(target=self._run, name="follows group0", daemon=True)
        self._thread.start()

    def moment(self) -> Moment:
        """What is learned by now."""
        with self._lock:
            view, begun = self._catalog.view, self._catalog.begun
            views = statuses(self._catalog.tables, view, time.time_ns() // 1000)
            logs = tuple(_log(self._catalog, base) for base in sorted(view.logs)) if begun else ()
            return Moment(self._position, begun, view, views, logs, tuple(self._history))

    def close(self) -> None:
        """Follow no longer."""
        self._loop.call_soon_threadsafe(self._stop)
        self._thread.join(5)

    def _stop(self) -> None:
        if self._ended is not None:
            self._ended.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._life())
        finally:
            self._loop.close()

    async def _life(self) -> None:
        self._ended = asyncio.current_task()
        try:
            async for item in self._group0.watch(0):
                self._learn(item)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - the page says so, instead of standing still
            self.problem = f"the log cannot be followed any longer: {error}"
        finally:
            await self._group0.close()

    def _learn(self, item: Entry | Snapshot) -> None:
        with self._lock:
            if isinstance(item, Snapshot):
                self._catalog.restore(item)
            else:
                self._catalog.apply(item)
                command = item.command
                self._history.append(
                    Committed(
                        item.id.position, item.term, command.description, command.steps, time.time()
                    )
                )
            self._position = item.id.position


def _log(catalog: Catalog, base: str) -> ChangeLog:
    view, found = catalog.view, catalog.readable(base)
    streams = sorted((start / 1e6, sum(len(r.streams) for r in d.ranges)) for start, d in found)
    return ChangeLog(base, base in view.images, view.kept.get(base, 0), tuple(streams))
