"""A trace report as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from stagewright.spec.text.counting import counted
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.explain.candidate_comparison import in_words
from stagewright.traces.report.page_coverage import Drawing, coverage_section
from stagewright.traces.report.page_entity import entity_item, kind_of, shown
from stagewright.traces.report.results import TraceReport
from stagewright.traces.report.text import machine_lines, not_events_line

_SLOT = re.compile(r"\{\{([a-z-]+)\}\}")
_FILES_NAMED = 6
_KINDS_MAX = 100
_ENTITIES_MAX = 1_000  # listed; those whose violations are explained are among the first ones
_LINES_MAX = 1_000
_CANDIDATES_MAX = 20


def render_page(
    report: TraceReport,
    drawings: Sequence[Sequence[Drawing]] = (),
    links: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """The page. `drawings`: state diagrams of each machine of the coverage; `links`: files of an entity."""
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "script-hash": f"sha256-{digest}",
        "title": shown(_title(report)),
        "facts": _facts(report),
        "verdicts": _verdicts(report),
        "kinds": _kinds(report),
        "entities": _entities(report, links or {}),
        "coverage": "".join(
            coverage_section(i, one, drawings[i] if i < len(drawings) else ())
            for i, one in enumerate(report.coverage)
        ),
        "lines": _damaged(report) + _lines(report),
        "script": script,
    }
    # One pass: what is put in is never looked at again, so it cannot hold a slot of its own.
    return _SLOT.sub(lambda slot: parts[slot[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return files(__package__ or __name__).joinpath(name).read_text(encoding="utf-8")


def _title(report: TraceReport) -> str:
    whole = sum(report.verdicts.values())
    bad = report.verdicts.get(TraceVerdict.VIOLATION, 0)
    entities = counted(whole, "entity", "entities")
    if bad:
        return f"{bad:,} of {entities} did what the definition does not allow"
    if report.exit_code:
        return f"No violation, but not all of {entities} could be checked to their end"
    return f"All of {entities} did only what the definition allows"


def _facts(report: TraceReport) -> str:
    named = ", ".join(report.files[:_FILES_NAMED])
    more = len(report.files) - _FILES_NAMED
    totals = report.totals
    events = [
        (totals.evaluated, "checked"),
        (totals.not_evaluated, "not checked (after a violation or a gap)"),
        (totals.duplicates, "duplicate"),
        (totals.not_understood, "not of their machine"),
        (totals.earlier, "of them of earlier runs"),
    ]
    facts = [
        *(("machine", text) for text in machine_lines(report)),
        ("files", named + (f" and {more:,} more" if more > 0 else "")),
        ("lines", f"{totals.lines:,}"),
        ("events", ", ".join(f"{n:,} {what}" for n, what in events if n) or "none"),
        *(("candidate", fact) for fact in _candidates(report)),
        ("took", f"{report.seconds:.1f} s"),
        *(("note", note) for note in report.notes),
    ]
    return "".join(f"<div><dt>{name}</dt><dd>{shown(fact)}</dd></div>" for name, fact in facts)


def _candidates(report: TraceReport) -> Iterator[str]:
    for one in report.candidates[:_CANDIDATES_MAX]:
        yield f"{one.candidate} {in_words(one)}" + (f" of {one.trace}" if one.trace else "")
    if (more := len(report.candidates) - _CANDIDATES_MAX) > 0:
        yield f"and {more:,} more: report.json has all"


def _verdicts(report: TraceReport) -> str:
    items: list[str] = []
    for verdict in TraceVerdict:
        count = report.verdicts.get(verdict, 0)
        kind = verdict.value if count else "none"
        items.append(f'<li class="{kind}"><strong>{count:,}</strong>{verdict.value}</li>')
    return "".join(items)


def _kinds(report: TraceReport) -> str:
    if not report.entities:
        return ""
    kinds = [kind_of(entity) for entity in report.entities]
    every = Counter(kinds) + (report.overflow.kinds if report.overflow is not None else Counter())
    counts = every.most_common(_KINDS_MAX)
    most = max(count for _, count in counts)
    rows: list[str] = []
    for kind, count in counts:
        first = kinds.index(kind) + 1 if kind in kinds else 0
        link = f'<a href="#e{first}">no. {first}</a>' if first <= _ENTITIES_MAX else f"no. {first}"
        link = link if first else "not listed"
        verdict, what, refused = kind
        rows.append(
            f'<tr><td class="verdict {verdict_class(verdict)}">{verdict}</td>'
            f'<td class="what"><code>{shown(what)}</code></td><td class="wide why">{shown(refused)}</td>'
            f'<td class="number">{count:,}</td><td class="bar-of"><div class="meter">'
            f'<div class="{verdict_class(verdict)}" style="width: {100 * count / most:.1f}%"></div></div></td>'
            f'<td class="number">{link}</td></tr>'
        )
    more = len(every) - len(rows)
    left = f'<p class="legend">{more:,} rarer kinds are not listed.</p>' if more > 0 else ""
    head = "".join(
        f"<th{' class=number' if name in ('entities', 'first') else ''}>{name}</th>"
        for name in ("", "event", "why not", "entities", "", "first")
    )
    return (
        '<section class="panel" aria-label="Kinds"><h2>What is not ok, by kind</h2><div class="scroll">'
        f"<table class=kinds><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{left}</section>"
    )


def verdict_class(verdict: str) -> str:
    """The colour of a verdict."""
    return "bad" if verdict == TraceVerdict.VIOLATION.value else "unsure"


def _entities(report: TraceReport, links: Mapping[int, Sequence[str]]) -> str:
    if not report.entities:
        return ""
    items = (
        entity_item(number, entity, links.get(number, ()))
        for number, entity in enumerate(report.entities[:_ENTITIES_MAX], 1)
    )
    whole = len(report.entities) + report.entities_left_out
    left = ""
    if (more := whole - _ENTITIES_MAX) > 0:
        left = (
            f'<p class="legend">{more:,} more are not listed here; violations.parquet has more.</p>'
        )
    return (
        '<section class="panel" aria-label="Entities that are not ok">'
        f"<h2>Entities that are not ok: {whole:,}</h2>"
        '<div class="tools" hidden><input id="filter" type="search" aria-label="Filter" '
        'placeholder="filter: an entity, an action, a requirement"><span id="shown" role="status"></span>'
        "<span><kbd>j</kbd> <kbd>k</kbd> next, previous; <kbd>Enter</kbd> opens; <kbd>/</kbd> filters</span>"
        f'</div><div class="entities">{"".join(items)}</div>{left}</section>'
    )


def _damaged(report: TraceReport) -> str:
    if not report.damaged:
        return ""
    items = _list(f"<code>{shown(str(one))}</code>" for one in report.damaged[:_LINES_MAX])
    more = len(report.damaged) - _LINES_MAX
    left = f'<p class="legend">{more:,} more are not listed.</p>' if more > 0 else ""
    return (
        '<section class="panel" aria-label="Damaged files"><h2>Damaged, skipped and not checked'
        f': {len(report.damaged):,}</h2><div class="list">{items}</div>{left}</section>'
    )


def _lines(report: TraceReport) -> str:
    if not report.unparsed:
        return ""
    items = _list(
        f"<code>{shown(str(u.where))}</code>: {shown(u.reason)}"
        for u in report.unparsed[:_LINES_MAX]
    )
    more = report.totals.not_events - min(len(report.unparsed), _LINES_MAX)
    left = f'<p class="legend">{more:,} more are not listed.</p>' if more > 0 else ""
    return (
        '<section class="panel" aria-label="Lines"><h2>'
        f"{shown(not_events_line(report.totals).capitalize())}</h2>"
        f'<div class="list">{items}</div>{left}</section>'
    )


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"
