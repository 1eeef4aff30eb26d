"""Clusters with an indexed table for tests: begun in a directory, and nothing left behind at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.patience import PATIENCE

from stagewright.commands.campaigning.logs import YUGABYTE, check_logs
from stagewright.impl.endurance.index_builds import SLOW, look
from stagewright.impl.endurance.index_writers import Writer
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor

WRONG = "wrong_program.py"
NOTING = "noting_program.py"  # whose processes keep what they note (`noted.py`)


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


def all_is_well(supervisor: IndexSupervisor, first: Writer, writers: list[Writer]) -> None:
    """Stop, and look at what is stored and logged."""
    look(supervisor, first, writers, lambda logs: check_logs(logs, YUGABYTE)[1])
