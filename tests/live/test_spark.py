"""Spark reads the changes of a real cluster as a table, and as a stream that goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from pyspark.errors import PySparkException
from tests.impl.processes.clusters import cluster

from stagewright.impl.cdc.consumer import Position
from stagewright.impl.processes.layout import REAL, Settings
from stagewright.impl.processes.supervisor import Supervisor
from stagewright.live.spark import Changes
from stagewright.live.tail import confidence_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMING = replace(REAL, horizon=500, request=500, leeway=400)
Seen = list[tuple[bytes, bytes | None]]

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Supervisor]:
    directory = tmp_path_factory.mktemp("changes") / "c"
    with cluster(directory, 2, Settings(timing=TIMING), cdc=True) as running:
        yield running


@pytest.fixture(scope="module")
def logged(spark: SparkSession) -> SparkSession:
    spark.dataSource.register(Changes)
    return spark


def written(supervisor: Supervisor, *changes: tuple[bytes, bytes | None]) -> int:
    """Write, and wait until all of it may be read; the first timestamp."""
    session = supervisor.session()
    try:
        stamps = [session.put(key, value) for key, value in changes]
    finally:
        session.close()
    time.sleep(confidence_in(TIMING) / 1e6 + 0.1)
    return stamps[0]


def in_order(frame: DataFrame) -> Seen:
    rows = frame.orderBy("timestamp").collect()
    return [(bytes(r.key), None if r.value is None else bytes(r.value)) for r in rows]


@pytest.mark.long
def test_a_table_and_a_stream_that_goes_on_have_each_change_once(
    supervisor: Supervisor, logged: SparkSession, tmp_path: Path
) -> None:
    directory = str(supervisor.layout.directory)
    sink, checkpoint = str(tmp_path / "sink"), str(tmp_path / "checkpoint")

    def table() -> Seen:
        return in_order(logged.read.format("stagewright-cdc").option("dir", directory).load())

    def streamed() -> Seen:
        stream = logged.readStream.format("stagewright-cdc").option("dir", directory).load()
        query = (
            stream.writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start(sink)
        )
        query.awaitTermination()
        return in_order(logged.read.schema(stream.schema).parquet(sink))

    first: Seen = [(b"a", b"1"), (b"b", b"\xff"), (b"a", None)]
    written(supervisor, *first)
    assert table() == first
    assert streamed() == first
    assert streamed() == first, "nothing new: nothing again"
    second: Seen = [(b"c", b"3"), (b"a", b"4")]
    begin = written(supervisor, *second)
    assert table() == first + second
    assert streamed() == first + second

    session = supervisor.session()
    try:
        generation = max(g.start for g in session.generations())
    finally:
        session.close()
    reader = logged.read.format("stagewright-cdc").option("dir", directory)
    later = reader.option("position", Position(generation, begin).to_json()).option("tasks", 3)
    assert in_order(later.load()) == second
    assert later.load().rdd.getNumPartitions() == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no cluster is named"),
        ({"dir": "here", "tasks": "none"}, "tasks: 'none' is no number"),
        ({"dir": "here", "position": "{}"}, "no position of a CDC consumer"),
        ({"dir": "here"}, "here"),
    ],
)
def test_what_is_wrong_with_the_options_is_said(
    logged: SparkSession, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        logged.read.format("stagewright-cdc").options(**options).load().collect()


def test_a_table_without_a_log_is_refused(logged: SparkSession, tmp_path: Path) -> None:
    with cluster(tmp_path / "c", 1) as plain:
        reader = logged.read.format("stagewright-cdc").option("dir", str(plain.layout.directory))
        with pytest.raises(PySparkException, match="has no log of changes"):
            reader.load().collect()
