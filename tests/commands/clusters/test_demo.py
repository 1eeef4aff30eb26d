"""The demo's cluster: its commands come out as they should while a client writes, and nothing is left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from stagewright.commands import run_command_line
from stagewright.commands.clusters import demo


@pytest.mark.thorough
def test_a_cluster_grows_and_loses_a_node_while_a_client_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "cluster"
    assert demo.is_possible()
    said: list[str] = []
    for _ in range(2):  # a demo may be shown again
        with demo.Beside(directory) as beside:
            for _, arguments, expected in demo.actions(directory):
                assert run_command_line(arguments) == expected, arguments
                said.append(beside.after(arguments))
                printed = capsys.readouterr().out
                if arguments[:2] == ("cluster", "tail"):
                    changes = [json.loads(text) for text in printed.splitlines()]
                    seen = [(change["key"], change["value"]) for change in changes]
                    assert seen == [
                        ("ann", "Prague"),
                        ("bob", "Turin"),
                        ("ann", "Oslo"),
                        ("bob", None),
                    ]
                    assert len({change["stream"] for change in changes}) > 1
        assert list(tmp_path.iterdir()) == []
    sentences = [s for s in said if s]
    assert len(sentences) == 2
    assert all("each of them is read" in s for s in sentences)
