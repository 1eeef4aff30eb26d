"""What the pages on properties and mutation show is what the models say and the commands print."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.console.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "tests" / "models" / "workers.py"

ASSUMING = '''"""A clock that is assumed to be in time."""

from stagewright.spec import (
    Bool, FlagVar, Machine, action, assume, constant, final, flag, initially, invariant,
    known_bug, require, ANY,
)


class Clock(Machine):
    """An alarm that rings in time, if the clock is right and nobody turns it off."""

    right = constant(flag(init=ANY))
    off: FlagVar = flag()
    late: FlagVar = flag()

    @initially(assumed="clocks are set by the network")
    def the_clock_is_right(self) -> Bool:
        return self.right

    @action
    def ring(self) -> None:
        assume(~self.off, "nobody turns it off", because="the manual, 1")
        require(~self.late, "it has not rung late")
        self.late = self.off | ~self.right

    @action
    def turn_off(self) -> None:
        self.off = True

    @invariant
    def it_rings_in_time(self) -> Bool:
        return ~self.late


@known_bug("B1", "issue 1", breaks=Clock.it_rings_in_time)
class Slow(Clock):
    """It rang late."""

    @action
    def ring(self) -> None:
        self.late = True
'''


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    file = tmp_path / "clock.py"
    file.write_text(ASSUMING)
    return file


@pytest.mark.parametrize("page", ["properties.md"])
def test_the_excerpts_stand_in_the_model(page: str) -> None:
    text = (ROOT / "docs" / "language" / page).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    models = MODEL.read_text("utf-8")
    found = [block for block in blocks if "@sw." in block]
    assert len(found) >= 3
    for block in found:
        assert block in models


def test_the_counterexample_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "language" / "properties.md").read_text("utf-8")
    (block,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    found = run_command_line(
        ["check", f"{MODEL}:OneAtATime", "--engine", "numpy", "--property", "tasks_are_independent"]
    )
    assert found == ExitCode.VIOLATED
    printed = capsys.readouterr().out
    for line in textwrap.dedent(block).splitlines()[1:]:
        assert line.strip() in printed


def test_assumptions_are_listed_and_can_be_dropped(
    clock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = f"{clock}:Clock"
    assert run_command_line(["show", machine]) == ExitCode.HOLDS
    shown = " ".join(capsys.readouterr().out.split())
    assert "assumes, of ring: nobody turns it off; the manual, 1" in shown
    assert "assumes, of the initial state: the_clock_is_right; clocks are set" in shown
    check = ["check", machine, "--no-deadlock", "--engine", "numpy"]
    assert run_command_line(check) == ExitCode.HOLDS
    assert run_command_line([*check, "--without", "nobody turns it off"]) == ExitCode.VIOLATED
    assert run_command_line([*check, "--without", "the_clock_is_right"]) == ExitCode.VIOLATED
    capsys.readouterr()
    assert run_command_line([*check, "--without", "nobody turned it off"]) == ExitCode.BAD_INPUT
    assert "did you mean `nobody turns it off`?" in capsys.readouterr().err


def test_an_assumption_that_nothing_needs_is_said_to_be_none(
    clock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock.write_text(ASSUMING.replace("self.off | ~self.right", "~self.right"))
    words = ["check", f"{clock}:Clock", "--no-deadlock", "--engine", "numpy"]
    assert run_command_line([*words, "--without", "nobody turns it off"]) == ExitCode.HOLDS
    assert "nothing breaks without nobody turns it off" in capsys.readouterr().out


def test_a_file_may_declare_known_bugs_of_its_own(
    clock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["mutate", "--known", str(clock), "--workers", "1"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert "B1" in printed
    assert "it_rings_in_time" in printed
    one = ["mutate", "--known", f"{clock}:Clock", "--workers", "1"]
    assert run_command_line(one) == ExitCode.HOLDS
    none = ["mutate", "--known", str(MODEL), "--workers", "1"]
    assert run_command_line(none) == ExitCode.BAD_INPUT
