"""`stagewright campaign --of view-engine`: runs in processes, reports, and a command that shows a failure again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

WORDS = ["campaign", "--of", "view-engine"]


def test_sound_build_is_run_in_processes_and_keeps_every_promise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line([*WORDS, "--seeds", "1..4", "--workers", "2"]) == 0
    printed = capsys.readouterr().out
    assert "3 runs of 3; 0 failed" in printed
    assert "every property holds" in printed
    assert "never happened" not in printed.partition("moves")[0]


def test_wrong_build_is_found_kept_and_shown_again_by_the_command_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [*WORDS, "--workers", "1", "--wrong-build", "old_rows_stay", "--json"]
    assert run_command_line([*wrong, "--seeds", "0..2"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert {one["by"] for one in printed["failures"]} == {"answers", "trace"}
    again = shlex.split(printed["failures"][0]["reproduce"])
    assert run_command_line(again[1:]) == 1
    assert "rows that the documents had before are removed" in capsys.readouterr().out
    seed = printed["failures"][0]["seed"]
    kept = str(tmp_path / f"seed-{seed}" / f"seed-{seed}")
    assert run_command_line(["validate", kept, "--engine", "embedded"]) == 1


def test_results_of_another_build_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--workers", "1", "--seeds", "1", "--out", str(tmp_path)]
    assert run_command_line(words) == 0
    assert run_command_line(words) == 0  # it is there already
    assert run_command_line([*words, "--wrong-build", "old_rows_stay"]) == 2
    assert "of another build" in capsys.readouterr().err


def test_campaign_that_has_no_time_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*WORDS, "--workers", "1", "--seconds", "1", "--seeds", "0..400", "--json"]
    assert run_command_line(words) == 3
    printed = json.loads(capsys.readouterr().out)
    assert 0 < printed["runs"] < printed["asked"] == 400


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--wrong-build", "old_rows_sta"], "did you mean `old_rows_stay`?"),
        (["--shrink", "1"], "not made smaller"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([*WORDS, "--seeds", "1", *words]) == 2
    assert says in capsys.readouterr().err
