"""`stagewright endure`: what it finds broken is its exit code, and the cluster is left to be looked at."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.processes.clusters import WRONG

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.impl.endurance import index_builds, topology
from stagewright.impl.endurance.broken import BrokenError, refuse
from stagewright.impl.endurance.writers import kills
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor


def test_a_directory_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").touch()
    assert run_command_line(["endure", "--dir", str(tmp_path)]) == ExitCode.BAD_INPUT
    assert "it is not empty" in capsys.readouterr().err


def test_of_many_problems_the_first_ones_are_reported_and_of_none_nothing() -> None:
    refuse([])
    with pytest.raises(BrokenError, match="a\nb"):
        refuse(["a", "b"])


@pytest.mark.parametrize(
    "words",
    [["--kills", "3"], ["--of", "views", "--etcd", "0"], ["--of", "topology", "--builds", "2"]],
    ids=" ".join,
)
def test_options_of_another_kind_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["endure", *words]) == ExitCode.BAD_INPUT
    assert words[-2] in capsys.readouterr().err


@pytest.mark.long
def test_nodes_are_killed_and_come_and_go_and_nothing_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["endure", "--of", "topology", "--kills", "8", "--etcd", "0", "--json"]
    assert run_command_line(words) == ExitCode.HOLDS
    found = capsys.readouterr()
    done = json.loads(found.out)["done"]
    assert (done["kills"], done["nodes joined"], done["nodes left"]) == (8, 1, 1)
    assert done["writes acknowledged"] > 0
    assert "8 kills, 1 nodes joined" in found.err


@pytest.mark.long
def test_rows_that_are_lost_with_a_disk_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def loses_its_disk(supervisor: Supervisor, chance: Random, count: int) -> None:
        time.sleep(0.5)
        supervisor.layout.node("n1").joinpath("rows").rename(tmp_path / "rows")
        kills(supervisor, chance, count)

    monkeypatch.setattr(topology, "kills", loses_its_disk)
    words = ["endure", "--of", "topology", "--kills", "1", "--nodes", "1", "--etcd", "0"]
    assert run_command_line([*words, "--dir", str(tmp_path / "d")]) == ExitCode.VIOLATED
    assert "BROKEN b'w0/kept0' is None, which is none of [b'0']" in capsys.readouterr().out
    assert (tmp_path / "d" / "c").exists()


@pytest.mark.long
def test_fewer_kills_than_were_asked_for_leave_it_undecided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["endure", "--of", "topology", "--kills", "500", "--etcd", "0", "--seconds", "1"]
    assert run_command_line(words) == ExitCode.UNDECIDED
    assert "UNDECIDED the time was over before 49" in capsys.readouterr().out


@pytest.mark.long
def test_a_cluster_that_cannot_go_on_is_broken_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cannot_store(supervisor: Supervisor, chance: Random, count: int) -> None:
        rows = supervisor.layout.node("n1") / "rows"
        rows.rename(tmp_path / "rows")
        rows.touch()  # where a directory is to be
        kills(supervisor, chance, count)

    monkeypatch.setattr(topology, "kills", cannot_store)
    words = ["endure", "--of", "topology", "--kills", "1", "--nodes", "1", "--etcd", "0", "--json"]
    assert run_command_line([*words, "--dir", str(tmp_path / "d")]) == ExitCode.VIOLATED
    found = json.loads(capsys.readouterr().out)
    assert "n1 has ended" in found["broken"]
    assert (Path(found["dir"]) / "c").exists()


@pytest.mark.long
def test_whoever_ends_it_ends_its_processes(tmp_path: Path) -> None:
    words = [
        "endure",
        "--of",
        "topology",
        "--kills",
        "500",
        "--etcd",
        "0",
        "--dir",
        str(tmp_path / "d"),
    ]
    command = [sys.executable, "-m", "stagewright", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        process.stderr.readline()  # somebody was killed
        process.terminate()
        process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM
    layout = Layout(tmp_path / "d" / "c")
    assert [n for n in layout.names() if layout.running(n) is not None] == []


@pytest.mark.long
def test_three_builds_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["endure", "--builds", "1", "--seed", "3", "--json"]) == ExitCode.HOLDS
    found = json.loads(capsys.readouterr().out)
    assert (found["broken"], found["dir"]) == ("", None)
    assert found["done"]["kills"] >= 3
    assert sum(n for what, n in found["done"].items() if ": " in what) == 3


@pytest.mark.long
def test_builds_of_wrong_processes_are_noticed_and_their_cluster_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Path(__file__).parents[1] / "impl/indexes/processes" / WRONG

    class Wrong(IndexSupervisor):
        def __init__(self, layout: object, **named: object) -> None:
            words = (str(program), "--defect", "entries_are_written_now")
            super().__init__(layout, program=words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(index_builds, "IndexSupervisor", Wrong)
    words = ["endure", "--builds", "1", "--seed", "3", "--dir", str(tmp_path / "d")]
    assert run_command_line(words) == ExitCode.VIOLATED
    assert "BROKEN" in capsys.readouterr().out
    assert (tmp_path / "d" / "c0" / "table.json").exists()
