"""Who runs the work of a validation: threads of this process (`Embedded`), or Spark (`spark_engine`).

Work has one shape: tasks yield items for partitions, and the items of each partition are finished together.
What a report says must not depend on who ran it.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypeVar

from stagewright.spec.errors import InputError

T = TypeVar("T")
R = TypeVar("R")


def usable_cores() -> int:
    """The number of processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


KEPT_MAX = 1 << 28  # bytes of items that wait in memory; more go to a file a partition


class Stage(NamedTuple):
    """What is done with the items that the stage before has yielded for each of so many partitions."""

    partitions: int
    finish: Callable[[Iterable[Any]], Any]


class Engine(Protocol):
    """Runs tasks where it likes, and brings together what belongs together."""

    name: str
    workers: int  # how many tasks run at once

    def run(
        self,
        tasks: Sequence[T],
        work: Callable[[T], Iterable[tuple[int, Any]]],
        partitions: int,
        finish: Callable[[Iterable[Any]], Any],
        *then: Stage,
    ) -> list[Any]:
        """Every task yields (partition, item); `finish` gets all items of a partition.

        With more stages `finish` yields (partition, item) for the next one, and so on; what the last one
        returns are the results. These are in the order of the partitions, of which those without items may be absent; what
        the tasks yield reaches `finish` in any order.
        """
        ...


class Embedded:
    """Threads of this process; what waits to be finished goes to files when it grows large."""

    name = "embedded"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self,
        tasks: Sequence[T],
        work: Callable[[T], Iterable[tuple[int, Any]]],
        partitions: int,
        finish: Callable[[Iterable[Any]], Any],
        *then: Stage,
    ) -> list[Any]:
        """As `Engine.run`.

        Raises:
            InputError: the disk for what waits is full.
        """
        with (
            tempfile.TemporaryDirectory(prefix="stagewright-") as folder,
            ThreadPoolExecutor(self.workers) as threads,
        ):
            try:
                first = _Waiting(Path(folder) / "0", partitions)
                _all(threads, lambda task: first.put_all(work(task)), tasks)
                waiting, end = first, finish
                for number, stage in enumerate(then, 1):
                    next_ = _Waiting(Path(folder) / str(number), stage.partitions)
                    waiting = _handed_on(threads, waiting, end, next_)
                    end = stage.finish
                return _finished(threads, waiting, end)
            except OSError as error:
                raise InputError(
                    f"{folder} cannot hold what waits to be checked: {error.strerror}",
                    help="make room there, or point TMPDIR to a larger disk",
                ) from error


def _handed_on(
    threads: ThreadPoolExecutor,
    waiting: _Waiting,
    finish: Callable[[Iterable[Any]], Any],
    next_: _Waiting,
) -> _Waiting:
    """Finish a stage that is not the last: what it yields waits for the next one."""
    _all(threads, lambda p: next_.put_all(finish(waiting.take(p))), waiting.partitions)
    return next_


def _finished(
    threads: ThreadPoolExecutor, waiting: _Waiting, finish: Callable[[Iterable[Any]], Any]
) -> list[Any]:
    return _all(threads, lambda p: finish(waiting.take(p)), waiting.partitions)


def _all(threads: ThreadPoolExecutor, do: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """The results for all items; after the first failure nothing more is begun."""
    futures = [threads.submit(do, item) for item in items]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


class _Waiting:
    """Items by partition, in memory or in files."""

    def __init__(self, folder: Path, partitions: int) -> None:
        folder.mkdir()
        self._folder = folder
        self._kept: list[list[Any]] = [[] for _ in range(partitions)]
        self._bytes = 0
        self._lock = Lock()

    @property
    def partitions(self) -> list[int]:
        """Those that have items."""
        return [
            number
            for number, items in enumerate(self._kept)
            if items or self._file(number).exists()
        ]

    def put_all(self, items: Iterable[tuple[int, Any]]) -> None:
        for partition, item in items:
            self.put(partition, item)

    def put(self, partition: int, item: Any) -> None:
        with self._lock:
            self._kept[partition].append(item)
            self._bytes += int(getattr(item, "nbytes", 0))
            if self._bytes > KEPT_MAX:
                for number, items in enumerate(self._kept):
                    if items:
                        with self._file(number).open("ab") as file:
                            for one in items:
                                pickle.dump(one, file, pickle.HIGHEST_PROTOCOL)
                    items.clear()
                self._bytes = 0

    def take(self, partition: int) -> Iterator[Any]:
        file = self._file(partition)
        if file.exists():
            with file.open("rb") as stream:
                size = file.stat().st_size
                while stream.tell() < size:
                    yield pickle.load(stream)
            file.unlink()
        yield from self._kept[partition]
        self._kept[partition] = []

    def _file(self, partition: int) -> Path:
        return self._folder / str(partition)
