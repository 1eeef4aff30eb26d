"""`stagewright campaign --of indexes`: runs in processes, goes on where it was, and shows failures again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

WORDS = ["campaign", "--of", "indexes"]


def test_sound_build_is_run_in_processes_and_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS, "--workers", "2", "--out", str(tmp_path)]
    assert run_command_line([*words, "--seeds", "0..4"]) == 0
    assert "4 runs of 4" in capsys.readouterr().out
    assert run_command_line([*words, "--seeds", "0..6"]) == 0
    printed = capsys.readouterr().out
    assert "6 runs of 6" in printed
    assert "every property holds" in printed
    assert len((tmp_path / "results.jsonl").read_text("utf-8").splitlines()) == 7


def test_wrong_build_is_found_kept_and_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    wrong = [*WORDS, "--workers", "1", "--wrong-build", "checkpoint_skips_a_row", "--json"]
    assert run_command_line([*wrong, "--seeds", "4", "--shrink", "0"]) == 1
    printed = json.loads(capsys.readouterr().out)
    first = next(f for f in printed["failures"] if "rows up to there" in f["text"])
    again = shlex.split(first["reproduce"])
    assert run_command_line([*again[1:], "--shrink", "0"]) == 1
    capsys.readouterr()
    kept = [str(path) for path in (tmp_path / "seed-4" / "seed-4").glob("index-*.jsonl")]
    assert run_command_line(["validate", *kept, "--engine", "embedded"]) == 1


def test_the_command_of_a_scenario_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from stagewright.impl.indexes.campaign.drawing import draw

    words = shlex.split(draw(5).command)
    assert run_command_line([*words[1:], "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counted"]["committed"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["campaign", "--of", "indexes", "--wrong-build", "no_check_forward"], "no_check_forwards"),
        (
            ["run", "--script", "create table 9 rows", "--workload", "kees=3"],
            "did you mean `keys`?",
        ),
        (["run", "--script", "create table 9 rows", "--workload", "batch=x"], "batch=3"),
        (["run", "--script", "create table 9 rows; await job allow"], "allow_gc"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    assert says in capsys.readouterr().err
