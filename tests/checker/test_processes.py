"""Processes that work for another one end with it, however it is ended."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from tests.patience import PATIENCE

from stagewright.checker.processes import possible

# a shell starts what runs in its background with SIGINT ignored, and children inherit that
SCRIPT = """
import os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from stagewright.checker.processes import in_processes

def work(number: int) -> int:
    time.sleep(number * 1000)
    return os.getpid()

for _, process in in_processes(work, iter([0, 0, 1, 1]), 2, over=lambda: False, died=0):
    print(process, flush=True)
"""


@pytest.mark.skipif(not possible(), reason="such processes exist on Linux alone")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_their_parent(how: signal.Signals) -> None:
    with Popen([sys.executable, "-c", SCRIPT], stdout=PIPE, stderr=PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = {int(parent.stdout.readline()) for _ in range(2)}
        parent.send_signal(how)
        parent.wait(PATIENCE)
    until = time.monotonic() + PATIENCE
    while any(_runs(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.05)
    assert not [worker for worker in workers if _runs(worker)]
    assert os.getpid() not in workers


def _runs(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text("ascii")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
