"""Validates what is still being written: Spark's Structured Streaming finds new files or lines, batch by batch.

Each batch goes the way of every other input, and continues the state of the batches before it. So the verdicts
are those of one run over everything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from stagewright.spec.errors import InputError, StagewrightError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_SECONDS = 0.5
_RECEIVED = "received"  # where lines of a socket are kept, beside the state

Batch = Callable[[list[Path]], None]


def follow(
    spark: SparkSession,
    source: str,
    state: Path,
    batch: Batch,
    *,
    idle_seconds: float | None = None,
) -> None:
    """Give new input to `batch` until interrupted, or until there has been none for some seconds.

    `source` is a directory, into which whole files are moved, or ``tcp://HOST:PORT``, from which lines of JSON
    come. What was given is remembered in `state`, also over restarts.

    Raises:
        StagewrightError: what `batch` raises; or the source cannot be followed.
    """
    follower = _Follower(batch, state)
    query = _query(_stream(spark, source), follower, state, is_socket="://" in source)
    try:
        while query.isActive:
            if follower.error is not None:
                raise follower.error
            begun = bool(query.recentProgress)
            if idle_seconds is not None and begun and follower.idle() > idle_seconds:
                return
            time.sleep(_LOOK_SECONDS)
        if follower.error is not None:
            raise follower.error
        if (failed := query.exception()) is not None:
            told = (
                str(failed).partition("=== Streaming Query ===")[0].strip()
            )  # its plan is no news
            raise InputError(
                f"{source} cannot be followed: {told}", help="is it there, and readable?"
            )
    finally:
        query.stop()


class _Follower:
    """Takes the batches, and remembers when the last one came."""

    def __init__(self, batch: Batch, state: Path) -> None:
        self._batch, self._received = batch, state.with_name(f"{state.name}.{_RECEIVED}")
        self._last = time.monotonic()
        self._busy = False
        self.error: StagewrightError | None = None

    def idle(self) -> float:
        """Seconds since the last batch was done."""
        return 0.0 if self._busy else time.monotonic() - self._last

    def files(self, found: DataFrame, _: int) -> None:
        """Files that are new."""
        self._do([Path(unquote(urlsplit(row.path).path)) for row in found.collect()])

    def lines(self, found: DataFrame, number: int) -> None:
        """Lines that are new: they become a file, so that what is found in them has a place."""
        self._received.mkdir(parents=True, exist_ok=True)
        path = self._received / f"batch-{number:09}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for row in found.toLocalIterator():
                file.write(row.value + "\n")
        if path.stat().st_size:
            self._do([path])

    def _do(self, paths: list[Path]) -> None:
        if not paths or self.error is not None:
            return
        self._busy = True
        try:
            self._batch(sorted(paths))
        except StagewrightError as error:
            self.error = error  # raised where the user waits
        finally:
            self._busy, self._last = False, time.monotonic()


def _stream(spark: SparkSession, source: str) -> DataFrame:
    if "://" in source:
        place = urlsplit(source)
        if place.scheme != "tcp" or place.hostname is None or place.port is None:
            raise InputError(f"cannot follow {source}", help="write it as tcp://HOST:PORT")
        reader = spark.readStream.format("socket")
        return reader.option("host", place.hostname).option("port", place.port).load()
    if not Path(source).is_dir():
        raise InputError(
            f"{source} is no directory", help="--follow wants one directory, or tcp://HOST:PORT"
        )
    # Only the paths are asked for: then Spark does not read the files.
    files = spark.readStream.format("binaryFile").option("recursiveFileLookup", "true")
    return (
        files.schema("path string, modificationTime timestamp, length long, content binary")
        .load(source)
        .select("path")
    )


def _query(stream: DataFrame, follower: _Follower, state: Path, *, is_socket: bool) -> Any:
    take = follower.lines if is_socket else follower.files
    # A socket cannot be asked for old lines again, so its progress is not worth keeping.
    checkpoint = state.with_name(f"{state.name}.progress")
    writer = stream.writeStream.foreachBatch(take).trigger(processingTime="1 second")
    if not is_socket:
        writer = writer.option("checkpointLocation", str(checkpoint))
    return writer.start()
