"""The changes of a running cluster's rows in a program: `with following(DIRECTORY) as consumer: consumer.poll()`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stagewright.impl.cdc.consumer import Consumer, Position
from stagewright.impl.processes.client import Session
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import TABLE, Supervisor
from stagewright.live.tail import confidence_in, with_a_log


@contextmanager
def following(
    directory: Path | str, table: str = TABLE, position: Position | None = None
) -> Iterator[Consumer]:
    """A consumer of the changes of a table (`rows`, or `ks.rows`), from a position on, or from the first one kept.

    A change is read once no earlier one can follow, about 23 s after it was made.

    Raises:
        InputError: there is no such table, or it keeps no log of changes.
        ClusterError: there is no cluster in the directory, or no node of it answers.
    """
    confidence = confidence_in(supervisor_of(directory).layout.settings().timing)
    with closing(session_with(directory, table)) as session:
        yield Consumer(session, lambda: time.time_ns() // 1000, confidence, position)


def session_with(directory: Path | str, table: str) -> Session:
    """A client of a cluster for a table that keeps a log of changes; who asks for it closes it.

    Raises:
        InputError, ClusterError: as `following`.
    """
    session = supervisor_of(directory).session(table, waits=True)
    try:
        return with_a_log(session)
    except BaseException:
        session.close()
        raise


def supervisor_of(directory: Path | str) -> Supervisor:
    """A cluster that runs, or does not."""
    return Supervisor(Layout(Path(directory)), lambda _: None)
