"""Where `stagewright validate` writes: files before text, and no place that refuses them."""

import os
import sys
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

JUMP = str(Path(__file__).resolve().parents[2] / "traces" / "samples" / "impossible-jump.log")


def test_files_are_written_though_nobody_reads_the_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, junit, sarif = tmp_path / "report", tmp_path / "r.xml", tmp_path / "r.sarif"
    files = ["--out", str(out), "--junit", str(junit), "--sarif", str(sarif)]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", closed)
        assert run_command_line(["validate", JUMP, "--engine", "embedded", *files]) == 141
    assert "VIOLATION" in (out / "report.txt").read_text()
    assert junit.stat().st_size > 0
    assert sarif.stat().st_size > 0
    assert f"{out / 'violations'}" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no directory that refuses even root")
@pytest.mark.parametrize("flag", ["--out", "--state", "--junit", "--sarif"])
def test_a_place_that_takes_no_files_is_refused_before_anything_is_read(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["validate", JUMP, "--engine", "embedded", flag, "/proc/x"]) == 2
    told = capsys.readouterr().err
    assert f"{flag} /proc/x: " in told
    assert "cannot be written to" in told
    assert "reading" not in told


def test_flags_that_would_do_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", JUMP, "--idle", "3"]) == 2
    assert "--idle needs --follow" in capsys.readouterr().err
