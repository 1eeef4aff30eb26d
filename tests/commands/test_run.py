"""`stagewright run`: what it prints, what it exits with, and what it refuses."""

import json
import re
import shlex
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.running.text import SHORT
from stagewright.impl.indexes.simulated.script import FORMS as INDEX_FORMS
from stagewright.impl.simulator.database.script import FORMS
from stagewright.impl.simulator.database.weather import FAULTS, KINDS

SMALL = ("run", "--tablets", "2", "--writes", "60")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_says_what_happened_and_where_the_traces_are(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([*SMALL, "--seed", "3", "--faults", "all"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "every property holds" in printed
    assert "tablet.streaming" in printed
    assert "traces: artifacts/run-3" in printed
    assert "stagewright run --nodes 3 --seed 3 --faults all --script 'table t tablets 2" in printed
    for name in ("topology", "tablets", "barriers", "replicas"):
        assert (elsewhere / "artifacts" / "run-3" / f"{name}.jsonl").stat().st_size > 1000


def test_run_as_json_holds_the_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line([*SMALL, "--faults", "crash", "--out", "here", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kept"] is True
    assert "here/tablets.jsonl" in document["traces"]
    assert document["counted"]["writes acknowledged"] > 40
    assert document["faults"] == "crash=20"
    assert document["breaches"] == document["story"] == []
    met = {(m["state"], m["what"]): m["times"] for m in document["met"]}
    assert met["tablet.streaming", "entered"] >= 2


VIEWS = "table t tablets 4 rf 2; write 60; create view v on t by value mod 2; create view w on t by value; await w"


@pytest.mark.long
@pytest.mark.parametrize(("script", "number"), [([], 3), (["--script", VIEWS], 5)])
def test_every_command_that_a_run_prints_works(
    script: list[str], number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also of the run that the command line makes by itself: its versions are beyond what a check looks at."""
    assert run_command_line(["run", "--out", "here", *script]) == ExitCode.HOLDS
    lines = capsys.readouterr().out.splitlines()
    commands = [
        line.partition(": stagewright ")[2] for line in lines if line.startswith("check the ")
    ]
    assert len(commands) == number
    for command in commands:
        assert run_command_line(shlex.split(command)) == ExitCode.HOLDS, command


GIVEN_UP = [
    "run", "--profile", "scylla-2025.4", "--workload", "clients=10,keys=60,gap=0-2,reads=0.05",
    "--faults", "action@tablet.streaming,delay=0.6",
    "--script", "table t tablets 8 rf 2; write 1500; decommission n1",
]  # fmt: skip


def test_broken_promise_exits_with_1_and_tells_the_story(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An older release writes to replicas that it has cleaned up (scylladb #26512)."""
    assert any(
        run_command_line([*GIVEN_UP, "--seed", str(seed)]) == ExitCode.VIOLATED for seed in range(8)
    )
    printed = capsys.readouterr().out.rpartition("BROKEN replicas ks.t:")[2]
    assert "cannot happen now; unmet: there" in printed
    story = printed.partition("what happened before that:")[2].partition("traces:")[0]
    assert "give_up_streaming" in story
    assert "--profile scylla-2025.4" in printed


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--nodes", "2"], "one node leaves and another is replaced"),
        (["--nodes", "31"], "write a number from 1 to 30"),
        (["--tablets", "3"], "write a power of two up to 1024"),
        (["--writes", "1000001"], "--writes 1000001: out of bounds"),
        (["--faults", "crsh"], "did you mean `crash`?"),
        (
            ["--faults", "crash@streaming"],
            "help: did you mean `tablet.streaming`? write KIND@STATE;",
        ),
        (["--profile", "scylla-1"], "there is no profile `scylla-1`"),
        (["--profile", "seed"], "nodes stream in sessions"),
        (["--nodes", "x"], "'x' is not a number"),
        (["--workload", "client=2"], "there is no `client`"),
        (["--ttl", "9000"], "write --cdc, too"),
        (["--cdc", "--ttl", "1999"], "write 2000 or more"),
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
    assert "every property holds" in printed
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


def test_the_table_of_faults_counts_nodes_that_are_away(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "write 20; partition n1; suspend n2; wait 500; resume n2; reconnect n1; write 20"
    assert run_command_line(["run", "--script", script]) == ExitCode.HOLDS
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if "state or stage" in line)
    assert lines[head].split() == ["state", "or", "stage", "entered", "faults", "in", "it"]
    assert lines[head + 1].endswith("cut off 1, suspended 1")
    assert (elsewhere / "artifacts").exists()


def test_every_fault_that_is_counted_has_a_name_in_the_table() -> None:
    """One that happens in few runs would end the command when it does."""
    assert {*SHORT} == {*KINDS}


def test_help_has_every_command_of_scripts_and_every_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["run", "--help"]) == ExitCode.HOLDS
    said = set(re.findall(r"[a-z-]+", capsys.readouterr().out.partition("script (")[2]))
    words = {one for form in INDEX_FORMS for one in re.findall(r"\b[a-z-]+\b", form)}
    assert {*FORMS, *FAULTS, *words} <= said
