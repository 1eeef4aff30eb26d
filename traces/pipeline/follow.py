"""Validates what is still being written: Spark's Structured Streaming finds new files or lines, batch by batch.

Each batch goes the way of every other input, and continues the state of the batches before it. So the verdicts
are those of one run over everything. A batch that fails is given again when the source is followed again.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.traces.incremental.state_dir import load_state
from stagewright.traces.options import Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_SECONDS = 0.5
_RECEIVED = "received"  # where lines of a socket are kept, beside the state
_LINES = "lines"  # the file that they are in

Batch = Callable[[list[Path]], None]


def follow(
    spark: SparkSession,
    source: str,
    state: Path,
    batch: Batch,
    *,
    takes: Callable[[Path], bool] = lambda _: True,
    progress: Progress = lambda _: None,
    idle_seconds: float | None = None,
) -> None:
    """Give new input to `batch` until interrupted, or until there has been none for some seconds.

    `source` is a directory, in which files are put and may be added to, or ``tcp://HOST:PORT``, from which lines come.
    Of a directory only files that `takes` agrees to are given. What was given is remembered in `state`, also
    over restarts.

    Raises:
        StagewrightError: what `batch` raises; or the source cannot be followed.
    """
    from pyspark.errors import StreamingQueryException

    stream, is_socket = _stream(spark, source), "://" in source
    follower = _Follower(batch, _received(state), takes, progress)
    if not is_socket:
        follower.know(_known(state, Path(source)))
    query = _query(stream, follower, state, is_socket=is_socket)
    try:
        while query.isActive and follower.error is None:
            if query.recentProgress:
                follower.look_again()
                if idle_seconds is not None and follower.idle() > idle_seconds:
                    with contextlib.suppress(StreamingQueryException):  # reported below
                        query.processAllAvailable()  # what came while Spark was slow to begin
                    if follower.idle() > idle_seconds:
                        return
            time.sleep(_LOOK_SECONDS)
        if follower.error is not None:
            raise follower.error
        if (failed := query.exception()) is not None:
            # its plan is no news
            text = str(failed).partition("=== Streaming Query ===")[0].strip()
            raise InputError(
                f"{source} cannot be followed: {text}", help="is it there, and readable?"
            )
        raise InputError(
            f"{source} is not followed any more: Spark has ended the stream without a word",
            help="begin again: what was given before is known",
        )
    finally:
        query.stop()


class _Follower:
    """Takes the batches, and remembers what was given and when the last one came."""

    def __init__(
        self, batch: Batch, received: Path, takes: Callable[[Path], bool], progress: Progress
    ) -> None:
        self._batch, self._received, self._takes, self._progress = batch, received, takes, progress
        self._last = time.monotonic()
        self._at_work = threading.Lock()
        self._given: dict[Path, tuple[int, int]] = {}  # inode and size
        self.error: StagewrightError | None = None

    def know(self, files: Iterable[tuple[Path, int]]) -> None:
        """Files that were given before this start, up to some size."""
        self._given |= {path: (path.stat().st_ino, size) for path, size in files if path.exists()}

    def idle(self) -> float:
        """Seconds since the last batch was done."""
        return 0.0 if self._at_work.locked() else time.monotonic() - self._last

    def files(self, found: DataFrame, _: int) -> None:
        """Files that are new."""
        with self._at_work:
            paths = [Path(unquote(urlsplit(row.path).path)) for row in found.collect()]
            for path in paths:
                if not self._takes(path):
                    self._progress(f"passed over {path}: it is no trace as far as can be seen")
            self._do([path for path in paths if self._takes(path)])

    def lines(self, found: DataFrame, _: int) -> None:
        """Lines that are new: they go into a file, so that what is found in them has a place."""
        with self._at_work:
            rows = found.toLocalIterator()
            first = next(rows, None)
            if first is None:
                return
            path = self._file_for(first.value)
            with path.open("a", encoding="utf-8") as file:
                if path.stat().st_size and not _ends_with_newline(path):
                    file.write("\n")  # this program was killed in the middle of a line
                file.write(first.value + "\n")
                file.writelines(row.value + "\n" for row in rows)
            self._do([path])

    def look_again(self) -> None:
        """Give files again that have changed: Spark finds each name once, but logs grow and are rotated."""
        if self._at_work.acquire(blocking=False):
            try:
                self._look_again()
            finally:
                self._at_work.release()

    def _look_again(self) -> None:
        now = {path: _inode_and_size(path) for path in list(self._given)}
        changed = [path for path, seen in now.items() if seen != self._given[path]]
        if changed:
            self._do(changed)

    def _file_for(self, line: str) -> Path:
        """The file of what was received: its name says whether these are lines of JSON or of a log."""
        self._received.mkdir(parents=True, exist_ok=True)
        known = sorted(self._received.glob(f"{_LINES}.*"))
        ending = "jsonl" if line.lstrip().startswith("{") else "log"
        return known[0] if known else self._received / f"{_LINES}.{ending}"

    def _do(self, paths: list[Path]) -> None:
        # A batch that is not evaluated must fail, or else Spark takes it for done.
        if self.error is not None:
            raise self.error
        found = {path: _inode_and_size(path) for path in paths}
        seen = {path: one for path, one in found.items() if one is not None}
        for path in found.keys() - seen.keys():
            self._progress(f"{path} is gone")
            self._given.pop(path, None)
        if not seen:
            return
        try:
            self._batch(sorted(seen))
        except StagewrightError as error:
            self.error = error  # raised where the user waits
            raise
        finally:
            self._last = time.monotonic()
        self._given |= seen


def _inode_and_size(path: Path) -> tuple[int, int] | None:
    """What changes where a file is added to or replaced; None where there is none any more."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


def _received(state: Path) -> Path:
    return state.with_name(f"{state.name}.{_RECEIVED}")


def _known(state: Path, source: Path) -> list[tuple[Path, int]]:
    """The files of a directory that earlier runs have read, and up to where."""
    folder = source.resolve()
    files = ((Path(one.path), one.size) for one in load_state(state).files)
    return [(path, size) for path, size in files if path.is_relative_to(folder)]


def _stream(spark: SparkSession, source: str) -> DataFrame:
    if "://" in source:
        place = urlsplit(source)
        if place.scheme != "tcp" or place.hostname is None or place.port is None:
            raise InputError(f"cannot follow {source}", help="write it as tcp://HOST:PORT")
        reader = spark.readStream.format("socket").option("host", place.hostname)
        # In one partition lines keep the order in which they came, which means something in logs.
        return reader.option("port", place.port).option("numPartitions", 1).load()
    if not Path(source).is_dir():
        raise InputError(
            f"{source} is not a directory", help="--follow wants one directory, or tcp://HOST:PORT"
        )
    # Only the paths are asked for: then Spark does not read the files.
    files = spark.readStream.format("binaryFile").option("recursiveFileLookup", "true")
    return (
        files.schema("path string, modificationTime timestamp, length long, content binary")
        .load(str(Path(source).absolute()))
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
