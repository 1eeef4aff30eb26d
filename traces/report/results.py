"""What `validate` found, as data: verdicts by entity, lines by what became of them, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.events.event_block import EntityKey
from stagewright.traces.events.where import Where
from stagewright.traces.explain.explanation import (
    AccountingError,
    CandidateReport,
    Explanation,
    Refused,
)
from stagewright.traces.replay.exact_verdicts import Cause

if TYPE_CHECKING:
    from stagewright.traces.coverage.exercised import MachineCoverage
    from stagewright.traces.cross_entity.verdicts import TogetherReport
    from stagewright.traces.report.overflow import Overflow


@dataclass(frozen=True)
class EntityReport:
    """An entity whose trace is not ok: the first thing that is wrong with it.

    `names`: the real names that the trace has of members of the machine's own entities, by member.
    """

    key: EntityKey
    verdict: TraceVerdict
    cause: Cause
    sequence: int
    where: Where | None
    last_good: Where | None
    duplicates: int = 0
    note: str = ""
    explanation: Explanation | None = None  # of candidates, by the one that got furthest
    refused: tuple[Refused, ...] = ()  # by candidate, where there are several
    names: tuple[tuple[str, str], ...] = ()
    time: int | None = None  # of the event at `where`, if it is known


@dataclass(frozen=True)
class UnparsedLine:
    """A line that is no event of its machine, with the reason."""

    where: Where
    reason: str


@dataclass(frozen=True)
class Damaged:
    """What could not be read and was left out: from a line of a file on so many lines, or (None) the rest."""

    file: str
    line: int
    lines: int | None
    reason: str

    def __str__(self) -> str:
        many = "all that follows" if self.lines is None else f"{self.lines:,} lines"
        return f"{self.file}:{self.line}: {many}; {self.reason.removeprefix(f'{self.file} ')}"


@dataclass(frozen=True)
class Totals:
    """What became of every line and of every event.

    A line is blank, unrelated (in a log), unparsed, lost in a damaged part, or has at least one event. An event is
    evaluated, or not evaluated since its trace had a violation or a gap before it, or a duplicate, or none of its machine.
    """

    lines: int = 0
    blank: int = 0
    other: int = 0  # lines of logs that say nothing of a machine
    unparsed: int = 0
    with_events: int = 0
    lost: int = 0  # as far as it is known how many lines a damaged part has
    events: int = 0
    earlier: int = 0  # events of earlier runs that waited for one that was missing, or are of logs
    evaluated: int = 0
    not_evaluated: int = 0
    duplicates: int = 0
    not_understood: int = 0

    @property
    def not_events(self) -> int:
        """Lines that are no event, and events that are none of their machine."""
        return self.unparsed + self.not_understood

    def check(self) -> None:
        """Raise an `AccountingError` unless every line and every event is accounted for."""
        if self.blank + self.other + self.unparsed + self.with_events + self.lost != self.lines:
            raise AccountingError(f"{self.lines} lines were read, but {self} accounts for others")
        kinds = self.evaluated + self.not_evaluated + self.duplicates + self.not_understood
        if kinds != self.events + self.earlier:
            raise AccountingError(
                f"{self.events} events were read, but {kinds} came through: {self}"
            )


@dataclass(frozen=True)
class TraceReport:
    """The verdicts on all traces that were read together."""

    files: tuple[str, ...]
    # with profile and scope: their entities by verdict
    machines: dict[str, dict[TraceVerdict, int]]
    verdicts: dict[TraceVerdict, int]  # how many entities have each
    totals: Totals
    entities: tuple[EntityReport, ...]  # that are not ok; of very many the first ones
    entities_left_out: int  # that are not ok either
    unparsed: tuple[UnparsedLine, ...]  # the first ones; `totals.unparsed` counts all
    notes: tuple[str, ...] = ()
    plan: tuple[str, ...] = field(default=(), compare=False)  # how it was found, and why so
    coverage: tuple[MachineCoverage, ...] = ()  # what all events together exercised
    # of those left out, what is at hand
    overflow: Overflow | None = field(default=None, compare=False)
    entities_unknown: int = 0  # of those left out, more than `rest` has
    damaged: tuple[Damaged, ...] = ()  # what was left out
    seconds: float = field(default=0.0, compare=False)
    together: TogetherReport | None = None  # of properties over several entities
    candidates: tuple[CandidateReport, ...] = ()  # by trace, where several profiles are compared
    run: int = 0  # of those that have gone on from each other
    passed_over: tuple[
        tuple[str, int], ...
    ] = ()  # the most frequent shapes of lines in no known form

    @property
    def has_news(self) -> bool:
        """Whether something was found that no earlier run has reported."""
        broken = self.together is not None and bool(self.together.broken)
        return bool(self.entities or self.unparsed or self.entities_left_out) or broken

    @property
    def exit_code(self) -> int:
        """0: all ok; 1: a violation; 3: gaps, undecided entities, unparsed lines or damaged files only."""
        together = {} if self.together is None else self.together.verdicts
        if self.verdicts.get(TraceVerdict.VIOLATION) or together.get(TraceVerdict.VIOLATION):
            return 1
        bad = sum(n for verdict, n in self.verdicts.items() if verdict is not TraceVerdict.OK)
        bad += together.get(TraceVerdict.UNDECIDED, 0)
        return 3 if bad or self.totals.not_events or self.damaged else 0


Deliver = Callable[[TraceReport], None]  # takes a report to where it is wanted
