"""The list of measured figures has what the pages have, and commands that exist."""

from __future__ import annotations

import importlib.util
import re
import shlex

import pytest
from tests.benchmarks.figures import MEASURED, ROOT, Figures, chosen, main


@pytest.mark.parametrize("one", MEASURED, ids=lambda one: one.command)
def test_a_page_has_the_figures_that_are_listed_of_it(one: Figures) -> None:
    text = " ".join((ROOT / one.page).read_text("utf-8").split())
    assert [figure for figure in one.figures if figure not in text] == []


@pytest.mark.parametrize("one", MEASURED, ids=lambda one: one.command)
def test_a_command_is_there(one: Figures) -> None:
    flag, module, *_ = shlex.split(one.command)
    assert flag == "-m"
    assert importlib.util.find_spec(module) is not None


def test_no_row_of_the_readmes_measured_tables_is_left_out() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    tables = re.findall(r"\n\n(\| (?:tool|model) \|.*?)\n\n", readme, re.DOTALL)
    rows = [row for table in tables for row in table.splitlines()[2:]]
    listed = [f for one in MEASURED for f in one.figures]
    assert len(rows) == 11
    assert [row for row in rows if not any(row.startswith(figure) for figure in listed)] == []


def test_one_page_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view-engine"]) == 0
    printed = capsys.readouterr().out
    assert "$ python -m tests.benchmarks.view_engine 1000000" in printed
    assert "README" not in printed
    assert {one.page for one in chosen(["README"])} == {"README.md"}
