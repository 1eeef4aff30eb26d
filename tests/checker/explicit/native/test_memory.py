"""Reserved address space costs nothing until it is touched, and is in nobody's way."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.patience import PATIENCE

from stagewright.checker.explicit.native.memory import Reserved

TEBIBYTE = 1 << 40


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_more_than_there_is_can_be_reserved_and_processes_still_start() -> None:
    reserved = [Reserved(TEBIBYTE) for _ in range(4)]
    for one in reserved:
        one.words(0, 10)[:] = 7
    total = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()[0]
    memory = int(total.split()[1]) * 1024
    assert sum(one.size for one in reserved) > memory
    assert (
        subprocess.run([sys.executable, "-c", "print(1)"], check=True, timeout=PATIENCE).returncode
        == 0
    )
    child = os.fork()  # copies this process, as Spark's starter does
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def test_what_is_forgotten_is_zero_and_what_is_not_stays() -> None:
    reserved = Reserved(1 << 30)
    words = reserved.words(0, 4096)
    words[:] = np.arange(4096, dtype=np.uint64)
    reserved.forget(4096, 3 * 4096 + 100)
    assert words[:512].tolist() == list(range(512))
    assert sys.platform != "linux" or not words[512 : 3 * 512].any()
    assert words[3 * 512 :].tolist() == list(range(3 * 512, 4096))
    reserved.clear(8 * 4001)
    assert not words[:4001].any()
    assert words[4001:].tolist() == list(range(4001, 4096))
