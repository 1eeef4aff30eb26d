"""What the reference interpreter says of an event: whether a step explains it, and if not, why none does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from stagewright.spec.definition import Action
from stagewright.spec.errors import DomainError
from stagewright.spec.grounding.families import WIDE
from stagewright.spec.interpreter import Interpreter, step_of
from stagewright.spec.sorts import IntSort
from stagewright.spec.trace import observation
from stagewright.spec.values import State, Value, plain
from stagewright.spec.verdict import Step
from stagewright.traces.events.format_event import alternatives, text
from stagewright.traces.events.symbols import Symbol, value_key

OUT_OF_BOUNDS = "assigned values stay in bounds"


def steps_meant(interpreter: Interpreter, symbol: Symbol) -> Iterator[Step]:
    """The steps that an event's action and parameters may mean."""
    wanted = {name: value_key(value) for name, value in symbol.parameters.items()}
    for action in interpreter.definition.actions:
        if symbol.action in (None, action.name):
            for environment in interpreter.instances(action.params, _given(action, symbol)):
                step = step_of(action, environment)
                given = {n: value_key(plain(v)) for n, v in step.arguments.items()}
                if all(given.get(name) == value for name, value in wanted.items()):
                    yield step


def _given(action: Action, symbol: Symbol) -> dict[str, Value]:
    """The numbers among an event's parameters: there may be very many others."""
    numbers = {p.name for p in action.params if isinstance(p.sort, IntSort)}
    return {n: v for n, v in symbol.parameters.items() if n in numbers and isinstance(v, int)}


def taken(interpreter: Interpreter, step: Step, state: State) -> State | None:
    """The state after a step; None if it is not enabled, or assigns a value out of its bounds."""
    if interpreter.failed_requirements(step, state):
        return None
    try:
        return interpreter.take(step, state)
    except DomainError:
        return None


def fits(state: State, observed: Mapping[str, object]) -> bool:
    """Whether a state agrees with what was observed; leaves that it does not have say nothing."""
    leaves = observation(state)
    return all(value_key(leaves[n]) == value_key(v) for n, v in observed.items() if n in leaves)


def explains(interpreter: Interpreter, possible: Iterable[State], symbol: Symbol) -> bool:
    """Whether a single step from one of the states explains an event."""
    meant = list(steps_meant(interpreter, symbol))
    return any(
        (after := taken(interpreter, step, state)) is not None and fits(after, symbol.observed)
        for state in possible
        for step in meant
    )


def failed(
    interpreter: Interpreter, possible: Iterable[State], symbol: Symbol
) -> tuple[tuple[str, str], ...]:
    """The requirements that refuse the action in every way in which it may be meant, nearest way first."""
    if symbol.action is None:
        return ()
    nearest: tuple[tuple[str, str], ...] | None = None
    meant = list(steps_meant(interpreter, symbol))
    for state in possible:
        for step in meant:
            false = tuple(
                (r.name, str(r.where) if r.where else "")
                for r in interpreter.failed_requirements(step, state)
            )
            false = false or ((OUT_OF_BOUNDS, ""),)
            if nearest is None or len(false) < len(nearest):
                nearest = false
    return nearest or ()


def differing(after: Iterable[State], observed: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """What could have been observed and what was, for the leaves that differ in the nearest state.

    Where no state agrees on any single leaf more than others, the first one counts.
    """
    best: list[str] | None = None
    seen = [observation(state) for state in after]
    for leaves in seen:
        wrong = [
            n for n, v in observed.items() if n in leaves and value_key(leaves[n]) != value_key(v)
        ]
        if best is None or len(wrong) < len(best):
            best = wrong
    return {
        name: (alternatives(leaves[name] for leaves in seen), text(observed[name]))
        for name in best or ()
    }


def enabled(interpreter: Interpreter, possible: Iterable[State]) -> tuple[str, ...]:
    """The steps that could have happened in one of the states; of very many of one action, the first."""
    every = [
        step_of(action, environment)
        for action in interpreter.definition.actions
        for environment in islice(interpreter.instances(action.params), WIDE)
    ]
    labels = dict.fromkeys(
        step.label
        for state in possible
        for step in every
        if not interpreter.failed_requirements(step, state)
    )
    return tuple(labels)
