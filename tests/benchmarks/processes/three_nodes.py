"""A cluster of three nodes that is begun for a measurement."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor


def measure_on_three_nodes(measure: Callable[[Supervisor, int], None], rows: int) -> None:
    """Measure with as many rows as the command line says, else `rows`."""
    parser = argparse.ArgumentParser(description="Measure.")
    parser.add_argument("--rows", type=int, default=rows)
    wanted = parser.parse_args().rows
    with tempfile.TemporaryDirectory(prefix="measured-") as scratch:
        supervisor = Supervisor(Layout(Path(scratch) / "c"))
        supervisor.create(3)
        try:
            supervisor.start()
            measure(supervisor, wanted)
        finally:
            supervisor.stop()
