"""What is wrong is shown as it was recorded: the first that went wrong is what one looks at."""

import json
from pathlib import Path

from tests.models.lease import LeaseTable

from stagewright.spec.define import define
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.report.text import as_recorded
from stagewright.traces.validate import validate


def written(path: Path, entities: dict[str, int | None]) -> Path:
    """A file in which each entity begins with a step that is refused, at its time."""
    lines: list[str] = []
    for entity, time in entities.items():
        common = {"v": 1, "machine": "LeaseTable", "entity": entity}
        at = {} if time is None else {"time": time}
        lines.append(json.dumps({**common, "seq": 0, **at}))
        lines.append(json.dumps({**common, "seq": 1, "action": "expire", **at}))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_first_violation_of_a_file_comes_first_whatever_its_name(tmp_path: Path) -> None:
    written(tmp_path / "t.jsonl", dict.fromkeys("zba"))
    report = validate([tmp_path / "t.jsonl"], define(LeaseTable), engine=Embedded(1))
    assert [e.key.entity for e in report.entities] == ["a", "b", "z"]
    assert [e.key.entity for e in as_recorded(report)] == ["z", "b", "a"]


def test_violations_of_several_files_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = [
        written(tmp_path / "a.jsonl", {"noon": 1_200, "morning": 900}),
        written(tmp_path / "b.jsonl", {"never": None, "night": 100, "evening": 1_800}),
    ]
    report = validate(files, define(LeaseTable), engine=Embedded(1))
    assert [e.key.entity for e in as_recorded(report)] == [
        "night",
        "morning",
        "noon",
        "evening",
        "never",
    ]
