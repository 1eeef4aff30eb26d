"""Whose numbers only a check bounds: where a system runs, or was recorded, they may be larger than declared."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.spec.definition import Definition
from stagewright.spec.nodes import Apply, Node, Op, Select, children, variables_in
from stagewright.spec.sorts import IntSort

LARGEST = 2**53 - 1  # number of what is recorded: JSON has no larger ones that are exact


def open_ended(definition: Definition) -> frozenset[str]:
    """The variables whose numbers may be larger than declared: all that choose no entry of a map and are not multiplied.

    A map has an entry for each number that its key is declared to be, and for no other; a product of numbers
    without bounds does not fit in 64 bits.
    """
    exact = {name for node in _expressions(definition) for name in _exact_in(node)}
    return frozenset(v.name for v in definition.variables) - exact


def _exact_in(node: Node) -> Iterator[str]:
    """The variables of which a number in an expression is the key of a map, or a factor."""
    if isinstance(node, Select) and isinstance(node.key.sort, IntSort):
        yield from variables_in(node.key)
    if isinstance(node, Apply) and node.op is Op.MUL:
        yield from variables_in(node)
    for child in children(node):
        yield from _exact_in(child)


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
