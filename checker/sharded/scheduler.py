"""Who runs the tasks of a search over shards: Spark, anything else that can, or this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Scheduler(Protocol):
    """Runs tasks somewhere. A task may be run several times, at once, and in any process."""

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], give_up: Callable[[], bool]
    ) -> list[R] | None:
        """What the function, which can be pickled by name, returns for each task, in their order.

        `give_up` is asked now and then while tasks run; once it says so, the rest need not be run,
        and the result is None.
        """
        ...


class InThisProcess:
    """Runs one task after the other, here and now."""

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], give_up: Callable[[], bool]
    ) -> list[R] | None:
        """What the function returns for each task; None if it was given up between two of them."""
        results: list[R] = []
        for task in tasks:
            if give_up():
                return None
            results.append(function(task))
        return results
