"""The page on simulated clusters: its code runs, and it names every part of a script and every fault."""

import re
import runpy
from pathlib import Path

from stagewright.impl.simulator.database.script import FORMS
from stagewright.impl.simulator.database.weather import FAULTS

PAGE = Path(__file__).resolve().parents[4] / "docs" / "language" / "simulated-clusters.md"


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
    assert [form for form in FORMS.values() if f"`{form}`" not in text] == []
    assert [fault for fault in FAULTS if f"`{fault}`" not in text] == []
