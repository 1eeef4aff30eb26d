"""What begins as a function of its key, as an action that assigns it: at the start, and when an entity comes.

A definition says it as a condition on the initial state, `every(self.x[k] == f(k) for k in …)`.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.runtime.columns import path_of
from stagewright.spec.definition import Action, Assignment, Definition
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Apply, Bound, Node, Op, Quantified, Quantity, Read, children
from stagewright.spec.sorts import EntitySort


def beginnings(definition: Definition) -> Mapping[type[Entity] | None, tuple[Action, ...]]:
    """Actions that assign what begins by key: of everything (None), and of one entity of each sort."""
    by_place = {_place(a): a for c in definition.initially if (a := _by_key(c)) is not None}
    assigned = tuple(by_place.values())
    found: dict[type[Entity] | None, tuple[Action, ...]] = {}
    if assigned:
        found[None] = (Action("begin", (), (), assigned),)
    for number, one in enumerate(assigned):
        for bound in one.binders:
            if isinstance(bound.sort, EntitySort):
                others = tuple(b for b in one.binders if b is not bound)
                begin = Action(
                    f"begin {number}", (bound,), (), (Assignment(one.place, one.value, others),)
                )
                found[bound.sort.kind] = (*found.get(bound.sort.kind, ()), begin)
    return found


def _place(assignment: Assignment) -> tuple[str, tuple[str, ...]]:
    path = path_of(assignment.place)
    assert path is not None
    return path[:2]


def _by_key(condition: Node) -> Assignment | None:
    """What a condition says of a place at each of its keys; None if it says something else."""
    bounds: list[Bound] = []
    while isinstance(condition, Quantified) and condition.quantity is Quantity.EVERY:
        bounds.append(condition.bound)
        condition = condition.body
    match condition:
        case Apply(Op.EQ, (place, value)):
            path = path_of(place)
        case _:
            return None
    keys = path[2] if path is not None else ()
    if len(keys) != len(bounds) or {*keys} != {*bounds} or not bounds or _reads(value):
        return None
    return Assignment(place, value, tuple(bounds))


def _reads(node: Node) -> bool:
    return isinstance(node, Read) or any(map(_reads, children(node)))
