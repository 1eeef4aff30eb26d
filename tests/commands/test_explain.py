"""`stagewright explain`: the page that an error names is there, wherever it is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.commands.explain import pages

DOCS = Path(__file__).resolve().parents[2] / "docs" / "errors"


def test_an_error_names_a_command_that_prints_its_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", str(tmp_path / "none.py")]) == 2
    named = re.search(
        r"about SW\d+: stagewright (explain) (SW\d+)$", capsys.readouterr().err, re.MULTILINE
    )
    assert named is not None
    assert run_command_line([named[1], named[2].lower()]) == 0
    assert capsys.readouterr().out == (DOCS / f"{named[2].lower()}.md").read_text("utf-8")


def test_all_codes_are_listed_with_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["explain", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(pages())
    assert len(listed) == len(list(DOCS.glob("*.md")))
    assert listed[1].endswith("where Python itself needs True or False.")


@pytest.mark.parametrize(
    ("words", "said"), [(["SW1O1"], "explain --list` names all"), ([], "no code is named")]
)
def test_what_is_no_code_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["explain", *words]) == 2
    assert said in capsys.readouterr().err
