"""`stagewright validate` with several `--profile`: which releases may have written a log."""

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

SAMPLES = Path(__file__).resolve().parents[2] / "traces" / "samples"
TOPOLOGY = str(SAMPLES / "topology.log")
EITHER = ["--profile", "scylla-2025.4", "--profile", "scylla-2026.2", "--engine", "embedded"]


def test_a_log_is_checked_as_that_of_either_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", TOPOLOGY, *EITHER[2:]]) == 1
    capsys.readouterr()
    assert run_command_line(["validate", TOPOLOGY, *EITHER]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "scylla-2025.4  explains all 7 entities" in lines
    assert "scylla-2026.2  explains 6 of 7 entities, refuses 1: first topology" in lines
    assert not any("no line says which version" in line for line in lines)


def test_any_is_every_release_and_all_forms_of_the_report_report_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    junit = tmp_path / "r.xml"
    words = ["validate", TOPOLOGY, "--profile", "any", "--engine", "embedded", "--json"]
    assert run_command_line([*words, "--out", str(tmp_path / "out"), "--junit", str(junit)]) == 0
    printed = json.loads(capsys.readouterr().out)["candidates"]
    names = ["scylla-6.0", "scylla-2025.4", "scylla-2026.1", "scylla-2026.2", "scylla-master"]
    assert [one["candidate"] for one in printed] == names
    assert "scylla-2025.4 explains all 7 entities" in (tmp_path / "out" / "report.html").read_text()
    assert "scylla-2025.4 explains all 7 entities" in junit.read_text()
    coverage = json.loads((tmp_path / "out" / "coverage.json").read_text())
    refusing = {one["candidate"] for one in printed if one["refuses"]}
    assert refusing
    assert not refusing & {machine["profile"] for machine in coverage["machines"]}


def test_a_wrong_profile_among_several_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", TOPOLOGY, *EITHER, "--profile", "nonsense"]) == 2
    assert "there is no profile `nonsense`" in capsys.readouterr().err
