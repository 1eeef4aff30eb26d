"""The second pass over the input: it looks at suspects.

What rows could not settle, and what is to be explained, is read again and evaluated event by event; and what
entities exercised of which something was wrong is counted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.coverage.correction import Recount, Taken, Wrong, taken
from stagewright.traces.events.event_block import Block, EntityKey, chosen, merge
from stagewright.traces.explain.explanation import EXPLAINED_MAX, AccountingError
from stagewright.traces.inputs.tasks import Automata, PartRead, Summary, Task, blocks_of, details_of
from stagewright.traces.pipeline.entity_filter import Wanted
from stagewright.traces.pipeline.first_pass import carry
from stagewright.traces.replay.exact_verdicts import Evaluated, Finding, MachineKey, evaluate
from stagewright.traces.replay.join_segments import Glued, Miscounted, glue
from stagewright.traces.replay.related.classes import View
from stagewright.traces.replay.rows import ENTITY, Rows, concatenated, select
from stagewright.traces.replay.segment_files import load
from stagewright.traces.replay.segments import rows_of
from stagewright.traces.replay.transition_table import Steps

_Item = Block | Rows | Wrong | Taken | PartRead


@dataclass
class Looked:
    """What a partition of the second pass came to: the unsettled entities evaluated, the others only explained."""

    glued: Glued = field(default_factory=Glued)
    carried: str = ""
    explained: list[Finding] = field(default_factory=list)
    damaged: list[PartRead] = field(default_factory=list)
    taken: Taken = field(default_factory=Taken)  # how much more than the first pass has counted


@dataclass(frozen=True)
class SecondPass:
    """Evaluates some entities event by event, and counts again what some exercised.

    `miscounted` are also all unsettled ones, or none where too many were; `breaks`, by task, are those of the
    first pass.
    """

    automata: Automata
    partitions: int
    unsettled: tuple[EntityKey, ...]
    explained: tuple[EntityKey, ...]
    miscounted: tuple[Miscounted, ...] = ()
    breaks: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])
    carry_to: str = ""
    views: Mapping[MachineKey, View] = field(default_factory=dict[MachineKey, View])

    def work(self, task: Task) -> Iterator[tuple[int, _Item]]:
        """The events of the wanted entities, by partition; and what could be read before, but not now."""
        counted = [m.key for m in self.miscounted]
        wanted = Wanted((*self.unsettled, *self.explained, *counted))
        looked, again = Wanted((*self.unsettled, *self.explained)), Wanted(counted)
        unsettled = frozenset(self.unsettled)
        wrong = Wanted([key for key in counted if key not in unsettled])
        evaluated = np.array([*(m.evaluated for m in self.miscounted), 0], np.int64)
        recount = Recount(Steps(self.automata, self.views), self.breaks.get(task.number, ()))
        summary = Summary()
        for path in task.carried:
            rows = load(Path(path))
            yield from self._of(looked, rows)
            yield from ((number, Wrong(one)) for number, one in self._of(wrong, rows))
        for block in blocks_of(task, summary, wanted.named):
            number = looked.find(block)
            target = np.where(number < 0, -1, number % self.partitions)[block.entity]
            for partition in np.unique(target[target >= 0]).tolist():
                yield partition, chosen(block, np.flatnonzero(target == partition))
            counts = (again.find(block) >= 0)[block.entity]
            if counts.any():
                some = chosen(block, np.flatnonzero(counts))
                recount.take(some, evaluated[again.find(some)])
        yield 0, recount.end()
        for part in recount.rows:
            yield from ((number, Wrong(one)) for number, one in self._of(wrong, part))
        yield from ((0, read) for read in summary.parts if read.error)

    def _of(self, wanted: Wanted, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """The rows of wanted entities, by partition."""
        number = wanted.find(rows)
        target = np.where(number < 0, -1, number % self.partitions)[rows.table[:, ENTITY]]
        for partition in np.unique(target[target >= 0]).tolist():
            yield partition, select(rows, np.flatnonzero(target == partition))

    def finish(self, items: Iterable[_Item]) -> Looked:
        """Evaluate the entities of a partition."""
        found, blocks, carried = Looked(), list[Block](), list[Rows]()
        wrong: list[Rows] = []
        for item in items:
            if isinstance(item, PartRead):
                found.damaged.append(item)
            elif isinstance(item, Rows):
                carried.append(item)
            elif isinstance(item, Wrong):
                wrong.append(item.rows)
            elif isinstance(item, Counter):
                found.taken.subtract(item)
            else:
                blocks.append(item)
        if wrong:
            steps = Steps(self.automata)
            glue(concatenated(wrong), steps, carry=bool(self.carry_to), count_bad=True)
            found.taken.update(taken(steps))
        if not blocks:
            return found
        block = merge(blocks)
        unsettled = (Wanted(self.unsettled).find(block) >= 0)[block.entity]
        one, other = (chosen(block, np.flatnonzero(rows)) for rows in (unsettled, ~unsettled))
        if len(one):
            rows = concatenated([rows_of(one), *carried])
            views = self.views if self.carry_to else None  # the changes are known already
            details, steps = details_of(self.partitions), Steps(self.automata, views)
            found.glued = glue(
                rows, steps, carry=bool(self.carry_to), details=details, count_bad=True
            )
            if self.miscounted:
                found.taken.update(taken(steps))
            found.glued.changes = None
            found.carried = carry(found.glued, self.carry_to)
            if not carried:
                _explain(found.glued.evaluated, one, self.automata)
        found.explained = evaluate([other], self.automata).findings
        return found


def _explain(glued: Evaluated, block: Block, automata: Automata) -> None:
    """Give those findings that are explained the events that led to them."""
    explained = to_explain(glued.findings)
    few = Wanted(tuple(explained)).find(block) >= 0
    exact = evaluate([chosen(block, np.flatnonzero(few[block.entity]))], automata)
    in_full = {finding.key: finding for finding in exact.findings}
    glued.findings = [
        agreed(f, in_full.get(f.key)) if f.key in explained else f for f in glued.findings
    ]


def to_explain(findings: Iterable[Finding]) -> dict[EntityKey, None]:
    """The entities whose violations are explained with all that went before."""
    violations = (f for f in findings if f.verdict is TraceVerdict.VIOLATION)
    first = sorted(violations, key=lambda f: f.key)[:EXPLAINED_MAX]
    return {f.key: None for f in first}


def agreed(glued: Finding, exact: Finding | None) -> Finding:
    """A finding with all events that led to it, which were evaluated one by one.

    Raises:
        AccountingError: the two ways to evaluate do not agree.
    """
    plain = [
        replace(f, symbols=(), before=None, rival=None) for f in (glued, exact) if f is not None
    ]
    if exact is None or plain[0] != plain[1]:
        raise AccountingError(f"{glued.key}: glued {glued}, but evaluated event by event {exact}")
    return replace(glued, symbols=exact.symbols, rival=exact.rival, time=exact.time)
