"""Simulated time: what happens next, in an order that depends on nothing but what was asked for."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class Clock:
    """Milliseconds since the start, and what is due when. Equal times keep the order of asking."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._asked = 0

    def after(self, milliseconds: int, action: Callable[[], None]) -> None:
        """Do something so many milliseconds from now."""
        self._asked += 1
        heapq.heappush(self._due, (self.now + milliseconds, self._asked, action))

    def run(self, until: Callable[[], bool], deadline: int) -> bool:
        """Let time pass until a condition holds (True), or the deadline or the last event is over."""
        while not until():
            if not self._due or self._due[0][0] > deadline:
                return False
            self.now, _, action = heapq.heappop(self._due)
            action()
        return True
