"""The page on running a definition: its code runs, from top to bottom."""

import re
import runpy
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "language" / "running.md"


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 6
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks), "utf-8")
    found = runpy.run_path(str(script))
    assert found["task"].state["reply"] is found["Reply"].none


def test_the_definition_of_the_page_keeps_its_promise(tmp_path: Path) -> None:
    from stagewright.checker.check import check
    from stagewright.spec.loading import load
    from stagewright.spec.scope import scope_of
    from stagewright.spec.verdict import Outcome

    first = re.search(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert first is not None
    file = tmp_path / "tasks.py"
    file.write_text(first.group(1), "utf-8")
    definition = load(f"{file}:Task")
    verdicts = {v.name: v.outcome for v in check(definition, scope_of(definition)).verdicts}
    assert verdicts["done_is_done"] is Outcome.HOLDS
