"""`stagewright run`: what it prints, what it exits with, and what it refuses."""

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode

SMALL = ("run", "--tablets", "2", "--migrations", "4", "--writes", "60")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_says_what_happened_and_where_the_trace_is(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([*SMALL, "--seed", "3", "--faults", "all"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "every promise was kept" in printed
    assert "4 started" in printed
    assert "make_unwanted: not (stage is streaming)" in printed
    assert "trace: artifacts/run-3/trace.jsonl" in printed
    assert "stagewright run --nodes 3 --tablets 2 --seed 3 --faults all" in printed
    assert (elsewhere / "artifacts" / "run-3" / "trace.jsonl").stat().st_size > 1000
    assert (elsewhere / "artifacts" / "run-3" / "node2.sqlite").exists()


def test_run_as_json_holds_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*SMALL, "--faults", "crash", "--out", "here", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kept"] is True
    assert document["trace"] == "here/trace.jsonl"
    assert document["requests"]["writes sent"] == 60
    assert document["transitions"]["done"] == 4
    assert document["breaches"] == []


def test_broken_promise_exits_with_1_and_tells_the_story(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line([*SMALL, "--profile", "seed"]) == ExitCode.VIOLATED
    printed = capsys.readouterr().out
    assert "broken: no rows or storage at rest on a node that is not a replica" in printed
    assert "finish_without_cleanup by node" in printed
    assert "--profile seed" in printed


def test_run_replaces_the_files_of_an_earlier_one(elsewhere: Path) -> None:
    assert run_command_line([*SMALL, "--out", "here", "--nodes", "4"]) == ExitCode.HOLDS
    assert run_command_line([*SMALL, "--out", "here", "--nodes", "3"]) == ExitCode.HOLDS
    names = {path.name for path in (elsewhere / "here").glob("*.sqlite")}
    assert names == {"group0.sqlite", "node0.sqlite", "node1.sqlite", "node2.sqlite"}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--nodes", "1"], "--nodes 1: out of bounds"),
        (["--nodes", "2"], "two replicas, and one to migrate to"),
        (["--tablets", "0"], "--tablets 0: out of bounds"),
        (["--faults", "crsh"], "did you mean `crash`?"),
        (["--profile", "scylla-1"], "there is no profile `scylla-1`"),
        (["--nodes", "x"], "'x' is not a number"),
        (["--consistency", "some"], "invalid choice"),
        (["--cdc"], "--cdc is not for a run without --script"),
        (["--workload", "clients=2"], "--workload is not for a run without --script"),
    ],
)
def test_bad_flags_exit_with_2_and_write_nothing(
    flags: list[str], problem: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([*SMALL, *flags]) == ExitCode.BAD_INPUT
    assert problem in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_directory_that_is_a_file_is_refused(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "file").write_text("here first")
    assert run_command_line([*SMALL, "--out", "file"]) == ExitCode.BAD_INPUT
    assert "--out file" in capsys.readouterr().err
    assert (elsewhere / "file").read_text() == "here first"


SCRIPT = "write 40; join n4; decommission n1"
INDEXES = "create table 9 rows; create index i on v; await i"


def test_a_script_is_worked_through(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["run", "--script", SCRIPT, "--faults", "loss"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "n1 left, n2 normal, n3 normal, n4 normal" in printed
    assert "every promise was kept" in printed
    assert (elsewhere / "artifacts" / "run-0" / "topology.jsonl").stat().st_size > 1000
    assert run_command_line(["run", "--script", SCRIPT, "--json"]) == ExitCode.HOLDS
    document = json.loads(capsys.readouterr().out)
    assert [o["result"] for o in document["operations"]] == ["begun", "done", "done"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--script", "jion n4"], "did you mean `join`"),
        (["--script", SCRIPT, "--faults", "crash=often"], "is not a rate"),
        (["--script", SCRIPT, "--tablets", "3"], "--tablets is not for a script"),
        (["--script", SCRIPT, "--nodes", "31"], "write a number from 1 to 30"),
        (["--script", SCRIPT, "--profile", "seed"], "the nodes of a script run scylla-2026.2"),
        (["--script", INDEXES, "--cdc"], "--cdc is not for a script of indexes"),
        (["--script", INDEXES, "--nodes", "31"], "write a number from 1 to 30"),
    ],
)
def test_a_script_that_cannot_be_worked_through_is_refused(
    arguments: list[str], problem: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["run", *arguments]) == ExitCode.BAD_INPUT
    assert problem in capsys.readouterr().err
    assert not (elsewhere / "artifacts").exists()
