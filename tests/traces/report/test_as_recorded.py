"""What is wrong is shown as it was recorded: the first that went wrong is what one looks at."""

import json
from pathlib import Path

from tests.models.lease import LeaseTable

from stagewright.spec.define import define
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.report.text import as_recorded
from stagewright.traces.validate import validate


def test_the_first_violation_of_a_file_comes_first_whatever_its_name(tmp_path: Path) -> None:
    lines: list[str] = []
    for entity in ("z", "b", "a"):
        common = {"v": 1, "machine": "LeaseTable", "entity": entity}
        lines.append(json.dumps({**common, "seq": 0}))
        lines.append(json.dumps({**common, "seq": 1, "action": "expire"}))
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    report = validate([tmp_path / "t.jsonl"], define(LeaseTable), engine=Embedded(1))
    assert [e.key.entity for e in report.entities] == ["a", "b", "z"]
    assert [e.key.entity for e in as_recorded(report)] == ["z", "b", "a"]
