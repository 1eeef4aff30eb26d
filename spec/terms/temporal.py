"""What a liveness property says of a run: that one condition leads to another, or comes true at some time."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.nodes import BOOL, TRUE, Node, conjunction
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import Symbolic, lift


@dataclass(frozen=True)
class LeadsTo:
    """Whenever the premise holds, the conclusion holds then or later."""

    premise: Bool
    conclusion: Bool


def leads_to(premise: Bool, conclusion: Bool) -> LeadsTo:
    """What a @liveness method returns."""
    return LeadsTo(
        Bool(lift(premise, BOOL, "the premise of leads_to(...)")),
        Bool(lift(conclusion, BOOL, "the conclusion of leads_to(...)")),
    )


@dataclass(frozen=True)
class Eventually:
    """At some time the condition holds."""

    condition: Bool


def eventually(condition: Bool) -> Eventually:
    """What a @liveness method returns if the condition holds at some time in every run, at first or later.

    That it holds again and again is `leads_to(~condition, condition)`.
    """
    return Eventually(Bool(lift(condition, BOOL, "the condition of eventually(...)")))


def returned_node(result: object) -> Node:
    """What a property's body returned, as one node; true if it is no condition at all."""
    match result:
        case LeadsTo(premise, conclusion):
            return conjunction([premise.node, conclusion.node])
        case Eventually(condition):
            return condition.node
        case Symbolic():
            return result.node
        case _:
            return TRUE
