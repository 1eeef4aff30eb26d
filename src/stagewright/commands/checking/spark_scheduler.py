"""Lets Spark run the tasks of a search over shards, each in a partition of its own."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from stagewright.traces.engines.spark_failures import failure

if TYPE_CHECKING:
    from pyspark import SparkContext

T = TypeVar("T")
R = TypeVar("R")

_LOOK_SECONDS = 0.2
_MEMORY = "if the system killed it for want of memory, set --max-memory or take more shards"
_HELP = (
    "every machine of the cluster needs this version of stagewright, llvmlite, and the work "
    "directory under the same path"
)


class SparkScheduler:
    """A `Scheduler`: what fails or dies is run again as often as Spark's settings say."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], give_up: Callable[[], bool]
    ) -> list[R] | None:
        """What the function returns for each task; None if it was given up.

        Raises:
            TaskError: a task failed too often.
        """
        if give_up():
            return None
        group = f"stagewright-{uuid.uuid4().hex}"
        self._context.setJobGroup(group, "stagewright check", interruptOnCancel=True)
        watch = _Watch(self._context, group, give_up)
        watch.start()
        try:
            return self._context.parallelize(tasks, len(tasks)).map(function).collect()
        except Exception as error:
            if watch.gave_up:
                return None
            raise failure(error, help=_HELP, memory=_MEMORY) from error
        finally:
            watch.end()


class _Watch(threading.Thread):
    """Asks now and then whether to give up, and cancels the jobs of a group if so."""

    def __init__(self, context: SparkContext, group: str, give_up: Callable[[], bool]) -> None:
        super().__init__(daemon=True)
        self._context, self._group, self._give_up = context, group, give_up
        self._done = threading.Event()
        self.gave_up = False

    def run(self) -> None:
        """Watch until the end."""
        while not self._done.wait(_LOOK_SECONDS):
            if self.gave_up or self._give_up():
                self.gave_up = True
                self._context.cancelJobGroup(self._group)

    def end(self) -> None:
        """Watch no longer."""
        self._done.set()
        self.join()
