"""A mutation report as text, for people: first the survivors, then how many each property catches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.claims import Claim
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.mutation.fairness import Assumed
from stagewright.checker.mutation.report import Finding, MutationReport, Need
from stagewright.commands.reports.places import path_of
from stagewright.spec.source import Source
from stagewright.spec.text.counting import counted

_VERBS = {
    Kind.DROP: "does not require",
    Kind.WEAKEN: "requires less",
    Kind.SKIP: "does not wait",
    Kind.LOSE: "loses",
    Kind.REPLACE: "names another",
    Kind.SWAP: "table",
    Kind.HELPER: "shared",
    Kind.EDGE: "added step",
    Kind.DISABLE: "never happens",
    Kind.TIGHTEN: "refuses more",
}
_MOST_ACTIONS = 4  # named in a line
_MOST_TIGHTENED = 12  # listed, unless all are asked for


def render(report: MutationReport, *, verbose: bool = False) -> RenderableType:
    """The whole report."""
    return Group(*_parts(report, verbose=verbose))


def line_of(name: str, report: MutationReport) -> str:
    """The report in a line."""
    numbers = report.summary()
    wrong = len(report.stale) + len(report.unmatched)
    return (
        f"{name:<24} {numbers.mutants:>5,} mutants: {numbers.caught:,} caught, "
        f"{numbers.unobserved:,} that nothing observes, {numbers.unexplained:,} unexplained, "
        f"{numbers.undecided:,} undecided"
        + (f", {len(report.with_parts):,} checked with their part" if report.with_parts else "")
        + (f", {wrong} reasons that are not so" if wrong else "")
        + f", {report.seconds:.0f} s"
    )


def _parts(report: MutationReport, *, verbose: bool) -> Iterator[RenderableType]:
    definition = report.definition
    name = f"{definition.name} ({definition.profile})" if definition.profile else definition.name
    yield Text(name, style="bold")
    for original in report.originals:
        yield Text(f"  at {original.scope}: {counted(original.count, 'state')}", style="dim")
        if original.stopped:
            yield Text(f"    not all of them: {original.stopped}", style="yellow")
        if original.broken:
            text = f"    it breaks {', '.join(original.broken)} there by itself, so these properties decide nothing"
            yield Text(text, style="yellow")
    elsewhere = report.sought_elsewhere if report.originals else {}
    for scope in dict.fromkeys(elsewhere.values()):
        names = ", ".join(name for name, its in elsewhere.items() if its == scope)
        yield Text(f"  not decided here, but at {scope}: {names}", style="yellow")
    if verbose:
        caught = [f for f in report.findings if f.evaluation.fate is Fate.CAUGHT]
        yield from _section("caught", caught, "green", _caught)
    yield from _survivors(
        "nothing observes, and the definition says why", report.explained, report, ""
    )
    tightened = report.tightened
    some = tightened if verbose else tightened[:_MOST_TIGHTENED]
    more = f" (--verbose lists all; here {len(some)})" if len(some) < len(tightened) else ""
    yield from _survivors(
        f"that ask for more{more}: nothing observes this", some, report, "yellow", len(tightened)
    )
    yield from _section("undecided", report.undecided, "yellow", lambda f: f.evaluation.note)
    yield from _survivors("survive without a reason", report.unexplained, report, "bold red")
    for reason in report.stale:
        about = f" of {reason.subject}" if reason.subject else ""
        text = f"stale: every mutant{about} is caught, of which {_place(reason.where)} says: {reason.text}"
        yield Text(text, style="bold red")
    for reason in report.unmatched:
        about = f" of {reason.subject}" if reason.subject else ""
        text = f"matches nothing{about}: {_place(reason.where)} says: {reason.text}"
        yield Text(text, style="bold red")
    yield Text("")
    if report.reasons_alone:
        yield from _claims(report)
        return
    yield _numbers(report)
    if same := report.summary().same:
        means = "means" if same == 1 else "mean"
        yield Text(f"{same:,} more {means} the same as the definition: no property can tell")
    catchers = ", ".join(f"{n:,} by {kind.value}" for kind, n in report.catchers.items() if n)
    if catchers:
        yield Text(f"caught: {catchers}")
    yield Text("")
    yield _promises(report)
    if report.needs:
        yield from _needs(report)
    if report.assumed is not None and report.assumed.number:
        yield from _fairness(report.assumed)
    if report.with_parts:
        listed = ", ".join(
            f"{number:,} of {alone.machine} (`{alone.part.rstrip('.')}`)"
            for alone, number in report.of_parts.items()
        )
        yield Text("")
        yield Text(
            f"{len(report.with_parts):,} more are checked with the part that says what they change: {listed}; "
            "--parts checks them here too"
        )
    yield _time(report)


def _time(report: MutationReport) -> Text:
    ended = ", interrupted" if report.interrupted else ""
    return Text(f"{report.seconds:.1f} s{ended}", style="dim")


def _claims(report: MutationReport) -> Iterator[RenderableType]:
    """How many reasons were decided, with so many mutants."""
    found = Counter(report.claims.values())
    yield Text(
        f"{counted(found.total(), 'reason')}: {found[Claim.NEEDED]:,} needed, {found[Claim.STALE]:,} stale, "
        f"{found[Claim.OPEN]:,} undecided ({counted(report.summary().mutants, 'mutant')})"
    )
    yield _time(report)


NOT_ALONE = {
    Need.SHARED: "another property catches whatever it catches",
    Need.NOTHING: "it catches no mutant first",
    Need.IMPLIED: "others imply it",
    Need.OF_A_PART: "it is of a part, with which it is checked",
    Need.UNDECIDED: "not all was searched",
}


def _needs(report: MutationReport) -> Iterator[RenderableType]:
    alone = sum(need.need is Need.ALONE for need in report.needs.values())
    yield Text("")
    yield Text(f"{alone} of {len(report.needs)} properties catch some mutant that no other catches")
    for name, need in report.needs.items():
        if need.need is not Need.ALONE:
            yield Text(f"  {name}: {NOT_ALONE[need.need]}", style="dim")


def _fairness(assumed: Assumed) -> Iterator[RenderableType]:
    yield Text("")
    excess = len(assumed.excess)
    text = f"fairness is assumed {counted(assumed.number, 'time')}; {excess} could be weaker, and every property still holds"
    yield Text(text + (" (one at a time)" if excess > 1 else ""))
    for found in assumed.excess:
        yield Text(f"  {_place(found.where)}  {found.name}: {found.text}")
    if assumed.undecided:
        yield Text(f"  not all were looked at: {assumed.undecided}", style="yellow")


def _section(
    title: str, findings: Iterable[Finding], style: str, what: Callable[[Finding], str]
) -> Iterator[RenderableType]:
    listed = list(findings)
    if not listed:
        return
    yield Text("")
    yield Text(f"{len(listed)} {title}", style=style)
    for finding in listed:
        mutant = finding.mutant
        yield Text(f"  {_line(mutant, [mutant.action] if mutant.action else [])}")
        yield Text(f"    {what(finding)}", style="dim")


def _survivors(
    title: str,
    findings: Iterable[Finding],
    report: MutationReport,
    style: str,
    many: int | None = None,
) -> Iterator[RenderableType]:
    groups = report.grouped(list(findings))
    if not groups:
        return
    yield Text("")
    number = sum(len(g.findings) for g in groups) if many is None else many
    yield Text(f"{number} {title}", style=style or "green")
    for group in groups:
        yield Text(f"  {_line(group.mutant, group.actions)}")
        yield Text(f"    {group.explanation}", style="dim")


def _line(mutant: Mutant, actions: Sequence[str]) -> str:
    shown = ", ".join(actions[:_MOST_ACTIONS])
    if len(actions) > _MOST_ACTIONS:
        shown += f" and {len(actions) - _MOST_ACTIONS} more"
    verb = _VERBS[mutant.kind]
    return f"{_place(mutant.where)}  {f'{shown} {verb}' if shown else verb}: {mutant.text}"


def _place(where: Source | None) -> str:
    return "?" if where is None else f"{path_of(where.file)}:{where.line}"


def _caught(finding: Finding) -> str:
    evaluation = finding.evaluation
    if not evaluation.states:
        return f"{', '.join(evaluation.by)}: {evaluation.note}"
    run = " → ".join(evaluation.steps)
    return f"{', '.join(evaluation.by)} in {counted(evaluation.depth, 'step')}, {counted(evaluation.states, 'state')}: {run}"


def _numbers(report: MutationReport) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("")
    for name in ("mutants", "caught", "nothing observes", "unexplained", "undecided"):
        table.add_column(name, justify="right")
    for kind in (*Kind, None):
        numbers = report.summary(kind)
        if not (numbers.mutants or kind is None or report.whole):
            continue
        shown = (
            numbers.mutants,
            numbers.caught,
            numbers.unobserved,
            numbers.unexplained,
            numbers.undecided,
        )
        table.add_row("all" if kind is None else kind.value, *(f"{n:,}" for n in shown))
    return table


def _promises(report: MutationReport) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("property")
    table.add_column("catches", justify="right")
    for name, number in report.catches.items():
        if not (number or report.whole):
            continue
        text = f"{name} (repeats a guard)" if name in report.restated else name
        table.add_row(text, f"{number:,}", style="" if number else "dim")
    return table
