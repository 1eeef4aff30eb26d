"""Judges all mutants of a definition, in several processes and within a budget."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, replace

from stagewright.checker.limits import Limits, Stop
from stagewright.checker.mutation.judge import Fate, Judgement, judge
from stagewright.checker.mutation.mutants import Mutant
from stagewright.checker.mutation.original import Original

OnJudged = Callable[[int, Judgement], None]


@dataclass(frozen=True)
class Budget:
    """How far a mutation run may go; None: without bound."""

    seconds: float | None = None  # for all mutants
    each: float | None = None  # seconds for one mutant
    states: int | None = None  # for one mutant at one scope


def judge_all(
    mutants: Sequence[Mutant],
    originals: Sequence[Original],
    budget: Budget,
    *,
    workers: int = 1,
    told: OnJudged | None = None,
) -> tuple[list[Judgement], bool]:
    """A judgement for each mutant, in their order, and whether a Ctrl-C ended it early.

    What is not reached within the budget is undecided. The judgements do not depend on `workers`.
    """
    parallel = workers > 1 and len(mutants) > 1 and sys.platform == "linux"
    memory = Stop(Limits()).memory_left(0) // (workers if parallel else 1)
    work = _Work(mutants, originals, budget, time.monotonic(), memory)
    late = Judgement(Fate.UNDECIDED, note="not reached within the budget")
    if parallel:  # compile before there are several processes
        [original.compiled.engine for original in originals if original.small]
    judgements = [late] * len(mutants)
    reached = _in_processes(work, workers) if parallel else _one_by_one(work)
    try:
        for index, judgement in reached:
            judgements[index] = judgement
            if told is not None:
                told(index, judgement)
    except KeyboardInterrupt:
        rest = replace(late, note="interrupted")
        return [rest if j is late else j for j in judgements], True
    return judgements, False


@dataclass(frozen=True, eq=False)
class _Work:
    mutants: Sequence[Mutant]
    originals: Sequence[Original]
    budget: Budget
    started: float
    memory: int  # bytes for each process

    @property
    def over(self) -> bool:
        limit = self.budget.seconds
        return limit is not None and time.monotonic() - self.started >= limit

    def judged(self, index: int) -> Judgement:
        """Also called in the other processes, which have this object since they were forked."""
        budget, each = self.budget, self.budget.each
        if budget.seconds is not None:
            left = max(0.01, budget.seconds - (time.monotonic() - self.started))
            each = left if each is None else min(each, left)
        limits = Limits(states=budget.states, seconds=each, memory=self.memory)
        try:
            return judge(self.mutants[index], self.originals, limits)
        except MemoryError:
            return Judgement(Fate.UNDECIDED, note="memory ran out")


def _one_by_one(work: _Work) -> Iterator[tuple[int, Judgement]]:
    for index in range(len(work.mutants)):
        if work.over:
            return
        yield index, work.judged(index)


_inherited: list[
    _Work
] = []  # what the processes of a pool have from their parent: mutants cannot be sent


def _in_processes(work: _Work, workers: int) -> Iterator[tuple[int, Judgement]]:
    _inherited.append(work)
    pool = ProcessPoolExecutor(
        min(workers, len(work.mutants)),
        mp_context=multiprocessing.get_context("fork"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    )
    finished = False
    try:
        yield from _collected(work, pool, workers)
        finished = True
    finally:
        _inherited.clear()
        _end(pool, at_once=not finished)


def _collected(
    work: _Work, pool: ProcessPoolExecutor, workers: int
) -> Iterator[tuple[int, Judgement]]:
    """Few are handed out at a time, so that the budget can end it soon."""
    waiting: dict[Future[Judgement], int] = {}
    indices = iter(range(len(work.mutants)))
    while True:
        while len(waiting) < 3 * workers and not work.over:
            index = next(indices, None)
            if index is None:
                break
            try:
                waiting[pool.submit(_judged_here, index)] = index
            except BrokenProcessPool:
                return  # the rest is not reached
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), _result(future)


def _result(future: Future[Judgement]) -> Judgement:
    try:
        return future.result()
    except BrokenProcessPool:  # the system ends a process that takes too much memory
        return Judgement(Fate.UNDECIDED, note="its process died")


def _judged_here(index: int) -> Judgement:
    return _inherited[-1].judged(index)


def _end(pool: ProcessPoolExecutor, *, at_once: bool) -> None:
    if at_once:
        for process in list((pool._processes or {}).values()):
            with suppress(OSError):
                process.terminate()
    pool.shutdown(wait=True, cancel_futures=True)
