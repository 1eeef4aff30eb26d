"""Updates at a steady rate, and how long each one takes from when it was due: whoever is late makes others late."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread

Update = Callable[[int, int], None]
"""Give a row, by its key, a value; returns when that is committed."""


@dataclass
class Latencies:
    """Seconds."""

    found: list[float] = field(default_factory=list[float])

    def quantile(self, percent: int) -> float:
        """In milliseconds."""
        if len(self.found) < 2:
            return float("nan")
        return 1000 * statistics.quantiles(self.found, n=100)[percent - 1]

    def text(self) -> str:
        """p50, p95 and p99."""
        return " / ".join(f"{self.quantile(p):,.1f}" for p in (50, 95, 99))


class Writers:
    """So many connections, each of which updates random rows when its turn comes; no two rows get one value."""

    def __init__(
        self, connect: Callable[[], Update], rows: int, rate: int, count: int = 32
    ) -> None:
        self._rows = rows
        self._pause = count / rate
        self._count = count
        self._updates = [connect() for _ in range(count)]
        self._next = rows + 1  # no row has such a value

    def during(self, work: Callable[[], None]) -> Latencies:
        """Update while some work goes on."""
        found, over = Latencies(), Event()
        threads = [
            Thread(target=self._write, args=(number, found, over), daemon=True)
            for number in range(self._count)
        ]
        for thread in threads:
            thread.start()
        try:
            work()
        finally:
            over.set()
            for thread in threads:
                thread.join()
        return found

    def _write(self, number: int, found: Latencies, over: Event) -> None:
        chance, update = Random(number), self._updates[number]
        due = time.monotonic() + self._pause * number / self._count
        while not over.is_set():
            time.sleep(max(due - time.monotonic(), 0))
            self._next += 1
            update(chance.randrange(self._rows), self._next * self._count + number)
            found.found.append(time.monotonic() - due)
            due += self._pause
