"""The processes of a cluster's directory, as whoever starts them sees them: started, waited for, killed and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import stagewright
from stagewright.impl.processes.errors import ClusterError, OperationFailedError
from stagewright.impl.processes.layout import Layout

LOOK = 0.05  # seconds between two looks at what is waited for
SEE = "see `stagewright cluster status`, and the logs of the nodes"
_QUIET = 5.0  # seconds after which one is told what is waited for
_TO_END = 15.0  # seconds for processes to end by themselves


class Children:
    """Each runs the same program, with `--dir` and `--name`; `report` is called with what goes on."""

    def __init__(
        self, layout: Layout, report: Callable[[str], None], patience: float, program: Sequence[str]
    ) -> None:
        """`patience` is how many seconds something is waited for, `program` what Python runs."""
        self._layout = layout
        self._report = report
        self._patience = patience
        self._program = program
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def spawn(self, name: str) -> None:
        """Start a process, which goes on when this one ends; what it prints is kept in its log."""
        words = [*self._program, "--dir", str(self._layout.directory), "--name", name]
        with (self._layout.node(name) / "log").open("ab") as log:
            self._started[name] = subprocess.Popen(
                [sys.executable, "-P", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment(),
            )
        self._report(f"{name} starts")

    def running(self, name: str) -> int | None:
        """The number of a process, if it lives."""
        child = self._started.get(name)
        if child is not None:
            child.poll()  # lets a process that has ended be forgotten by the system
        return self._layout.running(name)

    def process(self, name: str) -> int:
        """The number of a process.

        Raises:
            ClusterError: it does not run.
        """
        process = self.running(name)
        if process is None:
            raise ClusterError(f"{name} does not run", help="see `stagewright cluster status`")
        return process

    def kill(self, name: str) -> int:
        """End a process without warning (SIGKILL); its number."""
        process = self.process(name)
        os.kill(process, signal.SIGKILL)
        self.wait(f"{name} to be gone", lambda: self.running(name) is None)
        return process

    def stop(self, names: Iterable[str]) -> list[str]:
        """Let processes end what they do and stop; those that did not run are passed over."""
        chosen = list(names)
        running = {n: p for n in chosen if (p := self.running(n)) is not None}
        for process in running.values():
            os.kill(process, signal.SIGTERM)
        until = time.monotonic() + _TO_END
        while any(self.running(n) for n in running) and time.monotonic() < until:
            time.sleep(LOOK)
        for name in running:
            if self.running(name) is not None:
                self._report(f"{name} does not stop and is killed")
                self.kill(name)
        for name in chosen:
            child = self._started.get(name)
            if child is not None and child.poll() is None and name not in running:
                child.terminate()  # it has not come so far as to say that it runs
                child.wait(_TO_END)
        return list(running)

    def wait(
        self,
        what: str,
        done: Callable[[], bool],
        processes: Iterable[str] = (),
        why: Callable[[], str] = str,
        help: str = SEE,
    ) -> None:
        """Look again and again, while the processes that are to do it live; `why` says what it waits for, if it can.

        What takes long is reported, and again when `why` says something else; `help` is for whoever waited in vain.

        Raises:
            OperationFailedError: one of them has ended, or the patience has.
        """
        began, told = time.monotonic(), ""
        until = began + self._patience
        while not done():
            reason = why()
            waits = f"waits for {what}" + (f": {reason}" if reason else "")
            if waits != told and time.monotonic() > began + _QUIET:
                told = waits
                self._report(told)
            for name in processes:
                child = self._started.get(name)
                if child is not None and child.poll() is not None:
                    words = self._layout.stopped(name) or self._layout.last_words(name)
                    log = self._layout.node(name) / "log"
                    raise OperationFailedError(f"{name} has ended: {words}", help=f"see {log}")
            if time.monotonic() > until:
                raise OperationFailedError(
                    f"waited {self._patience:g} s in vain for {what}"
                    + (f": {reason}" if reason else ""),
                    help=help,
                )
            time.sleep(LOOK)


def environment() -> dict[str, str]:
    """In which a process runs the code that its supervisor does."""
    here = str(Path(stagewright.__file__).parent.parent)
    paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
