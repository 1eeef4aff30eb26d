"""Promises that hold only because nothing they speak of ever happens.

For a promise of the form "whenever P then Q" the condition "never P" is watched along: if it is never false,
the promise was never put to the test.
"""

from __future__ import annotations

from dataclasses import replace

from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.nodes import BOOL, Apply, Node, Op, Quantified, Quantity
from stagewright.spec.text.words import implication


def premises_of(definition: Definition) -> tuple[Property, ...]:
    """A condition "never P", of the same name, for each promise that has a P."""
    found = map(_premise_of, definition.properties)
    return tuple(premise for premise in found if premise is not None)


def _premise_of(prop: Property) -> Property | None:
    never: Node | None = None
    match prop.kind:
        case PropertyKind.INVARIANT | PropertyKind.STEP:
            never = _never(prop.condition)
        case PropertyKind.ACCEPTS:
            never = Apply(Op.NOT, (prop.condition,), BOOL)
        case PropertyKind.LEADS_TO:
            assert prop.premise is not None
            never = Apply(Op.NOT, (prop.premise,), BOOL)
        case _:  # a goal, what happens in the end, a witness: they have no premise
            pass
    if never is None:
        return None
    kind = prop.kind if prop.kind is PropertyKind.STEP else PropertyKind.INVARIANT
    return Property(prop.name, kind, prop.params, never)


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
    deeper = None if _either_differs(conclusion) else _never(conclusion)
    return never if deeper is None else Apply(Op.OR, (never, deeper), BOOL)


def _either_differs(node: Node) -> bool:
    """Whether it is `a != b | c != d`, which has the form of an implication and is meant as none."""
    return isinstance(node, Apply) and node.op is Op.OR and all(map(_differs, node.args))


def _differs(node: Node) -> bool:
    if not isinstance(node, Apply) or node.op is not Op.NOT:
        return False
    (inner,) = node.args
    return isinstance(inner, Apply) and inner.op is Op.EQ
