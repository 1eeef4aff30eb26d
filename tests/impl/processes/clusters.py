"""Clusters of real processes for tests: begun in a directory, and nothing left behind at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stagewright.impl.processes.layout import Layout, Settings
from stagewright.impl.processes.supervisor import Supervisor


@contextmanager
def cluster(
    directory: Path,
    nodes: int,
    settings: Settings | None = None,
    *,
    cdc: bool = False,
    wrong: str = "",
    dies: tuple[int, str] = (0, ""),
) -> Iterator[Supervisor]:
    """A cluster that serves, while the context lasts; `cdc`: its table keeps a log of changes.

    `wrong` names a defect that all nodes have; of so many writes with rows of a family a node that `dies` does not survive
    one.
    """
    supervisor = Supervisor(Layout(directory), patience=240)
    if wrong or dies[0]:
        every, family = dies
        program = (str(Path(__file__).with_name("wrong_program.py")), wrong, str(every), family)
        supervisor = Supervisor(Layout(directory), patience=240, program=program)
    supervisor.create(nodes, settings)
    try:
        supervisor.start(cdc=cdc)
        yield supervisor
    finally:
        supervisor.stop()
    assert not any(supervisor.running(n) for n in supervisor.layout.names())
