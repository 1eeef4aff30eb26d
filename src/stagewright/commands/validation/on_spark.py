"""Does work on Spark so that Ctrl-C ends it cleanly: no half-started Java is left, no traceback is printed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
_LOOK_SECONDS = 0.5  # a wait without end cannot be interrupted on every platform


def on_spark(
    work: Callable[[SparkSession], T],
    app_name: str,
    cores: int | None,
    *,
    start: Callable[[], SparkSession] | None = None,
) -> T:
    """What `work` returns, given a Spark; one that was started for it is stopped again.

    `start` starts it, if it is not to be a local one with so many `cores`.

    The work is done on a thread of its own, for an interrupt must not tear a call to Java apart.

    Raises:
        KeyboardInterrupt: the user interrupted; Spark is stopped, unless it was running before.
    """
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    job = _Job(work, running, start or (lambda: _local(app_name, cores)))
    job.start()
    try:
        return job.result()
    except KeyboardInterrupt:
        job.give_up()
        raise
    finally:
        if running is None and job.spark is not None:
            job.spark.stop()


def _local(app_name: str, cores: int | None) -> SparkSession:
    from stagewright.traces.engines.spark_session import local_session

    return local_session(app_name, cores)


class _Job(threading.Thread, Generic[T]):
    """The work, under way."""

    def __init__(
        self,
        work: Callable[[SparkSession], T],
        running: SparkSession | None,
        start: Callable[[], SparkSession],
    ) -> None:
        super().__init__(daemon=True)
        self._work, self._start_spark = work, start
        self.spark = running
        self._started = threading.Event()
        self._given_up = False
        self._done: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Start Spark if none runs, and work."""
        try:
            try:
                self.spark = self.spark or self._start_spark()
            finally:
                self._started.set()
            if not self._given_up:
                self._done.append(self._work(self.spark))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
            self._error = error

    def result(self) -> T:
        """Wait for what the work returns, or raise what it raised."""
        while self.is_alive():
            self.join(_LOOK_SECONDS)
        if self._error is not None:
            raise self._error
        return self._done[0]

    def give_up(self) -> None:
        """Wait only until Spark has started, for a Java left behind while it starts would stay."""
        self._given_up = True
        while not self._started.wait(_LOOK_SECONDS):
            pass
        if self.spark is not None:
            self.spark.sparkContext.cancelAllJobs()
