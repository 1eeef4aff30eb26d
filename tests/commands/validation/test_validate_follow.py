"""`stagewright validate --follow`: what cannot be followed so is refused before Spark starts."""

from pathlib import Path

import pytest

from stagewright.commands import run_command_line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--follow needs --state DIR"),
        (["--state", "in/state"], "--state in/state lies in what is followed"),
        (["--state", "state", "--out", "in/report"], "--out in/report lies in what is followed"),
        (["--state", "state", "--junit", "report.xml"], "--follow has many runs"),
        (["--state", "state", "--engine", "embedded"], "--follow is done by Spark"),
    ],
)
def test_what_cannot_be_done_with_follow_is_refused(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "in").mkdir()
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["validate", "--follow", "in", *arguments]) == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert said in printed
    assert "help:" in printed
