"""Replays report the same as plain Python and as machine code, which is only loaded where it pays."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.thorough import some_of
from tests.traces.parquet_rows import rows_of

from stagewright.compiled import interpreted
from stagewright.spec.trace import Event
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events import string_pool
from stagewright.traces.replay import segments
from stagewright.traces.validate import validate

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("seed", some_of(range(6)))
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


def test_a_loop_is_compiled_once_for_all_readers(
    lease: Any, mutated: Callable[[str, int], list[Event]], tmp_path: Path
) -> None:
    events = [event for i in range(20) for event in mutated(f"lease{i}", i)]
    lines = tmp_path / "events.jsonl"
    lines.write_text("".join(event.to_json() + "\n" for event in events))
    pq.write_table(pa.Table.from_pylist(rows_of(events)), tmp_path / "events.parquet")
    for file in (lines, tmp_path / "events.parquet"):
        validate([file], lease.definition, engine=Embedded(1))
    loops: tuple[Any, ...] = (segments._replay, string_pool._gather)
    assert [len(loop.machine_code().signatures) for loop in loops] == [1, 1]


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
