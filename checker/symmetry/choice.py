"""Whether a check may search orbits instead of states, and what it says of that."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.orbits import states_in
from stagewright.checker.symmetry.permutations.detection import SortVerdict, detect
from stagewright.checker.symmetry.permutations.goals import decided_on_orbits
from stagewright.checker.symmetry.reduced import Reduced
from stagewright.spec.grounding.ground import GroundModel

_MOST_COUNTED = 3_000_000  # orbits whose sizes are summed up: beyond, it takes longer than is fair


@dataclass(frozen=True)
class Choice:
    """The symmetry to search with, if any, and why not more."""

    symmetry: Symmetry | None
    sorts: tuple[SortVerdict, ...] = ()
    reason: str = ""  # why no use is made of what there is


def choose(model: GroundModel) -> Choice:
    """The symmetry under which everything that the model promises may be decided on orbits."""
    if model.leads_to:
        name = model.leads_to[0].property.name
        return Choice(None, reason=f"`{name}` follows single members through time")
    detected = detect(model)
    symmetry = detected.symmetry
    if not symmetry.groups:
        return Choice(None, detected.sorts, "no sort is symmetric")
    for witness in (*model.witnesses, *model.step_witnesses):
        if any(type(value) in {g.kind for g in symmetry.groups} for _, value in witness.arguments):
            reason = f"`{witness.property.name}` looks for a witness of each member"
            return Choice(None, detected.sorts, reason)
    for goal in model.reachable:
        if not decided_on_orbits(model, symmetry, goal):
            reason = f"goal `{goal.label}` tells members apart"
            return Choice(None, detected.sorts, reason)
    return Choice(symmetry, detected.sorts)


def states_stood_for(found: Exploration) -> int | None:
    """How many states the orbits found have together; None if it was not counted."""
    engine = found.engine
    assert isinstance(engine, Reduced)
    if not found.exhausted or not found.kept or found.states > _MOST_COUNTED:
        return None
    words, constraint = found.words, engine.model.constraint
    if constraint is not None:
        (within,) = engine.state_conditions([constraint])(words)
        words = words[:, within]
    return states_in(engine.canonical, words)
