"""`stagewright simulate`: walks that no bound of a check ends with an error, and the command that it prints."""

import shlex
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

MACHINE = """
from stagewright.spec import Entity, Machine, NumberVar, Term, action, number, per, require

class Door(Entity):
    pass

class Counter(Machine):
    opened: NumberVar = number(0, 3)
    of = per(Door, number(0, 3))

    @action
    def open(self, d: Term[Door]) -> None:
        self.opened = self.opened + 1
        self.of[d] = self.of[d] + 1
"""


def test_walk_ends_at_bounds_and_the_printed_command_validates_a_users_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my counter.py"
    file.write_text(MACHINE)
    words = ["simulate", str(file), "--size", "door=3", "--out", str(tmp_path / "out")]
    assert run_command_line(words) == 0
    printed = capsys.readouterr().out
    assert "30 steps; 10 came to the bounds of their numbers" in printed
    command = printed.partition("validate it: stagewright ")[2].splitlines()[0]
    assert shlex.split(command)[-4:] == ["--machine", f"{file}:Counter", "--size", "door=3"]
    assert run_command_line(shlex.split(command)) == 0
    assert "10 ok" in capsys.readouterr().out


def test_printed_command_of_a_shipped_machine_needs_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["simulate", "tablet-migration", "--out", str(tmp_path)]) == 0
    command = capsys.readouterr().out.partition("validate it: stagewright ")[2].strip()
    assert shlex.split(command) == ["validate", str(tmp_path / "trace.jsonl")]
