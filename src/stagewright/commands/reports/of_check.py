"""Makes a suite of what `check` or `prove` reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stagewright.commands.reports.places import Place, class_place, place_of
from stagewright.commands.reports.suite import Case, FlowStep, Level, Remark, Suite
from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import REFINEMENT, Coverage, Outcome, PropertyVerdict, Report

if TYPE_CHECKING:
    from stagewright.checker.counterexample import Story
    from stagewright.commands.reports.result import Result

MEANING: dict[str, str] = {
    PropertyKind.INVARIANT.value: "An invariant must hold in every reachable state.",
    PropertyKind.STEP.value: (
        "A step property must hold between the old and the new state of every reachable step."
    ),
    PropertyKind.REACHABLE.value: (
        "A goal must be reachable: from every reachable state some run must still come to it."
    ),
    PropertyKind.EVENTUALLY.value: (
        "The condition must hold at first or later, on every fair run."
    ),
    PropertyKind.SOMETIMES.value: (
        "Some run must reach a state in which the condition holds: there must be a witness."
    ),
    PropertyKind.SOMETIMES_STEP.value: "Some run must take such a step: there must be a witness.",
    PropertyKind.ACCEPTS.value: (
        "The action must be enabled in every reachable state in which the condition holds; "
        "that a budget is spent does not count."
    ),
    PropertyKind.RESTRICTED.value: (
        "The system refuses more than its part, as it says with a reason: some run must come to a state in which "
        "the part promises that the action is accepted, and it is refused."
    ),
    PropertyKind.LEADS_TO.value: (
        "Whenever the premise holds, the condition must hold then or later, on every fair run."
    ),
}
MEANING[REFINEMENT] = (
    "Every reachable step of the concrete machine must be a step of the machine that it is seen as, or "
    "change nothing that is seen."
)
OF_EVERY_MACHINE = "of every machine"
PROMISES_OF_EVERY_MACHINE = {
    "no deadlock": "In every state that is not final some action can happen.",
    "assigned values stay in bounds": (
        "Every assigned value lies within its variable's declared bounds."
    ),
}


def suite_of(command: str, result: Result, left_out: Sequence[Property] = ()) -> Suite:
    """The suite of one report; `left_out` are the promises that this command does not decide."""
    report, definition = result.report, result.report.definition
    cases = [_case(result, verdict) for verdict in report.verdicts]
    cases += [_left_out(definition, promise, command) for promise in left_out]
    return Suite(
        command,
        definition.name,
        definition.profile,
        report.scope,
        report.outcome,
        tuple(cases),
        _summary(report),
        result.reproduce,
        class_place(definition),
        tuple(_remarks(definition, report)),
        _facts(result),
        report.note,
        report.seconds,
    )


def rule_of(machine: str, name: str) -> str:
    """A promise's name for all machines, without blanks: `Turnstile.no-deadlock`."""
    return re.sub(r"[^\w.-]+", "-", f"{machine}.{name}")


def _case(result: Result, verdict: PropertyVerdict) -> Case:
    definition = result.report.definition
    made = next((p for p in definition.properties if p.name == verdict.name), None)
    promise = made.doc if made else PROMISES_OF_EVERY_MACHINE.get(verdict.name, "")
    kind = made.kind.value if made else OF_EVERY_MACHINE
    where = (place_of(made.where) if made else None) or class_place(definition)
    if (refined := verdict.refined) is not None:
        kind, promise, where = REFINEMENT, refined.doc, place_of(refined.where)
    headline = why = text = ""
    known = definition.known_violation(verdict.name)
    flow: tuple[FlowStep, ...] = ()
    if verdict.run is not None:
        from stagewright.checker.counterexample import story_of
        from stagewright.checker.counterexample.files import plain_text

        story = story_of(definition, verdict, result.scope)
        headline, why = story.headline, _why(story, verdict, known)
        text = plain_text(definition, verdict, result.scope)
        flow = tuple(_flow(definition, story, where))
    elif verdict.outcome is not Outcome.HOLDS:
        profile = f" ({definition.profile})" if definition.profile else ""
        outcome = verdict.outcome.name.lower()
        headline = f"{definition.name}{profile}: {verdict.name} is {outcome}"
    return Case(
        verdict.name,
        rule_of(definition.name, verdict.name),
        kind,
        MEANING.get(kind, "This must hold of every machine."),
        promise.strip(),
        verdict.outcome,
        verdict.note,
        where,
        headline,
        why,
        text,
        verdict.seconds,
        verdict.vacuous,
        flow,
    )


def _left_out(definition: Definition, promise: Property, command: str) -> Case:
    kind = promise.kind.value
    note = f"`{command}` does not decide properties of this kind ({kind}): use `stagewright check`"
    rule, where = rule_of(definition.name, promise.name), place_of(promise.where)
    doc = promise.doc.strip()
    return Case(promise.name, rule, kind, MEANING[kind], doc, None, note, where)


def _why(story: Story, verdict: PropertyVerdict, known: str) -> str:
    """The reasons, one a line, the nested ones indented; first why it is known, if it is."""
    breach = story.breach
    chosen = ", ".join(f"{name} = {value}" for name, value in breach.instance)
    lines = [f"violated, as known: {known}"] if known else []
    lines += [f"for {chosen}"] if chosen else []
    lines += [breach.headline] if breach.headline else []
    lines += [
        "  " * (1 + depth) + text for reason in breach.reasons for depth, text in reason.lines()
    ]
    lines += [text for text in (verdict.note, breach.caveat) if text and text != breach.headline]
    return "\n".join(lines)


def _flow(definition: Definition, story: Story, promise: Place | None) -> Iterator[FlowStep]:
    """The first state, every step with the line of its action, last the promise that is broken."""
    definition = story.definition  # of a refinement, perhaps another machine's
    lines = {action.name: place_of(action.where) for action in definition.actions}
    start = class_place(definition) or promise
    yield FlowStep(0, story.opening, start, story.start, kinds=("initial state",))
    for step in story.steps:
        text = f"{step.actor}: {step.title}"
        if step.closing:
            text += f" (back to state {story.loop}, for ever)"
        where = lines.get(step.action) or start
        state = tuple((change.place, change.new) for change in step.changes)
        kinds = ("step", "loop") if step.forever else ("step",)
        yield FlowStep(step.number, text, where, state, tuple(map(str, step.changes)), kinds)
    end = len(story.steps)
    text = f"{story.breach.name}: {story.breach.headline}"
    reasons = [line for reason in story.breach.reasons for _, line in reason.lines()]
    yield FlowStep(end, "\n".join([text, *reasons]), promise or start, kinds=("danger",))


def _remarks(definition: Definition, report: Report) -> Iterator[Remark]:
    for text in report.uncovered:
        yield Remark("profile-not-covered", definition.profile, Level.NOTE, text, None)
    if report.coverage is None:
        return
    so_far = "" if report.exhausted else " so far"
    provisional = not report.exhausted
    serious = Level.NOTE if provisional else Level.WARNING
    silent = set(report.coverage.never_fired)
    lines = {action.name: place_of(action.where) for action in definition.actions}
    for name in report.coverage.never_fired:
        yield Remark(
            "action-never-happens",
            name,
            serious,
            f"`{name}` of {definition.name} never happened{so_far}.",
            lines.get(name),
            provisional,
        )
    for name, requirement in _never_false(report.coverage, silent):
        yield Remark(
            "requirement-never-refuses",
            f"{name}: {requirement}",
            Level.NOTE,
            f"`{requirement}`, required by `{name}` of {definition.name}, was never false{so_far}.",
            _requirement_place(definition, name, requirement) or lines.get(name),
            provisional,
        )


def _never_false(coverage: Coverage, silent: set[str]) -> Iterator[tuple[str, str]]:
    """Of the actions that did happen: of the others this says nothing."""
    yield from (key for key in coverage.never_false if key[0] not in silent)


def _requirement_place(definition: Definition, action: str, requirement: str) -> Place | None:
    for known in definition.actions:
        for guard in known.requirements:
            if (known.name, guard.name) == (action, requirement):
                return place_of(guard.where)
    return None


def _summary(report: Report) -> str:
    if not report.states:  # a proof visits no states
        counts = f"searched to depth {report.depth}"
    else:
        counts = (
            f"{counted(report.states, 'distinct state')}, {counted(report.transitions, 'step')}, "
            f"depth {report.depth}"
        )
    return f"{counts}, {report.seconds:.1f} s, {report.method}"


def _facts(result: Result) -> Mapping[str, str | int | float | bool]:
    """What was searched, by names that sort well."""
    report, scope = result.report, result.scope
    reduced = report.reduction is not None and report.reduction.used
    return {
        "method": report.method,
        **({"orbits": True} if reduced else {}),  # instead of states
        "states": report.states,
        "transitions": report.transitions,
        "depth": report.depth,
        "exhausted": report.exhausted,
        **{f"size.{kind.__name__}": size for kind, size in scope.sizes.items()},
        **{f"budget.{k}": "any" if n is None else n for k, n in scope.budgets.items()},
        "definition": report.definition.fingerprint(),
    }
