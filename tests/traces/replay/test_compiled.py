"""Loops say the same as plain Python and as machine code, and machine code is only loaded where it pays."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stagewright.spec.trace import Event
from stagewright.traces.engines import Embedded
from stagewright.traces.replay.compiled import compiled, interpreted
from stagewright.traces.validate import validate

ROOT = Path(__file__).parents[3]


@compiled
def doubled(value: Any) -> Any:
    return 2 * value


@compiled
def twice_doubled(value: Any) -> Any:
    return doubled(doubled(value))


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


@pytest.mark.parametrize("seed", range(6))
def test_reports_are_the_same_in_both_ways(
    seed: int, lease: Any, mutated: Callable[[str, int], list[Event]], tmp_path: Path
) -> None:
    events = [event for i in range(20) for event in mutated(f"lease{i}", 100 * seed + i)]
    random.Random(seed).shuffle(events)
    for number in range(2):
        text = "".join(event.to_json() + "\n" for event in events[number::2])
        (tmp_path / f"{number}.jsonl").write_text(text)
    files = sorted(tmp_path.glob("*.jsonl"))
    by_machine_code = validate(files, lease.definition, engine=Embedded(1))
    with interpreted():
        assert validate(files, lease.definition, engine=Embedded(1)) == by_machine_code
    assert by_machine_code.exit_code == 1


def test_a_small_log_is_validated_without_machine_code() -> None:
    script = (
        "import sys; from stagewright.commands import run_command_line\n"
        "code = run_command_line(['validate', 'traces/samples/scylla-coordinator-debug.log'])\n"
        "sys.exit(code or sum(m in sys.modules for m in ('numba', 'pyspark', 'scipy')))"
    )
    command = [sys.executable, "-P", "-c", script]
    path = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, cwd=ROOT, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
