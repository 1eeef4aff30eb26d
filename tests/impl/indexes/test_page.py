"""The page on online indexes: its code runs, and it names every part of a script."""

import re
import runpy
from pathlib import Path

from stagewright.impl.indexes.simulated.script import FORMS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "language" / "online-indexes.md"


def test_the_code_of_the_page_runs(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 1
    script = tmp_path / "page.py"
    script.write_text(blocks[0], "utf-8")
    assert runpy.run_path(str(script))["report"].kept


def test_the_page_names_what_there_is() -> None:
    text = PAGE.read_text("utf-8")
    assert [form for form in FORMS if f"`{form}`" not in text] == []
