"""What is said at once where no node of a cluster runs, and of paths that cannot be written; examples in each help."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.commands import run_command_line
from stagewright.commands.clusters.database import Database
from stagewright.commands.clusters.index_cluster import IndexedTable
from stagewright.commands.clusters.kinds import ACTIONS
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.supervisor import Supervisor


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Where a cluster is of which no node runs."""
    Supervisor(Layout(tmp_path / "c")).create(2)
    return tmp_path / "c"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["shell", "-c", "get a"], 1),
        (["shell", "-c", "tables"], 1),
        (["shell", "-c", "build status"], 1),
        (["cluster", "tail"], 2),
        (["cluster", "tail", "--until-now"], 2),
        (["cluster", "add"], 2),
    ],
)
def test_where_no_node_runs_that_is_said_at_once(
    stopped: Path, words: list[str], expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()
    assert run_command_line([*words, "--dir", str(stopped)]) == expected
    assert time.monotonic() - began < 10  # where it is not, a client waits for 15 s
    said = capsys.readouterr().err
    assert "no node runs" in said
    assert "`stagewright cluster start` starts them" in said


def test_nor_does_one_wait_for_a_stopped_cluster_with_an_indexed_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    IndexSupervisor(IndexLayout(tmp_path / "c")).create(2)
    began = time.monotonic()
    assert run_command_line(["shell", "-c", "build status", "--dir", str(tmp_path / "c")]) == 1
    assert time.monotonic() - began < 10
    assert "`stagewright cluster start` starts them" in capsys.readouterr().err


def test_a_position_that_cannot_be_written_is_refused_before_changes_are_read(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    position = str(tmp_path / "none" / "P")
    assert run_command_line(["cluster", "tail", "--position", position, "--dir", str(stopped)]) == 2
    assert f"--position {position}: the directory" in capsys.readouterr().err


@pytest.mark.parametrize("action", [*ACTIONS, *Database.actions, *IndexedTable.actions])
def test_the_help_of_each_action_has_an_example(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["cluster", action, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"example: stagewright cluster {action} " in said
