"""One entity of a trace report's page: why its event is refused, and its last events as a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from stagewright.spec.text.visible import one_line
from stagewright.traces.explain.explanation import Explanation
from stagewright.traces.report.results import EntityReport
from stagewright.traces.report.text import entity_lines, names_line, nearest_line, refused_line

_ROWS_MAX = 12  # leaves drawn; those that differ come first, then those that change
_ENABLED_MAX = 60
_STEPS_LISTED = 10


def shown(text: str) -> str:
    """Text from outside, fit for the page."""
    return escape(one_line(text))


def entity_item(number: int, entity: EntityReport, links: Sequence[str]) -> str:
    """The entity as an element that opens."""
    explanation = entity.explanation
    event = f"{explanation.event}: " if explanation is not None else ""
    cause = event + (refused_by(entity) or entity.note or entity.cause.value)
    stream = entity.key.stream
    words = (entity.key, stream.machine, stream.profile, entity.verdict.value, cause, entity.where)
    text = " ".join(one_line(str(word)).lower() for word in words)
    return (
        f'<details class="entity {entity.verdict.value}" id="e{number}" data-text="{escape(text)}">'
        f'<summary><span class="n">{number}</span><span class="verdict">{entity.verdict.value}</span>'
        f'<span class="who">{shown(str(entity.key))}</span><span class="cause">{shown(cause)}</span>'
        f'</summary><div class="body">{_body(entity, links)}</div></details>'
    )


def kind_of(entity: EntityReport) -> tuple[str, str, str]:
    """What kind of mistake it is: verdict, what happened, and what refuses it."""
    explanation = entity.explanation
    if explanation is None:
        return entity.verdict.value, entity.cause.value, ""
    action = explanation.event.partition("(")[0]
    if action.startswith("an observation of "):
        action = "an observation"
    return entity.verdict.value, action, refused_by(entity) or entity.cause.value


def refused_by(entity: EntityReport) -> str:
    """In a few words what refuses the event; empty if that is not known."""
    explanation = entity.explanation
    if explanation is None:
        return ""
    if explanation.failed:
        return "needs " + "; ".join(name for name, _ in explanation.failed)
    names = [name for name, _ in explanation.observed]
    return f"{', '.join(names)} differ{'s' if len(names) == 1 else ''}" if names else ""


def _body(entity: EntityReport, links: Sequence[str]) -> str:
    facts = [
        ("machine", " ".join(filter(None, (entity.key.stream.machine, entity.key.stream.profile)))),
        ("event", f"number {entity.sequence}"),
        ("at", "" if entity.where is None else str(entity.where)),
        ("last good", "" if entity.last_good is None else str(entity.last_good)),
        ("duplicates", str(entity.duplicates or "")),
        ("names", names_line(entity.names, entity_lines(entity))),
    ]
    parts = [
        '<dl class="facts">',
        *(f"<div><dt>{n}</dt><dd>{shown(fact)}</dd></div>" for n, fact in facts if fact),
        "</dl>",
        _why(entity),
    ]
    if entity.explanation is not None:
        parts += _explained(entity, entity.explanation)
    if links:
        named = ", ".join(
            f'<a href="{escape(link)}"><code>{escape(link)}</code></a>' for link in links
        )
        parts.append(f"<p>Replay it: {named}</p>")
    return "".join(parts)


def _why(entity: EntityReport) -> str:
    explanation = entity.explanation
    if explanation is None:
        note = f": {shown(entity.note)}" if entity.note else ""
        return f'<div class="why">{shown(entity.cause.value.capitalize())}{note}.</div>'
    reasons = [
        f"<b>{shown(name)}</b> does not hold" + (f" <code>{shown(where)}</code>" if where else "")
        for name, where in explanation.failed
    ]
    reasons += [
        f"<code>{shown(name)}</code> must be <b>{shown(expected)}</b>, observed was <b>{shown(value)}</b>"
        for (name, expected), (_, value) in zip(
            explanation.expected, explanation.observed, strict=True
        )
    ]
    reasons += [f"as {shown(refused_line(one))}" for one in entity.refused]
    text = f"<b><code>{shown(explanation.event)}</code></b>: {shown(entity.cause.value)}"
    text += f"; {shown(entity.note)}" if entity.note else ""
    return f'<div class="why">{text}{_list("ul", reasons)}</div>'


def _explained(entity: EntityReport, explanation: Explanation) -> Iterator[str]:
    if explanation.steps:
        yield f"<h4>Timeline</h4>{timeline(entity, explanation)}"
    left: list[str] = []
    if explanation.steps:
        steps = explanation.steps[-_STEPS_LISTED:]
        items = "".join(
            f'<li value="{s.sequence}"><code>{shown(s.event)}</code>{_changes(s.changes)}</li>'
            for s in steps
        )
        left.append(f'<h4>Last good events</h4><ol class="steps">{items}</ol>')
    right: list[str] = []
    if explanation.nearest is not None:
        items = "".join(
            f"<li><code>{shown(s.step)}</code>{' <small>leaves no event</small>' if s.hidden else ''}"
            f"{_changes(s.changes)}</li>"
            for s in explanation.nearest.steps
        )
        listed = f'<ol class="steps">{items}</ol>' if items else ""
        right.append(
            f"<h4>Nearest legal run</h4><p>{shown(nearest_line(explanation.nearest)).capitalize()}.</p>{listed}"
        )
    if left or right:
        yield f'<div class="pair"><div>{"".join(left)}</div><div>{"".join(right)}</div></div>'
    if not explanation.steps:
        return  # one of very many: what is above tells it apart from the others
    if explanation.enabled:
        labels = explanation.enabled[:_ENABLED_MAX]
        more = len(explanation.enabled) - len(labels)
        rest = f"<li>and {more:,} more</li>" if more > 0 else ""
        chips = "".join(f"<li><code>{shown(label)}</code></li>" for label in labels)
        yield (
            f"<details><summary>What could have happened instead: {len(explanation.enabled):,}</summary>"
            f'<ul class="chips">{chips}{rest}</ul></details>'
        )
    if explanation.state:
        many = f", one of {explanation.states:,} possible" if explanation.states > 1 else ""
        rows = "".join(
            f'<tr><td class="place">{shown(name)}</td><td class="value">{shown(value)}</td></tr>'
            for name, value in explanation.state
        )
        yield (
            f"<details><summary>The state before it{many}</summary>"
            f'<div class="list"><table><tbody>{rows}</tbody></table></div></details>'
        )


def timeline(entity: EntityReport, explanation: Explanation) -> str:
    """The leaves that change or differ, over the last good events and the refused one."""
    steps = explanation.steps
    columns = len(steps) + 1
    values = [dict(step.values) for step in steps]
    names = [n for n, _ in explanation.observed]
    names += [n for n in values[-1] if len({v.get(n) for v in values}) > 1 and n not in names]
    names += [n for n in values[-1] if n not in names] if not names else []
    cells = ['<div class="label">event</div>']
    cells += [
        f'<div class="column" title="{shown(step.event)}">{step.sequence}</div>' for step in steps
    ]
    cells.append(
        f'<div class="column refused" title="{shown(explanation.event)}">{entity.sequence} ✗</div>'
    )
    observed = dict(explanation.observed)
    for name in names[:_ROWS_MAX]:
        cells += _row(name, [v.get(name, "") for v in values], observed.get(name))
    left_out = len(names) - _ROWS_MAX
    legend = "A bar is a value over time; a dashed one has several possible values."
    legend += f" Not drawn: {left_out} more values that change." if left_out > 0 else ""
    return (
        f'<div class="scroll"><div class="timeline" style="--columns: {columns}">{"".join(cells)}</div></div>'
        f'<p class="legend">{legend}</p>'
    )


def _row(name: str, values: Sequence[str], observed: str | None) -> Iterator[str]:
    phrase = shown(name)
    yield f'<div class="label place" title="{phrase}">{phrase}</div>'
    hues = list(dict.fromkeys(values))
    for value, group in groupby(values):
        span = len(list(group))
        text = shown(value)
        if not value or " or " in value:
            look = f'class="bar open" style="grid-column: span {span}"'
        else:
            hue = round(210 + 360 * hues.index(value) / max(len(hues), 3)) % 360
            look = f'class="bar" style="grid-column: span {span}; --hue: {hue}"'
        yield f'<div {look} title="{text}">{text}</div>'
    if observed is None:
        yield "<div></div>"
    else:
        yield f'<div class="bar wrong" title="observed: {shown(observed)}">{shown(observed)}</div>'


def _changes(changes: Iterable[tuple[str, str, str]]) -> str:
    return "".join(
        f'<span class="change"><code>{shown(name)}</code>: {shown(old)} → <b>{shown(new)}</b></span>'
        for name, old, new in changes
    )


def _list(kind: str, items: Sequence[str]) -> str:
    return f"<{kind}>{''.join(f'<li>{item}</li>' for item in items)}</{kind}>" if items else ""
