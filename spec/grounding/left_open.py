"""Which parameters of an action its steps leave open, for whoever follows what has happened."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stagewright.spec.definition import Action
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.families import WIDE
from stagewright.spec.nodes import Bound, Node, Quantified, children
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EntitySort, IntSort

HEAVY = 5_000  # terms of all steps of one action: a tenth of a second


def left_open(action: Action, scope: Scope) -> tuple[Bound, ...]:
    """The parameters of which a step of each value would be too many, or too much to look at.

    Numbers, if there are very many; members of entities, if each step says something of all of them, so that the
    steps together grow with the square or the cube of how many there are.
    """
    numbers = combinations(action.params, scope) >= WIDE
    members = terms(action, scope) >= HEAVY
    return tuple(
        p
        for p in action.params
        if (numbers and isinstance(p.sort, IntSort)) or (members and isinstance(p.sort, EntitySort))
    )


def combinations(bounds: Sequence[Bound], scope: Scope) -> int:
    """How many ways there are to choose a value for each."""
    return math.prod(len(values_of(b.sort, scope)) for b in bounds)


def terms(action: Action, scope: Scope) -> int:
    """How many terms the steps of an action have together when nothing is left open."""
    known: dict[int, int] = {}
    one = sum(_terms(r.condition, scope, known) for r in action.requirements)
    one += sum(
        combinations(a.binders, scope) * _terms(a.value, scope, known) for a in action.assignments
    )
    return combinations(action.params, scope) * one


def _terms(node: Node, scope: Scope, known: dict[int, int]) -> int:
    if id(node) not in known:
        inner = sum(_terms(child, scope, known) for child in children(node))
        times = combinations((node.bound,), scope) if isinstance(node, Quantified) else 1
        known[id(node)] = 1 + times * inner
    return known[id(node)]
