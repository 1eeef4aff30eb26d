"""`stagewright test`: what it prints, what it exits with, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode

MACHINE = '''
from stagewright.spec import Machine, action, number, require


class Counter(Machine):
    """Counts up to three, and back."""

    count = number(0, 3)

    @action
    def up(self) -> None:
        """One more."""
        require(self.count < 3, "not full")
        self.count = self.count + 1

    @action
    def down(self) -> None:
        """One less."""
        require(self.count > 0, "not empty")
        self.count = self.count - 1
'''

ADAPTER = """
from beside import LIMIT
from stagewright.checker.conformance import RefusedEvent


class Right:
    limit = LIMIT

    def reset(self, initial):
        self.count = 0

    def do(self, step):
        if self.count == {"up": self.limit, "down": 0}[step.action]:
            raise RefusedEvent
        self.count += 1 if step.action == "up" else -1

    def observe(self):
        return {"count": self.count}


class Wrong(Right):
    limit = 4


def given_definition(definition, scope):
    assert definition.name == "Counter" and not scope.sizes
    return Right()


def given_one(definition):
    return Right()


class Misspelt(Right):
    def observe(self):
        return {"cuont": 0}


NUMBER = 3
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "counter.py").write_text(MACHINE, encoding="utf-8")
    (tmp_path / "beside.py").write_text("LIMIT = 3\n", encoding="utf-8")
    (tmp_path / "adapter.py").write_text(ADAPTER, encoding="utf-8")
    return tmp_path


def run(*words: str) -> int:
    return run_command_line(["test", "counter.py", "--examples", "20", "--steps", "20", *words])


def test_shipped_runtime_conforms(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == ExitCode.HOLDS
    printed = capsys.readouterr()
    assert "6 of 6 edges" in printed.out
    assert "2 of 2 refused events of states" in printed.out
    assert "seed 0; reproduce: stagewright test counter.py --seed 0" in printed.out
    assert "exploring Counter" in printed.err


@pytest.mark.parametrize(
    "adapter", ["adapter.py:Right", "adapter:Right", "adapter.py:given_definition"]
)
def test_right_implementation_holds(adapter: str) -> None:
    assert run("--adapter", adapter) == ExitCode.HOLDS


@pytest.mark.parametrize("suite", ["refusals", "hypothesis", "all"])
def test_wrong_implementation_is_violated_with_its_story(
    suite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--adapter", "adapter.py:Wrong", "--suite", suite) == ExitCode.VIOLATED
    out = capsys.readouterr().out
    assert "Counter: in step 4, `up`, the implementation accepts what must be refused" in out
    assert "- not full: count < 3" in out
    found_by = "refusals and hypothesis" if suite == "all" else suite
    assert out.count(f"found by {found_by}\nCounter: in step 4") == 1
    assert out.count("Counter: in step 4") == 1  # what several suites find is told once


def test_json_has_the_story_and_what_was_exercised(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--adapter", "adapter.py:Wrong", "--json") == ExitCode.VIOLATED
    found = json.loads(capsys.readouterr().out)
    assert found["outcome"] == "violated"
    outcomes = {suite["name"]: suite["outcome"] for suite in found["suites"]}
    assert outcomes == {"tour": "holds", "refusals": "violated", "hypothesis": "violated"}
    failure = found["suites"][1]["failure"]
    assert failure["fault"] == "accepted"
    assert [move["action"] for move in failure["moves"]] == ["up", "up", "up", "up"]
    assert failure["moves"][-1]["must_be_refused"] is True
    assert failure["states"][-1] == {"count": 3}
    assert found["exercised"]["actions"]["up"] > 0
    assert found["not_exercised"]["actions"] == []


def test_what_was_not_exercised_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--suite", "tour") == ExitCode.HOLDS
    out = capsys.readouterr().out
    assert "requirements that never refused: up: not full, down: not empty" in out


def test_export_writes_a_file_that_needs_no_path_of_this_machine(here: Path) -> None:
    (here / "out").mkdir()
    assert run("--adapter", "adapter.py:Right", "--export", "out/test_counter.py") == ExitCode.HOLDS
    text = (here / "out" / "test_counter.py").read_text("utf-8")
    assert "'../counter.py'" in text
    assert "'../adapter.py:Right'" in text
    assert str(here) not in text
    compile(text, "test_counter.py", "exec")


def test_a_command_to_copy_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = here / ("far" * 30) / "test_counter.py"
    file.parent.mkdir()
    assert run("--adapter", "adapter.py:Right", "--export", str(file)) == ExitCode.HOLDS
    printed = capsys.readouterr().out.splitlines()
    assert f"written: {file}" in printed
    assert any("reproduce: " in line and line.endswith(f"--export {file}") for line in printed)


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--adapter", "nothing.py:f"], "there is no file nothing.py"),
        (["--adapter", "no.such.module:f"], "no.such.module fails when it is imported"),
        (["--adapter", "adapter.py"], "names no factory"),
        (["--adapter", "adapter.py:Rihgt"], "did you mean `Right`?"),
        (["--adapter", "adapter.py:NUMBER"], "nothing to call named `NUMBER`"),
        (["--adapter", "adapter.py:given_one"], "takes neither no argument nor two"),
        (["--adapter", "adapter.py:Misspelt"], "did you mean `count`?"),
        (["--adapter", "builtins:dict"], "which is not an adapter"),
        (["--suite", "hypothesis", "--export", "x.py"], "random runs cannot be exported"),
        (["--export", "no/such/folder/x.py"], "cannot write"),
        (["--budget", "crashes=1"], "no budget named `crashes`"),
        (["--profile", "newest"], "newest"),
    ],
)
def test_bad_input_is_named_with_its_mend(
    words: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == ExitCode.BAD_INPUT
    error = capsys.readouterr().err
    assert printed in error
    assert "help:" in error
    assert "Traceback" not in error


def test_interrupt_ends_with_what_was_found(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "from adapter import Right\n\nclass Slow(Right):\n    def do(self, step):\n"
    text += "        if self.count == 2:\n            raise KeyboardInterrupt\n        super().do(step)\n"
    (here / "slow.py").write_text(text, encoding="utf-8")
    assert run("--adapter", "slow.py:Slow") == ExitCode.UNDECIDED
    assert "interrupted" in capsys.readouterr().out


def test_limits_are_said_when_they_cut_something_off(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--suite", "tour", "--max-moves", "3") == ExitCode.HOLDS
    assert "stopped after 3 moves" in capsys.readouterr().out
