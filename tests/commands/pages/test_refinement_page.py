"""The page about refinements shows what a tested model declares, and what `check` prints of it."""

import re
from pathlib import Path

import pytest
from tests.models import transaction_commit

from stagewright.commands import run_command_line

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "language" / "refinement.md").read_text("utf-8")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_example_is_the_tested_model() -> None:
    (example,) = re.findall(r"```python\n(from tests.*?)```", PAGE, re.DOTALL)
    declared = example[example.index("@refinement()") :]
    assert flat(declared) in flat(Path(transaction_commit.__file__).read_text("utf-8"))
    compile(example, "refinement.md", "exec")


def test_the_output_is_what_check_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    command, printed = re.findall(r"```console\n\$ stagewright (.*?)\n(.*?)```", PAGE, re.DOTALL)[0]
    assert run_command_line(command.split()) == 0
    assert flat(printed) in flat(capsys.readouterr().out)


def test_every_option_is_there() -> None:
    from inspect import signature

    from stagewright.spec import projection, refinement

    options = set(signature(refinement).parameters) | set(signature(projection).parameters)
    assert {name for name in options if f"`{name}=" not in PAGE} == set()
