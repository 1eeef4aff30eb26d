"""Clusters of real processes for tests: begun in a directory, and nothing left behind at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor


@contextmanager
def cluster(directory: Path, nodes: int, patience: float = 240.0) -> Iterator[Supervisor]:
    """A cluster that serves, while the context lasts."""
    supervisor = Supervisor(Layout(directory), patience=patience)
    supervisor.create(nodes)
    try:
        supervisor.start()
        yield supervisor
    finally:
        supervisor.stop()
    assert not any(supervisor.running(n) for n in supervisor.layout.names())
