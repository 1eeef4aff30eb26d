"""Runs a validation on Spark: its tasks read the files where they run, and its shuffle brings rows together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")


class OnSpark:
    """Spark's executors; an `Engine`."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self.workers = self._context.defaultParallelism

    def run(
        self,
        tasks: Sequence[T],
        work: Callable[[T], Iterable[tuple[int, Any]]],
        partitions: int,
        finish: Callable[[Iterable[Any]], R],
    ) -> list[R]:
        """As `Engine.run`."""

        def do(some: Iterable[T]) -> Iterator[tuple[int, Any]]:
            for task in some:
                yield from work(task)

        def end(items: Iterable[tuple[int, Any]]) -> Iterator[R]:
            yield finish(item for _, item in items)

        if not tasks:
            return []
        given = self._context.parallelize(list(tasks), len(tasks)).mapPartitions(do)
        gathered = given.partitionBy(partitions, _itself)
        found: list[R] = gathered.mapPartitions(end).collect()
        return found


def _itself(number: int) -> int:
    return number
