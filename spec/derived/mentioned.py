"""The entity sorts that a definition speaks of anywhere: a scope must give each of them a size."""

from __future__ import annotations

from collections.abc import Iterable

from stagewright.spec.definition import Action, Property, Variable
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Bound, Node, Quantified, children
from stagewright.spec.sorts import entities_of


def entities_in(
    variables: Iterable[Variable],
    actions: Iterable[Action],
    properties: Iterable[Property],
    conditions: Iterable[Node],
) -> tuple[type[Entity], ...]:
    """Every entity sort, in the order of its first mention; `conditions` are those of first and final states."""
    found: dict[type[Entity], None] = {}
    for variable in variables:
        found.update(dict.fromkeys(entities_of(variable.sort)))
    for action in actions:
        found.update(_of_bounds(action.params))
    for action in actions:
        for assignment in action.assignments:
            found.update(_of_bounds(assignment.binders))
            found.update(_of_nodes([assignment.place, assignment.value]))
        found.update(_of_nodes([r.condition for r in action.requirements]))
        for call in action.joined:
            found.update(_of_bounds(bound for bound, _ in call.loops))
            found.update(_of_nodes([argument for _, argument in call.arguments]))
    for prop in properties:
        found.update(_of_bounds(prop.params))
        found.update(_of_nodes([n for n in (prop.premise, prop.condition) if n is not None]))
    found.update(_of_nodes(list(conditions)))
    return tuple(found)


def _of_bounds(bounds: Iterable[Bound]) -> dict[type[Entity], None]:
    return dict.fromkeys(kind for bound in bounds for kind in entities_of(bound.sort))


def _of_nodes(nodes: list[Node]) -> dict[type[Entity], None]:
    """Those that expressions mention, from the left to the right, what is outside before what is inside."""
    found: dict[type[Entity], None] = {}
    left = nodes[::-1]
    while left:
        node = left.pop()
        found.update(dict.fromkeys(entities_of(node.sort)))
        if isinstance(node, Quantified):
            found.update(dict.fromkeys(entities_of(node.bound.sort)))
        left += children(node)[::-1]
    return found
