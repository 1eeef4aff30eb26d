"""Promises that hold only because nothing they speak of ever happens.

For a promise of the form "whenever P then Q" a further condition "never P" is searched along: if it is
never false, the promise was never put to the test.
"""

from __future__ import annotations

from dataclasses import replace

from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.nodes import BOOL, Apply, Node, Op, Quantified, Quantity
from stagewright.spec.words import implication

_PREFIX = "premise of "  # no name of a promise has a blank in it


def with_premises(definition: Definition) -> Definition:
    """The definition with a condition "never P" after all its promises, for each that has a P."""
    return replace(
        definition,
        properties=(
            *definition.properties,
            *(p for prop in definition.properties if (p := _premise_of(prop)) is not None),
        ),
    )


def premise_name(name: str) -> str:
    """The name of the added condition that belongs to a promise."""
    return _PREFIX + name


def is_premise(prop: Property) -> bool:
    """Whether a property was added by `with_premises`."""
    return prop.name.startswith(_PREFIX)


def _premise_of(prop: Property) -> Property | None:
    kind, never = prop.kind, _never(prop.condition)
    if prop.premise is not None:
        kind, never = PropertyKind.INVARIANT, Apply(Op.NOT, (prop.premise,), BOOL)
    if never is None or kind is PropertyKind.REACHABLE:
        return None
    return Property(premise_name(prop.name), kind, prop.params, never)


def _never(node: Node) -> Node | None:
    """The condition that no premise in `node` holds; None if it is not made of implications."""
    if isinstance(node, Quantified) and node.quantity is Quantity.EVERY:
        inner = _never(node.body)
        return None if inner is None else replace(node, body=inner)
    if isinstance(node, Apply) and node.op is Op.AND:
        parts = [_never(arg) for arg in node.args]
        known = tuple(part for part in parts if part is not None)
        return replace(node, args=known) if len(known) == len(parts) else None
    if (found := implication(node)) is None:
        return None
    premise, conclusion = found
    never = Apply(Op.NOT, (premise,), BOOL)
    deeper = _never(conclusion)
    return never if deeper is None else Apply(Op.OR, (never, deeper), BOOL)
