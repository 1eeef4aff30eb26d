"""Shows what was found of properties over several entities: as lines of text, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.spec.text.counting import counted
from stagewright.traces.cross_entity.verdicts import GroupReport, PropertyReport, TogetherReport
from stagewright.traces.events.where import Where

_SHOWN_MAX = 20  # groups or properties of one kind; the JSON has more


def together_lines(report: TogetherReport | None) -> Iterator[str]:
    """What a person wants to know; a trace's own text may be in it."""
    if report is None:
        return
    yield "properties over several entities"
    for prop in report.properties:
        yield f"  {prop.verdict.value:<9} {prop.system}.{prop.name}: {_how(prop)}"
        for why in prop.why:
            first = f", first at {prop.first_open}" if prop.first_open else ""
            yield f"            {why}{first}"
    if report.ungrouped:
        yield f"  {counted(report.ungrouped, 'entity', 'entities')} in no group: --group does not match their names"
    if report.unevaluated:
        yield "  not checked:"
    for unevaluated in report.unevaluated[:_SHOWN_MAX]:
        yield f"            {unevaluated.system}.{unevaluated.name} {unevaluated.reason}"
    if (more := len(report.unevaluated) - _SHOWN_MAX) > 0:
        yield f"            … and {more:,} more"
    for group in report.broken[:_SHOWN_MAX]:
        yield ""
        yield from group_lines(group)
    if (more := len(report.broken) - _SHOWN_MAX + report.broken_left_out) > 0:
        yield f"… and {more:,} more that break a property; --json has more of them"


def _how(prop: PropertyReport) -> str:
    what = "groups" if prop.ordered else "entities"
    where = "by group, in a total order" if prop.ordered else "each entity by itself"
    counts = [f"{prop.evaluated:,} {what} checked"]
    if prop.broken:
        counts.append(f"{prop.broken:,} violate it")
    if prop.open:
        counts.append(f"{prop.open:,} undecided")
    return f"{where}; {', '.join(counts)}"


def group_lines(group: GroupReport) -> Iterator[str]:
    """Who broke a property, where and when."""
    yield f"BROKEN {group.system}.{group.name} in {group.group}"
    if group.doc:
        yield f"  property   {' '.join(group.doc.split())}"
    when = "from the beginning" if group.time is None else f"at time {group.time}"
    often = f", the first of {counted(group.times, 'time')}" if group.times > 1 else ""
    yield f"  broken     {when}{often}"
    yield f"  at         {group.where}"
    for member in group.members:
        since = "from its beginning" if member.beginning else "since"
        yield f"  by         {member.key.entity} {since} {member.where}"


def together_data(report: TogetherReport | None) -> dict[str, object]:
    """The report as plain data, under `together`; nothing where there is none."""
    return {} if report is None else {"together": _data(report)}


def _data(report: TogetherReport) -> dict[str, object]:
    return {
        "properties": [
            {
                "system": p.system,
                "property": p.name,
                "doc": p.doc,
                "verdict": p.verdict.value,
                "needs_total_order": p.ordered,
                "checked": p.evaluated,
                "broken": p.broken,
                "undecided": p.open,
                "why": list(p.why),
                "first_undecided": _where(p.first_open),
            }
            for p in report.properties
        ],
        "not_checked": [
            {"system": u.system, "property": u.name, "reason": u.reason} for u in report.unevaluated
        ],
        "broken": [
            {
                "system": g.system,
                "property": g.name,
                "group": g.group,
                "time": g.time,
                "where": _where(g.where),
                "times": g.times,
                "entities": [
                    {
                        "trace": m.key.stream.trace,
                        "machine": m.key.stream.machine,
                        "entity": m.key.entity,
                        "since": _where(m.where),
                        "from_beginning": m.beginning,
                    }
                    for m in g.members
                ],
            }
            for g in report.broken
        ],
        "broken_left_out": report.broken_left_out,
        "ungrouped": report.ungrouped,
    }


def _where(place: Where | None) -> dict[str, object] | None:
    return None if place is None else {"file": place.file, "line": place.line}
