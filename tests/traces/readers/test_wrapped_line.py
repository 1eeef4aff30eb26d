"""Lines that a collector has wrapped are read as they were written."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret

from stagewright.traces.databases.scylladb.log.line import LogRecord, parse_log_line
from stagewright.traces.databases.scylladb.log.prefix import take_apart
from stagewright.traces.readers import formats

TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
PLAIN = (
    "INFO  2024-09-27 22:15:13,717 [shard 0: gms] raft_topology - "
    f"Initiating tablet cleanup of {TABLE}:1 on 5f0:0 to revert migration"
)
NO_TIME = "[shard 0: gms] raft_topology - start topology coordinator fiber"


def as_csv(*cells: str) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow(cells)
    return out.getvalue()


@pytest.mark.parametrize(
    "wrapped",
    [
        json.dumps({"log": PLAIN + "\n", "stream": "stderr", "time": "2024-09-27T22:15:14Z"}),
        json.dumps({"@timestamp": "2024-09-27T22:15:14Z", "message": PLAIN}),
        json.dumps({"ts": 1, "msg": PLAIN}),
        as_csv("Sep 27, 2024 @ 22:15:14", PLAIN, 'a "quoted" cell'),
    ],
)
def test_a_wrapped_line_says_what_the_plain_one_says(wrapped: str) -> None:
    plain, found = parse_log_line(PLAIN, 1, "a.log"), parse_log_line(wrapped, 1, "a.log")
    assert isinstance(plain, LogRecord)
    assert found == plain
    assert plain.words["stage"] == "cleanup_target", "the pattern ends where the line ends"


@pytest.mark.parametrize(
    ("fields", "node"),
    [
        ({"_HOSTNAME": "n1", "_PID": "7"}, "n1[7]"),
        ({"host": {"name": "n1"}}, "n1[0]"),
        ({"host.name": "n1"}, "n1[0]"),
        ({"kubernetes": {"pod": {"name": "scylla-0"}}}, "scylla-0[0]"),
        ({"kubernetes": {"pod_name": "scylla-0"}}, "scylla-0[0]"),
        ({"attrs": {"tag": "scylla0"}}, "scylla0[0]"),
        ({"labels": {"pod": "scylla-0"}}, "scylla-0[0]"),
        ({}, "a.log"),
    ],
)
def test_the_node_is_the_host_or_pod_that_the_collector_names(
    fields: dict[str, object], node: str
) -> None:
    parts = take_apart(json.dumps({"message": PLAIN, **fields}), "a.log")
    assert parts is not None
    assert parts.node == node


def test_a_line_without_a_time_has_the_journals() -> None:
    fields = {"MESSAGE": NO_TIME, "__REALTIME_TIMESTAMP": "1727475313717000", "_HOSTNAME": "n1"}
    parts = take_apart(json.dumps(fields), "a.log")
    assert parts is not None
    assert parts.time == "2024-09-27 22:15:13.717000"


@pytest.mark.parametrize("text", ['{"log": ', "[1]", '{"log": "other"}', 'a "b" c', '"x,"'])
def test_what_is_no_wrapped_log_line_is_left_alone(text: str) -> None:
    assert take_apart(text, "a.log") is None


def test_two_nodes_in_one_file_are_told_apart() -> None:
    lines = [f"scylla-node{n}-1  | INFO  2024-09-27 22:15:1{n},000 {NO_TIME}" for n in (1, 2)]
    assert {r.node for t in lines if isinstance(r := parse_log_line(t, 1, "f"), LogRecord)} == {
        "scylla-node1-1",
        "scylla-node2-1",
    }
    interpret(lines)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
def test_columns_of_a_table_are_known_by_their_names(
    tmp_path: Path, delimiter: str, quoting: int
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(["@timestamp", "host.name", "message", "more"])
    for node in ("n1", "n2"):
        writer.writerow(["Sep 27, 2024", node, PLAIN, 'say "x"'])
    path = tmp_path / "export.csv.gz"
    path.write_bytes(gzip.compress(out.getvalue().encode()))
    _, *rows = out.getvalue().splitlines()
    found = [parse_log_line(row, 1, str(path)) for row in rows]
    plain = parse_log_line(PLAIN, 1, "n")
    assert isinstance(plain, LogRecord)
    assert [r.node for r in found if isinstance(r, LogRecord)] == ["n1[0]", "n2[0]"]
    assert [r.words for r in found if isinstance(r, LogRecord)] == [plain.words, plain.words]


def test_an_export_of_json_lines_is_a_log() -> None:
    row = json.dumps({"labels": {"pod": "scylla-0"}, "line": PLAIN})
    assert formats.form_of("loki.jsonl", row.encode()) == formats.form_named("scylla-log")
    for seen in ("", ',"observed":{"batch[shard0].done":true,"called[shard0]":false}'):
        event = b'{"v":1,"entity":"e","seq":0%s}' % seen.encode()
        assert formats.form_of("trace.jsonl", event) == formats.form_named("jsonl")
