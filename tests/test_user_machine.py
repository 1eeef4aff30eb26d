"""A machine of a user's own, in one file outside of the project, goes the whole way without touching it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagewright.commands import run_command_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODEL = Path(__file__).parent / "models" / "lease.py"


@pytest.fixture
def lease(tmp_path: Path) -> Path:
    """The user's file, alone in a folder of its own."""
    return Path(shutil.copy(MODEL, tmp_path / "lease.py"))


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_file_is_short() -> None:
    assert len(MODEL.read_text().splitlines()) <= 60


def test_it_is_checked(lease: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["check", str(lease), "--json"]) == 0
    (report,) = printed(capsys)["reports"]
    assert (report["outcome"], report["states"], report["transitions"]) == ("holds", 29, 36)


def test_it_is_proved(lease: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["prove", str(lease), "--json"]) == 0


def test_it_is_tested_against_an_implementation(
    lease: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["test", str(lease), "--examples", "10", "--steps", "20"]) == 0


def test_a_mistake_in_it_is_found_by_every_one_of_them(
    lease: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lease.write_text(lease.read_text().replace("self.holder = n\n", "self.holder = None\n", 1))
    # `n` is never used: refused when it is made.
    assert run_command_line(["check", str(lease)]) == 2
    assert "parameter `n`" in capsys.readouterr().err
    lease.write_text(MODEL.read_text().replace("expiring = False", "expiring = True", 1))
    lease.write_text(
        lease.read_text().replace("Lease.held, Lease.expiring)", "Lease.free, Lease.expiring)")
    )
    for command in ("check", "prove"):
        assert run_command_line([command, str(lease)]) == 1
        assert "writes_have_a_holder" in capsys.readouterr().out


@pytest.mark.spark
def test_it_runs_and_its_trace_is_validated(
    lease: Path, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    run = [
        "simulate",
        str(lease),
        "--instances",
        "20",
        "--steps",
        "12",
        "--seed",
        "7",
        "--out",
        str(out),
    ]
    assert run_command_line(run) == 0
    trace = out / "trace.jsonl"
    on_spark = ["validate", str(trace), "--machine", str(lease), "--engine", "spark"]
    assert run_command_line(on_spark) == 0
    assert "20 ok" in capsys.readouterr().out
    lines = trace.read_text().splitlines()
    forged = next(i for i, line in enumerate(lines) if '"lease":"expiring"' in line)
    lines[forged] = lines[forged].replace('"lease":"expiring"', '"lease":"free"')
    trace.write_text("\n".join(lines) + "\n")
    assert run_command_line(["validate", str(trace), "--machine", str(lease)]) == 1
    assert "19 ok" in capsys.readouterr().out
