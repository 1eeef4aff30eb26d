"""OpenTelemetry logs and traces: records with attributes of ours are events, in any order and number of files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.models.lease import LeaseTable
from tests.traces.readers.reading import Read, evaluated, read_log

from stagewright.spec.define import define
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.inputs.discover import find_inputs
from stagewright.traces.readers import text_lines
from stagewright.traces.readers.generic import otlp
from stagewright.traces.readers.generic.otlp_records import (
    EventRecord,
    WrongRecordError,
    event_records,
)

RUN = ("acquire", "go_silent", "expire", "acquire")


def value(plain: object) -> dict[str, Any]:
    match plain:
        case None:
            return {}
        case bool():
            return {"boolValue": plain}
        case int():
            return {"intValue": str(plain)}
        case float():
            return {"doubleValue": plain}
        case str():
            return {"stringValue": plain}
        case list():
            return {"arrayValue": {"values": [value(item) for item in plain]}}
        case dict():
            return {"kvlistValue": {"values": attributes(plain)}}
        case _:
            raise AssertionError(plain)


def attributes(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(plain)} for name, plain in said.items()]


def ours(**said: object) -> list[dict[str, Any]]:
    return attributes({f"stagewright.{n.replace('__', '.')}": v for n, v in said.items()})


def log(time: int, **said: object) -> dict[str, Any]:
    return {"timeUnixNano": str(time), "attributes": ours(**said)}


def request(*records: dict[str, Any], instance: str = "i1") -> dict[str, Any]:
    about = {"service.instance.id": instance, "stagewright.machine": "LeaseTable"}
    return {
        "resourceLogs": [
            {
                "resource": {"attributes": attributes(about)},
                "scopeLogs": [{"scope": {"name": "s"}, "logRecords": list(records)}],
            }
        ]
    }


def spans(*of: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(of)}]}]}


def steps(entity: str, *actions: str, begin: int = 10) -> list[dict[str, Any]]:
    return [log(begin + i, entity=entity, action=a) for i, a in enumerate(actions)]


def write(path: Path, *requests: object) -> Path:
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in requests))
    return path


def read(*paths: Path) -> Read:
    return evaluated(read_log("otlp", paths), define(LeaseTable))


def one(document: dict[str, Any]) -> EventRecord:
    (found,) = event_records(document)
    return found


def test_events_are_ordered_by_time_over_all_files(tmp_path: Path) -> None:
    records = [*steps("a", *RUN), *steps("b", "acquire", "expire"), log(3), log(4, entity="a")]
    random.Random(5).shuffle(records)
    files = [write(tmp_path / f"{i}.jsonl", *map(request, records[i::3])) for i in range(3)]
    found = read(*files)
    assert found.verdicts == {"a": TraceVerdict.OK, "b": TraceVerdict.VIOLATION}
    assert [e.action for e in found.events if e.entity == "a"] == [None, *RUN]
    assert found.counts == (8, 0, 8, 0)
    assert found.interpreted.notes == []


def test_numbers_order_events_where_all_have_one(tmp_path: Path) -> None:
    start = log(9, entity="a", sequence=0, observed__lease="free", none=["holder"])
    numbered = [log(9 - i, entity="a", action=a, sequence=i + 1) for i, a in enumerate(RUN)]
    found = read(write(tmp_path / "a.jsonl", request(*numbered), request(start)))
    assert found.verdicts == {"a": TraceVerdict.OK}
    assert found.counts == (2, 0, 2, 0)
    gap = read(write(tmp_path / "a.jsonl", request(start, *numbered[1:])))
    assert gap.verdicts == {"a": TraceVerdict.GAP}
    mixed = read(write(tmp_path / "a.jsonl", request(start, log(30, entity="a", action="acquire"))))
    assert mixed.verdicts == {"a": TraceVerdict.OK}
    assert "both numbered and unnumbered" in mixed.interpreted.notes[0]


def test_equal_times_are_reported(tmp_path: Path) -> None:
    found = read(
        write(tmp_path / "a.jsonl", request(*steps("a", "acquire"), *steps("a", "expire")))
    )
    assert "at the same time as another" in found.interpreted.notes[0]


def test_an_end_is_marked_or_missing(tmp_path: Path) -> None:
    ended = [*steps("a", "acquire"), log(30, entity="a", end=True)]
    silent = log(30, entity="b", action="acquire", observed__holder="node2", end=True)
    found = read(write(tmp_path / "a.jsonl", request(*ended, silent, *steps("c", "acquire"))))
    assert found.verdicts == {
        "a": TraceVerdict.OK,
        "b": TraceVerdict.OK,
        "c": TraceVerdict.GAP,
    }


def test_what_a_record_says_is_read_from_all_that_is_around_it() -> None:
    event = one(
        request(log(5, entity="e", action="x", params__n="node0", observed={"a": [1, 2.0, None]}))
    )
    assert event._replace(same=b"") == EventRecord(
        1, "LeaseTable", "", "i1", "e", "i1", "x", {"n": "node0"}, {"a": [1, 2, None]}, False, None, 5
    )  # fmt: skip
    own = one(request(log(5, entity="e", end=True, machine="M", trace="t", node="n", profile="p")))
    assert (own.machine, own.profile, own.trace, own.node, own.end) == ("M", "p", "t", "n", True)


def test_spans_and_their_events_are_events() -> None:
    span = {
        "traceId": "5b8efff798038103d269b633813fc60c",
        "startTimeUnixNano": "10",
        "endTimeUnixNano": "20",
        "attributes": ours(entity="e", machine="M", action="x", params__n="n0", sequence=3),
        "events": [
            {"timeUnixNano": 15, "name": "y", "attributes": ours(action="y")},
            {"timeUnixNano": 16, "name": "z"},
        ],
    }
    whole, within = event_records(spans(span))
    assert (whole.action, whole.time, whole.sequence) == ("x", 20, 3)
    assert (within.action, within.time, within.sequence) == ("y", 15, None)
    assert within.parameters == {}
    assert {(t.entity, t.machine, t.trace) for t in (whole, within)} == {
        ("e", "M", span["traceId"])
    }


def test_the_names_before_version_1_are_known() -> None:
    document = request(log(5, entity="e", action="x"))
    resource = document["resourceLogs"][0]
    resource["instrumentationLibraryLogs"] = resource.pop("scopeLogs")
    assert one(document).action == "x"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (request(log(5, action="x")), "`stagewright.entity` is missing"),
        (request(log(5, entity="e", acton="x", end=True)), "did you mean `stagewright.action`?"),
        (request(log(0, entity="e", action="x")), "neither a time nor"),
        (request(log(1 << 63, entity="e", action="x")), "its time is 9"),
        (request({"attributes": ours(entity="e", action="x")}), "neither a time nor"),
        (request(log(5, entity=7, action="x")), "`stagewright.entity` is 7, not a text"),
        (request(log(5, entity="e", end="yes")), "not true or false"),
        (request(log(5, entity="e", observed="x")), "not a map"),
        (request(log(5, entity="e", none=[1])), "not a list of names"),
        (request(log(5, entity="e", sequence="1.5")), "not a whole number"),
        (request(log(5, entity="e", sequence=-1)), "`stagewright.sequence` is -1"),
    ],
)
def test_what_is_wrong_with_a_record_is_reported(document: dict[str, Any], reason: str) -> None:
    assert reason in one(document).wrong


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"resourceLogs": [{"scopeLogs": 3}]}, "`scopeLogs` is no list"),
        ({"resourceLogs": [3]}, "something that is no object"),
        ({"resourceLogs": [{"resource": []}]}, "`resource` is no object"),
    ],
)
def test_what_is_wrong_with_a_request_is_reported(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(WrongRecordError) as error:
        event_records(document)
    assert reason in str(error.value)


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", request(*steps("a", *RUN)), request(log(1)), {"resourceMetrics": []}
    )
    good = path.read_bytes()
    garbage = (
        b'{"resourceLogs":[{"x":"stagewright.\n\n[]\n{"resourceLogs":"stagewright.\xff"}\n'
        + b"[" * 10**5
    )
    path.write_bytes(good + garbage + b'\n{"resourceLogs":[{"scopeLogs":"stagewright."}]}\n')
    found = read(path)
    assert found.counts == (9, 1, 3, 5)
    assert [line for line, _ in found.reasons] == [4, 6, 7, 8, 9]
    assert "nothing of this request is taken" in found.reasons[-1][1]
    assert found.verdicts == {"a": TraceVerdict.OK}


def test_a_request_may_be_longer_than_any_line_of_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_lines, "LINE_MAX", 100)
    monkeypatch.setattr(text_lines, "_CHUNK", 1000)
    found = read(write(tmp_path / "a.jsonl", request(*steps("a", *RUN * 2))))
    assert len(found.events) == 9


def test_a_file_may_be_one_document_whose_records_have_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(request(*steps("a", "acquire", "expire")), indent=1))
    found = read(path)
    assert found.verdicts == {"a": TraceVerdict.VIOLATION}
    rows = path.read_text().splitlines()
    place = found.findings[0].place
    assert place is not None
    assert rows[place.line].split() == ['"timeUnixNano":', '"11",']
    assert found.counts == (len(rows), 0, len(rows), 0)
    path.write_text(path.read_text()[:300])
    broken = read_log("otlp", [path])
    assert len(broken.reasons) == 1
    assert "not JSON" in broken.reasons[0][1]


def test_the_form_is_known_by_its_content(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", request(log(1)))
    write(tmp_path / "b.json", request(log(2)))
    write(tmp_path / "c.jsonl", {"v": 1, "entity": "e", "seq": 0})
    write(tmp_path / "d.json", {"some": "thing"})
    found = find_inputs([tmp_path])
    assert [(f.path.name, f.form) for f in found.files] == [
        ("a.jsonl", "otlp"),
        ("b.json", "otlp"),
        ("c.jsonl", "jsonl"),
    ]
    with pytest.raises(InputError, match="does not look like OTLP"):
        otlp.check(tmp_path / "c.jsonl")
