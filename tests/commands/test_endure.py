"""`stagewright endure`: what it finds broken is its exit code, and the cluster is left to be looked at."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.processes.clusters import WRONG

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.impl.endurance import index_builds, topology
from stagewright.impl.endurance.broken import BrokenError, refuse
from stagewright.impl.endurance.writers import Writer, writing
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.processes.supervisor import Supervisor


def test_a_directory_that_is_not_empty_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").touch()
    assert run_command_line(["endure", "--dir", str(tmp_path)]) == ExitCode.BAD_INPUT
    assert "it is not empty" in capsys.readouterr().err


def test_of_many_problems_the_first_ones_are_told_and_of_none_nothing() -> None:
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
def test_a_write_that_is_lost_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def forgetful(supervisor: Supervisor, count: int, table: str) -> list[Writer]:
        writers = writing(supervisor, count, table)
        writers[0].acknowledged[b"never"] = [b"1"]  # it counts as acknowledged, and no node has it
        return writers

    monkeypatch.setattr(topology, "writing", forgetful)
    words = ["endure", "--of", "topology", "--kills", "1", "--nodes", "3", "--etcd", "0"]
    assert run_command_line([*words, "--dir", str(tmp_path / "d")]) == ExitCode.VIOLATED
    assert "BROKEN b'never' is None" in capsys.readouterr().out
    assert (tmp_path / "d" / "c").exists()


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
