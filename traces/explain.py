"""Explains a violation: replays the entity's last step with the reference interpreter and says what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stagewright.spec.definition import Definition
from stagewright.spec.errors import DomainError
from stagewright.spec.ground import GroundModel
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope
from stagewright.spec.trace import observation
from stagewright.spec.values import State, plain
from stagewright.spec.verdict import Step
from stagewright.traces.automaton import Automaton
from stagewright.traces.determinised import LIVE, START, Determinised
from stagewright.traces.judge import Cause, Finding
from stagewright.traces.letters import Letter
from stagewright.traces.symbols import Symbol, parse_symbol, value_key
from stagewright.traces.trace_report import AccountingError, Explanation

_STATES_MAX = 200  # possible states that are looked at; one is enough where all is observed
_LISTED_MAX = 12  # values or actions of one kind that are told


@dataclass(frozen=True)
class Judge:
    """Everything that judges the traces of one machine."""

    definition: Definition
    scope: Scope
    model: GroundModel
    automaton: Automaton


def explain(judge: Judge, finding: Finding, running: Determinised) -> Explanation | None:
    """Why no run explains the last of the finding's events; None if its events were too many to keep.

    Raises:
        AccountingError: the reference interpreter does explain it: the fast replay is wrong.
    """
    if not finding.symbols:
        return None
    *before, last = finding.symbols
    symbol = parse_symbol(last)
    if finding.cause is not Cause.STEP:
        return Explanation(_label(symbol))
    number = START
    for text in before:
        number = running.advance(number, text)
    letter = running.letter(last)
    assert isinstance(letter, Letter)
    possible = [judge.model.decode(running.states[s]) for s in running.sets[number][:_STATES_MAX]]
    reached = running.before_observation(number, letter)
    after = [judge.model.decode(running.states[s]) for s in sorted(reached)[:_STATES_MAX]]
    interpreter = Interpreter(judge.definition, judge.scope)
    hidden = judge.automaton.recording.hidden.exist
    if number >= LIVE and not hidden and _explains(interpreter, possible, symbol):
        raise AccountingError(f"{finding.key}: the interpreter explains {_label(symbol)}")
    differing = _differing(after, symbol.observed)
    return Explanation(
        _label(symbol),
        failed=() if after else _failed(interpreter, possible, symbol),
        expected=tuple((name, values) for name, (values, _) in differing.items()),
        observed=tuple((name, value) for name, (_, value) in differing.items()),
        enabled=_enabled(interpreter, possible),
        state=_summary(possible),
        states=len(running.sets[number]),
    )


def _label(symbol: Symbol) -> str:
    if symbol.end:
        return "the end marker"
    if symbol.action is None:
        seen = ", ".join(f"{n} = {_text(v)}" for n, v in symbol.observed.items())
        return f"an observation of {seen or 'nothing'}"
    values = ", ".join(_text(v) for v in symbol.parameters.values())
    return f"{symbol.action}({values})" if values else symbol.action


def _text(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return "{" + ", ".join(map(str, value)) + "}"
        case _:
            return str(value)


def _matching(interpreter: Interpreter, symbol: Symbol) -> Iterable[Step]:
    """The steps that the event's action and parameters may mean."""
    from stagewright.spec.interpreter import step_of

    wanted = {name: value_key(value) for name, value in symbol.parameters.items()}
    for action in interpreter.definition.actions:
        if symbol.action in (None, action.name):
            for environment in interpreter.instances(action.params):
                step = step_of(action, environment)
                given = {n: value_key(plain(v)) for n, v in step.arguments.items()}
                if all(given.get(name) == value for name, value in wanted.items()):
                    yield step


def _explains(interpreter: Interpreter, possible: Iterable[State], symbol: Symbol) -> bool:
    wanted = {name: value_key(value) for name, value in symbol.observed.items()}
    for state in possible:
        for step in _matching(interpreter, symbol):
            if interpreter.failed_requirements(step, state):
                continue
            try:
                seen = observation(interpreter.take(step, state))
            except DomainError:
                continue
            if all(value_key(seen[n]) == v for n, v in wanted.items() if n in seen):
                return True
    return False


def _failed(
    interpreter: Interpreter, possible: Iterable[State], symbol: Symbol
) -> tuple[tuple[str, str], ...]:
    """The requirements that refuse the action in every way in which it may be meant, nearest way first."""
    if symbol.action is None:
        return ()
    nearest: tuple[tuple[str, str], ...] | None = None
    for state in possible:
        for step in _matching(interpreter, symbol):
            failed = tuple(
                (r.name, str(r.where) if r.where else "")
                for r in interpreter.failed_requirements(step, state)
            )
            if not failed:
                failed = (("assigned values stay in bounds", ""),)
            if nearest is None or len(failed) < len(nearest):
                nearest = failed
    return nearest or ()


def _differing(
    after: Iterable[State], observed: Mapping[str, object]
) -> dict[str, tuple[str, str]]:
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
        name: (_alternatives(leaves[name] for leaves in seen), _text(observed[name]))
        for name in best or ()
    }


def _alternatives(values: Iterable[object]) -> str:
    distinct = list(dict.fromkeys(_text(v) for v in values))
    more = len(distinct) - _LISTED_MAX
    return " or ".join(distinct[:_LISTED_MAX]) + (f" or {more} others" if more > 0 else "")


def _enabled(interpreter: Interpreter, possible: Iterable[State]) -> tuple[str, ...]:
    labels: dict[str, None] = {}
    for state in possible:
        for action in interpreter.definition.actions:
            for environment in interpreter.instances(action.params):
                from stagewright.spec.interpreter import step_of

                step = step_of(action, environment)
                if not interpreter.failed_requirements(step, state):
                    labels[step.label] = None
    return tuple(labels)


def _summary(possible: list[State]) -> tuple[tuple[str, str], ...]:
    seen = [observation(state) for state in possible]
    names = list(seen[0]) if seen else []
    return tuple((name, _alternatives(leaves[name] for leaves in seen)) for name in names)
