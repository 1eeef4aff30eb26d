"""What is still being written is validated as it comes, with the verdicts of one run over everything."""

import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.follow import follow
from stagewright.traces.options import Options
from stagewright.traces.spark_engine import OnSpark
from stagewright.traces.trace_report import TraceReport
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


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


def test_lines_from_a_socket_are_validated_as_they_come(
    spark: "SparkSession", lease: Any, tmp_path: Path
) -> None:
    lines = [e.to_json() + "\n" for e in lease.walk("lease0", 1, 20)]
    reports, state = list[TraceReport](), tmp_path / "state"

    def batch(paths: list[Path]) -> None:
        options = Options(scope=lambda _: lease.scope)
        reports.append(
            validate(paths, lease.definition, options, engine=OnSpark(spark), state=state)
        )

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_serve, args=(server, lines), daemon=True).start()
        place = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        follow(spark, place, state, batch, idle_seconds=6)
    assert sum(r.totals.events for r in reports) == len(lines)
    assert reports[-1].verdicts[TraceVerdict.OK] == 1


def _serve(server: socket.socket, lines: list[str]) -> None:
    connection, _ = server.accept()
    with connection:
        for line in lines:
            connection.sendall(line.encode())
        time.sleep(30)


def test_a_refused_connection_is_told_in_one_line(spark: "SparkSession", tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        follow(spark, "tcp://127.0.0.1:1", tmp_path / "state", lambda _: None)
    assert raised.value.problem == "tcp://127.0.0.1:1 cannot be followed: Connection refused"


@pytest.mark.parametrize("source", ["nowhere", "http://host:1", "tcp://host"])
def test_a_source_that_cannot_be_followed_is_refused(
    spark: "SparkSession", tmp_path: Path, source: str
) -> None:
    with pytest.raises(InputError):
        follow(spark, source, tmp_path / "state", lambda _: None)
