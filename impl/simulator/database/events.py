"""Simulated time: what happens next, in an order that depends on nothing but what was asked for."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any


class Events:
    """Milliseconds since the start, and what is due when. Equal times keep the order of asking."""

    def __init__(self) -> None:
        self.now = 0
        self._due: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._asked = 0

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do something so many milliseconds from now."""
        self._asked += 1
        due = (self.now + milliseconds, self._asked, action, arguments)
        heapq.heappush(self._due, due)

    def run(self, until: Callable[[], bool], deadline: int) -> bool:
        """Let time pass until a condition holds (True), or the deadline or the last event is over."""
        due = self._due
        while not until():
            if not due or due[0][0] > deadline:
                return False
            self.now, _, action, arguments = heapq.heappop(due)
            action(*arguments)
        return True
