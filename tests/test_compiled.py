"""A loop gives the same as plain Python and as machine code, alone and called by another loop."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from stagewright.compiled import compiled, copy_bytes, interpreted, read_only

ROOT = Path(__file__).resolve().parents[1]


@compiled
def doubled(value: Any) -> Any:
    return 2 * value


@compiled
def twice_doubled(value: Any) -> Any:
    return doubled(doubled(value))


@compiled
def twice(data: Any) -> Any:
    out = np.zeros(2 * len(data) + 1, np.uint8)
    return out, copy_bytes(out, copy_bytes(out, 1, data, 0, len(data)), data, 0, len(data))


@compiled
def tripled(value: Any) -> Any:
    return 3 * value


@compiled
def of_several(data: Any) -> Any:
    return tripled(1) + tripled(2) + tripled(data[0])


def test_a_loop_is_compiled_once_for_numbers_of_all_sizes_and_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))  # nothing is kept from before
    assert of_several(np.array([5], np.int32)) == 24
    assert len(cast("Any", tripled).machine_code().signatures) == 1


def test_arrays_to_read_from_are_of_one_kind() -> None:
    data = np.arange(3)
    view = read_only(data)
    assert not view.flags.writeable
    assert data.flags.writeable
    assert np.shares_memory(view, data)
    assert not read_only(view).flags.writeable


def test_bytes_are_copied_in_both_ways() -> None:
    data = np.frombuffer(b"abc", np.uint8)
    found = [twice(data)]
    with interpreted():
        found.append(twice(data))
    assert [(out.tobytes(), int(end)) for out, end in found] == 2 * [(b"\0abcabc", 7)]
    out = np.zeros(4, np.uint8)
    assert copy_bytes(out, 2, data, 1, 3) == 4  # outside of a loop it is Python
    assert out.tobytes() == b"\0\0bc"


def test_a_loop_calls_another_one_in_both_ways() -> None:
    with interpreted():
        assert twice_doubled(5) == 20
    assert twice_doubled(5) == 20


def test_a_loop_travels_by_name() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled


def test_numbers_wrap_around_in_plain_python_too() -> None:
    largest = np.uint64(2**64 - 1)
    with interpreted():
        assert doubled(largest) == 2**64 - 2


CALLED = """
import numba
from tests.test_compiled import doubled

print("ready", flush=True)
input()
assert doubled(5) == 10
print(sum(doubled.machine_code().stats.cache_misses.values()))
"""


def test_of_processes_that_need_a_loop_at_once_one_compiles_it(tmp_path: Path) -> None:
    path = os.pathsep.join(map(str, (ROOT, ROOT / "src")))
    callers = [
        subprocess.Popen(
            [sys.executable, "-c", CALLED],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    pipes = [(p.stdin, p.stdout) for p in callers if p.stdin is not None and p.stdout is not None]
    assert [printed.readline() for _, printed in pipes] == ["ready\n"] * 2
    for typed, _ in pipes:
        typed.write("\n")
        typed.flush()
    assert sorted(caller.communicate()[0] for caller in callers) == ["0\n", "1\n"]
