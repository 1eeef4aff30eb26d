"""The log of a run is a trace that `stagewright validate` explains, and one that was spoiled is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.simulator.database.plan import Plan
from stagewright.impl.simulator.database.run import run
from stagewright.impl.simulator.database.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults


def test_validate_explains_the_log_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = parse_script("write 20; join n3; decommission n1")
    report = run(Plan(nodes=2, seed=3, script=script, faults=parse_faults("all")), tmp_path)
    trace = tmp_path / "topology.jsonl"
    assert report.kept
    validate = ["validate", str(trace), "--size", "Node=3", "--engine", "embedded"]
    assert run_command_line(validate) == 0
    assert "1 ok" in capsys.readouterr().out
    lines = trace.read_text().splitlines()
    spoiled = [line for line in lines if '"pass_barrier"' not in line]
    assert len(spoiled) < len(lines)
    renumbered = [
        line.replace(
            f'"seq":{line.split(chr(34) + "seq" + chr(34) + ":")[1].split(",")[0]}', f'"seq":{i}'
        )
        for i, line in enumerate(spoiled)
    ]
    trace.write_text("\n".join(renumbered))
    assert run_command_line(validate) == 1
    assert "barrier" in capsys.readouterr().out
