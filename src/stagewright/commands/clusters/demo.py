"""The part of the demo with real processes: a cluster grows and loses a node while clients write."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.impl.processes.client import Session

NEEDS = ("msgspec", "rocksdict")  # the extra `cluster`

_VIEW = (
    "create table people tablets 4 rf 3; put ann Prague; put bob Turin; "
    "create view cities on people by value; put cleo Prague; await cities; use cities; get Prague"
)

_CHANGES = "create table visits rf 3 cdc; put ann Prague; put bob Turin; put ann Oslo; delete bob"
_INDEXES = (
    "put 1 v=10 w=7; put 2 v=20 w=7; create unique index i on v; create unique index j on w; "
    "await i; read i 20; await j"
)

Actions = tuple[tuple[str, tuple[str, ...], ExitCode], ...]
"""What each stop says, its arguments, its exit code."""


def is_possible() -> bool:
    """Whether what real nodes need is installed."""
    return all(find_spec(name) is not None for name in NEEDS)


def actions(directory: Path) -> Actions:
    """The commands, in order; a client writes from after the first until a node has left."""
    where = ("--dir", str(directory))
    return (
        (
            "The database itself: three nodes, a process each. From now on a client writes to it.",
            ("cluster", "start", "--nodes", "3", *where),
            ExitCode.HOLDS,
        ),
        (
            "A table that keeps a log of its changes (CDC).",
            ("shell", *where, "-c", _CHANGES),
            ExitCode.HOLDS,
        ),
        ("A fourth node joins.", ("cluster", "add", *where), ExitCode.HOLDS),
        ("A node dies (kill -9).", ("cluster", "kill", "n1", *where), ExitCode.HOLDS),
        (
            "While it is down, no other may leave: the definition says so.",
            ("cluster", "decommission", "n2", *where),
            ExitCode.VIOLATED,
        ),
        ("A fifth takes its place.", ("cluster", "replace", "n1", *where), ExitCode.HOLDS),
        ("Now the other may leave.", ("cluster", "decommission", "n2", *where), ExitCode.HOLDS),
        (
            "A materialized view is built from the rows that are there, and follows those that come.",
            ("shell", *where, "-c", _VIEW),
            ExitCode.HOLDS,
        ),
        (
            "What changed, each once and in order, and in which stream, though nodes came and went since.",
            ("cluster", "tail", *where, "--table", "ks.visits", "--until-now"),
            ExitCode.HOLDS,
        ),
        (
            "Every write that was acknowledged is there; and any row can be asked for.",
            ("shell", *where, "-c", "put city Prague; get city; scan 3", "--consistency", "all"),
            ExitCode.HOLDS,
        ),
        ("The end of it.", ("cluster", "stop", *where), ExitCode.HOLDS),
        *_of_indexes(_indexed(directory)),
    )


def _indexed(directory: Path) -> Path:
    """Where the other cluster of the demo lies."""
    return directory.with_name(f"{directory.name}-indexed")


def _of_indexes(directory: Path) -> Actions:
    where = ("--dir", str(directory))
    return (
        (
            "Another cluster: a table whose secondary indexes are built while it is written to.",
            ("cluster", "start", "--indexes", *where),
            ExitCode.HOLDS,
        ),
        (
            "A unique index is built, and read; one of values that two rows share fails, and says which.",
            ("shell", *where, "-c", _INDEXES),
            ExitCode.VIOLATED,
        ),
        ("The end of this one, too.", ("cluster", "stop", *where), ExitCode.HOLDS),
    )


class Beside:
    """A client that writes while the cluster changes. Use as a context: no process outlives it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._stop = Event()
        self._thread: Thread | None = None
        self._acknowledged = 0
        self._changed_at = 0.0

    def after(self, arguments: tuple[str, ...]) -> str:
        """What the client does after a command; a sentence when it has ended, and looked for its rows.

        Raises:
            AssertionError: a row is lost.
        """
        if arguments[:2] == ("cluster", "start") and "--indexes" not in arguments:
            self._thread = Thread(target=self._write, daemon=True)
            self._thread.start()
        elif self._thread is not None and arguments[:3] == ("cluster", "decommission", "n2"):
            return self._end_if_left()
        elif arguments[-1:] == (_CHANGES,):
            self._changed_at = time.monotonic()
        elif arguments[-1:] == (_VIEW,):
            self._wait_for_changes()
        return ""

    def _wait_for_changes(self) -> None:
        """Until the changes are so old that no earlier one can follow: mostly they are."""
        from stagewright.impl.processes.layout import Layout
        from stagewright.live.tail import confidence_in

        old = confidence_in(Layout(self.directory).settings().timing) / 1e6 + 1
        time.sleep(max(0.0, self._changed_at + old - time.monotonic()))

    def _end_if_left(self) -> str:
        from stagewright.impl.processes.layout import Layout

        assert self._thread is not None
        if not Layout(self.directory).stopped("n2"):
            return ""
        self._stop.set()
        self._thread.join()
        self._thread = None
        session = self._session()
        lost = [i for i in range(self._acknowledged) if session.get(b"row%d" % i) != b"%d" % i]
        session.close()
        if lost:
            raise AssertionError(f"{len(lost)} rows are lost, such as row{lost[0]}")
        return f"{counted(self._acknowledged, 'write')} acknowledged meanwhile, and each of them is read"

    def _write(self) -> None:
        session = self._session()
        while not self._stop.is_set():
            session.put(b"row%d" % self._acknowledged, b"%d" % self._acknowledged)
            self._acknowledged += 1
            time.sleep(0.01)
        session.close()

    def _session(self) -> Session:
        from stagewright.impl.processes.layout import Layout
        from stagewright.impl.processes.supervisor import Supervisor

        return Supervisor(Layout(self.directory)).session(waits=True)

    def _clear(self) -> None:
        """Stop what runs, and remove the clusters of this demo or of an earlier one."""
        from stagewright.impl.indexes.processes.layout import IndexLayout
        from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
        from stagewright.impl.processes.layout import Layout
        from stagewright.impl.processes.supervisor import Supervisor

        layout = Layout(self.directory)
        if layout.exists:
            Supervisor(layout).stop()
            shutil.rmtree(self.directory)
        indexed = IndexLayout(_indexed(self.directory))
        if indexed.exists:
            IndexSupervisor(indexed).stop()
            shutil.rmtree(indexed.directory)

    def __enter__(self) -> Beside:
        self._clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with suppress(OSError):
            self._clear()
