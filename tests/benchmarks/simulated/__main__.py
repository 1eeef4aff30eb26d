"""CPU time of simulated runs, checked as they go: `python -m tests.benchmarks.simulated [--runs N]`.

Each run has three nodes, a table of eight tablets with three replicas, and 200 writes beside as many reads; each row has
other faults or one operation more. The runs' seeds are 0, 1, 2, …; one run of each row warms up and is not counted.
"""

from __future__ import annotations

import argparse
import statistics
import time

from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

SCRIPT = "table t tablets 8 rf 3; write 200"
ROWS = (
    ("no faults", "none", ""),
    ("all faults", "all", ""),
    ("all faults, and a node joins", "all", "; join n4"),
)


def plan_of(seed: int, faults: str, more: str) -> Plan:
    """One run."""
    return Plan(nodes=3, seed=seed, script=parse_script(SCRIPT + more), faults=parse_faults(faults))


def seconds_of(runs: int, faults: str, more: str) -> list[float]:
    """CPU seconds of each run.

    Raises:
        RuntimeError: a run broke what is promised: its time is that of something else.
    """
    found: list[float] = []
    for seed in range(runs + 1):
        plan = plan_of(seed, faults, more)
        before = time.process_time()
        report = run(plan, records=False)
        found.append(time.process_time() - before)
        if report.breaches or report.refused:
            raise RuntimeError(f"seed {seed}: {report.breaches or report.refused}")
    return found[1:]


def main(words: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.simulated")
    parser.add_argument("--runs", type=int, default=40, metavar="N", help="runs of each row")
    runs = max(2, parser.parse_args(words).runs)
    print(f"{'':<30} {'CPU s a run':>12} {'a CPU second':>13}")
    for name, faults, more in ROWS:
        found = seconds_of(runs, faults, more)
        mean = statistics.fmean(found)
        print(f"{name:<30} {mean:>12.3f} {1 / mean:>13.1f}", flush=True)


if __name__ == "__main__":
    main()
