"""Which promise a run breaks, and why: the last part of every counterexample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import assert_never

from stagewright.checker.counterexample.because import Because, Reason, brief, environment
from stagewright.checker.counterexample.waiting import called, headline, may_wait
from stagewright.spec.definition import (
    NO_DEADLOCK,
    Action,
    Assignment,
    Definition,
    Joined,
    Property,
    PropertyKind,
    Requirement,
)
from stagewright.spec.derived.accepting import enabled, spelled_property, ways
from stagewright.spec.errors import DomainError
from stagewright.spec.interpreter import Interpreter, step_of
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import IntSort
from stagewright.spec.source import Source
from stagewright.spec.text.counting import counted
from stagewright.spec.text.words import Values, words
from stagewright.spec.values import State, show
from stagewright.spec.verdict import Outcome, PropertyVerdict, Refined, Run

_LISTED = (
    2  # of the choices that one requirement refuses, so many are listed; of the others the number
)
_NEAR = 3  # refused actions that are explained; of the others only the requirement is named
IN_BOUNDS = "assigned values stay in bounds"


@dataclass(frozen=True)
class Breach:
    """`headline` says what happened, `promise` what was promised, `reasons` why it is not kept.

    `instance` are the values of the promise's parameters; `caveat` what the run does not show.
    """

    name: str
    headline: str
    promise: str
    instance: tuple[tuple[str, str], ...]
    place: str
    reasons: tuple[Reason, ...]
    caveat: str = ""
    shows: bool = False  # nothing is broken: the run is the witness that was looked for


def breach_of(
    interpreter: Interpreter,
    definition: Definition,
    verdict: PropertyVerdict,
    run: Run,
) -> Breach:
    """What the run breaks, explained in its last state or step."""
    broken = next((p for p in definition.properties if p.name == verdict.name), None)
    instance = tuple((name, show(value)) for name, value in verdict.arguments.items())
    if broken is not None and broken.kind in (PropertyKind.ACCEPTS, PropertyKind.RESTRICTED):
        text, reasons = _refused(interpreter, definition, broken, verdict, run)
        promise, place = broken.doc.strip(), _place(broken.where)
    elif broken is not None:
        text, reasons = _property(interpreter, spelled_property(definition, broken), verdict, run)
        promise, place = broken.doc.strip(), _place(broken.where)
    elif verdict.refined is not None:
        text, reasons = _refinement(verdict, verdict.refined)
        promise, place = verdict.refined.doc, _place(verdict.refined.where)
    elif verdict.name == NO_DEADLOCK:
        text = "Nothing can happen any more, and the state is not marked final."
        promise, place = "In every state that is not final some action can happen.", ""
        if any(action.spends for action in interpreter.definition.actions):
            text = f"{text[:-1]}: what spends a budget does not count, for it need not happen."
        reasons = _deadlock(interpreter, run.states[-1])
        reasons += _switched_off(definition, interpreter.scope)
    elif verdict.name == IN_BOUNDS:
        text = "An action that can happen now would assign a value outside the declared bounds."
        promise, place = "Every assigned value lies within its variable's declared bounds.", ""
        reasons = _overflows(interpreter, run.states[-1])
    else:
        text, promise, place, reasons = verdict.note, "", "", ()
    return Breach(
        verdict.name,
        text,
        promise,
        instance,
        place,
        reasons,
        _caveat(verdict, broken),
        verdict.witness is not None,
    )


def _caveat(verdict: PropertyVerdict, broken: Property | None) -> str:
    if verdict.outcome is Outcome.VIOLATED or verdict.witness is not None:
        return ""
    what = f"`{verdict.name}`" if broken is not None else verdict.name
    return (
        f"This does not refute {what}: the induction step fails here, and perhaps no run from an "
        "initial state ever reaches state 0. If none does, a stronger invariant that excludes it "
        "completes the proof."
    )


def _property(
    interpreter: Interpreter, broken: Property, verdict: PropertyVerdict, run: Run
) -> tuple[str, tuple[Reason, ...]]:
    names = environment(broken.params, verdict.arguments)
    last = Because(interpreter, run.states[-1])
    end = len(run.steps)
    match broken.kind:
        case PropertyKind.INVARIANT:
            text = f"It is false in state {end}:"
            if broken.independent:
                which = ", ".join(f"`{name}`" for name in broken.independent)
                text = f"In state {end} it waits for what it should not ({which}):"
            return text, last.reasons(broken.condition, names)
        case PropertyKind.STEP:
            because = Because(interpreter, run.states[-2], run.states[-1])
            return f"Step {end} breaks it:", because.reasons(broken.condition, names)
        case PropertyKind.REACHABLE:
            goal = brief(words(broken.condition, names))
            spending = any(a.spends for a in interpreter.definition.actions)
            which = "no run that spends no budget" if spending else "no run"
            text = f"From state {end} on, {which} ever comes to: {goal}. In that state:"
            return text, last.reasons(broken.condition, names)
        case PropertyKind.LEADS_TO | PropertyKind.EVENTUALLY:
            return _on_fair_runs(interpreter, broken, names, run)
        case PropertyKind.SOMETIMES:
            return f"It is so in state {end}:", last.reasons(broken.condition, names)
        case PropertyKind.SOMETIMES_STEP:
            because = Because(interpreter, run.states[-2], run.states[-1])
            return f"Step {end} is such a step:", because.reasons(broken.condition, names)
        case PropertyKind.ACCEPTS | PropertyKind.RESTRICTED:
            raise AssertionError("explained by `_refused`")
        case _:
            assert_never(broken.kind)


def _refinement(verdict: PropertyVerdict, refined: Refined) -> tuple[str, tuple[Reason, ...]]:
    """What the seen machine has no step for, and what it could have done instead."""
    seen = refined.seen.name
    last = ", ".join(f"{place} = {value}" for place, value in refined.looks[-2:][0].items())
    listed = tuple(Reason(text) for text in refined.instead)
    if len(refined.looks) == 1:
        instead = Reason(f"{seen} begins otherwise")
    elif listed:
        instead = Reason(f"where {last}, {seen} could do:", listed)
    else:
        instead = Reason(f"where {last}, {seen} has no step that shows")
    hidden = Reason(f"of {seen} this is hidden, any value would do: {', '.join(refined.hidden)}")
    return f"{verdict.note}.", (instead, *([hidden] if refined.hidden else []))


def _refused(
    interpreter: Interpreter,
    definition: Definition,
    broken: Property,
    verdict: PropertyVerdict,
    run: Run,
) -> tuple[str, tuple[Reason, ...]]:
    """Why the action should be accepted in the last state, and which requirements refuse it.

    Of a restriction, the values of the parameters are the first for which it is refused.
    """
    last = Because(interpreter, run.states[-1])
    found = ways(definition.actions, broken.action)
    names: Values = environment(broken.params, verdict.arguments)
    if broken.kind is PropertyKind.RESTRICTED:
        names = next(
            chosen
            for chosen in interpreter.instances(broken.params)
            if last.value(broken.condition, chosen)
            and not last.value(enabled(definition, broken), chosen)
        )
    refusals = [_refusal(last, way.action, _chosen_by(last, way.call, names)) for way in found]
    should = "would be" if broken.kind is PropertyKind.RESTRICTED else "should be"
    asked = Reason(f"it {should} accepted:", last.reasons(broken.condition, names))
    headline = f"In state {len(run.steps)} `{broken.action}` is refused:"
    return headline, (asked, *(reason for _, reason in refusals))


def _chosen_by(because: Because, call: Joined, asked: Values) -> Callable[[Values], bool]:
    """Whether a step with some parameters calls a part's action with those that are asked for."""
    wanted = {param.name: value for param, value in asked.items()}
    given = [(argument, wanted[name]) for name, argument in call.arguments if name in wanted]

    def fits(names: Values) -> bool:
        rounds = because.interpreter.instances(tuple(bound for bound, _ in call.loops))
        return any(
            all(c is None or because.value(c, {**names, **more}) for _, c in call.loops)
            and all(because.value(a, {**names, **more}) == value for a, value in given)
            for more in rounds
        )

    return fits


def _on_fair_runs(
    interpreter: Interpreter, broken: Property, names: Values, run: Run
) -> tuple[str, tuple[Reason, ...]]:
    missed = Because(interpreter, run.states[-1]).reasons(broken.condition, names)
    goal = brief(words(broken.condition, names))
    if broken.premise is None:
        parts = [Reason(f"{goal} - never in this run:", missed)]
    else:
        begin = _premise_state(interpreter, broken, names, run)
        begun = Because(interpreter, run.states[begin]).reasons(broken.premise, names)
        parts = [
            Reason(f"the premise holds in state {begin}:", begun),
            Reason(f"{goal} - never from there on:", missed),
        ]
    return (
        f"What must eventually happen never does: {headline(run)}.",
        (
            *parts,
            *may_wait(interpreter, run),
        ),
    )


def _premise_state(interpreter: Interpreter, broken: Property, names: Values, run: Run) -> int:
    """The last state in which the premise holds and after which the condition never does."""
    assert broken.premise is not None
    missing = len(run.states)
    while missing > 0 and not interpreter.evaluate(
        broken.condition, run.states[missing - 1], None, names
    ):
        missing -= 1
    for index in range(missing, len(run.states)):
        if interpreter.evaluate(broken.premise, run.states[index], None, names):
            return index
    raise AssertionError(
        f"the run does not break {broken.name}: its premise never stays unanswered"
    )


def _deadlock(interpreter: Interpreter, state: State) -> tuple[Reason, ...]:
    """Why each action is refused: the nearest to happening first, the others briefly."""
    because = Because(interpreter, state)
    refused = [_refusal(because, action) for action in interpreter.definition.actions]
    refused.sort(key=lambda pair: pair[0])
    if not refused:
        return (Reason("the machine has no actions at all"),)
    near = tuple(reason for _, reason in refused[:_NEAR])
    far = tuple(Reason(reason.text.removesuffix(":")) for _, reason in refused[_NEAR:])
    listed = (*near, Reason("and further from happening:", far)) if far else near
    return (*listed, *_bounded_alone(because))


def _bounded_alone(because: Because) -> tuple[Reason, ...]:
    """Where only `bounded(...)` refuses a step, a real run would go on: what to write then."""
    for action in because.interpreter.definition.actions:
        for names in because.interpreter.instances(action.params):
            false = [r for r in action.requirements if not because.value(r.condition, names)]
            if false and all(r.bound for r in false):
                what = f"only a bound of the check refuses {called(action, names)}: a run may end there"
                return (Reason(f"{what} if @final says so"),)
    return ()


def _any_choice(_names: Values) -> bool:
    return True


def _refusal(
    because: Because, action: Action, fits: Callable[[Values], bool] = _any_choice
) -> tuple[int, Reason]:
    """How many requirements are false at least, and for each choice that fits the first of them."""
    refusals: list[tuple[Requirement, Values]] = []
    fewest = len(action.requirements)
    for names in because.interpreter.instances(action.params):
        if not fits(names):
            continue
        false = [r for r in action.requirements if not because.value(r.condition, names)]
        if not false:
            if action.spends:
                spent = f"spends the budget {action.budget}: nobody may count on it"
                return 0, Reason(f"{called(action, names)} can happen, but {spent}")
            return 0, Reason(f"{called(action, names)} could happen")
        fewest = min(fewest, len(false))
        refusals.append((false[0], names))
    if not refusals:
        return fewest, Reason(f"{action.name} does it for no choice of its parameters")
    order = [r.name for r in action.requirements]
    refusals.sort(key=lambda pair: order.index(pair[0].name))
    groups = [(name, list(group)) for name, group in groupby(refusals, key=lambda p: p[0].name)]
    listed = ", ".join(f"`{name}`" for name, _ in groups)
    below = tuple(r for _, group in groups for r in _refused_by(because, group, action))
    return fewest, Reason(f"{action.name} is refused by {listed}:", below)


def _refused_by(
    because: Because, group: list[tuple[Requirement, Values]], action: Action
) -> tuple[Reason, ...]:
    """What one requirement says against the choices it refuses, equal reasons together."""
    alike: dict[tuple[Reason, ...], list[str]] = {}
    for guard, names in group:
        reasons = because.reasons(guard.condition, names)
        alike.setdefault(reasons, []).append(called(action, names))
    parts: list[Reason] = []
    for reasons, calls in list(alike.items())[:_LISTED]:
        parts += [Reason(f"{_listed(calls)}:", reasons)] if action.params else reasons
    more = sum(len(calls) for calls in list(alike.values())[_LISTED:])
    name = group[0][0].name
    if not more:
        return tuple(parts)
    return (*parts, Reason(f"(and for {counted(more, 'more choice')} by `{name}`)"))


def _listed(calls: list[str]) -> str:
    more = len(calls) - _LISTED
    return ", ".join(calls[:_LISTED]) + (f" and {counted(more, 'more choice')}" if more > 0 else "")


def _switched_off(definition: Definition, scope: Scope) -> tuple[Reason, ...]:
    return tuple(
        Reason(f"{action.name} is switched off: the budget {action.budget} is 0")
        for action in definition.actions
        if action.budget is not None and scope.budgets.get(action.budget) == 0
    )


def _overflows(interpreter: Interpreter, state: State) -> tuple[Reason, ...]:
    because = Because(interpreter, state)
    found: list[Reason] = []
    for action in interpreter.definition.actions:
        for names in interpreter.instances(action.params):
            if all(because.value(r.condition, names) for r in action.requirements):
                problems = [p for a in action.assignments for p in _overflow(because, a, names)]
                found += [Reason(f"{called(action, names)}: {p}") for p in problems]
                if not problems:  # a number within a queue, a record or a message
                    found += _refused_effect(interpreter, action, names, state)
    return tuple(found)


def _refused_effect(
    interpreter: Interpreter, action: Action, names: Values, state: State
) -> list[Reason]:
    try:
        interpreter.take(step_of(action, names), state)
    except DomainError as error:
        return [Reason(error.problem)]
    return []


def _overflow(because: Because, assignment: Assignment, names: Values) -> list[str]:
    sort = assignment.place.sort
    if not isinstance(sort, IntSort):
        return []
    found: list[str] = []
    for more in because.interpreter.instances(assignment.binders):
        value = because.value(assignment.value, {**names, **more})
        assert isinstance(value, int)
        if not sort.low <= value <= sort.high:
            place = words(assignment.place, {**names, **more})
            found.append(f"{place} would become {value}, outside {sort}")
    return found


def _place(where: Source | None) -> str:
    """`machines/tablet.py:88`: relative to the working directory where the file lies below it."""
    if where is None:
        return ""
    path = Path(where.file).resolve()  # not the package's links, but where the file really lies
    if path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return f"{path}:{where.line}"
