"""A scheduler as rough as a bad night: every task in a process of its own, out of order, again, and dead."""

import itertools
import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from stagewright.checker.sharded import files, tasks as work

T = TypeVar("T")
R = TypeVar("R")

NOWHERE = "nowhere"
PLACES = ("before its states are written", "before it sends", "while it sends", "before it answers")


class RoughScheduler:
    """Kills about a third of the tasks once, and runs about a third of them twice."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["pytest", work.__name__, "llvmlite.binding"])
        self._places = itertools.cycle(PLACES)
        self.deaths: list[str] = []
        self.repeated = 0

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], give_up: Callable[[], bool]
    ) -> list[R] | None:
        """What the function returned when it was run last."""
        results: dict[int, R] = {}
        order = list(range(len(tasks)))
        self._chance.shuffle(order)
        for number in order:
            if self._chance.random() < 0.3:
                self._run(function, tasks[number], next(self._places))
            if self._chance.random() < 0.3:
                self._run(function, tasks[number], NOWHERE)
                self.repeated += 1
            (results[number],) = self._run(function, tasks[number], NOWHERE)
        return [results[number] for number in range(len(tasks))]

    def _run(self, function: Callable[[T], R], task: T, death: str) -> list[R]:
        """What a new process makes of the task, unless it dies."""
        here, there = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_child, args=(there, function, task, death))
        process.start()
        there.close()
        try:
            return [here.recv()]
        except EOFError:
            assert death != NOWHERE, "a task died of its own accord"
            self.deaths.append(death)
            return []
        finally:
            process.join()
            here.close()


def _child(pipe: Connection, function: Callable[[Any], Any], task: Any, death: str) -> None:
    def die(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    doomed: dict[str, tuple[object, str]] = {
        PLACES[0]: (work, "write_states"),
        PLACES[1]: (work, "sending"),
        PLACES[2]: (files.Sent, "append"),
    }
    if death in doomed:
        setattr(*doomed[death], die)
    result = function(task)
    if death == PLACES[3]:
        die()
    pipe.send(result)
