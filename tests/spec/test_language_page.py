"""The page about the language: its machine holds, and its links lead somewhere."""

import re
from pathlib import Path

from stagewright.checker.check import check
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome

PAGE = Path(__file__).parents[2] / "docs" / "language" / "README.md"


def test_the_machine_of_the_page_holds(tmp_path: Path) -> None:
    file = tmp_path / "election.py"
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    file.write_text('"""The blocks of the page."""\n' + "\n".join(blocks))
    definition = load(str(file))
    report = check(definition, scope_of(definition))
    assert report.outcome is Outcome.HOLDS
    assert report.states == 718


def test_the_links_of_the_page_lead_to_files() -> None:
    for target in re.findall(r"\]\(([^)]+\.md)\)", PAGE.read_text("utf-8")):
        assert (PAGE.parent / target).is_file(), target
