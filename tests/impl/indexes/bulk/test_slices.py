"""Whose slices are short: those of a thread that asks for them, and of what it begins, until that asks for the usual ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.impl.indexes.slices import ARE_GIVEN

_SHORT = "100000"
_PROGRAM = """
import subprocess, threading
from pathlib import Path
from stagewright.impl.indexes.bulk.slices import SHORT, USUAL, take_slices

def show():
    lines = Path("/proc/thread-self/sched").read_text("ascii").splitlines()
    print(next((line.split()[-1] for line in lines if line.startswith("se.slice ")), "hidden"), flush=True)

show()
assert take_slices(SHORT)
show()
thread = threading.Thread(target=show)
thread.start()
thread.join()
subprocess.run(["grep", "-o", "^se.slice .*", "/proc/self/sched"], check=True)
assert take_slices(USUAL)
show()
"""


@pytest.mark.skipif(not ARE_GIVEN, reason="Linux gives, or shows, no slices here")
def test_a_process_and_what_it_begins_has_short_slices_until_it_asks_for_the_usual_ones() -> None:
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True
    )
    usual, here, thread, child, again = (line.split()[-1] for line in run.stdout.splitlines())
    assert here == thread == child == _SHORT
    assert usual == again != _SHORT
