"""Each recipe of the cookbook holds, and breaks without the line that it is about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.checker.check import check
from stagewright.spec import scope_of
from stagewright.spec.loading import load
from stagewright.spec.verdict import Outcome, Report

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "cookbook.md"
TEXT = PAGE.read_text("utf-8")
HEAD, *_ = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
RECIPES = {
    name: (int(states.replace(",", "")), body)
    for name, states, body in re.findall(
        r"^<!-- machine: (\w+), ([\d,]+) states -->\n```python\n(.*?)^```$",
        TEXT,
        re.MULTILINE | re.DOTALL,
    )
}


def checked(name: str, body: str, folder: Path) -> Report:
    file = folder / "recipe.py"
    file.write_text(f"{HEAD}\n\n{body}", "utf-8")
    definition = load(f"{file}:{name}")
    return check(definition, scope_of(definition), symmetry=False)


def test_no_block_is_left_out() -> None:
    assert len(RECIPES) == len(re.findall("^```python", TEXT, re.MULTILINE)) - 1


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_holds_and_needs_its_point(name: str, tmp_path: Path) -> None:
    states, body = RECIPES[name]
    report = checked(name, body, tmp_path)
    assert [v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS] == []
    assert report.states == states
    lines = body.splitlines(keepends=True)
    without = [line for line in lines if not line.rstrip().endswith("# the point")]
    assert len(without) == len(lines) - 1
    broken = checked(name, "".join(without), tmp_path)
    assert any(v.outcome is Outcome.VIOLATED for v in broken.verdicts)
