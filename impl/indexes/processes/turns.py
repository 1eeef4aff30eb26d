"""Work that is long is done in turns, one after the other, with pauses in which messages are handled.

A process that takes all it can get of a busy machine waits for each of its turns as long as others do, and so does whoever
asks it something. One that pauses in proportion stays below its share, and is served at once when a message comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

_PROPORTION = 2  # of a pause to the turn before it
_LEAST, _MOST = 0.001, 0.1  # seconds of a pause


class Turns:
    """Of one process."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._next: asyncio.TimerHandle | None = None

    def add(self, turn: Callable[[], None]) -> None:
        """Do this when those before it have had their turns."""
        self._waiting.append(turn)
        if self._next is None:
            self._schedule(_LEAST)

    def _schedule(self, pause: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + pause
        self._next = loop.call_at(due, self._turn, due)

    def _turn(self, due: float) -> None:
        turn, loop = self._waiting.popleft(), asyncio.get_running_loop()
        turn()
        self._next = None
        if self._waiting:
            # Its lateness counts: others had the machine, or this process was busy.
            took = loop.time() - due
            self._schedule(min(max(_PROPORTION * took, _LEAST), _MOST))
