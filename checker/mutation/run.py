"""Evaluates all mutants of a definition, in several processes and within a budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from stagewright.checker.limits import Limits, Stop
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.checkpoint import Checkpoint
from stagewright.checker.mutation.claims import Claims
from stagewright.checker.mutation.evaluation import Evaluation, Fate, evaluate
from stagewright.checker.mutation.original import Original
from stagewright.checker.processes import in_processes, possible

OnEvaluated = Callable[[int, Evaluation], None]


@dataclass(frozen=True)
class Budget:
    """How far a mutation run may go; None: without bound."""

    seconds: float | None = None  # for all mutants
    each: float | None = None  # seconds for one mutant
    states: int | None = None  # for one mutant at one scope


def evaluate_all(
    mutants: Sequence[Mutant],
    originals: Sequence[Original],
    budget: Budget,
    *,
    workers: int = 1,
    checkpoint: Checkpoint | None = None,
    claims: Claims | None = None,
    on_evaluated: OnEvaluated | None = None,
) -> tuple[list[Evaluation], bool]:
    """An evaluation of each mutant, in their order, and whether a Ctrl-C ended it early.

    What is not reached within the budget is undecided. The evaluations do not depend on `workers`.
    `checkpoint`: of these mutants; what it holds is taken as it is, and what is evaluated is added to it.
    `claims`: of these mutants; only those are evaluated that its reasons ask for. It learns what became of them.
    """
    known = {} if checkpoint is None else checkpoint.known
    asked: Iterable[int] = range(len(mutants))
    if claims is not None:
        claims.evaluations.update(known)
        asked = claims.in_order()
    open_ = (index for index in asked if index not in known)
    parallel = workers > 1 and len(mutants) - len(known) > 1 and possible()
    memory = Stop(Limits()).memory_left(0) // (workers if parallel else 1)
    work = _Work(mutants, originals, budget, time.monotonic(), memory)
    late = Evaluation(Fate.UNDECIDED, note="not reached within the budget")
    if parallel:  # compile before there are several processes
        [original.compiled.engine for original in originals if original.small]
    evaluations = [known.get(index, late) for index in range(len(mutants))]
    reached = _one_by_one(work, open_)
    if parallel:
        died = replace(late, note="its process died")
        reached = in_processes(work.evaluated, open_, workers, over=work.is_over, died=died)
    try:
        for index, evaluation in reached:
            evaluations[index] = evaluation
            if claims is not None:
                claims.evaluations[index] = evaluation
            if checkpoint is not None:
                checkpoint.keep(index, evaluation)
            if on_evaluated is not None:
                on_evaluated(index, evaluation)
    except KeyboardInterrupt:
        rest = replace(late, note="interrupted")
        return [rest if j is late else j for j in evaluations], True
    return evaluations, False


@dataclass(frozen=True, eq=False)
class _Work:
    mutants: Sequence[Mutant]
    originals: Sequence[Original]
    budget: Budget
    started: float
    memory: int  # bytes for each process

    def is_over(self) -> bool:
        """Whether the time for all of them is spent."""
        limit = self.budget.seconds
        return limit is not None and time.monotonic() - self.started >= limit

    def evaluated(self, index: int) -> Evaluation:
        """Also called in the other processes, which have this object since they were forked."""
        budget, each = self.budget, self.budget.each
        if budget.seconds is not None:
            left = max(0.01, budget.seconds - (time.monotonic() - self.started))
            each = left if each is None else min(each, left)
        limits = Limits(states=budget.states, seconds=each, memory=self.memory)
        try:
            return evaluate(self.mutants[index], self.originals, limits)
        except MemoryError:
            return Evaluation(Fate.UNDECIDED, note="memory ran out")


def _one_by_one(work: _Work, indices: Iterable[int]) -> Iterator[tuple[int, Evaluation]]:
    for index in indices:
        if work.is_over():
            return
        yield index, work.evaluated(index)
