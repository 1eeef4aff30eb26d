"""How much of its time the builder of a process may work: all of it, or a share while clients are served."""

from __future__ import annotations

import time
from collections.abc import Callable

from stagewright.impl.indexes.bulk.pace import FULL
from stagewright.impl.indexes.messages import (
    Message,
    Prepare,
    ReadIndex,
    ReadRows,
    StoreEntries,
    Write,
)

_OF_CLIENTS = (Write, StoreEntries, Prepare, ReadRows, ReadIndex)  # who are waiting
_LATELY = 0.2  # seconds: who served one so lately will serve others soon


class Share:
    """Asked whenever a work begins."""

    def __init__(self, serving: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`serving`: the percentage while clients are served."""
        self._serving = serving
        self._clock = clock
        self._served = float("-inf")

    def hear(self, message: Message) -> None:
        """Something has come for what this process leads."""
        if isinstance(message, _OF_CLIENTS):
            self._served = self._clock()

    def __call__(self) -> int:
        """Percent."""
        return self._serving if self._clock() - self._served < _LATELY else FULL
