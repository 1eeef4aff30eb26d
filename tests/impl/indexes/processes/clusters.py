"""Clusters with an indexed table for tests: begun in a directory, and nothing left behind at the end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.patience import PATIENCE

from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.indexes.processes.layout import MASTER, REAL, IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.processes.errors import ClusterError
from stagewright.machines.yugabytedb.indexes.index_states import Status

WRONG = "wrong_program.py"
NOTING = "noting_program.py"  # whose processes keep what they note (`noted.py`)
SLOW = replace(REAL, batch=4, chunk_rows=8, rows_per_second=40)


@contextmanager
def cluster(
    directory: Path, wrong: str = "", program: str = WRONG, /, **settings: int
) -> Iterator[IndexSupervisor]:
    """A cluster that serves, while the context lasts: three tablet servers and two masters.

    `wrong` names a defect that all of them have, for `NOTING` maybe several; `program` is the file of this folder that is
    run then.
    """
    layout = IndexLayout(directory)
    supervisor = IndexSupervisor(layout, patience=PATIENCE)
    if wrong or program != WRONG:
        words = (str(Path(__file__).with_name(program)), "--defect", wrong)
        supervisor = IndexSupervisor(layout, patience=PATIENCE, program=words)
    supervisor.create(3, replace(SLOW, **settings))  # type: ignore[arg-type]
    try:
        supervisor.start()
        yield supervisor
    finally:
        supervisor.stop()
    assert not any(supervisor.running(n) for n in supervisor.names)


def build_of(client: IndexClient, name: str) -> Build:
    """How far an index is."""
    return next(b for b in client.builds() if b.name == name)


def until(client: IndexClient, name: str, wanted: Callable[[Build], bool]) -> Build:
    """Wait until a build is so; what it is like then."""
    end = time.monotonic() + PATIENCE
    found: Build | None = None
    while time.monotonic() < end:
        try:
            found = build_of(client, name)
        except ClusterError:
            continue  # what would answer has just been killed
        if wanted(found):
            return found
        time.sleep(0.05)
    raise AssertionError(found)


def is_over(build: Build) -> bool:
    """Built, or failed and gone."""
    return build.status is Status.success or build.gone


def leader(supervisor: IndexSupervisor, place: str) -> str:
    """The process that leads a tablet, or all as the master."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for name in supervisor.names:
            if place in (supervisor.leads(name) or ()):
                return name
        time.sleep(0.05)
    raise AssertionError(f"nobody leads {place}")


def children_of(process: int) -> list[int]:
    """Processes that it has started and that live."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):
            state, parent = path.read_text("ascii", "replace").rpartition(")")[2].split()[:2]
            if int(parent) == process and state != "Z":
                found.append(int(path.parent.name))
    return found


def kill_builders(supervisor: IndexSupervisor) -> int:
    """Kill the builders that there are; how many."""
    killed = 0
    for name in supervisor.layout.file().servers:
        process = supervisor.running(name)
        for builder in [] if process is None else children_of(process):
            with suppress(ProcessLookupError):
                os.kill(builder, signal.SIGKILL)
                killed += 1
    return killed


def kill_one(supervisor: IndexSupervisor, chance: Random) -> str:
    """Kill a process at random, the master leader as often as any other, and start it again some time later."""
    name = chance.choice([leader(supervisor, MASTER), *supervisor.layout.file().servers])
    supervisor.kill(name)
    time.sleep(chance.random())
    supervisor.start()
    return name
