"""Hybrid times: milliseconds of a node's clock with a counter below, so that what follows is later."""

from __future__ import annotations

from collections.abc import Callable

COUNTS = 4096  # hybrid times in a millisecond


class HybridClock:
    """A process's clock: it never runs back, and is past all that the process has heard of."""

    def __init__(self, milliseconds: Callable[[], int]) -> None:
        self._milliseconds = milliseconds
        self._last = 0

    def now(self) -> int:
        """A time later than all before."""
        self._last = max(self._last + 1, self._milliseconds() * COUNTS)
        return self._last

    def observe(self, time: int) -> None:
        """A message is from that time: what is done about it is later."""
        self._last = max(self._last, time)


def shown(time: int) -> str:
    """A hybrid time for people: milliseconds and count."""
    return f"{time // COUNTS} ms + {time % COUNTS}"
