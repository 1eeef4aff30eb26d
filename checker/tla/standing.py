"""What a step property says of a step that changes nothing.

TLA+ cannot tell such a step from standing still, so `[][P]_vars` lets it pass whatever P says.
"""

from __future__ import annotations

from dataclasses import replace

from stagewright.spec.nodes import (
    FALSE,
    TRUE,
    Apply,
    Column,
    Field,
    Node,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
)


def when_nothing_changes(node: Node) -> Node:
    """The condition where the new state is the old one; `TRUE` where it plainly holds."""
    match node:
        case Read():
            return replace(node, new=False)
        case Select(base, key):
            return replace(node, base=when_nothing_changes(base), key=when_nothing_changes(key))
        case Field(base):
            return replace(node, base=when_nothing_changes(base))
        case Column(_, index):
            return replace(node, index=when_nothing_changes(index))
        case Quantified(quantity, _, body):
            inner = when_nothing_changes(body)
            plain = inner == TRUE and quantity is Quantity.EVERY
            return TRUE if plain else replace(node, body=inner)
        case Apply(_, args):
            return _simpler(replace(node, args=tuple(map(when_nothing_changes, args))))
        case _:
            return node


def _simpler(node: Apply) -> Node:
    match node.op, node.args:
        case (Op.EQ | Op.LE, (left, right)) if left == right:
            return TRUE
        case (Op.LT, (left, right)) if left == right:
            return FALSE
        case (Op.NOT, (inner,)) if inner in (TRUE, FALSE):
            return FALSE if inner == TRUE else TRUE
        case (Op.NOT, (Apply(Op.NOT, (inner,)),)):
            return inner
        case (Op.AND, args):
            return _junction(node, args, neutral=TRUE, absorbing=FALSE)
        case (Op.OR, args):
            return _junction(node, args, neutral=FALSE, absorbing=TRUE)
        case _:
            return node


def _junction(node: Apply, args: tuple[Node, ...], neutral: Node, absorbing: Node) -> Node:
    parts = tuple(a for a in args if a != neutral)
    denied = {a.args[0] for a in parts if isinstance(a, Apply) and a.op is Op.NOT}
    if absorbing in parts or denied & {*parts}:
        return absorbing
    return replace(node, args=parts) if parts else neutral
