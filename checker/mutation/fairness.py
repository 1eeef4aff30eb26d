"""What is assumed of the actions beyond need: fairness that could be weaker, and every promise still hold.

Each assumption is made weaker by itself, on the runs that are known: nothing is searched anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stagewright.checker.fair_runs import FairRuns
from stagewright.checker.limits import Stop
from stagewright.checker.liveness import fair_steps
from stagewright.checker.mutation.original import Original
from stagewright.spec.declarations.fairness import Assumption, assumptions
from stagewright.spec.definition import Action, Fair, Fairness
from stagewright.spec.source import Source

NOT_NEEDED = "no property needs it"
SOME_WOULD_DO = "some choice of its parameters would do"
WEAK_WOULD_DO = "weak fairness would do"

Changed = Callable[[Fair], Fair | None]


@dataclass(frozen=True)
class Excess:
    """An assumption that could be weaker: how, and where it is written."""

    name: str  # of the action, or of the fairness that several share
    text: str
    where: Source | None


@dataclass(frozen=True)
class Assumed:
    """How many assumptions there are, those that could be weaker, and why not all were looked at."""

    number: int
    excess: tuple[Excess, ...]
    undecided: str = ""


def assumed(originals: Sequence[Original], stop: Stop) -> Assumed:
    """The assumptions that could be weaker at all of the scopes, each by itself."""
    definition = originals[0].definition
    listed = assumptions(definition.actions)
    runs = [_Promises(original) for original in originals]
    excess: list[Excess] = []
    for assumption in listed:
        for text, changed in _weaker(assumption):
            if reason := stop.reason():
                return Assumed(len(listed), tuple(excess), reason)
            if not any(one.break_under(assumption, changed) for one in runs):
                excess.append(Excess(assumption.name, text, assumption.members[0][0].where))
                break
    return Assumed(len(listed), tuple(excess))


def _weaker(assumption: Assumption) -> Iterator[tuple[str, Changed]]:
    """How one assumption can be weaker, the weakest first."""
    yield NOT_NEEDED, lambda _: None
    if assumption.keys:
        yield SOME_WOULD_DO, lambda fair: replace(fair, keys=(), name=assumption.name)
    if assumption.strength is Fairness.STRONG:
        yield WEAK_WOULD_DO, lambda fair: replace(fair, strength=Fairness.WEAK)


class _Promises:
    """The promises of fair runs that a definition keeps at one scope."""

    def __init__(self, original: Original) -> None:
        self._runs = FairRuns(original.found)
        self._model = original.found.engine.model
        self._sides = [
            self._runs.sides(promise)
            for promise in self._model.leads_to
            if promise.property.name not in original.broken
        ]

    def break_under(self, assumption: Assumption, changed: Changed) -> bool:
        """Whether some promise breaks if less is assumed."""
        weaker = {
            action.name: _with(action, assumption, changed)
            for action in self._model.definition.actions
        }
        steps = [replace(step, action=weaker[step.action.name]) for step in self._model.steps]
        fair = fair_steps(steps)
        return any(self._runs.lasso(sides, fair) is not None for sides in self._sides)


def _with(action: Action, assumption: Assumption, changed: Changed) -> Action:
    name = assumption.name if assumption.shared else ""
    mine = [
        fair
        for fair in action.fair
        if fair.name == name and (assumption.shared or action.name == assumption.name)
    ]
    fair = (changed(one) if one in mine else one for one in action.fair)
    return replace(action, fair=tuple(one for one in fair if one is not None))
