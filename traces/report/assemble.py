"""Puts what the partitions found into one report, with places in the files and explanations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import chain

from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton.automaton_cache import of_this_thread
from stagewright.traces.automaton.product_automaton import Running
from stagewright.traces.automaton.subset_automaton import ANY, START
from stagewright.traces.coverage.exercised import Exercised, Whose, coverage_of
from stagewright.traces.events.event_block import EntityKey, Place
from stagewright.traces.events.format_event import label
from stagewright.traces.events.symbols import parse_symbol
from stagewright.traces.events.where import Where
from stagewright.traces.explain.candidate_comparison import compared, to_cover
from stagewright.traces.explain.candidate_explainer import PanelExplainer
from stagewright.traces.explain.explanation import EXPLAINED_MAX, Explanation
from stagewright.traces.explain.panel import Panel
from stagewright.traces.inputs.discover import LeftOut
from stagewright.traces.inputs.tasks import LINES_MAX, PartRead, refuse_damaged
from stagewright.traces.replay.exact_verdicts import Cause, Evaluated, Finding, MachineKey
from stagewright.traces.report.overflow import Overflow
from stagewright.traces.report.results import (
    Damaged,
    EntityReport,
    Totals,
    TraceReport,
    UnparsedLine,
)

LISTED_MAX = 10_000  # entities that are listed one by one; Parquet has more
SHAPES_MAX = 10  # of lines that were passed over


@dataclass(frozen=True)
class Read:
    """All parts that were read, in order.

    `places`: the path of every part, of earlier runs too, and how many lines of its file stand before it.
    """

    parts: list[PartRead]
    places: tuple[tuple[str, int], ...]

    @property
    def events(self) -> int:
        """How many events were read."""
        return sum(read.tally.events for read in self.parts)

    def where(self, place: Place) -> Where:
        """The line of a file that a place is."""
        return _where(self, place)


def read_of(
    parts: Sequence[PartRead],
    earlier: Sequence[tuple[str, int]] = (),
    first_lines: Mapping[str, int] | None = None,
    *,
    may_come: bool = False,
) -> Read:
    """The parts in order, after those that earlier runs have read.

    Raises:
        InputError: a file is damaged; or there is not one event in all files, and none `may_come` later.
    """
    parts = sorted(parts, key=lambda read: read.part.number)
    refuse_damaged(parts)
    if not may_come:
        _refuse_what_is_no_trace(parts)
    # Nothing at all is no trace in which all is well: a recorder that never wrote looks like this, and a
    # mapping whose expressions fit no line.
    if not may_come and not any(read.tally.events or read.tally.unparsed for read in parts):
        if holes := [hole for read in parts for hole in read.part.holes]:
            text = "\n".join(dict.fromkeys(hole.reason for hole in holes))
            raise InputError(text, help="there is nothing else to check: take other copies")
        first, *more = dict.fromkeys(read.part.path for read in parts)
        others = f" nor in {len(more)} more files" if more else ""
        of_others = sum(read.tally.other for read in parts)
        text = f": {of_others:,} lines are unrelated" if of_others else ""
        raise InputError(
            f"there is no event in {first}{others}{text}",
            help="check that events were recorded, and that the format was detected correctly (--format)",
        )
    places = list(earlier)
    lines = dict(first_lines or {})
    for read in parts:
        before = lines.get(read.part.path, 0)
        places.append((read.part.path, before))
        lines[read.part.path] = before + read.tally.lines
    return Read(parts, tuple(places))


def _refuse_what_is_no_trace(parts: Sequence[PartRead]) -> None:
    """Raise an `InputError` if these are JSON lines, and not one of them is an event.

    A log is another matter: lines that are not understood say that it is one, and what was looked for may not be in it.
    """
    if any(read.part.form != "jsonl" or read.tally.events for read in parts):
        return
    refused = [
        (read.part.path, line, reason) for read in parts for line, reason in read.tally.reasons
    ]
    if not refused:
        return
    path, line, reason = refused[0]
    files = {read.part.path for read in parts}
    others = f" nor of {counted(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    raise InputError(
        f"no line of {path}{others} is an event; line {line}: {reason}",
        help="a trace has one JSON object a line, in UTF-8; of another form: --format or --mapping",
    )


def compose(
    reading: Read,
    evaluated: Sequence[Evaluated],
    panels: Mapping[MachineKey, Panel],
    notes: Sequence[str],
    seconds: float,
    *,
    earlier: int = 0,
    exercised: Mapping[Whose, Iterable[Exercised]] | None = None,
    left_out: Sequence[LeftOut] = (),
    names: Mapping[EntityKey, Mapping[str, str]] | None = None,
) -> TraceReport:
    """The report on everything that was read and evaluated; `exercised`: what the replay of it did.

    `left_out`: files that could not even be opened. `earlier` counts the events of earlier runs that were
    evaluated with it. `names`: the real names of the members that entities speak of.

    Raises:
        AccountingError: a line is not accounted for.
    """
    totals = replace(_totals(reading, evaluated), earlier=earlier)
    totals.check()
    machines = _machines(evaluated, panels)
    verdicts = {v: sum(counts.get(v, 0) for counts in machines.values()) for v in TraceVerdict}
    listed = _Listed(reading, panels, names or {})
    for finding in _in_order(evaluated):
        listed.add(finding)
    evaluators = {(key, n): j for key, panel in panels.items() for n, j in enumerate(panel.members)}
    chosen = to_cover(evaluated, panels)
    covered = {whose: what for whose, what in (exercised or {}).items() if whose in chosen}
    return TraceReport(
        files=tuple(dict.fromkeys(p.part.path for p in reading.parts)),
        machines=machines,
        verdicts=verdicts,
        totals=totals,
        entities=tuple(listed.entities),
        entities_left_out=sum(j.findings_left_out for j in evaluated)
        + listed.overflow.kinds.total(),
        overflow=listed.overflow if listed.overflow.kinds else None,
        entities_unknown=sum(j.findings_left_out for j in evaluated),
        unparsed=_unparsed(reading, evaluated),
        notes=tuple(notes),
        coverage=coverage_of(evaluators, covered),
        damaged=_damaged(reading, left_out),
        passed_over=_passed_over(reading),
        seconds=seconds,
        candidates=compared(evaluated, panels),
    )


def _machines(
    evaluated: Sequence[Evaluated], panels: Mapping[MachineKey, Panel]
) -> dict[str, dict[TraceVerdict, int]]:
    """How many entities of each machine have each verdict."""
    data: dict[str, dict[TraceVerdict, int]] = {
        str(panel): dict.fromkeys(TraceVerdict, 0) for panel in panels.values()
    }
    for one in evaluated:
        for (machine, verdict), many in one.verdicts.items():
            data[str(panels[machine])][verdict] += many
    return data


def _in_order(evaluated: Sequence[Evaluated]) -> Iterator[Finding]:
    """The findings to be listed one by one, in the order of their entities, and then the others in that order.

    If they are too many, violations are listed before others. Each is given up once it was taken.
    """
    findings = sorted((f for j in evaluated for f in j.findings), key=lambda f: f.key)
    for one in evaluated:
        one.findings = []
    if len(findings) > LISTED_MAX:
        findings.sort(key=lambda f: f.verdict is not TraceVerdict.VIOLATION)
        findings[:LISTED_MAX] = sorted(findings[:LISTED_MAX], key=lambda f: f.key)
    findings.reverse()
    while findings:
        yield findings.pop()


class _Listed:
    """Findings as reports have them: the first ones one by one, the rest packed."""

    def __init__(
        self,
        reading: Read,
        panels: Mapping[MachineKey, Panel],
        names: Mapping[EntityKey, Mapping[str, str]],
    ) -> None:
        self.entities: list[EntityReport] = []
        self.overflow = Overflow()
        self._reading = reading
        self._names = names
        self._running = {key: of_this_thread(panel.source) for key, panel in panels.items()}
        self._explainers = {key: PanelExplainer(panel) for key, panel in panels.items()}
        self._explained = 0

    def add(self, finding: Finding) -> None:
        """Take one more, in the order of the reports."""
        explainer = self._explainers[finding.key.stream[1:]]
        whole = self._explained < EXPLAINED_MAX
        explanation, refused = explainer.explain(finding, whole=whole)
        self._explained += finding.verdict is TraceVerdict.VIOLATION
        entity = _entity(self._reading, finding, self._running, explanation)
        names = tuple(self._names.get(finding.key, {}).items())
        entity = replace(entity, refused=refused, names=names)
        if len(self.entities) < LISTED_MAX:
            self.entities.append(entity)
        else:
            self.overflow.add(entity)


def _damaged(reading: Read, left_out: Sequence[LeftOut]) -> tuple[Damaged, ...]:
    """Everything that was left out, by file and line."""
    found = [Damaged(str(one.path), 1, None, one.reason) for one in left_out]
    for read in reading.parts:
        for hole in read.part.holes:
            where = reading.where(Place(read.part.number, hole.first))
            found.append(Damaged(where.file, where.line, hole.lines, hole.reason))
    return tuple(sorted(found, key=lambda one: (one.file, one.line)))


def _passed_over(reading: Read) -> tuple[tuple[str, int], ...]:
    """The most frequent shapes first; of as many lines, by their words."""
    shapes = Counter[str]()
    for read in reading.parts:
        shapes.update(read.tally.passed_over)
    return tuple(sorted(shapes.items(), key=lambda one: (-one[1], one[0]))[:SHAPES_MAX])


def _totals(reading: Read, evaluated: Sequence[Evaluated]) -> Totals:
    tallies = [p.tally for p in reading.parts]
    return Totals(
        lines=sum(t.lines for t in tallies),
        blank=sum(t.blank for t in tallies),
        other=sum(t.other for t in tallies),
        unparsed=sum(t.unparsed for t in tallies),
        with_events=sum(t.with_events for t in tallies),
        lost=sum(t.lost for t in tallies),
        events=sum(t.events for t in tallies),
        evaluated=sum(j.events_evaluated for j in evaluated),
        not_evaluated=sum(j.events_not_evaluated for j in evaluated),
        duplicates=sum(j.events_duplicate for j in evaluated),
        not_understood=sum(j.events_not_understood for j in evaluated),
    )


def _unparsed(reading: Read, evaluated: Sequence[Evaluated]) -> tuple[UnparsedLine, ...]:
    """The first lines that are no events."""
    lines = (
        UnparsedLine(_where(reading, Place(one.part.number, line)), reason)
        for one in reading.parts
        for line, reason in one.tally.reasons
    )
    events = (
        UnparsedLine(_where(reading, n.place), f"{n.key}: {n.reason}")
        for j in evaluated
        for n in j.not_understood
    )
    first = nsmallest(LINES_MAX, chain(lines, events), key=lambda u: (u.where.file, u.where.line))
    return tuple(first)


def _where(reading: Read, place: Place) -> Where:
    path, before = reading.places[place.source]
    return Where(path, before + place.line)


def _entity(
    reading: Read,
    finding: Finding,
    machines: Mapping[MachineKey, Running],
    explanation: Explanation | None,
) -> EntityReport:
    assert finding.cause is not None
    machine = finding.key.stream[1:]
    return EntityReport(
        key=finding.key,
        verdict=finding.verdict,
        cause=finding.cause,
        sequence=finding.sequence,
        where=None if finding.place is None else _where(reading, finding.place),
        last_good=None if finding.last_good is None else _where(reading, finding.last_good),
        duplicates=finding.duplicates,
        note=_note(reading, finding, machines[machine]),
        explanation=explanation,
        time=finding.time,
    )


def _note(reading: Read, finding: Finding, running: Running) -> str:
    match finding.cause:
        case Cause.MISSING:
            return _missing(finding)
        case Cause.CONFLICT if finding.rival is not None:
            rival = label(parse_symbol(finding.rival.symbol))
            return f"the other one is {rival}, at {_where(reading, finding.rival.place)}"
        case Cause.NO_END:
            return f"nothing follows the event with sequence number {finding.sequence - 1}"
        case Cause.NOT_UNDERSTOOD if finding.symbols:
            state = START if finding.sequence == 0 else ANY
            return running.refusal(state, finding.symbols[-1]) or ""
        case Cause.LEFT_OUT:
            return f"of what was read: {finding.looks.value if finding.looks else 'all is well'}"
        case Cause.BUDGET:
            return f"more than {running.source.max_states:,} states; raise it with --max-states"
        case _:
            return ""


def _missing(finding: Finding) -> str:
    """Which events are missing: all up to the first that is there."""
    assert finding.following is not None
    first, last = finding.sequence, finding.following - 1
    if first == last:
        return f"the event with sequence number {first} is missing"
    return f"the events with sequence numbers {first} to {last} are missing"
