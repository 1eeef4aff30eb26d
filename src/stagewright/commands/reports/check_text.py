"""Reports as text, for people: a verdict a promise, the counterexamples, and what was not exercised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stagewright.commands.console.output import to_copy
from stagewright.commands.reports.result import Result, scope_of
from stagewright.spec.definition import Definition
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import Coverage, Outcome, PropertyVerdict, Reduction, Report

_MARKS = {
    Outcome.HOLDS: ("✓", "green"),
    Outcome.VIOLATED: ("✗", "bold red"),
    Outcome.UNDECIDED: ("?", "yellow"),
}


_UNTAKEN_LISTED = 8  # steps of a seen machine


def render_result(result: Result) -> RenderableType:
    """The whole report of one check or proof."""
    return Group(*_parts(result))


def _parts(result: Result) -> Iterator[RenderableType]:
    report = result.report
    yield _title(report)
    yield _verdicts(report)
    yield from _not_asked(report.definition)
    for verdict in report.verdicts:
        if verdict.run is not None or (result.witnesses and verdict.witness is not None):
            from stagewright.checker.counterexample import render_text

            yield Text("")
            scope = scope_of(report, verdict, result.scope)
            yield render_text(report.definition, verdict, scope)
    if report.coverage is not None:
        reasons = {r.name: r.reason.text for r in report.definition.unexercised or ()}
        yield from _complaints(report.coverage, reasons, exhausted=report.exhausted)
    yield from _of_refinements(report)
    yield Text("")
    if report.reduction is not None and report.reduction.used:
        yield Text(_symmetry(report, report.reduction))
    yield _counts(report)
    for path in result.written:
        yield to_copy(f"written: {path}")
    yield to_copy(f"reproduce: {result.reproduce}")


def _title(report: Report) -> Text:
    name = report.definition.name
    if report.definition.profile:
        name += f" ({report.definition.profile})"
    title = Text(name, style="bold")
    return title.append(f", {report.scope}, {report.method}", style="dim")


def _verdicts(report: Report) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for column in range(3):
        table.add_column(no_wrap=column < 2, overflow="fold")
    for verdict in report.verdicts:
        mark, style = _MARKS[verdict.outcome]
        note = Text(_note(report.definition, verdict))
        table.add_row(Text(mark, style=style), Text(verdict.name, style=style), note)
    return Padding(table, (0, 0, 0, 2))


def _note(definition: Definition, verdict: PropertyVerdict) -> str:
    """The note of a verdict; a violated promise is first said in its own words, and why it is known to be."""
    known = definition.known_violation(verdict.name)
    promises = [p for p in definition.properties if p.name == verdict.name]
    if verdict.outcome is not Outcome.VIOLATED:
        elsewhere = f"known to be violated, though not at this scope: {known}" if known else ""
        why = f"restricted: {promises[0].because}" if promises and promises[0].because else ""
        return "\n".join(filter(None, (why, verdict.note, elsewhere)))
    doc = promises[0].doc if promises else verdict.refined.doc if verdict.refined else ""
    said = first_sentence(doc)
    shown = "violated"
    if verdict.run is not None:
        steps = len(verdict.run.steps)
        shown += f" after {steps} step{'' if steps == 1 else 's'}"
    as_known = f"as known: {known}" if known else ""
    return "\n".join(filter(None, (f"{shown}: {said}" if said else shown, as_known, verdict.note)))


def _not_asked(definition: Definition) -> Iterator[RenderableType]:
    """What parts promise and their system does not."""
    if definition.not_asked:
        yield Text("")
        yield Text("not asked of its parts:", style="yellow")
        yield from (Text(f"  {left.name}: {left.why}") for left in definition.not_asked)


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join(doc.split("\n\n", maxsplit=1)[0].split())
    sentence, stop, _ = first.partition(". ")
    return sentence + stop.strip()


def _complaints(
    coverage: Coverage, reasons: Mapping[str, str], *, exhausted: bool
) -> Iterator[RenderableType]:
    """What the search never saw: actions that never happened, requirements that never refused."""
    silent = coverage.never_fired
    vacuous = [key for key in coverage.never_false if key[0] not in silent]
    if not silent and not vacuous:
        return
    yield Text("")
    so_far = "" if exhausted else " so far"
    if silent:
        yield Text(f"never happened{so_far}:", style="yellow")
        known = {name: f": {reasons[name]}" for name in silent if name in reasons}
        yield from (Text(f"  {name}{known.get(name, '')}") for name in silent)
    if vacuous:
        yield Text(f"never false{so_far}, where the action was tried:", style="yellow")
        yield from (Text(f"  {action}: {requirement}") for action, requirement in vacuous)


def _of_refinements(report: Report) -> Iterator[RenderableType]:
    """What no refinement covers, and what of a seen machine the concrete one never does."""
    if report.uncovered:
        yield Text("")
        yield Text("not covered by a refinement:", style="yellow")
        yield from (Text(f"  {text}") for text in report.uncovered)
    for verdict in report.verdicts:
        if verdict.refined is None or not verdict.refined.untaken:
            continue
        seen, listed = verdict.refined.seen.name, verdict.refined.untaken
        yield Text("")
        yield Text(f"steps of {seen} that {verdict.name} never takes:", style="yellow")
        yield from (Text(f"  {text}") for text in listed[:_UNTAKEN_LISTED])
        if len(listed) > _UNTAKEN_LISTED:
            yield Text(f"  and {len(listed) - _UNTAKEN_LISTED} more (--json lists all)")


def _symmetry(report: Report, reduction: Reduction) -> str:
    """`Manager: 8 interchangeable members; 1,461 orbits stand for 1,745,408 states`."""
    sorts = ", ".join(f"{name}: {size} interchangeable" for name, size in reduction.sorts.items())
    if reduction.states is None:
        return f"symmetry: {sorts}; one state of each orbit was searched"
    return f"symmetry: {sorts}; {report.states:,} orbits stand for {reduction.states:,} states"


def _counts(report: Report) -> Text:
    rate = f", {report.states / report.seconds:,.0f} a second" if report.seconds > 0 else ""
    if report.states:
        what = "orbit" if report.reduction is not None and report.reduction.used else "state"
        states = counted(report.states, f"distinct {what}")
        text = Text(f"{states}, {counted(report.transitions, 'step')}, ")
        text.append(f"depth {report.depth}, {report.seconds:.1f} s{rate}")
    else:  # a proof visits no states
        searched = f"searched to depth {report.depth}, " if report.depth else ""
        text = Text(f"{searched}{report.seconds:.1f} s")
    if report.note:
        text.append(f"; {report.note}", style="yellow")
    return text
