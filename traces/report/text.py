"""Shows a `TraceReport`: to people as text, and to programs as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from stagewright.spec.text.counting import counted
from stagewright.spec.text.visible import one_line
from stagewright.spec.trace import TraceVerdict
from stagewright.spec.values import summarised
from stagewright.traces.coverage.report import coverage_lines, summary
from stagewright.traces.cross_entity.format import together_data, together_lines
from stagewright.traces.events.where import Where
from stagewright.traces.explain.candidate_comparison import candidate_lines, in_words
from stagewright.traces.explain.explanation import CandidateReport, Explanation, Nearest, Refused
from stagewright.traces.report.results import EntityReport, Totals, TraceReport

if TYPE_CHECKING:
    from rich.console import Console

_STEPS_SHOWN = 8  # events before a violation; the JSON has more
_WHOLE_MAX = 1_000  # entities whose explanation is whole in the JSON
_NAMES_MAX = 12  # real names that an entity is shown with
_WORD = re.compile(r"\w+")
_SHOWN_MAX = 20  # entities or lines of one kind; the JSON has more
_COLOURS = {
    TraceVerdict.OK: "green",
    TraceVerdict.VIOLATION: "red",
    TraceVerdict.GAP: "yellow",
    TraceVerdict.UNPARSED: "yellow",
    TraceVerdict.UNDECIDED: "yellow",
}


def print_report(report: TraceReport, console: Console, *, whole: bool = False) -> None:
    """Print what a person wants to know first; `whole`: of all entities that the report has what is wrong."""
    for text in machine_lines(report):
        _print(f"machine   {text}", console)
    _print_counts(report, console)
    for text in (*passed_over_lines(report), *damaged_lines(report)):
        _print(text, console)
    for note in report.notes:
        _print(f"note: {note}", console)
    for text in (*candidate_lines(report.candidates), *together_lines(report.together)):
        _print(text, console)
    shown = as_recorded(report)[: None if whole else _SHOWN_MAX]
    for entity in shown:
        console.print()
        _print_entity(entity, console, several=len(report.machines) > 1)
    hidden = len(report.entities) - len(shown) + report.entities_left_out
    if hidden > 0:
        console.print(
            f"\n… and {hidden:,} more entities that are not ok; --entity NAME shows one, --json has more"
        )
    newest = {one.definition.name: one for one in report.coverage}  # of candidates that fit alike
    for coverage in newest.values():
        console.print()
        for text in coverage_lines(coverage):
            _print(text, console)
    if report.unparsed:
        console.print()
        _print(not_events_line(report.totals), console)
    for line in report.unparsed[:_SHOWN_MAX]:
        _print(f"  {line.where}: {line.reason}", console)
    if (more := report.totals.not_events - _SHOWN_MAX) > 0:
        console.print(f"  … and {more:,} more")


def as_recorded(report: TraceReport) -> list[EntityReport]:
    """What is wrong, violations first, by time: the earliest is what to look at.

    What has no time follows, each file's in the order of its lines.
    """
    files = {file: number for number, file in enumerate(report.files)}

    def place(entity: EntityReport) -> tuple[bool, bool, int, int, int]:
        where, other = entity.where, entity.verdict is not TraceVerdict.VIOLATION
        timeless, time = entity.time is None, entity.time or 0
        if where is None:
            return other, timeless, time, len(files), 0
        return other, timeless, time, files.get(where.file, len(files)), where.line

    return sorted(report.entities, key=place)


def passed_over_lines(report: TraceReport) -> list[str]:
    """What the server's loggers said in no form that is known, the most frequent first."""
    if not report.passed_over:
        return []
    return [
        "unknown   most frequent lines in no known form (… stands for ids and numbers):",
        *(f"  {count:>6,} x {shape}" for shape, count in report.passed_over),
    ]


def damaged_lines(report: TraceReport) -> list[str]:
    """What was left out since it could not be read, if there is any."""
    if not report.damaged:
        return []
    more = len(report.damaged) - _SHOWN_MAX
    return [
        "damaged   left out, so that not everything was checked:",
        *(f"  {one}" for one in report.damaged[:_SHOWN_MAX]),
        *([f"  … and {more:,} more"] if more > 0 else []),
    ]


def _print(text: str, console: Console) -> None:
    """One line, whatever is in it: one that is wrapped could begin with what a trace says."""
    console.print(one_line(text), markup=False, highlight=False, soft_wrap=True)


def as_json(report: TraceReport) -> dict[str, object]:
    """The report as plain data."""
    totals = report.totals
    return {
        "exit_code": report.exit_code,
        "files": list(report.files),
        "machines": list(report.machines),
        "entities_by_machine": {
            machine: _by_verdict(verdicts) for machine, verdicts in report.machines.items()
        },
        "entities": _by_verdict(report.verdicts),
        "lines": {
            "read": totals.lines,
            "blank": totals.blank,
            "unrelated": totals.other,
            "unparsed": totals.unparsed,
            "with_events": totals.with_events,
            "lost": totals.lost,
        },
        "events": {
            "read": totals.events,
            "earlier": totals.earlier,
            "checked": totals.evaluated,
            "not_checked": totals.not_evaluated,
            "duplicate": totals.duplicates,
            "not_understood": totals.not_understood,
        },
        "damaged": [
            {"file": one.file, "line": one.line, "lines": one.lines, "reason": one.reason}
            for one in report.damaged
        ],
        "passed_over": [{"shape": shape, "lines": count} for shape, count in report.passed_over],
        "notes": list(report.notes),
        **together_data(report.together),
        **_candidates_data(report.candidates),
        "findings": [_entity(e, whole=i < _WHOLE_MAX) for i, e in enumerate(report.entities)],
        "findings_left_out": report.entities_left_out,
        "coverage": [summary(one) for one in report.coverage],
        "unparsed": [
            {"file": u.where.file, "line": u.where.line, "reason": u.reason}
            for u in report.unparsed
        ],
    }


def not_events_line(totals: Totals) -> str:
    """How many lines are no event, and how many events, whose lines count as having some, are nobody's."""
    counts = [
        (totals.unparsed, "unparsed lines"),
        (
            totals.not_understood,
            "events that no machine knows (their lines count as having events)",
        ),
    ]
    return "; ".join(f"{what}: {n:,}" for n, what in counts if n)


def machine_lines(report: TraceReport) -> list[str]:
    """Each machine with its profile and scope; of several ones how many entities are what."""
    if len(report.machines) == 1:
        return list(report.machines)
    parts: list[str] = []
    for machine, verdicts in report.machines.items():
        counts = ", ".join(f"{n:,} {verdict.value}" for verdict, n in verdicts.items() if n)
        parts.append(f"{machine}: {counts or 'no entity'}")
    return parts


def _by_verdict(counts: Mapping[TraceVerdict, int]) -> dict[str, int]:
    return {verdict.value: counts.get(verdict, 0) for verdict in TraceVerdict}


def _print_counts(report: TraceReport, console: Console) -> None:
    totals = report.totals
    verdicts = [
        f"[{_COLOURS[v]}]{n:,} {v.value}[/]"
        for v, n in report.verdicts.items()
        if n or v.value == "ok"
    ]
    console.print(f"entities  {', '.join(verdicts)}", highlight=False)
    events = [
        (totals.evaluated, "checked"),
        (totals.not_evaluated, "not checked (after a violation or a gap)"),
        (totals.duplicates, "duplicate"),
        (totals.not_understood, "not of their machine"),
    ]
    lines = [
        (totals.with_events, "with events"),
        (totals.unparsed, "unparsed"),
        (totals.other, "unrelated"),
        (totals.blank, "blank"),
        (totals.lost, "in damaged parts"),
    ]
    earlier = f" and {totals.earlier:,} of earlier runs" if totals.earlier else ""
    for name, total, kinds in (
        ("events", f"{totals.events:,}{earlier}", events),
        ("lines", f"{totals.lines:,}", lines),
    ):
        phrase = ", ".join(f"{n:,} {what}" for n, what in kinds if n)
        text = f"{name:<9} {total} = {phrase or 'none'}"
        _print(text, console)


def _print_entity(entity: EntityReport, console: Console, *, several: bool) -> None:
    colour = _COLOURS[entity.verdict]
    console.print(f"[{colour}]{entity.verdict.value.upper()}[/] ", end="", highlight=False)
    for line in entity_lines(entity, several=several):
        _print(line, console)


def entity_lines(entity: EntityReport, *, several: bool = False) -> list[str]:
    """What is wrong with an entity's trace, one thing a line; `several`: the machine must be named, too."""
    stream = entity.key.stream
    machine = f"{stream.machine} ({stream.profile})" if stream.profile else stream.machine
    whose = f"{entity.key} of {machine}" if several and machine else str(entity.key)
    lines = [f"{whose} at event {entity.sequence}: {entity.cause.value}"]
    if entity.note:
        lines.append(f"  {entity.note}")
    if entity.where:
        lines.append(f"  at         {entity.where}")
    if entity.last_good:
        lines.append(f"  last good  {entity.last_good}")
    if entity.duplicates:
        lines.append(f"  duplicates {entity.duplicates}")
    why = [f"  as         {refused_line(one)}" for one in entity.refused]
    if entity.explanation:
        why += _explanation_lines(entity.explanation)
    if entity.names:
        lines.append(f"  names      {names_line(entity.names, why)}")
    return [one_line(line) for line in [*lines, *why]]


def names_line(names: Sequence[tuple[str, str]], mentioning: Sequence[str]) -> str:
    """The real names of members: of many only those that some lines mention."""
    shown = names
    if len(names) > _NAMES_MAX:
        mentioned = {word for line in mentioning for word in _WORD.findall(line)}
        shown = [(one, real) for one, real in names if one in mentioned]
    listed = ", ".join(f"{one} = {real}" for one, real in shown[:_NAMES_MAX])
    left = len(names) - len(shown[:_NAMES_MAX])
    return f"{listed}{' ' if listed else ''}… and {left:,} more" if left else listed


def refused_line(refused: Refused) -> str:
    """A candidate, the first event that it refuses, and why."""
    if refused.sequence is None:
        return f"{refused.candidate}: an earlier event is refused"
    text = f"{refused.candidate}: event {refused.sequence} is refused"
    explanation = refused.explanation
    if explanation is None:
        return text
    reasons = [name for name, _ in explanation.failed]
    reasons += [
        f"{name} is {value}, not {expected}"
        for (name, value), (_, expected) in zip(
            explanation.observed, explanation.expected, strict=True
        )
    ]
    said = "" if explanation.event.startswith("an observation") else f", {explanation.event}"
    return f"{text}{said}" + (f": {'; '.join(reasons)}" if reasons else "")


def _explanation_lines(explanation: Explanation) -> list[str]:
    lines: list[str] = []
    if explanation.steps:
        lines.append("  led there by")
        for step in explanation.steps[-_STEPS_SHOWN:]:
            lines.append(f"    {step.sequence:>5}  {step.event}")
            lines += [f"           {change}" for change in _changes(step.changes)]
    lines.append(f"  event      {explanation.event}")
    if explanation.state:
        values = ", ".join(f"{name} = {v}" for name, v in summarised(dict(explanation.state)))
        many = f" ({explanation.states:,} states are possible)" if explanation.states > 1 else ""
        lines.append(f"  before     {values}{many}")
    lines += [
        f"  failed     {name}" + (f"  ({where})" if where else "")
        for name, where in explanation.failed
    ]
    for (name, expected), (_, observed) in zip(
        explanation.expected, explanation.observed, strict=True
    ):
        lines.append(f"  differs    {name}: expected {expected}, observed {observed}")
    if explanation.enabled:
        shown = ", ".join(explanation.enabled[:_SHOWN_MAX])
        more = len(explanation.enabled) - _SHOWN_MAX
        lines.append(f"  enabled    {shown}" + (f" and {more} more" if more > 0 else ""))
    if explanation.nearest is not None:
        lines.append(f"  nearest    {nearest_line(explanation.nearest)}")
        for number, legal in enumerate(explanation.nearest.steps, 1):
            unseen = "  (leaves no event)" if legal.hidden else ""
            lines.append(f"    {number:>5}  {legal.step}{unseen}")
            lines += [f"           {change}" for change in _changes(legal.changes)]
    return lines


def nearest_line(nearest: Nearest) -> str:
    """In one sentence, which legal run comes nearest; its steps follow, if there are any."""
    many = len(nearest.steps)
    if not many:
        if nearest.exhausted:
            return (
                f"none: from here the definition reaches {counted(nearest.states, 'state')}, "
                "and none agrees with what was observed"
            )
        return f"none found in {counted(nearest.states, 'state')} from here on"
    if nearest.by_action and many > 1:
        between = counted(many - 1, "step")
        return f"{between} would have had to happen between, then the event is legal"
    text = counted(many, "step")
    return f"a legal run of {text} leads to what was observed"


def _changes(changes: Iterable[tuple[str, str, str]]) -> list[str]:
    return [f"{name}: {old} → {new}" for name, old, new in changes]


def _entity(entity: EntityReport, *, whole: bool) -> dict[str, object]:
    stream = entity.key.stream
    fields: dict[str, object] = {
        "trace": stream.trace,
        "machine": stream.machine,
        "profile": stream.profile,
        "entity": entity.key.entity,
        "verdict": entity.verdict.value,
        "cause": entity.cause.value,
        "sequence": entity.sequence,
        "where": _where(entity.where),
        "last_good": _where(entity.last_good),
        "duplicates": entity.duplicates,
        "note": entity.note,
        "names": dict(entity.names),
    }
    if entity.refused:
        fields["candidates"] = [_refused(one) for one in entity.refused]
    if entity.explanation is not None:
        explanation = entity.explanation
        fields["explanation"] = _brief(explanation) | (_rest(explanation) if whole else {})
    return fields


def _candidates_data(candidates: tuple[CandidateReport, ...]) -> dict[str, object]:
    if not candidates:
        return {}
    parts = [
        {
            "trace": one.trace,
            "candidate": one.candidate,
            "entities": one.entities,
            "explains": one.explains,
            "refuses": one.refuses,
            "first_refused": one.first or None,
            "summary": in_words(one),
        }
        for one in candidates
    ]
    return {"candidates": parts}


def _refused(refused: Refused) -> dict[str, object]:
    data: dict[str, object] = {"candidate": refused.candidate, "sequence": refused.sequence}
    return data | ({} if refused.explanation is None else _brief(refused.explanation))


def _brief(explanation: Explanation) -> dict[str, object]:
    return {
        "event": explanation.event,
        "failed": [{"requirement": name, "where": where} for name, where in explanation.failed],
        "expected": dict(explanation.expected),
        "observed": dict(explanation.observed),
    }


def _rest(explanation: Explanation) -> dict[str, object]:
    nearest = explanation.nearest
    return {
        "enabled": list(explanation.enabled),
        "state": dict(explanation.state),
        "states": explanation.states,
        "last_good_steps": [
            {
                "sequence": s.sequence,
                "event": s.event,
                "changes": _changed(s.changes),
                "states": s.states,
            }
            for s in explanation.steps
        ],
        "nearest": None
        if nearest is None
        else {
            "summary": nearest_line(nearest),
            "steps": [
                {"step": s.step, "changes": _changed(s.changes), "hidden": s.hidden}
                for s in nearest.steps
            ],
            "by_action": nearest.by_action,
            "states": nearest.states,
            "exhausted": nearest.exhausted,
        },
    }


def _changed(changes: Iterable[tuple[str, str, str]]) -> dict[str, list[str]]:
    return {name: [old, new] for name, old, new in changes}


def _where(place: Where | None) -> dict[str, object] | None:
    return None if place is None else {"file": place.file, "line": place.line}
