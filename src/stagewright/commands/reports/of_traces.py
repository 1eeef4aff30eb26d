"""Makes a suite of what `validate` reports: a case for each trace that is not ok, and one for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagewright.commands.reports.places import line_place
from stagewright.commands.reports.suite import Case, Suite
from stagewright.spec.text.visible import one_line
from stagewright.spec.trace import TraceVerdict
from stagewright.spec.verdict import Outcome

if TYPE_CHECKING:
    from stagewright.traces.cross_entity.verdicts import PropertyReport, TogetherReport
    from stagewright.traces.report.results import EntityReport, TraceReport

KIND = "recorded trace"
MEANING = "A recorded trace must be a run that the definition allows."
_READ = "every line is read"
_OTHERS = "all other traces are ok"
_BEFORE = "no trace was found to be bad in an earlier run"
_GROUPS_MAX = 20  # that are listed of one property
_TOGETHER = {
    TraceVerdict.OK: Outcome.HOLDS,
    TraceVerdict.VIOLATION: Outcome.VIOLATED,
    TraceVerdict.UNDECIDED: Outcome.UNDECIDED,
}
_OUTCOMES = {0: Outcome.HOLDS, 1: Outcome.VIOLATED, 3: Outcome.UNDECIDED}


def suite_of(report: TraceReport, reproduce: str) -> Suite:
    """The suite of one run of `stagewright validate`."""
    from stagewright.traces.explain.candidate_comparison import candidate_lines

    totals = report.totals
    entities = ", ".join(f"{n:,} {verdict.value}" for verdict, n in report.verdicts.items() if n)
    notes = list(report.notes)
    notes += [" ".join(line.split()) for line in candidate_lines(report.candidates)]
    if report.entities_left_out:
        notes.append(f"{report.entities_left_out:,} more traces that are not ok are not listed")
    return Suite(
        "validate",
        "traces",
        "",
        one_line("; ".join(report.machines)) or "no machine",
        _OUTCOMES[report.exit_code],
        tuple(_cases(report)),
        f"entities: {entities or 'none'}; files: {len(report.files):,}; lines: {totals.lines:,}; "
        f"events checked: {totals.evaluated:,}",
        reproduce,
        None,
        facts={
            **{f"entities.{v.value}": report.verdicts.get(v, 0) for v in TraceVerdict},
            "lines": totals.lines,
            "lines.checked": totals.evaluated,
            "lines.unparsed": totals.not_events,
        },
        note=one_line("; ".join(notes)),
        seconds=report.seconds,
    )


def _cases(report: TraceReport) -> Iterator[Case]:
    yield from map(_case, report.entities)
    if good := report.verdicts.get(TraceVerdict.OK, 0):
        note = f"ok: {good:,}"
        yield Case(_OTHERS, "trace-ok", KIND, MEANING, "", Outcome.HOLDS, note, None)
    yield from _reported_before(report)
    yield _lines_case(report)
    if report.damaged:
        yield _damaged_case(report)
    if report.together is not None:
        for prop in report.together.properties:
            yield _together_case(prop, report.together)


def _reported_before(report: TraceReport) -> Iterator[Case]:
    """What earlier runs with the same state have reported, and is counted on."""
    listed = Counter(entity.verdict for entity in report.entities)
    known = Counter(report.verdicts) - listed
    del known[TraceVerdict.OK]
    if report.run and (many := known.total() - report.entities_left_out) > 0:
        violated = known[TraceVerdict.VIOLATION] > report.entities_left_out
        note = f"reported in an earlier run: {many:,}"
        outcome = Outcome.VIOLATED if violated else Outcome.UNDECIDED
        yield Case(_BEFORE, "trace-reported-before", KIND, MEANING, "", outcome, note, None, note)


def _case(entity: EntityReport) -> Case:
    from stagewright.traces.report.text import entity_lines

    violated = entity.verdict is TraceVerdict.VIOLATION
    stream = entity.key.stream
    headline = f"{stream.machine} {entity.key} at event {entity.sequence}: {entity.cause.value}"
    headline = one_line(headline)
    lines = entity_lines(entity)
    return Case(
        one_line(str(entity.key)),
        f"trace-{entity.cause.name.lower().replace('_', '-')}",
        KIND,
        f"{MEANING} Here: {entity.cause.value}.",
        "",
        Outcome.VIOLATED if violated else Outcome.UNDECIDED,
        one_line(entity.note or entity.cause.value),
        None if entity.where is None else line_place(entity.where.file, entity.where.line),
        headline,
        "\n".join(line.strip() for line in lines[1:]),
        "\n".join(lines),
    )


def _together_case(prop: PropertyReport, report: TogetherReport) -> Case:
    """A property over several entities."""
    from stagewright.traces.cross_entity.format import group_lines

    groups = [g for g in report.broken if (g.system, g.name) == (prop.system, prop.name)]
    parts = ["\n".join(map(one_line, group_lines(group))) for group in groups[:_GROUPS_MAX]]
    first = groups[0].where if groups else prop.first_open
    many = f"{prop.evaluated:,} checked, {prop.broken:,} broke it, {prop.open:,} undecided"
    return Case(
        f"{prop.system}.{prop.name}",
        "trace-together",
        "property over several entities",
        "It must hold of all entities of a group, at every time.",
        prop.doc,
        _TOGETHER[prop.verdict],
        "; ".join((many, *prop.why)),
        None if first is None else line_place(first.file, first.line),
        parts[0].splitlines()[0] if parts else "",
        "\n".join(prop.why),
        "\n\n".join(parts),
    )


def _damaged_case(report: TraceReport) -> Case:
    """What was left out since it could not be read."""
    first, text = report.damaged[0], "\n".join(one_line(str(one)) for one in report.damaged)
    many = f"damaged parts that were left out: {len(report.damaged):,}"
    return Case(
        "every file can be read",
        "trace-damaged",
        KIND,
        MEANING,
        "What cannot be read is not checked.",
        Outcome.UNDECIDED,
        many,
        line_place(first.file, first.line),
        many,
        text,
        text,
    )


def _lines_case(report: TraceReport) -> Case:
    """Whether every line was an event, or of other matters."""
    from stagewright.traces.report.text import not_events_line

    many = report.totals.not_events
    listed = "\n".join(one_line(f"{line.where}: {line.reason}") for line in report.unparsed)
    if (more := many - len(report.unparsed)) > 0 and report.unparsed:
        listed += f"\n… and {more:,} more"
    first = report.unparsed[0].where if report.unparsed else None
    return Case(
        _READ,
        "trace-unparsed-lines",
        KIND,
        MEANING,
        "Every line of a trace has events or is unrelated.",
        Outcome.UNDECIDED if many else Outcome.HOLDS,
        not_events_line(report.totals) or f"lines read: {report.totals.lines:,}",
        None if first is None else line_place(first.file, first.line),
        not_events_line(report.totals),
        listed,
        listed,
    )
