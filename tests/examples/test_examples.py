"""Each example does what its page says, as `stagewright new` copies it."""

import re
import shlex
from pathlib import Path

import pytest
from tests.thorough import some_of

from stagewright.commands import run_command_line
from stagewright.commands.new import examples

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = re.compile(r"<!-- exit: (\d) -->\n```console\n(.*?)```", re.DOTALL)


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["new", "--list"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(examples())
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[(.+?)\]", page, re.MULTILINE)) == listed


@pytest.mark.parametrize("name", some_of(examples()))
def test_an_example_does_what_its_page_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["new", "mine", "--from", name]) == 0
    assert "stagewright check" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "mine")
    exits: list[str] = []
    for code, block in COMMANDS.findall(Path("README.md").read_text("utf-8")):
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ stagewright "))
            quick = ["--examples", "5"] if words[0] == "test" else []
            assert run_command_line([*words, *quick]) == int(code), line + capsys.readouterr().out
            exits.append(words[0] + code)
    assert exits == ["check0", "check1", "test0", "validate0"]


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["saga"], "saga"),
        (["deep/two_phase_commit"], "two_phase_commit"),
        (["paxos", "--from", "saga"], "saga"),
        (["mine"], "lock_server"),
    ],
)
def test_a_folder_named_like_an_example_begins_with_it(
    words: list[str], made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["new", *words]) == 0
    assert (tmp_path / words[0] / f"{made}.py").is_file()


def test_a_folder_that_exists_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    assert run_command_line(["new", str(tmp_path / "mine")]) == 2
    assert "exists" in capsys.readouterr().err
    assert list((tmp_path / "mine").iterdir()) == []


def test_an_example_that_there_is_not_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["new", str(tmp_path / "mine"), "--from", "paxo"]) == 2
    assert "did you mean `paxos`?" in capsys.readouterr().err
