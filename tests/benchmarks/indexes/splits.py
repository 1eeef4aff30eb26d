"""How long a tablet that splits is not served: `python -m tests.benchmarks.indexes.splits --rows 100000`, of each tablet.

Clients write rows of one tablet again and again while it splits; the longest time in which none of their writes was committed is
that of the split. Compare figures of one run: what else the machine does counts, too.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

from tests.benchmarks.indexes.contestants import TABLETS, Stagewright

from stagewright.impl.indexes.schema import row_key, tablet_of

CLIENTS = 4
PAUSE = 0.005  # seconds between a client's writes


class Writer(Thread):
    """It writes rows of a tablet and notes when each write was committed."""

    def __init__(self, contestant: Stagewright, tablet: int, number: int) -> None:
        super().__init__(daemon=True)
        self.at: list[float] = []
        self.longest = 0.0
        self.over = Event()
        self._update = contestant.connect()
        own = (
            k for k in range(number, 1_000_000, CLIENTS) if tablet_of(row_key(k), TABLETS) == tablet
        )
        self._keys = [next(own) for _ in range(50)]

    def run(self) -> None:
        count = 0
        while not self.over.is_set():
            began = time.monotonic()
            count += 1
            self._update(self._keys[count % len(self._keys)], 5_000_000 + count)
            self.at.append(time.monotonic())
            self.longest = max(self.longest, self.at[-1] - began)
            time.sleep(PAUSE)


def measured(contestant: Stagewright, tablet: int) -> tuple[float, float, float, float]:
    """Seconds: the longest gap before a split, during it, the longest write, and the whole split."""
    writers = [Writer(contestant, tablet, n) for n in range(CLIENTS)]
    for writer in writers:
        writer.start()
    time.sleep(3)
    began = time.monotonic()
    children = contestant.split(tablet)
    took = time.monotonic() - began
    time.sleep(2)
    for writer in writers:
        writer.over.set()
        writer.join()
    at = sorted(t for w in writers for t in w.at)
    gaps = [(a, b - a) for a, b in pairwise(at)]
    idle = max(gap for a, gap in gaps if a + gap < began)
    assert len(children) == 2
    return (
        idle,
        max(gap for a, gap in gaps if a + gap >= began),
        max(w.longest for w in writers),
        took,
    )


def main(words: list[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each tablet that splits")
    wanted = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="splits-") as scratch:
        contestant = Stagewright(Path(scratch), TABLETS * wanted.rows)
        try:
            for tablet in range(TABLETS):
                idle, gap, longest, took = (1_000 * s for s in measured(contestant, tablet))
                print(
                    f"{wanted.rows:,} rows: no write for {gap:,.0f} ms (before it: {idle:,.0f}), "
                    f"the longest took {longest:,.0f} ms; all of the split {took:,.0f} ms",
                    flush=True,
                )
        finally:
            contestant.close()


if __name__ == "__main__":
    main()
