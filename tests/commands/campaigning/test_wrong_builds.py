"""`campaign --wrong-build all`: each wrong build by itself, and which seed shows it first to each check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.indexes.defects import Defect

WORDS = ["campaign", "--workers", "1", "--json"]


def builds(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    """What is printed of each build."""
    capsys.readouterr()
    assert run_command_line([*WORDS, *words]) == 0
    return {one["build"]: one for one in json.loads(capsys.readouterr().out)["builds"]}


def test_a_hunt_ends_with_the_run_in_which_the_last_check_notices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--logs", "--seeds", "0..3", "--wrong-build", "streaming_is_skipped*"]
    (found,) = builds(words, capsys).values()
    noticed = found["noticed"]
    assert isinstance(noticed, dict)
    assert {*noticed} == {"clients", "trace", "log"}
    assert found["runs"] == 1 + max(one["seed"] for one in noticed.values())
    assert noticed["trace"]["says"] == "each range came from enough replicas"
    assert noticed["log"]["says"] == "LoggedJoin"


def test_a_hunt_goes_on_where_it_was_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--of", "indexes", "--seeds", "0..2", "--out", str(tmp_path)]
    words += ["--wrong-build", "only_*", "--wrong-build", "entries_are_w*"]
    first = builds(words, capsys)
    assert {*first} == {"entries_are_written_now", "only_the_first_page"}
    results = tmp_path / "results.jsonl"
    kept = results.read_text("utf-8")
    results.write_text(kept.replace("time of the scan", "time of the scam"), "utf-8")
    assert "scam" in str(builds(words, capsys)["entries_are_written_now"])  # is not run again


def test_all_are_the_known_ones_and_their_table_is_markdown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["campaign", "--of", "indexes", "--workers", "1", "--seconds", "1", "--seeds", "0..1"]
    assert run_command_line([*words, "--wrong-build", "all"]) in (1, 3)  # not all in a second
    head, line, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("| wrong build | ")
    assert line.count("|") == head.count("|") == rows[0].count("|")
    assert rows[0].startswith(f"| {next(iter(Defect)).name} | ")


def test_a_pattern_that_matches_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["campaign", "--wrong-build", "vew_*"]) == 2
    assert "view_rows_are_deleted_in_pairs" in capsys.readouterr().err
