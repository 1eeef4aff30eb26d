"""Why a run need not bring what is promised: what is enabled where it stops, or what it puts off for ever."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.checker.counterexample.because import LISTED, Reason
from stagewright.spec.declarations.fairness import Assumption, assumptions
from stagewright.spec.definition import Action
from stagewright.spec.errors import DomainError
from stagewright.spec.interpreter import Environment, Interpreter, step_of
from stagewright.spec.text.words import Values
from stagewright.spec.values import State, Value, show
from stagewright.spec.verdict import Run, Step


def headline(run: Run) -> str:
    """How the run goes on for ever."""
    if run.loop is None:
        return f"the run may stop in state {len(run.steps)}"
    first, last = run.loop + 1, len(run.steps) + 1
    if first == last:
        return f"step {last} may happen again and again for ever"
    return f"steps {first} to {last} may happen again and again for ever"


def may_wait(interpreter: Interpreter, run: Run) -> tuple[Reason, ...]:
    """What might have helped, and why it does not have to happen."""
    if run.loop is None:
        return (_stop(interpreter, run.states[-1], len(run.steps)),)
    if not any(action.fair for action in interpreter.definition.actions):
        return (Reason("no action is declared fair: none of them has to happen"),)
    waiting = [*_put_off(interpreter, run, run.loop)]
    more = len(waiting) - LISTED
    rest = (Reason(f"(and {more} more)"),) if more > 0 else ()
    return (*waiting[:LISTED], *rest)


def _stop(interpreter: Interpreter, state: State, last: int) -> Reason:
    enabled = tuple(
        reason
        for action in interpreter.definition.actions
        for reason in _enabled(interpreter, action, state)
    )
    if not enabled:
        return Reason(f"no action is enabled in state {last}")
    return Reason(f"nothing that is enabled in state {last} has to happen:", enabled)


def _enabled(interpreter: Interpreter, action: Action, state: State) -> Iterator[Reason]:
    """The ways in which the action can happen, if it can; together, as none of them has to."""
    ways = [
        called(action, names)
        for names in interpreter.instances(action.params)
        if _is_enabled(interpreter, action, state, names)
    ]
    if not ways:
        return
    listed = _listed(ways)
    if action.spends:
        yield Reason(f"{listed}: spends the budget {action.budget}")
    else:
        yield Reason(f"{listed}: {'would change nothing' if action.fair else 'not fair'}")


def _put_off(interpreter: Interpreter, run: Run, loop: int) -> Iterator[Reason]:
    """What fairness is assumed of, and is enabled somewhere in the loop, but may wait for ever."""
    assert run.loop_step is not None
    taken = [*run.steps[loop:], run.loop_step]
    states = range(loop, len(run.states))
    for assumption in assumptions(interpreter.definition.actions):
        for values in interpreter.instances(assumption.keys):
            chosen = tuple(values[key] for key in assumption.keys)
            enabled = {i: _payable(interpreter, assumption, chosen, run.states[i]) for i in states}
            ways = set().union(*enabled.values())
            paid = [step for step in taken if _is_of(assumption, chosen, step)]
            arguments = f"({', '.join(map(show, chosen))})" if chosen else ""
            name = f"{assumption.name}{arguments}"
            rest = [label for label in sorted(ways) if label not in {s.label for s in paid}]
            if paid and rest:
                labels = _listed(list(dict.fromkeys(step.label for step in paid)))
                yield Reason(f"{_listed(rest)} may wait: {labels} is fair to {name} as well")
            elif ways and not paid:
                idle = next(i for i in states if not enabled[i])
                yield Reason(
                    f"{name} may wait: it is weakly fair, and can do nothing in state {idle}"
                )


def _listed(labels: list[str]) -> str:
    more = len(labels) - LISTED
    return ", ".join(labels[:LISTED]) + (f" and {more} more" if more > 0 else "")


def _is_of(assumption: Assumption, chosen: tuple[Value, ...], step: Step) -> bool:
    """Whether the step is one of those that share the fairness, for this choice of its keys."""
    return any(
        member.name == step.action and tuple(step.arguments[key.name] for key in keys) == chosen
        for member, keys in assumption.members
    )


def _payable(
    interpreter: Interpreter, assumption: Assumption, chosen: tuple[Value, ...], state: State
) -> set[str]:
    """The steps that share the fairness, are enabled and would change something."""
    return {
        called(action, names)
        for action, keys in assumption.members
        for names in interpreter.instances(action.params)
        if tuple(names[key] for key in keys) == chosen
        and _is_enabled(interpreter, action, state, names)
        and _changes(interpreter, action, state, names)
    }


def _changes(interpreter: Interpreter, action: Action, state: State, names: Environment) -> bool:
    """Whether the enabled step changes something; what leaves the bounds leads nowhere."""
    try:
        return interpreter.take(step_of(action, names), state) != state
    except DomainError:
        return False


def _is_enabled(interpreter: Interpreter, action: Action, state: State, names: Environment) -> bool:
    return all(interpreter.evaluate(r.condition, state, None, names) for r in action.requirements)


def called(action: Action, names: Values) -> str:
    """`learn(node1)`: the action with the values of its parameters."""
    if not action.params:
        return action.name
    return f"{action.name}({', '.join(show(names[p]) for p in action.params)})"
