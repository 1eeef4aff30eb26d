"""What ScyllaDB's loggers say in no known form is counted by its shape."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.traces.databases.scylladb.log import log
from stagewright.traces.databases.scylladb.log.passed_over import shape_of
from stagewright.traces.readers.protocol import Part, Tally

HEAD = "INFO  2025-11-05 10:01:00,000 [shard 0: gms]"
IDS = ("1c7e8d10-9d0e-11ef-a7c3-44b5e0f19a21", "2c7e8d10-9d0e-11ef-a7c3-44b5e0f19a21")
SAMPLE = Path(__file__).parents[2] / "samples" / "topology.log"


def test_lines_that_differ_in_ids_and_numbers_are_of_one_shape() -> None:
    one, other = (
        shape_of(f"{HEAD} raft_topology - tablet {i}:{n} waits for {{{i}, {i}}}", "file")
        for n, i in enumerate(IDS)
    )
    assert one == other == "raft_topology - tablet …:… waits for …"


def test_lines_of_other_loggers_have_none() -> None:
    assert shape_of(f"{HEAD} compaction - Compacting raft_topology - x", "file") is None
    assert shape_of("no line of a server", "file") is None


def test_lines_in_a_known_form_are_not_among_them(tmp_path: Path) -> None:
    path = tmp_path / "scylla.log"
    lines = [
        f"{HEAD} raft_topology - executing global topology command barrier",
        f"{HEAD} gossip - 1",
    ]
    path.write_text("\n".join([*lines, f"{HEAD} raft_topology - a wording of tomorrow 1"]), "utf-8")
    tally = Tally()
    (bounds,) = log.parts(path)
    log.extract(Part(0, str(path), "scylla-log", *bounds), tally)
    assert tally.passed_over == {"raft_topology - a wording of tomorrow …": 1}
    assert tally.other == 3


def test_the_ten_most_frequent_shapes_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [chr(ord("a") + n) * 3 for n in range(12)]
    new = [f"{HEAD} raft_topology - {w} {n}" for w in words for n in range(30 - words.index(w))]
    path = tmp_path / "scylla.log"
    path.write_text(SAMPLE.read_text("utf-8") + "\n".join(new), "utf-8")
    command = ["validate", str(path), "--engine", "embedded"]
    assert run_command_line([*command, "--json"]) == 0
    shapes = json.loads(capsys.readouterr().out)["passed_over"]
    assert len(shapes) == 10
    assert shapes[0] == {"shape": "raft_topology - aaa …", "lines": 30}
    assert run_command_line(command) == 0
    assert "30 x raft_topology - aaa …" in capsys.readouterr().out
