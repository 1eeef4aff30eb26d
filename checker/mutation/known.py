"""Finds known bugs again: each in its machine, at its scope, by the promise that it must break."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.checker.processes import in_processes, possible
from stagewright.spec.definition import Definition
from stagewright.spec.errors import StagewrightError
from stagewright.spec.known_bugs import KnownBug
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report


@dataclass(frozen=True)
class Rediscovery:
    """What became of one known bug: found if a promise broke that it must break, and only with the bug."""

    by: tuple[str, ...] = ()  # the promises that broke, of those that it may break
    depth: int = 0
    states: int = 0
    scope: str = ""
    problem: str = ""  # why it does not count as found
    seconds: float = 0.0

    @property
    def found(self) -> bool:
        return bool(self.by) and not self.problem


def rediscover_all(
    bugs: Sequence[KnownBug],
    limits: Limits,
    *,
    workers: int = 1,
    on_found: Callable[[KnownBug, Rediscovery], None] | None = None,
) -> list[Rediscovery]:
    """All of them, in their order; `limits` are for each."""
    found: dict[int, Rediscovery] = {}

    def keep(index: int, rediscovery: Rediscovery) -> None:
        found[index] = rediscovery
        if on_found is not None:
            on_found(bugs[index], rediscovery)

    if workers == 1 or len(bugs) < 2 or not possible():
        for index, bug in enumerate(bugs):
            keep(index, rediscovered(bug, limits))
        return [found[i] for i in range(len(bugs))]
    died = Rediscovery(problem="its process died")
    reached = in_processes(
        lambda index: rediscovered(bugs[index], limits),
        range(len(bugs)),
        workers,
        over=lambda: False,
        died=died,
    )
    for index, got in reached:
        keep(index, got)
    return [found.get(i, died) for i in range(len(bugs))]


def rediscovered(bug: KnownBug, limits: Limits) -> Rediscovery:
    """Check the machine with the bug, and without it."""
    started = time.monotonic()
    scope = problem = ""
    by: tuple[str, ...] = ()
    depth = states = 0
    try:
        wrong, right = bug.definition(), bug.right_definition()
        scope = str(bug.scope_in(wrong))
        report = _checked(bug, wrong, replace(limits, stop_at_first=True))
        if report.note and not _broken(bug, report):  # what stopped it is not what is looked for
            report = _checked(bug, wrong, limits)
        states = report.states
        broken = _broken(bug, report)
        by = tuple(v.name for v in broken)
        depths = [
            len(v.run.steps) + (v.run.loop_step is not None) for v in broken if v.run is not None
        ]
        depth = min(depths, default=0)
        if not by:
            kept_all = "it violates no property that it must violate"
            problem = kept_all if report.exhausted else report.note
        else:
            kept = _checked(bug, right, limits)
            wrongly = [v.name for v in _broken(bug, kept)]
            if wrongly:
                problem = f"the right machine breaks {', '.join(wrongly)} too"
            elif not kept.exhausted:
                problem = f"the right machine: {kept.note}"
    except StagewrightError as error:
        problem = error.problem
    return Rediscovery(by, depth, states, scope, problem, time.monotonic() - started)


def _broken(bug: KnownBug, report: Report) -> list[PropertyVerdict]:
    return [v for v in report.verdicts if v.outcome is Outcome.VIOLATED and v.name in bug.breaks]


def _checked(bug: KnownBug, definition: Definition, limits: Limits) -> Report:
    return check(
        definition,
        bug.scope_in(definition),
        limits=limits,
        properties=bug.breaks,
        workers=1,
        coverage=False,
        symmetry=True,
    )
