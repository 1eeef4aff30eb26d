"""Properties that nothing can break, as their variables' own bounds say so: `self.acked >= 0` of a number from 0 on.

It is told from the bounds of numbers alone. What a profile's own values decide is not meant: the same property may say
something under another profile.
"""

from __future__ import annotations

from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.nodes import Apply, Node, Op, Quantified, Quantity
from stagewright.spec.sorts import IntSort

_KINDS = {PropertyKind.INVARIANT, PropertyKind.STEP}


def tautologies_in(definition: Definition) -> tuple[Property, ...]:
    """The invariants and step properties that hold whatever the variables are, within their bounds."""
    return tuple(
        p for p in definition.properties if p.kind in _KINDS and _decided(p.condition) is True
    )


def _decided(node: Node) -> bool | None:
    """What a condition is for all values of its variables; None if it depends on them, or is not known."""
    match node:
        case Apply(Op.NOT, (inner,)):
            known = _decided(inner)
            return None if known is None else not known
        case Apply(Op.AND | Op.OR as op, args):
            each = [_decided(arg) for arg in args]
            decisive = op is Op.OR
            if decisive in each:
                return decisive
            return None if None in each or not each else not decisive
        case Apply(Op.LE | Op.LT | Op.EQ as op, (left, right)):
            return _compared(op, left, right)
        case Quantified(Quantity.EVERY, _, body):
            return _decided(body) or None  # of no members it is true in any case
        case Quantified(Quantity.SOME, _, body):
            return None if _decided(body) is not False else False
        case _:
            return None


def _compared(op: Op, left: Node, right: Node) -> bool | None:
    a, b = left.sort, right.sort
    if not (isinstance(a, IntSort) and isinstance(b, IntSort)):
        return None
    if op is Op.EQ:
        return False if a.high < b.low or b.high < a.low else None
    strict = op is Op.LT
    if a.high < b.low or (not strict and a.high == b.low):
        return True
    return False if a.low > b.high or (strict and a.low == b.high) else None
