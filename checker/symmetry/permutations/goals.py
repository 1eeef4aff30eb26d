"""Which reachable goals are decided on orbits as well as on states: those that no permutation changes.

A state and its canonical form can take the same steps, up to a permutation, into states of the same
orbits: the reduced graph is bisimilar to the full one. So "from every reachable state the goal can be
reached" holds on both or on neither, if the goal itself holds for all states of an orbit or for none;
the nearest state from which it cannot be reached is as near. Source: Emerson and Sistla, "Symmetry and
model checking", 1996. A promise under fairness is no such matter: it follows single members through time.
"""

from __future__ import annotations

from stagewright.checker.symmetry.groups import Symmetry
from stagewright.checker.symmetry.permutations.closure import unchanged
from stagewright.checker.symmetry.permutations.findings import findings_in
from stagewright.spec.grounding.ground import GroundModel, GroundProperty


def decided_on_orbits(model: GroundModel, symmetry: Symmetry, goal: GroundProperty) -> bool:
    """Whether one instance of a goal may be decided on the reduced graph; False also if that is not known."""
    return _names_nobody(symmetry, goal) or unchanged(model, symmetry, goal.condition)


def _names_nobody(symmetry: Symmetry, goal: GroundProperty) -> bool:
    """Whether the goal's tree treats all members alike: it has none as an argument, and names none."""
    kinds = [group.kind for group in symmetry.groups]
    if any(type(value) in kinds for _, value in goal.arguments):
        return False
    return not any(
        finding
        for group in symmetry.groups
        for finding in findings_in(goal.property.condition, group.kind, group.size, "a goal")
    )
