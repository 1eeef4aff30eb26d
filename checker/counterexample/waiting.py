"""Why a run need not bring what is promised: where it may stop, nothing that is enabled has to happen."""

from __future__ import annotations

from stagewright.checker.counterexample.because import LISTED, Reason
from stagewright.spec.definition import Action, Fairness
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import State, show
from stagewright.spec.verdict import Run
from stagewright.spec.words import Values


def headline(run: Run) -> str:
    """How the run goes on for ever."""
    if run.loop is None:
        return f"the run may stop in state {len(run.steps)}"
    first, last = run.loop + 1, len(run.steps) + 1
    if first == last:
        return f"step {last} may happen again and again for ever"
    return f"steps {first} to {last} may happen again and again for ever"


def may_wait(interpreter: Interpreter, run: Run) -> tuple[Reason, ...]:
    """What is enabled where the run stops, and why none of it has to happen."""
    if run.loop is not None:
        fair = any(a.fairness is not Fairness.NONE for a in interpreter.definition.actions)
        return () if fair else (Reason("no action is declared fair: none of them has to happen"),)
    state, last = run.states[-1], len(run.steps)
    enabled = tuple(
        reason
        for action in interpreter.definition.actions
        for reason in _enabled(interpreter, action, state)
    )
    if not enabled:
        return (Reason(f"no action is enabled in state {last}"),)
    return (Reason(f"nothing that is enabled in state {last} has to happen:", enabled),)


def _enabled(interpreter: Interpreter, action: Action, state: State) -> tuple[Reason, ...]:
    """The ways in which the action can happen, if it can; together, as none of them has to."""
    ways = [
        called(action, names)
        for names in interpreter.instances(action.params)
        if all(interpreter.evaluate(r.condition, state, None, names) for r in action.requirements)
    ]
    if not ways:
        return ()
    more = len(ways) - LISTED
    listed = ", ".join(ways[:LISTED]) + (f" and {more} more choices" if more > 0 else "")
    if action.budget is not None:
        return (Reason(f"{listed}: spends the budget {action.budget}"),)
    if action.fairness is Fairness.NONE:
        return (Reason(f"{listed}: not fair"),)
    return (Reason(f"{listed}: would change nothing"),)


def called(action: Action, names: Values) -> str:
    """`learn(node1)`: the action with the values of its parameters."""
    if not action.params:
        return action.name
    return f"{action.name}({', '.join(show(names[p]) for p in action.params)})"
