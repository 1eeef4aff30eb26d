"""Every error code has a page: what is wrong, its cause, its fix, and an example that produces it."""

from __future__ import annotations

import ast
import importlib.util
import linecache
import re
import runpy
from dataclasses import dataclass
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.spec.errors import StagewrightError

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "errors").glob("sw*.md"))
PAGE = re.compile(
    r"# (?P<code>SW\d{3}): [^\n]+\n\n(?P<summary>[^\n]+)\n\n\*\*Cause\.\*\* .+\n\n\*\*Fix\.\*\* .+\n\n## An example\n\n"
    r"(?:```python\n(?P<source>.*?)```\n\n)?```(?:console\n\$ stagewright (?P<command>[^\n]+)|text)\n"
    r"(?P<message>error\[.*?)\n```\n",
    re.DOTALL,
)
# Pythons differ in how much they underline; how many machines there are is no matter of a page.
VARYING = re.compile(r"^ *\| *\^+$|(?<=names the )\d+(?= shipped)", re.MULTILINE)
NEEDS = {"SW416": "rocksdict", "SW418": "msgspec", "SW501": "pyspark"}


@dataclass(frozen=True)
class Page:
    code: str
    summary: str
    source: str | None
    command: str | None  # none: the source raises by itself
    message: str


def read(path: Path) -> Page:
    found = PAGE.fullmatch(path.read_text("utf-8"))
    assert found is not None, f"{path.name} has not the form of the other pages"
    return Page(**found.groupdict())


def kinds_of_errors() -> list[tuple[str, str]]:
    """The code of each class that has one, and the first line of its docstring."""
    found: list[tuple[str, str]] = []
    for package in ("spec", "checker", "impl", "traces", "src/stagewright/commands"):
        for path in sorted((DOCS.parent / package).rglob("*.py")):
            text = path.read_text("utf-8")
            if 'code = "SW' not in text:
                continue
            for kind in ast.walk(ast.parse(text)):
                if isinstance(kind, ast.ClassDef):
                    summary = (ast.get_docstring(kind) or "").partition("\n")[0]
                    found += [(code, summary) for code in map(code_in, kind.body) if code]
    return found


def code_in(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
            return code
    return None


def test_each_kind_of_error_has_a_code_of_its_own_and_each_code_a_page_and_a_line_in_the_list() -> (
    None
):
    found = sorted(kinds_of_errors())
    assert found[0][0] == StagewrightError.code == "SW000"
    summaries = dict(found[1:])
    assert len(summaries) == len(found) - 1 > 30
    pages = [read(path) for path in PAGES]
    assert {page.code: page.summary for page in pages} == summaries
    assert [path.stem for path in PAGES] == [page.code.lower() for page in pages]
    listed = re.findall(
        r"^\| \[(SW\d+)\]\(errors/(sw\d+)\.md\) \| (.+) \|$",
        (DOCS / "errors.md").read_text(),
        re.MULTILINE,
    )
    assert listed == [(code, code.lower(), text) for code, text in summaries.items()]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_example_of_a_page_ends_with_the_error_that_it_shows(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = read(path)
    if page.code in NEEDS:
        pytest.importorskip(NEEDS[page.code])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", importlib.util.find_spec)  # and put back
    monkeypatch.setattr("stagewright.impl.group0.sqlite._BUSY_SECONDS", 0.05)
    linecache.clearcache()  # all examples have the same name
    if page.source is not None:
        Path("example.py").write_text(page.source, "utf-8")
    if page.command is not None:
        assert run_command_line(page.command.split()) == 2
        said = capsys.readouterr().err.rstrip()
        said = said[said.find("error[") :]  # after the command's progress
    else:
        with pytest.raises(StagewrightError) as caught:
            runpy.run_path("example.py")
        said = f"error[{caught.value.code}]: {caught.value}"
    said = said.replace(f"{tmp_path}/", "")
    assert said.startswith(f"error[{page.code}]: ")
    assert VARYING.sub("", said) == VARYING.sub("", page.message)
