"""A mutation report as text, for people: first the survivors, then how many each promise catches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.checker.mutation.judge import Fate
from stagewright.checker.mutation.mutants import Kind
from stagewright.checker.mutation.report import Finding, MutationReport, hint
from stagewright.commands.ci_places import path_of
from stagewright.spec.source import Source

_VERBS = {
    Kind.DROP: "does not require",
    Kind.WEAKEN: "requires less",
    Kind.LOSE: "loses",
    Kind.SWAP: "table",
    Kind.EDGE: "added step",
}
_MOST_ACTIONS = 4  # named in a line


def render(report: MutationReport, *, verbose: bool = False) -> RenderableType:
    """The whole report."""
    return Group(*_parts(report, verbose=verbose))


def _parts(report: MutationReport, *, verbose: bool) -> Iterator[RenderableType]:
    definition = report.definition
    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    yield Text(name, style="bold")
    for original in report.originals:
        yield Text(f"  at {original.scope}: {original.count:,} states", style="dim")
        if original.stopped:
            yield Text(f"    not all of them: {original.stopped}", style="yellow")
        if original.broken:
            told = (
                f"    it breaks {', '.join(original.broken)} there by itself, which judge nothing"
            )
            yield Text(told, style="yellow")
    if verbose:
        caught = [f for f in report.findings if f.judgement.fate is Fate.CAUGHT]
        yield from _section("caught", caught, "green", _caught)
    yield from _survivors("survive, and the definition says why", report.explained, report, "")
    yield from _section("undecided", report.undecided, "yellow", lambda f: f.judgement.note)
    yield from _survivors("survive without a reason", report.unexplained, report, "bold red")
    for reason in report.stale:
        told = f"stale: every mutant is caught of which {_place(reason.where)} says: {reason.text}"
        yield Text(told, style="bold red")
    for reason in report.unmatched:
        told = f"matches nothing: {_place(reason.where)} says: {reason.text}"
        yield Text(told, style="bold red")
    yield Text("")
    yield _numbers(report)
    yield Text("")
    yield _promises(report)
    yield Text(
        f"{report.seconds:.1f} s" + (", interrupted" if report.interrupted else ""), style="dim"
    )


def _section(
    title: str, findings: Iterable[Finding], style: str, what: Callable[[Finding], str]
) -> Iterator[RenderableType]:
    listed = list(findings)
    if not listed:
        return
    yield Text("")
    yield Text(f"{len(listed)} {title}", style=style)
    for finding in listed:
        yield Text(f"  {_line(finding.mutant.where, [finding])}")
        yield Text(f"    {what(finding)}", style="dim")


def _survivors(
    title: str, findings: Iterable[Finding], report: MutationReport, style: str
) -> Iterator[RenderableType]:
    """By place: one line of a body that many actions share is one entry."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        mutant = finding.mutant
        told = "; ".join(r.text for r in mutant.reasons) or hint(finding, report.originals)
        fate = finding.judgement.fate.value
        key = (str(mutant.where), mutant.kind.value, mutant.text, fate, told)
        groups.setdefault(key, []).append(finding)
    if not groups:
        return
    yield Text("")
    yield Text(f"{sum(map(len, groups.values()))} {title}", style=style or "green")
    for (*_, told), group in groups.items():
        yield Text(f"  {_line(group[0].mutant.where, group)}")
        yield Text(f"    {told}", style="dim")


def _line(where: Source | None, group: list[Finding]) -> str:
    mutant = group[0].mutant
    actions = [f.mutant.action for f in group if f.mutant.action]
    shown = ", ".join(actions[:_MOST_ACTIONS])
    if len(actions) > _MOST_ACTIONS:
        shown += f" and {len(actions) - _MOST_ACTIONS} more"
    subject = f"{shown} {_VERBS[mutant.kind]}" if shown else _VERBS[mutant.kind]
    return f"{_place(where)}  {subject}: {mutant.text}"


def _place(where: Source | None) -> str:
    return "?" if where is None else f"{path_of(where.file)}:{where.line}"


def _caught(finding: Finding) -> str:
    judgement = finding.judgement
    run = " → ".join(judgement.steps)
    return (
        f"{', '.join(judgement.by)} in {judgement.depth} steps, {judgement.states:,} states: {run}"
    )


def _numbers(report: MutationReport) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("")
    for name in ("mutants", "caught", "explained", "unexplained", "undecided"):
        table.add_column(name, justify="right")
    for kind in (*Kind, None):
        numbers = report.summary(kind)
        shown = (
            numbers.mutants,
            numbers.caught,
            numbers.explained,
            numbers.unexplained,
            numbers.undecided,
        )
        table.add_row("all" if kind is None else kind.value, *(f"{n:,}" for n in shown))
    return table


def _promises(report: MutationReport) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("promise")
    table.add_column("catches", justify="right")
    for name, number in report.catches.items():
        table.add_row(name, f"{number:,}", style="" if number else "dim")
    return table
