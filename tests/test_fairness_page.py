"""What the page on fairness shows is so: its code is that of tested models, its counterexamples are printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "tests" / "models"
PAGE = (ROOT / "docs" / "language" / "fairness.md").read_text(encoding="utf-8")


def shown(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("number", "model"), [(0, "stuck.py"), (1, "public_examples/coffee_can.py"), (2, "crew.py")]
)
def test_its_code_is_that_of_a_model(number: int, model: str) -> None:
    assert len(shown("python")) == 3
    known = (MODELS / model).read_text(encoding="utf-8").splitlines()
    assert [line for line in shown("python")[number].splitlines() if line not in known] == []


@pytest.mark.parametrize(("number", "model"), [(0, "stuck.py"), (1, "crew.py")])
def test_its_counterexamples_are_what_check_prints(
    number: int, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    name = shown("text")[number].split()[1]
    run_command_line(["check", f"tests/models/{model}", "--property", name])
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    wanted = shown("text")[number].splitlines()
    first = printed.index(wanted[0])
    assert printed[first : first + len(wanted)] == wanted
