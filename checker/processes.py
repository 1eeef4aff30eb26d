"""Work on many things in several processes, which have what they work on from their parent."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
_SIGNAL_AT_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_AHEAD = 3  # handed out for each process, so that the work can end soon


def possible() -> bool:
    """Whether a process can be made that has all that its parent has: nothing of it can be sent."""
    return sys.platform == "linux"


def in_processes(
    work: Callable[[int], T],
    numbers: Iterable[int],
    workers: int,
    *,
    over: Callable[[], bool],
    died: T,
) -> Iterator[tuple[int, T]]:
    """`work(number)` of each with its number, in the order in which they are done.

    `numbers` is asked for the next one as late as possible: it may know by then what came of those before.
    Ends early once `over()` says so. Whoever stops listening, or a Ctrl-C, ends the processes at once.
    `died`: what stands for the result of a process that was ended by the system.
    """
    _inherited.append(work)
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("fork"),
        initializer=_begin,
        initargs=(os.getpid(),),
    )
    finished = False
    try:
        yield from _collected(pool, iter(numbers), _AHEAD * workers, over, died)
        finished = True
    finally:
        _inherited.remove(work)
        if not finished:
            for process in list((pool._processes or {}).values()):
                with suppress(OSError):
                    process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(parent: int) -> None:
    """A process of the pool leaves Ctrl-C to its parent, and ends with it, however that ends.

    Nobody else would end it: it waits at a pipe that all processes of the pool hold open.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_SIGNAL_AT_DEATH_OF_PARENT, signal.SIGTERM)
    if os.getppid() != parent:  # it was gone before
        os._exit(1)


_inherited: list[Callable[[int], Any]] = []


def _collected(
    pool: ProcessPoolExecutor,
    indices: Iterator[int],
    ahead: int,
    over: Callable[[], bool],
    died: T,
) -> Iterator[tuple[int, T]]:
    waiting: dict[Future[T], int] = {}
    while True:
        while len(waiting) < ahead and not over():
            index = next(indices, None)
            if index is None:
                break
            try:
                waiting[pool.submit(_here, index)] = index
            except BrokenProcessPool:  # what is left is not reached
                break
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            index = waiting.pop(future)
            try:
                result = future.result()
            except BrokenProcessPool:  # the system ends a process that takes too much memory
                result = died
            yield index, result


def _here(index: int) -> Any:
    return _inherited[-1](index)
