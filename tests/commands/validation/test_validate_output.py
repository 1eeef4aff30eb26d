"""Where `stagewright validate` writes: files before text, and no place that refuses them."""

import json
import os
import sys
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

JUMP = str(Path(__file__).resolve().parents[2] / "traces" / "samples" / "impossible-jump.log")


SWAP = """
from stagewright.spec import *


class Node(Entity, scope=2): ...


class Place(States):
    left = ()
    right = ()


class Book(Machine):
    held = per(Node, flag())
    place = one_of(Place, init=Place.left)

    @action
    def give(self, target: Term[Node], source: Term[Node], to: Term[Place]) -> None:
        require((source != target) & self.held[source], "source has it")
        self.held[source] = False
        self.held[target] = True
        self.place = to
"""
MAPPING = """
entity = "book"

[source]
form = "csv"

[[event]]
action = "give"
parameters = {to = "{to}", target = "{target}", source = "{source}"}
observed = {place = "{to}"}
"""


def test_steps_and_states_are_reported_as_the_definition_has_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Arguments in the order of the parameters, whatever the mapping's; members of one value together."""
    for name, text in (("m.py", SWAP), ("m.toml", MAPPING)):
        (tmp_path / name).write_text(text)
    trace = tmp_path / "t.csv"
    trace.write_text("to,target,source\nright,node0,node1\n")
    words = ["--mapping", str(tmp_path / "m.toml"), "--machine", str(tmp_path / "m.py")]
    assert run_command_line(["validate", str(trace), *words]) == 1
    printed = capsys.readouterr().out
    assert "  event      give(node0, node1, right)\n" in printed
    assert "  before     held[*] = no, place = left\n" in printed
    assert "an observation of no variable" in printed


def test_files_are_written_though_nobody_reads_the_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out, junit, sarif = tmp_path / "report", tmp_path / "r.xml", tmp_path / "r.sarif"
    files = ["--out", str(out), "--junit", str(junit), "--sarif", str(sarif)]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", closed)
        assert run_command_line(["validate", JUMP, "--engine", "embedded", *files]) == 141
    assert "VIOLATION" in (out / "report.txt").read_text()
    assert junit.stat().st_size > 0
    assert sarif.stat().st_size > 0
    assert f"{out / 'violations'}" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no directory that refuses even root")
@pytest.mark.parametrize("flag", ["--out", "--state", "--junit", "--sarif"])
def test_a_place_that_takes_no_files_is_refused_before_anything_is_read(
    flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["validate", JUMP, "--engine", "embedded", flag, "/proc/x"]) == 2
    printed = capsys.readouterr().err
    assert f"{flag} /proc/x: " in printed
    assert "cannot be written to" in printed
    assert "reading" not in printed


def test_flags_that_would_do_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", JUMP, "--idle", "3"]) == 2
    assert "--idle needs --follow" in capsys.readouterr().err


def test_one_entity_of_many_is_shown_by_name(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines: list[str] = []
    for number in range(25):
        for seq, action in enumerate((None, "acknowledge")):  # no write was sent
            event = {"v": 1, "trace": "t", "machine": "RecordedWrite", "profile": "", "definition": "",
                     "entity": f"write{number}", "seq": seq, "node": "n1", "action": action,
                     "params": {}, "observed": {}}  # fmt: skip
            lines.append(json.dumps(event))
    trace = tmp_path / "writes.jsonl"
    trace.write_text("\n".join(lines) + "\n")
    given = ["validate", str(trace), "--engine", "embedded"]
    assert run_command_line(given) == 1
    everything = capsys.readouterr().out
    assert "and 5 more entities that are not ok; --entity NAME shows one" in everything
    hidden = [n for n in range(25) if f"t/write{n} " not in everything]
    assert len(hidden) == 5
    assert run_command_line([*given, "--entity", f"write{hidden[0]}"]) == 1
    one = capsys.readouterr().out
    assert f"t/write{hidden[0]} " in one
    assert one.count("VIOLATION") == 1
    assert "and 24 more entities" in one
    assert run_command_line([*given, "--entity", "t/write*"]) == 1
    assert "more entities that are not ok" not in capsys.readouterr().out
    assert run_command_line([*given, "--entity", "write2?", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [one["entity"] for one in found["findings"]] == [f"write{n}" for n in range(20, 25)]
    assert found["findings_left_out"] == 20
    assert run_command_line([*given, "--entity", "nobody"]) == 1
    assert "none is named so" in capsys.readouterr().out
