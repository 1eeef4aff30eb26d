"""The documentation is one site: every page is in its navigation, every link leads somewhere, what pages name is there."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = ("machines", "documents", "known-bugs")
OF_THE_HOUSE = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
PAGES = [
    *(p for p in sorted(DOCS.rglob("*.md")) if p.relative_to(DOCS).parts[0] not in GENERATED),
    *OF_THE_HOUSE,
    *sorted((ROOT / "examples").rglob("*.md")),
]
FENCED = re.compile(r"^(`{3,})(\S*)[^\n]*\n(.*?)^\1$", re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCED.sub("", page.read_text("utf-8"))


def anchors(page: Path) -> set[str]:
    """What links may name in a page: its headings as GitHub and Sphinx spell them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    wrong: list[str] = []
    without_code = re.sub(r"`[^`\n]+`", "code", prose(page))
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code):
        if link.startswith(("http://", "https://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


def test_every_page_is_in_the_navigation() -> None:
    found: set[Path] = set()
    waiting = [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        found.add(page)
        blocks = FENCED.findall(page.read_text("utf-8"))
        entries = [
            line for _, kind, body in blocks if kind == "{toctree}" for line in body.splitlines()
        ]
        for entry in filter(None, entries):
            notebook = page.parent / f"{entry}.ipynb"
            if not entry.startswith(":") and not notebook.is_file():
                listed = (
                    page.parent.glob(f"{entry}.md")
                    if "*" in entry
                    else [page.parent / f"{entry}.md"]
                )
                waiting += [p.resolve() for p in listed if p.resolve() not in found]
    of_examples = {p for p in PAGES if p.parent.parent == ROOT / "examples"}
    assert set(PAGES) - of_examples - found == set()
    assert all(page.is_file() for page in found)


@pytest.mark.parametrize("page", OF_THE_HOUSE, ids=named)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    """Also in a row that names its folder first: `checker/`, then `check.py`."""
    missing: list[str] = []
    for line in prose(page).splitlines():
        names = re.findall(r"`([\w./-]+(?:\.py|/))`", line)
        folders = [ROOT, *(ROOT / name for name in names if name.endswith("/"))]
        folders.append(ROOT / "src" / "stagewright" / "commands")
        folders += [folder.parent for folder in folders[1:]]
        missing += [n for n in names if not any((f / n).exists() for f in folders)]
    assert missing == []


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="needs the extra `docs`")
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = ["-P", "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(DOCS)]
    built = subprocess.run(
        [sys.executable, *command, str(ROOT), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    assert "cookbook" in (tmp_path / "docs" / "index.html").read_text("utf-8")
