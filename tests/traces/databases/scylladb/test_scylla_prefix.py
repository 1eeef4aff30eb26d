"""What a line of a ScyllaDB log begins with, in every style; and the order of lines that its times give."""

from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import interpret, line, violations

from stagewright.traces.databases.scylladb.lines.tablets import INFO_RECORDING, MACHINE
from stagewright.traces.databases.scylladb.log import log
from stagewright.traces.databases.scylladb.log.line import LogRecord, parse_log_line
from stagewright.traces.databases.scylladb.log.order import in_order
from stagewright.traces.databases.scylladb.log.prefix import node_of_file, take_apart
from stagewright.traces.readers import formats
from stagewright.traces.readers.protocol import Part, Tally
from stagewright.traces.readers.text_lines import LINE_MAX

TABLE = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90"
LEADS = "[shard 0: gms] raft_topology - start topology coordinator fiber"


@pytest.mark.parametrize(
    ("head", "time", "node"),
    [
        ("INFO  2024-09-27 22:15:13,717 ", "2024-09-27 22:15:13.717000", "logs/a.log"),
        ("INFO  2024-09-27 22:15:13.717 ", "2024-09-27 22:15:13.717000", "logs/a.log"),
        ("Sep 05 18:37:22.280578 host1 scylla[8]:  ", "0000-09-05 18:37:22.280578", "host1[8]"),
        ("Sep  5 18:37:22 host1 scylla[8]:  ", "0000-09-05 18:37:22.000000", "host1[8]"),
        (
            "2025-03-01T10:00:00.123+00:00 host2 !INFO | scylla[7]: ",
            "2025-03-01 10:00:00.123000",
            "host2[7]",
        ),
        ("b.log:INFO  2024-09-27 22:15:13,717 ", "2024-09-27 22:15:13.717000", "b.log"),
        ("b.log:17:INFO  2024-09-27 22:15:13,717 ", "2024-09-27 22:15:13.717000", "b.log"),
        ("INFO  ", "", "logs/a.log"),
        (
            "2025-03-01T10:00:00.123+00:00 host2 !INFO | scylla[7]  ",
            "2025-03-01 10:00:00.123000",
            "host2[7]",
        ),
        ("Sep  5 18:37:22 node-1 scylla:  ", "0000-09-05 18:37:22.000000", "node-1"),
        (
            "scylla-node1-1  | INFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "scylla-node1-1",
        ),
        (
            "2024-12-04T13:48:17Z scylla1-1 | INFO  2024-12-04 13:48:03,717 ",
            "2024-12-04 13:48:03.717000",
            "scylla1-1",
        ),
        (
            "[pod/scylla-0/scylla] INFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "scylla-0",
        ),
        (
            "scylla-0 scylla INFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "scylla-0",
        ),
        (
            "prod dc-rack-1 scylla INFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "dc-rack-1",
        ),
        (
            "dc-rack-1 \u203a scylla INFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "dc-rack-1",
        ),
        (
            "\x1b[33mscylla-node1-1  | \x1b[0mINFO  2024-09-27 22:15:13,717 ",
            "2024-09-27 22:15:13.717000",
            "scylla-node1-1",
        ),
        (
            "<30>1 2024-09-27T22:15:13.717Z db1 scylla 81 - -  ",
            "2024-09-27 22:15:13.717000",
            "db1",
        ),
    ],
)
def test_times_and_nodes(head: str, time: str, node: str) -> None:
    parts = take_apart(head + LEADS, "logs/a.log")
    assert parts is not None
    assert (parts.time, parts.node) == (time, node)
    assert (parts.logger, parts.message) == ("raft_topology", "start topology coordinator fiber")


@pytest.mark.parametrize(
    "tail",
    [
        "[shard 0] storage_service - raft topology: x",
        "[shard  0: gms] raft_topology - x",
        "[shard 12:strm] raft_topology - (rate limiting dropped 12 similar messages) x",
    ],
)
def test_shards_groups_and_what_2023_put_before_a_message(tail: str) -> None:
    parts = take_apart(f"INFO  2023-09-27 22:15:13,717 {tail}", "a.log")
    assert parts is not None
    assert parts.message == "x"


@pytest.mark.parametrize(
    "name",
    [
        "scylla.log",
        "scylla.log.1",
        "scylla.log.2.gz",
        "scylla-20250301.log",
        "scylla.log-20250301.zst",
        "scylla.log.2025-03-01",
    ],
)
def test_the_files_of_one_node_are_of_one_node(name: str) -> None:
    assert node_of_file(f"logs/{name}") == "logs/scylla.log"
    assert node_of_file("logs/node1.log") == "logs/node1.log"


def records(*texts: str, file: str = "a.log") -> list[tuple[int, LogRecord]]:
    parsed = [parse_log_line(text, number, file) for number, text in enumerate(texts, start=1)]
    return [(0, r) for r in parsed if isinstance(r, LogRecord)]


def test_january_comes_after_december_where_there_is_no_year() -> None:
    texts = [f"{day} 23:59:59.1 h scylla[1]:  {LEADS}" for day in ("Dec 31", "Jan 01", "Jan 02")]
    placed, notes = in_order([records(*texts)])
    assert [p.record.line for p in placed] == [1, 2, 3]
    assert notes == ["there is no year in the times: January after December is taken for the next"]


def test_a_clock_that_goes_back_does_not_change_the_order_of_a_file() -> None:
    texts = [f"INFO  2025-03-01 10:00:0{s},000 {LEADS}" for s in (5, 3, 6)]
    placed, notes = in_order([records(*texts)])
    assert [p.record.line for p in placed] == [1, 2, 3]
    times = [p.time for p in placed]
    assert times == sorted(t for t in times if t is not None)
    assert notes == [
        "1 line with an earlier time than the line before: the order in the file counts"
    ]


def test_one_node_at_info_hides_the_steps_of_tablets() -> None:
    debug = [
        line("start topology coordinator fiber", 0, "a"),
        line(f"Will set tablet {TABLE}:0 stage to streaming", 1, "a"),
        line("updating topology state: Tablet migration", 1, "a"),
    ]
    info = [
        line("start topology coordinator fiber", 5, "b"),
        line(f"Initiating tablet streaming (migration) of {TABLE}:1 to {TABLE}:0", 6, "b"),
        line(f"Initiating tablet cleanup of {TABLE}:1 on {TABLE}:0", 7, "b"),
    ]
    found = interpret(debug, info)
    assert found.recordings[MACHINE] == INFO_RECORDING
    assert violations(found) == []
    assert "not at DEBUG: b[7]; steps of tablets may be missing" in found.notes


def test_what_cannot_be_read_is_refused_line_by_line(tmp_path: Path) -> None:
    good = f"INFO  2025-03-01 10:00:00,000 {LEADS}\n".encode()
    cut = f"INFO  2025-03-01 10:00:00,000 {LEADS} é".encode()[:-1] + b"\n"
    huge = good[:-1] + b"x" * (LINE_MAX + 10) + b"\n"
    path = tmp_path / "a.log"
    path.write_bytes(good + cut + huge + b"\xff\xfe\x00\n\n" + good.rstrip(b"\n"))
    tally = Tally()
    found = log.extract(Part(0, str(path), "scylla-log", 0, path.stat().st_size), tally)
    assert len(found) == 2
    assert (tally.lines, tally.other, tally.blank, tally.unparsed) == (6, 3, 1, 2)
    assert sorted(number for number, _ in tally.reasons) == [2, 3]


def test_the_form_is_known_by_what_is_in_the_file() -> None:
    logged = f'{LEADS}\nINFO [shard 0: gms] api - parameters {{"last_token": 5}}'
    assert formats.form_of("node1.log", logged.encode()) == formats.form_named("scylla-log")
