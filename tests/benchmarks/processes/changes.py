"""What a log of changes costs: `python -m tests.benchmarks.processes.changes --rows 5000`.

Three nodes with tables of tablets: one without a log, one with it, one whose log has images. Each gets the same writes, by
turns, at level quorum: compare ratios, for the rest is the machine's.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.processes.views import TURNS, speed_of

from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor

PLAIN = "ks.plain"
LOGGED = {"ks.logged": "with a log", "ks.imaged": "with a log that has images"}


def measure(supervisor: Supervisor, rows: int) -> None:
    """Write to each table by turns; the first turn, in which they are filled, does not count."""
    session = supervisor.session()
    session.create(PLAIN, 3, 4)
    session.create("ks.logged", 3, 4, cdc=True)
    session.create("ks.imaged", 3, 4, cdc=True, images=True)
    session.close()
    ratios: dict[str, list[tuple[float, float]]] = {table: [] for table in LOGGED}
    for turn in range(TURNS + 1):
        plain = speed_of(supervisor, PLAIN, rows, turn * rows)
        print(plain.row(f"{rows:,} writes to {PLAIN}"), flush=True)
        for table in LOGGED:
            logged = speed_of(supervisor, table, rows, turn * rows)
            print(logged.row(f"{rows:,} writes to {table}"), flush=True)
            if turn:
                ratios[table].append((logged.wall / plain.wall, logged.cpu / plain.cpu))
    for table, what in LOGGED.items():
        wall, cpu = (statistics.median(r[i] for r in ratios[table]) for i in (0, 1))
        print(f"a write {what}: {wall:.2f} of the time of one without, {cpu:.2f} of the CPU time")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="changes-") as scratch:
        supervisor = Supervisor(Layout(Path(scratch) / "c"))
        supervisor.create(3)
        try:
            supervisor.start()
            measure(supervisor, rows)
        finally:
            supervisor.stop()


if __name__ == "__main__":
    main()
