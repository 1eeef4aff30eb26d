"""Finds the initial states before a search begins, and says so while it takes long."""

from __future__ import annotations

from stagewright.checker.limits import OnProgress, Progress, Stop
from stagewright.checker.verdicts import IN_BOUNDS, METHOD
from stagewright.spec.definition import NO_DEADLOCK, Definition
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.initial import Satisfying
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report


def find_initial_states(model: GroundModel, stop: Stop, progress: OnProgress | None) -> str:
    """Find them, where conditions leave some of the candidates out; returns why it was stopped, if it was.

    Raises:
        ScopeError: there is none, or there are too many.
    """
    if not isinstance(model.initial, Satisfying):
        return ""

    def going(candidates: int, found: int) -> bool:
        if progress is not None:
            progress(Progress(found, 0, found, 0, stop.seconds, candidates=candidates))
        return not stop.reason(found)

    return "" if model.initial.find(going) else stop.reason(len(model.initial))


def nothing_searched(
    definition: Definition, scope: Scope, stop: Stop, why: str, *, deadlock: bool
) -> Report:
    """The report of a check that was stopped while the initial states were searched for."""
    names = [p.name for p in definition.properties]
    names += [NO_DEADLOCK, IN_BOUNDS] if deadlock else [IN_BOUNDS]
    note = "nothing was searched (not exhausted)"
    return Report(
        definition=definition,
        scope=str(scope),
        method=METHOD,
        verdicts=tuple(PropertyVerdict(n, Outcome.UNDECIDED, METHOD, note) for n in names),
        exhausted=False,
        seconds=stop.seconds,
        note=f"not all initial states were found: {why}",
        interrupted=stop.interrupted,
    )
