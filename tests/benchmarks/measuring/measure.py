"""Runs one command and says what it cost: CPU seconds of its process tree, wall time, peak memory.

Linux counts in a child's peak what its parent held when it was born. So a small shell starts the
command and leaves, and the benchmark, as the one who inherits orphans, waits for it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.measuring.sampling import sampled

LONGEST_RUN_SECONDS = 1200.0
_ORPHANS_SECONDS = 10.0  # in which what a command left behind has to end
_MAXRSS_UNIT = 1024  # bytes; what Linux counts `ru_maxrss` in
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_LAUNCH = """out=$1 err=$2; shift 2
exec 3<&0
{ read -r _ <&3 && exec "$@" >"$out" 2>"$err" </dev/null 3<&-; } &
echo $!"""  # the command begins when a line is sent, which is after the shell has left


class BenchmarkError(Exception):
    """The benchmark itself went wrong: a command failed, or it counted wrongly."""


@dataclass(frozen=True)
class Usage:
    """What one run cost.

    `cpu` is user and system time of the process and of all its descendants; `peak`
    is the largest resident set of one of them, in bytes; `together` that of all of them
    at one time, where pages that they share count for each.
    """

    wall: float
    cpu: float
    peak: int
    together: int = 0


@dataclass(frozen=True)
class Finished:
    """A run that came to its end."""

    usage: Usage
    code: int
    stdout: str
    stderr: str


def measured(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    timeout: float = LONGEST_RUN_SECONDS,
) -> Finished:
    """Run the command to its end.

    Raises:
        BenchmarkError: there is no such program, or the run took longer than `timeout` seconds.
    """
    if shutil.which(command[0]) is None:
        raise BenchmarkError(f"there is no program {command[0]}")
    with tempfile.TemporaryDirectory() as folder, _inheriting_orphans():
        out, err = Path(folder, "out"), Path(folder, "err")
        launcher = subprocess.Popen(
            ["/bin/sh", "-c", _LAUNCH, "sh", str(out), str(err), *command],
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        usage, status, expired = _awaited(launcher, timeout)
        if expired:
            raise BenchmarkError(f"{command[0]} took longer than {timeout:.0f} s and was ended")
        code = os.waitstatus_to_exitcode(status)
        return Finished(usage, code, out.read_text("utf-8"), err.read_text("utf-8", "replace"))


def _awaited(launcher: subprocess.Popen[bytes], timeout: float) -> tuple[Usage, int, bool]:
    """The cost and the status of the command that was launched; whether it had to be ended."""
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    expired = threading.Event()

    def end() -> None:
        expired.set()
        _end(launcher)

    watchdog = threading.Timer(timeout, end)
    watchdog.start()
    try:
        with launcher.stdin as release, launcher.stdout as said:
            command = int(said.readline())
            launcher.wait()
            begun = time.perf_counter()
            release.write(b"\n")
        with sampled(launcher.pid) as sampling:
            _, status, resources = os.wait4(command, 0)
            wall = time.perf_counter() - begun
            left_behind = _orphans()
    except BaseException:  # an interrupt: no child outlives the benchmark
        _end(launcher)
        raise
    finally:
        watchdog.cancel()
    cpu = resources.ru_utime + resources.ru_stime + sum(left_behind.values())
    cpu += sampling.forgotten(but=frozenset(left_behind))
    peak = resources.ru_maxrss * _MAXRSS_UNIT
    return Usage(wall, cpu, peak, max(peak, sampling.peak)), status, expired.is_set()


def _orphans() -> dict[int, float]:
    """CPU seconds of the descendants that the command left behind, by process."""
    cpu: dict[int, float] = {}
    patience = time.monotonic() + _ORPHANS_SECONDS
    while time.monotonic() < patience:
        try:
            process, _, resources = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if process:
            cpu[process] = resources.ru_utime + resources.ru_stime
        else:
            time.sleep(0.05)
    return cpu


def _end(launcher: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(launcher.pid, signal.SIGKILL)


@contextlib.contextmanager
def _inheriting_orphans() -> Iterator[None]:
    """While this lasts, this process is the parent of descendants whose own parent has left."""
    if not sys.platform.startswith("linux"):
        raise BenchmarkError("the benchmarks measure with means that only Linux has")
    system = ctypes.CDLL(None, use_errno=True)
    system.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        system.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
