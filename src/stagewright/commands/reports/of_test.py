"""Makes a suite of what `test` reports: a case for each conformance suite that was played."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stagewright.commands.reports.of_check import rule_of
from stagewright.commands.reports.places import Place, class_place, place_of
from stagewright.commands.reports.suite import Case, FlowStep, Level, Remark, Suite
from stagewright.spec.definition import Definition
from stagewright.spec.text.counting import counted
from stagewright.spec.values import flatten, show
from stagewright.spec.verdict import Outcome

if TYPE_CHECKING:
    from stagewright.checker.conformance.divergence import Divergence
    from stagewright.checker.conformance.play import SuiteResult
    from stagewright.commands.conformance.report import Tested

KIND = "conformance suite"
MEANING = "The implementation must do what the definition says, and refuse what it forbids."
PROMISES = {
    "tour": "The implementation takes every transition of the definition as the definition says.",
    "refusals": "The implementation refuses every event that the definition forbids, unchanged.",
    "hypothesis": "The implementation follows the definition on random runs.",
}


def suite_of(tested: Tested, seconds: float) -> Suite:
    """The suite of one run of `stagewright test`, which took so many seconds."""
    definition = tested.oracle.source
    whole = tested.exercised
    return Suite(
        "test",
        definition.name,
        definition.profile,
        str(tested.oracle.scope),
        Outcome[tested.outcome.upper()],
        tuple(_case(definition, result) for result in tested.results),
        f"{counted(whole.runs, 'run')}, {counted(whole.steps, 'step')}, "
        f"{counted(whole.refusals, 'refusal')}, "
        f"adapter {tested.adapter}",
        tested.reproduce,
        class_place(definition),
        tuple(_remarks(definition, tested)),
        {
            "adapter": tested.adapter,
            "seed": tested.seed,
            "runs": whole.runs,
            "steps": whole.steps,
            "refusals": whole.refusals,
            "edges": len(whole.edges),
            "definition": definition.fingerprint(),
        },
        tested.stopped,
        seconds,
    )


def _case(definition: Definition, result: SuiteResult) -> Case:
    failure = result.failure
    outcome = Outcome.UNDECIDED if result.stopped else Outcome.HOLDS
    headline = f"{definition.name}: {result.name} was not played to its end"
    text = ""
    flow: tuple[FlowStep, ...] = ()
    where = class_place(definition)
    if failure is not None:
        outcome, headline, text = Outcome.VIOLATED, failure.headline, failure.story()
        flow = tuple(_flow(definition, failure))
        where = flow[-1].where or where
    return Case(
        result.name,
        rule_of(definition.name, f"conforms-{result.name}"),
        KIND,
        MEANING,
        PROMISES.get(result.name, MEANING),
        outcome,
        "; ".join(filter(None, (_covered(result), result.note, result.stopped))),
        where,
        headline,
        "" if failure is None else _why(failure),
        text,
        flow=flow,
    )


def _covered(result: SuiteResult) -> str:
    if result.covered is None or result.total is None:
        return f"{counted(result.exercised.runs, 'run')}, {counted(result.exercised.steps, 'step')}"
    return f"{result.covered:,} of {result.total:,} {result.of}"


def _why(failure: Divergence) -> str:
    lines = [*failure.requirements, *map(str, failure.differences)]
    return "\n".join([*lines, *([f"it raised {failure.error}"] if failure.error else [])])


def _flow(definition: Definition, failure: Divergence) -> Iterator[FlowStep]:
    """The moves, each with the line of its action."""
    start = class_place(definition)
    lines: dict[str, Place | None] = {a.name: place_of(a.where) for a in definition.actions}
    first = [pair for name, v in failure.states[0].items() for pair in flatten(name, v)]
    state = tuple((place, show(value)) for place, value in first)
    yield FlowStep(0, "initially", start, state, kinds=("initial state",))
    for number, move in enumerate(failure.moves, start=1):
        text = f"{move.step.label} (must be refused)" if move.refused else move.step.label
        kinds = ("step", "danger") if number == len(failure.moves) else ("step",)
        yield FlowStep(number, text, lines.get(move.step.action) or start, kinds=kinds)


def _remarks(definition: Definition, tested: Tested) -> Iterator[Remark]:
    """What no suite has exercised; nothing follows from it, but somebody may have expected more."""
    left = tested.gaps
    lines = {action.name: place_of(action.where) for action in definition.actions}
    for name in left.actions:
        text = f"`{name}` of {definition.name} was not exercised."
        yield Remark("action-never-happens", name, Level.NOTE, text, lines.get(name))
    for action, requirement in left.requirements:
        yield Remark(
            "requirement-never-refuses",
            f"{action}: {requirement}",
            Level.NOTE,
            f"`{requirement}`, required by `{action}` of {definition.name}, never refused an event.",
            lines.get(action),
        )
