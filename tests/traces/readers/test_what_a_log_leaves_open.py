"""Records that come twice, come at one time or cannot be read: no verdict is claimed that hangs on them."""

import json
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.models.lease import LeaseTable

from stagewright.spec.define import define
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.readers.tie_orders import ORDERS_MAX, orders_of
from stagewright.traces.replay.exact_verdicts import Cause
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

OK, VIOLATION, UNDECIDED = TraceVerdict.OK, TraceVerdict.VIOLATION, TraceVerdict.UNDECIDED
MAPPING = r"""machine = "LeaseTable"
entity = "{lease}"
time = {from = "{when}", format = "unix"}

[source]
form = "text"
line = '^(?P<when>\d+) (?P<lease>\w) (?P<message>.*)$'

[[event]]
match = '^(?P<what>acquire|expire|go_silent)$'
action = "{what}"
"""
Record = tuple[int, str, str]  # time, entity, action


def record(time: int, entity: str, action: str) -> dict[str, Any]:
    said = {"entity": entity, "action": action, "machine": "LeaseTable"}
    attributes = [{"key": f"stagewright.{k}", "value": {"stringValue": v}} for k, v in said.items()]
    return {"timeUnixNano": str(time), "attributes": [a for a in attributes if a["value"]]}


def otlp(path: Path, *requests: Sequence[dict[str, Any]]) -> Path:
    documents = [{"resourceLogs": [{"scopeLogs": [{"logRecords": list(r)}]}]} for r in requests]
    path.write_text("".join(json.dumps(d) + "\n" for d in documents))
    return path


def evaluated(paths: Sequence[Path], mapping: Path | None = None) -> TraceReport:
    options = Options(mapping=mapping)
    return validate(list(paths), define(LeaseTable), options, engine=Embedded(1))


def in_two_files(form: str, folder: Path, *files: Sequence[Record]) -> TraceReport:
    paths = [folder / f"{number}.log" for number in range(len(files))]
    if form == "otlp":
        for path, records in zip(paths, files, strict=True):
            otlp(path, [record(*one) for one in records])
        return evaluated(paths)
    for path, records in zip(paths, files, strict=True):
        path.write_text("".join(f"{t} {entity} {action}\n" for t, entity, action in records))
    (folder / "m.toml").write_text(MAPPING)
    return evaluated(paths, folder / "m.toml")


@pytest.mark.parametrize("form", ["otlp", "mapped"])
def test_a_verdict_that_hangs_on_the_order_of_files_is_not_claimed(
    form: str, tmp_path: Path
) -> None:
    files: list[list[Record]] = [[(1, "a", "acquire"), (2, "a", "go_silent")], [(2, "a", "expire")]]
    for order in permutations(files):
        report = in_two_files(form, tmp_path, *order)
        (entity,) = report.entities
        assert (entity.verdict, entity.cause, entity.sequence) == (UNDECIDED, Cause.ORDER, 2)
        assert report.verdicts[OK] + report.verdicts[VIOLATION] == 0
        assert report.exit_code == 3
        assert any("their order is not known" in note for note in report.notes)


@pytest.mark.parametrize("form", ["otlp", "mapped"])
def test_what_holds_in_every_order_is_claimed(form: str, tmp_path: Path) -> None:
    good: list[list[Record]] = [[(1, "a", "acquire")], [(1, "b", "acquire")]]
    assert in_two_files(form, tmp_path, *good).exit_code == 0
    wrong: list[list[Record]] = [[(1, "a", "expire"), (2, "a", "expire")], [(2, "a", "go_silent")]]
    (entity,) = in_two_files(form, tmp_path, *wrong).entities
    assert (entity.verdict, entity.sequence) == (VIOLATION, 1)
    twice: list[list[Record]] = [[(2, "a", "expire")], [(2, "a", "go_silent")]]
    (entity,) = in_two_files(form, tmp_path, *twice).entities
    assert entity.verdict is VIOLATION


def test_lines_of_a_file_keep_their_order_and_too_many_orders_are_not_tried() -> None:
    found = orders_of([1, 2, 2, 2, 3], [0, 0, 0, 1, 1])
    assert found is not None
    assert (found.first, set(found.others)) == (1, {(0, 1, 3, 2, 4), (0, 3, 1, 2, 4)})
    assert orders_of([1, 1, 2], [0, 0, 1]) is None
    many = orders_of([1] * 8, [0, 1] * 4)
    assert many is not None
    assert (many.first, many.others) == (0, ())
    assert len(list(permutations(range(4)))) <= ORDERS_MAX


def test_records_that_were_exported_again_are_duplicates(tmp_path: Path) -> None:
    batch = [record(1, "a", "acquire"), record(2, "a", "go_silent"), record(3, "a", "expire")]
    report = evaluated([otlp(tmp_path / "a.json", batch, batch)])
    assert (report.exit_code, report.verdicts[OK]) == (0, 1)
    assert (report.totals.duplicates, report.totals.events, report.totals.with_events) == (3, 7, 2)
    (note,) = report.notes
    assert "3 records equal to another in everything, of a:" in note
    other = dict(batch[2], body={"stringValue": "another time"})
    assert evaluated([otlp(tmp_path / "a.json", batch, [other])]).exit_code == 1


def test_a_wrong_record_is_reported_and_the_others_of_its_request_are_checked(
    tmp_path: Path,
) -> None:
    wrong = record(2, "", "acquire")
    batch = [record(1, "a", "acquire"), wrong, record(3, "a", "go_silent")]
    report = evaluated([otlp(tmp_path / "a.json", batch, [record(4, "a", "expire")])])
    assert report.verdicts[OK] == 1
    assert (report.totals.lines, report.totals.unparsed, report.totals.with_events) == (2, 1, 1)
    assert [(u.where.line, u.reason) for u in report.unparsed] == [
        (1, "record 2: `stagewright.entity` is missing")
    ]
    assert report.exit_code == 3


def test_of_an_entity_with_a_wrong_record_nothing_is_claimed_from_there_on(tmp_path: Path) -> None:
    wrong = record(2, "a", "go_silent")
    wrong["attributes"].append({"key": "stagewright.sequence", "value": {"intValue": "x"}})
    batch = [record(1, "a", "acquire"), wrong, record(3, "a", "expire"), record(3, "b", "acquire")]
    report = evaluated([otlp(tmp_path / "a.json", batch)])
    (entity,) = report.entities
    assert (entity.key.entity, entity.verdict, entity.sequence) == ("a", TraceVerdict.UNPARSED, 2)
    assert report.verdicts[OK] == 1
    assert report.verdicts[VIOLATION] == 0
    batch[0] = record(1, "a", "expire")
    (early,) = evaluated([otlp(tmp_path / "a.json", batch)]).entities
    assert (early.verdict, early.sequence) == (VIOLATION, 1)
