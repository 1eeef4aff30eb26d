"""Runs a validation on Spark: its tasks read the files where they run, and its shuffle brings rows together."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from stagewright.traces.engines.spark_failures import failure
from stagewright.traces.events.memory import seldom_collected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from stagewright.traces.engines.engine import Stage

T = TypeVar("T")

_FAULT = "AccountingError"  # a fault of this program, never of its input
_HELP = "every machine of the cluster needs this version of stagewright, and the files under the same path"


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
        finish: Callable[[Iterable[Any]], Any],
        *then: Stage,
    ) -> list[Any]:
        """As `Engine.run`.

        Raises:
            StagewrightError: a task failed as often as Spark's settings allow, or Spark itself did.
        """

        def do(some: Iterable[T]) -> Iterator[tuple[int, Any]]:
            with _at_work():
                for task in some:
                    yield from work(task)

        if not tasks:
            return []
        given = self._context.parallelize(list(tasks), len(tasks)).mapPartitions(do)
        gathered = given.partitionBy(partitions, _itself)
        for stage in then:
            handed_on = gathered.mapPartitions(_handing_on(finish))
            gathered = handed_on.partitionBy(stage.partitions, _itself)
            finish = stage.finish
        try:
            found: list[Any] = gathered.mapPartitions(_ending(finish)).collect()
        except Exception as error:
            if _FAULT in str(error):
                raise
            raise failure(error, help=_HELP) from error
        return found


@contextlib.contextmanager
def _at_work() -> Iterator[None]:
    """Spark seeks garbage after each task: what is known by then is none, and need not be looked through."""
    with seldom_collected():
        yield
    gc.freeze()


_Pairs = Iterable[tuple[int, Any]]


def _handing_on(finish: Callable[[Iterable[Any]], Any]) -> Callable[[_Pairs], _Pairs]:
    def hand_on(items: _Pairs) -> Iterator[tuple[int, Any]]:
        with _at_work():
            yield from finish(item for _, item in items)

    return hand_on


def _ending(finish: Callable[[Iterable[Any]], Any]) -> Callable[[_Pairs], Iterable[Any]]:
    def end(items: _Pairs) -> Iterator[Any]:
        with _at_work():
            yield finish(item for _, item in items)

    return end


def _itself(number: int) -> int:
    return number
