"""The tutorial does what it says: its files are written, its commands run, their exit codes as it expects."""

import re
import shlex
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
STEP = re.compile(r"<!-- (file|edit|exit): (.+?) -->\n```\w+\n(.*?)```", re.DOTALL)


def edited(text: str, diff: str) -> str:
    """The text with the one place changed that the diff shows."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
    new = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_the_files_and_commands_of_the_tutorial_work_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = 0
    for kind, argument, block in STEP.findall(PAGE.read_text("utf-8")):
        if kind == "file":
            Path(argument).write_text(block, "utf-8")
        elif kind == "edit":
            old, _, new = argument.partition(" -> ")
            Path(new).write_text(edited(Path(old).read_text("utf-8"), block), "utf-8")
        else:
            for line in block.splitlines():
                words = shlex.split(line.removeprefix("$ stagewright "))
                assert run_command_line(words) == int(argument), line + capsys.readouterr().out
                commands += 1
    assert commands == 11
    assert "store has seen no newer token" in capsys.readouterr().out
