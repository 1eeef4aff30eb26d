"""What happened in a run last, as a person would tell it: commits, crashes, coordinators, operations."""

from __future__ import annotations

from collections import deque

KEPT = 16  # events


class Story:
    """The last events, until the first thing is wrong: what comes later does not explain that."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, str]] = deque(maxlen=KEPT)
        self.kept: list[tuple[int, str]] = []

    def add(self, now: int, what: str) -> None:
        """Something has happened."""
        self._events.append((now, what))

    def end(self) -> None:
        """Something is wrong."""
        if not self.kept:
            self.kept = [*self._events]
