"""Whose numbers only a check bounds: where a system runs, or was recorded, they may be larger than declared."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.spec.definition import Definition
from stagewright.spec.nodes import Node, Select, children, variables_in
from stagewright.spec.sorts import IntSort

LARGEST = 2**53 - 1  # number of what is recorded: JSON has no larger ones that are exact


def open_ended(definition: Definition) -> frozenset[str]:
    """The variables whose numbers may be larger than declared: all that choose no entry of a map.

    A map has an entry for each number that its key is declared to be, and for no other.
    """
    keys = {name for node in _expressions(definition) for name in _choosing(node)}
    return frozenset(v.name for v in definition.variables) - keys


def _choosing(node: Node) -> Iterator[str]:
    """The variables of which a number in an expression is the key of a map."""
    if isinstance(node, Select) and isinstance(node.key.sort, IntSort):
        yield from variables_in(node.key)
    for child in children(node):
        yield from _choosing(child)


def _expressions(definition: Definition) -> Iterator[Node]:
    yield from definition.initially
    yield definition.final
    for action in definition.actions:
        yield from (r.condition for r in action.requirements)
        for assignment in action.assignments:
            yield assignment.place
            yield assignment.value
    for prop in definition.properties:
        yield prop.condition
        if prop.premise is not None:
            yield prop.premise
