"""A cluster of three nodes that is begun for a measurement."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.impl.processes.clusters import cluster

from stagewright.impl.processes.supervisor import Supervisor


def measure_on_three_nodes(measure: Callable[[Supervisor, int], None], rows: int) -> None:
    """Measure with as many rows as the command line says, else `rows`."""
    parser = argparse.ArgumentParser(description="Measure.")
    parser.add_argument("--rows", type=int, default=rows)
    wanted = parser.parse_args().rows
    with (
        tempfile.TemporaryDirectory(prefix="measured-") as scratch,
        cluster(Path(scratch) / "c", 3) as supervisor,
    ):
        measure(supervisor, wanted)
