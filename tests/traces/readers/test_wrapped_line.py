"""Lines that a collector has wrapped are read as they were written."""

import csv
import io
import json

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret

from stagewright.traces.databases.scylladb.log.line import LogRecord, parse_log_line
from stagewright.traces.databases.scylladb.log.prefix import take_apart

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
