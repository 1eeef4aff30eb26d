"""An engine that keeps a trace records what its threads do, and `validate` accepts it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.view_engine import View, ViewEngine, doc, emit
from stagewright.impl.view_engine.index.compactor import CompactionStoppedError


def test_trace_of_a_busy_engine_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ViewEngine(tmp_path / "data", partitions=4, trace=tmp_path / "trace") as engine:
        engine.define("d", {"v": View(emit(doc.n), "_count")})

        def write(number: int) -> None:
            engine.put_many({f"d{number}-{n % 20}": {"n": n} for n in range(60)})
            engine.query("d", "v")
            if number % 3 == 0:
                with suppress(CompactionStoppedError):  # another thread's runs
                    engine.compact("d")

        with ThreadPoolExecutor(3) as threads:
            list(threads.map(write, range(9)))
        group = engine.group("d")
        group.set_partition_states(cleanup=[0])
        assert group.clean_up()
    steps = [
        json.loads(line)["action"]
        for line in (tmp_path / "trace" / "engine-indexes.jsonl").read_text().splitlines()
    ]
    assert {"write_documents", "write_header", "switch_file", "answer", "end_cleanup"} <= {*steps}
    assert run_command_line(["validate", str(tmp_path / "trace"), "--engine", "embedded"]) == 0
    assert "violation" not in capsys.readouterr().out.replace("0 violation", "")
