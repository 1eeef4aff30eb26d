"""What is still being written is validated as it comes, with the verdicts of one run over everything."""

import json
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.traces.readers.test_mapped import GOOD, TEXT

from stagewright.commands import run_command_line
from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.spark_engine import OnSpark
from stagewright.traces.options import Options
from stagewright.traces.pipeline.follow import follow
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEASE = Path(__file__).parents[2] / "models" / "lease.py"

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_new_files_in_a_directory_continue_the_traces(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    lines = [e.to_json() + "\n" for i in range(5) for e in lease.walk(f"lease{i}", i, 20)]
    source, state, reports = tmp_path / "in", tmp_path / "state", list[TraceReport]()
    source.mkdir()
    third = len(lines) // 3
    (source / "0.jsonl").write_text("".join(lines[:third]))

    def batch(paths: list[Path]) -> None:
        options = Options(scope=lambda _: lease.scope)
        reports.append(
            validate(paths, lease.definition, options, engine=OnSpark(spark), state=state)
        )
        number = len(reports)
        if number < 3:  # the next file appears while this one is looked at
            rest = lines[third * number : third * (number + 1) if number < 2 else None]
            (tmp_path / "new").write_text("".join(rest))
            (tmp_path / "new").rename(source / f"{number}.jsonl")

    follow(spark, str(source), state, batch, idle_seconds=5)
    assert [r.totals.events for r in reports] == [third, third, len(lines) - 2 * third]
    assert reports[-1].verdicts[TraceVerdict.OK] == 5
    assert not any("no end yet" in note for note in reports[-1].notes)


@pytest.mark.long
def test_lines_from_a_socket_are_validated_as_they_come_also_after_a_restart(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    lines = [e.to_json() + "\n" for e in lease.walk("lease0", 1, 20)]
    reports, state = list[TraceReport](), tmp_path / "state"

    def batch(paths: list[Path]) -> None:
        options = Options(scope=lambda _: lease.scope)
        reports.append(
            validate(paths, lease.definition, options, engine=OnSpark(spark), state=state)
        )

    for some in (lines[:9], lines[9:]):
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=_serve, args=(server, some), daemon=True).start()
            place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            follow(spark, place, state, batch, idle_seconds=6)
    assert sum(r.totals.events for r in reports) == len(lines)
    assert reports[-1].verdicts[TraceVerdict.OK] == 1
    assert (tmp_path / "state.received" / "lines.jsonl").read_text() == "".join(lines)


def _serve(server: socket.socket, lines: list[str]) -> None:
    connection, _ = server.accept()
    with connection:
        for number, line in enumerate(lines):
            time.sleep(1 if number == len(lines) // 2 else 0)
            connection.sendall(line.encode())
        time.sleep(30)


def test_a_batch_that_fails_is_given_again(spark: "SparkSession", tmp_path: Path) -> None:
    source, given = tmp_path / "in", list[list[str]]()
    source.mkdir()
    (source / "a.jsonl").write_text("{}\n")

    def batch(paths: list[Path]) -> None:
        given.append([path.name for path in paths])
        if len(given) == 1:
            raise InputError("no", help="try again")

    with pytest.raises(InputError, match="no"):
        follow(spark, str(source), tmp_path / "state", batch, idle_seconds=2)
    follow(spark, str(source), tmp_path / "state", batch, idle_seconds=2)
    assert given == [["a.jsonl"], ["a.jsonl"]]


@pytest.mark.long
def test_logs_in_a_directory_are_followed_as_they_grow_and_are_rotated(
    spark: "SparkSession", tmp_path: Path
) -> None:
    source, out, mapping = tmp_path / "in", tmp_path / "out", tmp_path / "lease.toml"
    lines = GOOD.replace("lease a: lost", "lease a: granted to db7.example").splitlines(True)
    mapping.write_text(TEXT.replace("[source]", '[source]\nfiles = ["*.log*"]'))
    source.mkdir()
    (source / "node1.log").write_text("".join(lines[:6]))
    (source / "notes.bin").write_text("of other matters\n")

    def later() -> None:
        _wait_for(out / "report.json", '"read": 6')
        with (source / "node1.log").open("a") as file:
            file.write(lines[6])
        _wait_for(out / "report.json", '"read": 1,')
        (source / "node1.log").rename(source / "node1.log.1")
        (source / "node1.log").write_text("".join(lines[7:]))

    threading.Thread(target=later, daemon=True).start()
    words = ["validate", "--follow", str(source), "--state", str(tmp_path / "state")]
    words += ["--machine", f"{LEASE}:LeaseTable", "--mapping", str(mapping)]
    assert run_command_line([*words, "--out", str(out), "--idle", "6", "--explain"]) == 1
    (run,) = out.glob("run-*")
    found = json.loads((run / "report.json").read_text())["findings"]
    assert [(Path(f["where"]["file"]).name, f["where"]["line"]) for f in found] == [
        ("node1.log", 7)
    ]
    last = json.loads((out / "report.json").read_text())
    assert last["entities"]["violation"] == 1
    assert last["findings"] == []
    assert last["coverage"]
    at_once = run_command_line(
        ["validate", *map(str, sorted(source.glob("*.log*"))), *words[5:], "--engine", "embedded"]
    )
    assert at_once == 1


def _wait_for(path: Path, text: str) -> None:
    while not path.exists() or text not in path.read_text():
        time.sleep(0.1)


def test_a_refused_connection_is_reported_in_one_line(
    spark: "SparkSession", tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        follow(spark, "tcp://127.0.0.1:1", tmp_path / "state", lambda _: None)
    assert raised.value.problem == "tcp://127.0.0.1:1 cannot be followed: Connection refused"


@pytest.mark.parametrize("source", ["nowhere", "http://host:1", "tcp://host"])
def test_a_source_that_cannot_be_followed_is_refused(
    spark: "SparkSession", tmp_path: Path, source: str
) -> None:
    with pytest.raises(InputError):
        follow(spark, source, tmp_path / "state", lambda _: None)
