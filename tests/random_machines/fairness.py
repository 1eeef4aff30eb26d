"""Random fairness: of an action alone, or of several together, of each member of a sort or of all actions."""

from __future__ import annotations

from dataclasses import replace

from tests.random_machines.choices import Choices
from tests.random_machines.sorts import FINITE

from stagewright.spec.definition import Action, Fair, Fairness
from stagewright.spec.nodes import Bound
from stagewright.spec.sorts import EntitySort, EnumSort

MOST_STRONG = 2  # the tests' own interpreter tries all subsets of what is strongly fair


def with_fairness(choices: Choices, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """The actions with what is assumed of them; nothing of those that spend a budget."""
    strengths = (Fairness.WEAK, Fairness.STRONG)
    shared = [
        (f"f{i}", choices.pick(strengths), choices.pick((None, None, *FINITE)))
        for i in range(choices.pick((0, 1, 1, 2)))
    ]
    of_all = choices.chance(10)
    found: list[Action] = []
    for action in actions:
        fair: list[Fair] = []
        alone = choices.pick((Fairness.NONE, Fairness.WEAK, Fairness.STRONG))
        if alone is not Fairness.NONE and not (shared and choices.chance(50)):
            many = alone is Fairness.STRONG and len(action.params) > 1
            fair.append(Fair(Fairness.WEAK if many else alone, action.params))
        for name, strength, each in shared:
            keys = _keys(action, each)
            if keys is not None and choices.chance(50):
                fair.append(Fair(strength, keys, name))
        if of_all:
            fair.append(Fair(Fairness.WEAK, (), "all"))
        found.append(action if action.spends else replace(action, fair=tuple(fair)))
    return _few_strong(found)


def _keys(action: Action, each: EntitySort | EnumSort | None) -> tuple[Bound, ...] | None:
    """The parameters that are keys of a shared fairness; None if the action cannot share it."""
    if each is None:
        return ()
    return next(((p,) for p in action.params if p.sort == each), None)


def _few_strong(actions: list[Action]) -> tuple[Action, ...]:
    names = [
        fair.name or action.name
        for action in actions
        for fair in action.fair
        if fair.strength is Fairness.STRONG
    ]
    kept = list(dict.fromkeys(names))[:MOST_STRONG]

    def weaker(action: Action, fair: Fair) -> Fair:
        strong = (fair.name or action.name) in kept
        return fair if strong else replace(fair, strength=Fairness.WEAK)

    return tuple(replace(a, fair=tuple(weaker(a, f) for f in a.fair)) for a in actions)
