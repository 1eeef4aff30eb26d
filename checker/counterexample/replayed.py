"""Whether a run from a file is a run of the definition; a wrong one gets no explanation."""

from __future__ import annotations

from stagewright.checker.counterexample.story import changes
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, RefusedError
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import Scope
from stagewright.spec.values import State
from stagewright.spec.verdict import Run, Step


def check_run(definition: Definition, scope: Scope, run: Run) -> None:
    """Take every step of the run again.

    The first state need not be initial: a counterexample to induction starts anywhere.

    Raises:
        InputError: a step is refused, or leads elsewhere than the run says; the text names both.
    """
    interpreter = Interpreter(definition, scope)
    expected = {variable.name for variable in interpreter.definition.variables}
    if (found := set(run.states[0])) != expected:
        odd = sorted(found ^ expected)
        raise InputError(
            f"the run and {definition.name} at {scope} do not agree on: {', '.join(odd)}",
            help="it belongs to another machine, profile or scope",
        )
    for index, step in enumerate(run.steps):
        _check_step(interpreter, step, run.states[index], run.states[index + 1], index + 1)
    if run.loop is not None and run.loop_step is not None:
        back = run.states[run.loop]
        _check_step(interpreter, run.loop_step, run.states[-1], back, len(run.states))


def _check_step(interpreter: Interpreter, step: Step, old: State, new: State, number: int) -> None:
    try:
        reached = interpreter.take(step, old)
    except RefusedError as error:
        raise InputError(
            f"step {number} is no step of {interpreter.definition.name}: {error.problem}",
            help="the run belongs to another profile, or the definition has changed since",
        ) from None
    if reached != new:
        text = ", ".join(map(str, changes(new, reached)))
        raise InputError(
            f"step {number}, {step.label}, does not lead to state {number} "
            f"(there and here: {text})",
            help="the run belongs to another profile, or the definition has changed since",
        )
