"""What a search exercised: how often each action happened, and each requirement refused one."""

from __future__ import annotations

from itertools import product

from stagewright.checker.explicit.engine import requirement_keys
from stagewright.checker.explicit.exploration import Exploration
from stagewright.spec.definition import Action, Definition
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.nodes import variables_in
from stagewright.spec.values import FrozenMap, Value
from stagewright.spec.verdict import Coverage


def coverage_of(definition: Definition, found: Exploration) -> Coverage:
    """Counts over the expanded states, for the actions that are not switched off at this scope.

    A requirement counts once for each state and each choice of parameters in which it is false.
    """
    model = found.engine.model
    actions = model.definition.actions
    fired = {action.name: 0 for action in actions}
    for step, count in zip(model.steps, found.fired.tolist(), strict=True):
        fired[step.action.name] += count
    # What the scope adds ("crashes left") is no requirement that somebody wrote.
    written = {(a.name, r.name) for a in definition.actions for r in a.requirements}
    false = {(a.name, r.name): 0 for a in actions for r in a.requirements}
    counts = zip(requirement_keys(model), found.false_counts.tolist(), strict=True)
    for key, count in (*counts, *_never_enabled(model, found.expanded)):
        false[key] += count
    return Coverage(
        FrozenMap(fired), FrozenMap({key: n for key, n in false.items() if key in written})
    )


def _never_enabled(model: GroundModel, states: int) -> list[tuple[tuple[str, str], int]]:
    """The counts of choices that are refused in every state, of which the model has no step.

    Of such a choice the requirements that speak of the parameters alone are told apart; where none
    of these is false, all of its requirements count.
    """
    known = {
        (step.action.name, tuple(value for _, value in step.arguments)) for step in model.steps
    }
    interpreter = Interpreter(model.definition, model.scope)
    counts: list[tuple[tuple[str, str], int]] = []
    for action in model.definition.actions:
        for chosen in product(*(values_of(p.sort, model.scope) for p in action.params)):
            if (action.name, chosen) not in known:
                refusing = _refusing(interpreter, action, chosen)
                counts += [((action.name, name), states) for name in refusing]
    return counts


def _refusing(interpreter: Interpreter, action: Action, chosen: tuple[Value, ...]) -> list[str]:
    environment = dict(zip(action.params, chosen, strict=True))
    nothing: FrozenMap[str, Value] = FrozenMap({})
    static = [
        r.name
        for r in action.requirements
        if not variables_in(r.condition)
        and not interpreter.evaluate(r.condition, nothing, environment=environment)
    ]
    return static or [r.name for r in action.requirements]
