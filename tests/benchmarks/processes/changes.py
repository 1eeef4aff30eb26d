"""What a log of changes costs: `python -m tests.benchmarks.processes.changes --rows 5000`.

Three nodes with tables of tablets: one without a log, one with it, one whose log has images. Each gets the same writes, by
turns, at level quorum: compare ratios, for the rest is the machine's.
"""

from __future__ import annotations

import statistics

from tests.benchmarks.processes.three_nodes import measure_on_three_nodes
from tests.benchmarks.processes.views import TURNS, speed_of

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


if __name__ == "__main__":
    measure_on_three_nodes(measure, 5_000)
