"""The page about the language: its machine holds, and its links lead somewhere."""

import re
from pathlib import Path

from stagewright.checker.check import check
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome, Report

PAGE = Path(__file__).parents[2] / "docs" / "language" / "README.md"
SYSTEMS = PAGE.with_name("systems.md")


def test_the_machine_of_the_page_holds(tmp_path: Path) -> None:
    file = tmp_path / "election.py"
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file.write_text('"""The blocks of the page."""\n' + "\n".join(blocks))
    definition = load(str(file))
    report = check(definition, scope_of(definition))
    assert report.outcome is Outcome.HOLDS
    assert report.states == 718


def _system(tmp_path: Path, old: str = "", new: str = "") -> Report:
    """The check of the system that the page on systems shows, with a part of its text exchanged."""
    (block,) = re.findall(r"```python\n(.*?)```", SYSTEMS.read_text("utf-8"), re.DOTALL)
    assert old in block
    file = tmp_path / "storage.py"
    file.write_text(block.replace(old, new))
    definition = load(f"{file}:Storage")
    return check(definition, scope_of(definition))


def test_the_system_of_the_page_on_systems_holds(tmp_path: Path) -> None:
    report = _system(tmp_path)
    assert report.outcome is Outcome.HOLDS
    assert report.states == 33
    assert [a.name for a in report.definition.actions] == ["lease.end", "acquire", "write"]


def test_a_part_keeps_its_promise_only_by_its_own_guard(tmp_path: Path) -> None:
    guard = 'sw.require(token >= self.newest, "the store has seen no newer token")'
    broken = [v.name for v in _system(tmp_path, guard, "").verdicts if v.run is not None]
    assert broken == ["store.newest_stays_newest"]


def test_a_part_accepts_what_its_system_refuses_only_where_the_system_says_so(
    tmp_path: Path,
) -> None:
    promise = "store.only_old_tokens_are_refused"
    (needed,) = [v for v in _system(tmp_path).verdicts if v.name == promise]
    assert needed.witness is not None
    said = re.search(
        r"Store,\n        restricts=\(.*?\n        \),\n", SYSTEMS.read_text("utf-8"), re.DOTALL
    )
    assert said is not None
    broken = [v.name for v in _system(tmp_path, said[0], "Store,").verdicts if v.run is not None]
    assert broken == [promise]


def test_the_links_of_the_page_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)]+\.md)\)", PAGE.read_text("utf-8")):
        assert (PAGE.parent / target).is_file(), target


def test_every_page_of_the_language_is_in_the_site() -> None:
    index = (PAGE.parents[1] / "index.md").read_text("utf-8")
    for page in PAGE.parent.glob("*.md"):
        assert f"\nlanguage/{page.stem}\n" in index, page.name
