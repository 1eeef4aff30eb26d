"""Which properties are needed: for each, a mutant that it alone catches, if there is one.

A property is taken away and the mutants that it catches are searched again. One that now survives at every scope
is caught by that property alone; lemmas are left out, as nobody relies on them. A property without such a mutant says
nothing that the others do not say of these mutants: a lemma, a restatement, or a sentence that wants a bug of its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.evaluation import Fate, evaluate
from stagewright.checker.mutation.original import Original
from stagewright.checker.mutation.report import Finding, Need, Needed
from stagewright.checker.mutation.run import Budget
from stagewright.checker.processes import in_processes, possible
from stagewright.spec.definition import Definition, Property, Role

TRIES = 12  # mutants searched again for one property, those that it catches by itself first


def needed(
    definition: Definition,
    originals: Sequence[Original],
    findings: Sequence[Finding],
    budget: Budget,
    *,
    workers: int = 1,
) -> Mapping[str, Needed]:
    """By property that is no lemma: whether it is needed. The budget's seconds are shared by all, evenly."""
    asked = [p for p in definition.properties if p.role is not Role.LEMMA]
    lemmas = tuple(p.name for p in definition.properties if p.role is Role.LEMMA)
    originals = [replace(o, unasked=lemmas) for o in originals]
    slice_of = None if budget.seconds is None else budget.seconds * workers / max(1, len(asked))
    elsewhere = tuple(
        alone.part
        for alone in definition.checked_alone
        if not any(finding.mutant.part.startswith(alone.part) for finding in findings)
    )
    work = _Work(originals, findings, replace(budget, seconds=slice_of), asked, elsewhere)
    late = _Found(Need.UNDECIDED, 0, None)
    if workers == 1 or len(asked) < 2 or not possible():
        found = {i: work.found(i) for i in range(len(asked))}
    else:
        [original.compiled.engine for original in originals if original.small]
        reached = in_processes(
            work.found, range(len(asked)), workers, over=lambda: False, died=late
        )
        found = dict(reached)
    return {
        prop.name: Needed(need, caught, None if index is None else findings[index])
        for i, prop in enumerate(asked)
        for need, caught, index in (found.get(i, late),)
    }


class _Found(NamedTuple):
    """What one process sends to another: no mutant, which cannot be sent, but its number."""

    need: Need
    caught: int
    finding: int | None


@dataclass(frozen=True, eq=False)
class _Work:
    originals: Sequence[Original]
    findings: Sequence[Finding]
    budget: Budget  # for one property
    asked: Sequence[Property]
    elsewhere: tuple[str, ...]  # parts of which no mutant is evaluated here

    def found(self, index: int) -> _Found:
        """Also called in other processes, which have this object since they were forked."""
        name = self.asked[index].name
        caught = [
            (len(f.evaluation.by), f.evaluation.depth, i)
            for i, f in enumerate(self.findings)
            if name in f.evaluation.by and f.evaluation.states
        ]
        undecided = len(caught) > TRIES or any(
            f.evaluation.fate is Fate.UNDECIDED for f in self.findings
        )
        if not caught and name.startswith(self.elsewhere):
            return _Found(Need.OF_A_PART, 0, None)
        if not caught:
            return _Found(Need.UNDECIDED if undecided else Need.NOTHING, 0, None)
        without = [replace(o, unasked=(*o.unasked, name)) for o in self.originals]
        limits = Limits(states=self.budget.states, seconds=self.budget.each)
        started, most = time.monotonic(), self.budget.seconds
        for _, _, i in sorted(caught)[:TRIES]:
            if most is not None and time.monotonic() - started > most:
                undecided = True
                break
            fate = evaluate(self.findings[i].mutant, without, limits).fate
            if fate is Fate.SURVIVED:
                return _Found(Need.ALONE, len(caught), i)
            undecided |= fate is Fate.UNDECIDED
        return _Found(Need.UNDECIDED if undecided else Need.SHARED, len(caught), None)
