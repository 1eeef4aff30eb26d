"""docs/language/testing.md: its files are written and run as it says."""

import re
from pathlib import Path

import pytest
from tests.testing.test_pytest_plugin import run

pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "language" / "testing.md"
FILE = re.compile(r"<!-- file: (.+?) -->\n```python\n(.*?)```", re.DOTALL)


def test_the_files_of_the_page_pass(pytester: pytest.Pytester) -> None:
    for name, text in FILE.findall(PAGE.read_text("utf-8")):
        (pytester.path / name).write_text(text, "utf-8")
    result = run(pytester, "--stagewright", "--stagewright-examples", "5")
    result.assert_outcomes(passed=6)
