"""Puts what the partitions found into one report, with places in the files and explanations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stagewright.spec.errors import InputError
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.blocks import EntityKey, Place
from stagewright.traces.coverage import Exercised, coverage_of
from stagewright.traces.determinised import LIVE, START, Determinised
from stagewright.traces.explain import Explainer, Judge
from stagewright.traces.judge import Cause, Finding, Judged, MachineKey
from stagewright.traces.passes import PartRead, refuse_damaged
from stagewright.traces.running import of_this_thread
from stagewright.traces.trace_report import (
    EntityReport,
    Explanation,
    Totals,
    TraceReport,
    UnparsedLine,
    Where,
)

EXPLAINED_MAX = (
    200  # violations that are told with the events before them, and have files of their own
)


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
) -> Read:
    """The parts in order, after those that earlier runs have read.

    Raises:
        InputError: a file is damaged, or there is not one event in all files.
    """
    parts = sorted(parts, key=lambda read: read.part.number)
    refuse_damaged(parts)
    # Nothing at all is no trace in which all is well: a recorder that never wrote looks like this, and a
    # mapping whose expressions fit no line.
    if not earlier and not any(read.tally.events or read.tally.unparsed for read in parts):
        first, *more = dict.fromkeys(read.part.path for read in parts)
        others = f" nor in {len(more)} more files" if more else ""
        of_others = sum(read.tally.other for read in parts)
        told = f": {of_others:,} lines are of other matters" if of_others else ""
        raise InputError(
            f"there is no event in {first}{others}{told}",
            help="was anything recorded there, and is it read as what it is?",
        )
    places = list(earlier)
    lines = dict(first_lines or {})
    for read in parts:
        before = lines.get(read.part.path, 0)
        places.append((read.part.path, before))
        lines[read.part.path] = before + read.tally.lines
    return Read(parts, tuple(places))


def compose(
    reading: Read,
    judged: Sequence[Judged],
    judges: Mapping[MachineKey, Judge],
    notes: Sequence[str],
    seconds: float,
    *,
    held: int = 0,
    exercised: Mapping[MachineKey, Iterable[Exercised]] | None = None,
    names: Mapping[EntityKey, Mapping[str, str]] | None = None,
) -> TraceReport:
    """The report on everything that was read and judged; `exercised`: what the replay of it did.

    `names`: the real names of the members that entities speak of.

    Raises:
        AccountingError: a line is not accounted for.
    """
    totals = replace(_totals(reading, judged), held=held)
    totals.check()
    verdicts = {v: sum(j.verdicts.get(v, 0) for j in judged) for v in TraceVerdict}
    findings = sorted((f for j in judged for f in j.findings), key=lambda f: f.key)
    running = {key: of_this_thread(judge.automaton) for key, judge in judges.items()}
    explainers = {key: Explainer(judge) for key, judge in judges.items()}
    entities: list[EntityReport] = []
    told = 0
    for finding in findings:
        explanation = None
        if finding.verdict is TraceVerdict.VIOLATION:
            explainer = explainers[finding.key.stream[1:]]
            explanation = explainer.explain(finding, whole=told < EXPLAINED_MAX)
            told += 1
        of_entity = tuple((names or {}).get(finding.key, {}).items())
        entities.append(replace(_entity(reading, finding, running, explanation), names=of_entity))
    machines = tuple(
        f"{j.definition.name}{f' ({j.definition.profile})' if j.definition.profile else ''}, {j.scope}"
        for j in judges.values()
    )
    return TraceReport(
        files=tuple(dict.fromkeys(p.part.path for p in reading.parts)),
        machines=tuple(dict.fromkeys(machines)),
        verdicts=verdicts,
        totals=totals,
        entities=tuple(entities),
        entities_left_out=sum(j.findings_left_out for j in judged),
        unparsed=_unparsed(reading, judged),
        notes=tuple(notes),
        coverage=coverage_of(judges, exercised or {}),
        seconds=seconds,
    )


def _totals(reading: Read, judged: Sequence[Judged]) -> Totals:
    tallies = [p.tally for p in reading.parts]
    return Totals(
        lines=sum(t.lines for t in tallies),
        blank=sum(t.blank for t in tallies),
        other=sum(t.other for t in tallies),
        unparsed=sum(t.unparsed for t in tallies),
        told=sum(t.told for t in tallies),
        events=sum(t.events for t in tallies),
        judged=sum(j.events_judged for j in judged),
        not_judged=sum(j.events_not_judged for j in judged),
        duplicates=sum(j.events_duplicate for j in judged),
        not_understood=sum(j.events_not_understood for j in judged),
    )


def _unparsed(reading: Read, judged: Sequence[Judged]) -> tuple[UnparsedLine, ...]:
    found = [
        UnparsedLine(_where(reading, Place(one.part.number, line)), reason)
        for one in reading.parts
        for line, reason in one.tally.reasons
    ]
    found += [
        UnparsedLine(_where(reading, n.place), f"{n.key}: {n.reason}")
        for j in judged
        for n in j.not_understood
    ]
    return tuple(sorted(found, key=lambda u: (u.where.file, u.where.line)))


def _where(reading: Read, place: Place) -> Where:
    path, before = reading.places[place.source]
    return Where(path, before + place.line)


def _entity(
    reading: Read,
    finding: Finding,
    running: Mapping[MachineKey, Determinised],
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
        note=_note(finding, running[machine]),
        explanation=explanation,
    )


def _note(finding: Finding, running: Determinised) -> str:
    match finding.cause:
        case Cause.MISSING:
            return f"the event with sequence number {finding.sequence} is missing"
        case Cause.NO_END:
            return f"nothing follows the event with sequence number {finding.sequence - 1}"
        case Cause.NOT_UNDERSTOOD if finding.symbols:
            state = START if finding.sequence == 0 else LIVE
            return running.refusal(state, finding.symbols[-1]) or ""
        case Cause.BUDGET:
            return f"more than {running.source.max_states:,} states; raise it with --max-states"
        case _:
            return ""
