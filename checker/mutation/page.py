"""A mutation report as one HTML page that needs nothing else: no network, no other file, no script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from importlib.resources import files

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.mutation.report import Finding, Group, MutationReport
from stagewright.spec.definition import Reason
from stagewright.spec.source import Source
from stagewright.spec.text.counting import counted

_SLOT = re.compile(r"\{\{([a-z-]+)\}\}")
PathOf = Callable[[str], str]


def render_page(report: MutationReport, path_of: PathOf) -> str:
    """The page; `path_of` says how the path of a file is shown."""
    definition = report.definition
    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    parts = {
        "title": escape(f"Mutants of {name}"),
        "facts": _facts(report),
        "kinds": _kinds(report),
        "promises": _promises(report),
        "sections": "\n".join(_sections(report, path_of)),
    }
    template = files(__package__ or __name__).joinpath("mutants.html").read_text(encoding="utf-8")
    # One pass: what is put in is never looked at again, so it cannot hold a slot of its own.
    return _SLOT.sub(lambda slot: parts[slot[1]], template)


def _facts(report: MutationReport) -> str:
    facts = [("fingerprint", report.definition.fingerprint())]
    for original in report.originals:
        text = f"{original.scope} ({counted(original.count, 'state')}"
        text += f", not all: {original.stopped})" if original.stopped else ")"
        facts.append(("scope", text))
        if original.broken:
            facts.append(("breaks by itself", ", ".join(original.broken)))
    facts.append(
        ("took", f"{report.seconds:.1f} s" + (", interrupted" if report.interrupted else ""))
    )
    for alone, number in report.of_parts.items():
        facts.append(("checked with the part", f"{alone.part.rstrip('.')}: {number:,}"))
    if not report.whole:
        facts.append(("note", "not all mutants were asked for"))
    rows = (f"<div><dt>{escape(n)}</dt><dd>{escape(text)}</dd></div>" for n, text in facts)
    return "".join(rows)


def _kinds(report: MutationReport) -> str:
    head = ("kind", "mutants", "caught", "nothing observes", "unexplained", "undecided")
    rows: list[str] = []
    for kind in (*Kind, None):
        numbers = report.summary(kind)
        shown = (
            numbers.mutants,
            numbers.caught,
            numbers.unobserved,
            numbers.unexplained,
            numbers.undecided,
        )
        cells = "".join(_number(n) for n in shown)
        name = "all" if kind is None else kind.value
        rows.append(f'<tr><td class="name">{name}</td>{cells}</tr>')
    return _table(head, rows)


def _promises(report: MutationReport) -> str:
    most = max([1, *report.catches.values()])
    rows = [
        f"<tr><td><code>{escape(name).replace('_', '_<wbr>')}</code></td>{_number(number)}"
        f'<td><div class="meter"><div style="width: {100 * number / most:.1f}%"></div></div></td></tr>'
        for name, number in report.catches.items()
    ]
    return _table(("property", "catches", ""), rows)


def _number(number: int) -> str:
    quiet = "" if number else " none"
    return f'<td class="number{quiet}">{number:,}</td>'


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    titles = "".join(
        f"<th{'' if i == 0 else ' class=number'}>{escape(t)}</th>" for i, t in enumerate(head)
    )
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _sections(report: MutationReport, path_of: PathOf) -> Iterable[str]:
    if reasons := (*report.stale, *report.unmatched):
        items = "".join(_reason(reason, reason in report.stale, path_of) for reason in reasons)
        yield _section("stale", "Reasons that are not so", len(reasons), items, shown=True)
    for name, title, survivors in (
        ("unexplained", "Survive without a reason", report.unexplained),
        ("explained", "Nothing observes this, as the definition says", report.explained),
        ("tightened", "Ask for more, and nothing observes this", report.tightened),
    ):
        if survivors:
            items = "".join(_survivors(group, path_of) for group in report.grouped(survivors))
            yield _section(name, title, len(survivors), items, shown=name == "unexplained")
    caught = [f for f in report.findings if f.evaluation.fate is Fate.CAUGHT]
    for name, title, findings, note in (
        ("undecided", "Undecided", report.undecided, _noted),
        ("caught", "Caught", caught, _counterexample),
    ):
        if findings:
            items = "".join(
                _mutant(f.mutant, [f.mutant.action], note(f), path_of) for f in findings
            )
            yield _section(name, title, len(findings), items, shown=False)


def _survivors(group: Group, path_of: PathOf) -> str:
    text = f'<span class="explanation">{escape(group.explanation)}</span>'
    return _mutant(group.mutant, group.actions, text, path_of)


def _section(name: str, title: str, number: int, items: str, *, shown: bool) -> str:
    return (
        f'<details class="panel {name}"{" open" if shown else ""}>'
        f"<summary><h2>{escape(title)}: {number:,}</h2></summary>"
        f'<ol class="mutants">{items}</ol></details>'
    )


def _mutant(mutant: Mutant, actions: Sequence[str], text: str, path_of: PathOf) -> str:
    names = ", ".join(f"<strong>{escape(name)}</strong>" for name in actions if name)
    return (
        f'<li><span class="kind">{mutant.kind.value}</span>{names}{": " if names else ""}'
        f'{escape(mutant.text)} <code class="place">{escape(_place(mutant.where, path_of))}</code>'
        f"{text}</li>"
    )


def _reason(reason: Reason, stale: bool, path_of: PathOf) -> str:
    what = "every mutant of it is caught" if stale else "it matches no mutant"
    return (
        f'<li>{escape(reason.text)} <code class="place">{escape(_place(reason.where, path_of))}'
        f'</code><span class="explanation">{what}</span></li>'
    )


def _place(where: Source | None, path_of: PathOf) -> str:
    return "" if where is None else f"{path_of(where.file)}:{where.line}"


def _noted(finding: Finding) -> str:
    return f'<span class="explanation">{escape(finding.evaluation.note)}</span>'


def _counterexample(finding: Finding) -> str:
    evaluation = finding.evaluation
    steps: list[str] = []
    for number, step in enumerate(evaluation.steps):
        turn = evaluation.loop is not None and number >= evaluation.loop
        kind = ' class="loop"' if turn else ""
        steps.append(f"<li{kind}>{escape(step)}</li>")
    by = ", ".join(f"<code>{escape(name)}</code>" for name in evaluation.by)
    length = counted(evaluation.depth, "step")
    forever = (
        f"<p class=loop>for ever from step {evaluation.loop + 1} on</p>"
        if evaluation.loop is not None
        else ""
    )
    note = f"<p>{escape(evaluation.note)}</p>" if evaluation.note else ""
    if not evaluation.states:
        return f'<span class="explanation">{by}: {escape(evaluation.note)}</span>'
    return (
        f"<details><summary>{by}, {length}, {counted(evaluation.states, 'state')}</summary>"
        f"<ol>{''.join(steps)}</ol>{forever}{note}<p class=none>{escape(evaluation.scope)}</p></details>"
    )
