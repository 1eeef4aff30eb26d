"""Evaluate ground nodes on integer states, and look into them: for replaying runs and for small checks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping

from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp, GroundStep

Ints = tuple[int, ...]

_TWO: Mapping[GroundOp, Callable[[int, int], int]] = {
    GroundOp.EQ: operator.eq,
    GroundOp.LT: operator.lt,
    GroundOp.LE: operator.le,
    GroundOp.ADD: operator.add,
    GroundOp.SUB: operator.sub,
    GroundOp.MUL: operator.mul,
    GroundOp.DIV: lambda a, b: a // b,
    GroundOp.MOD: operator.mod,
    GroundOp.MIN: min,
    GroundOp.MAX: max,
}


def evaluate(node: GroundNode, state: Ints, new: Ints | None = None) -> int:
    """The integer value of a node; booleans are 0 and 1."""
    args = node.args
    match node.op:
        case GroundOp.CONST:
            return node.value
        case GroundOp.CELL:
            return state[node.value]
        case GroundOp.NEXT:
            assert new is not None, "the new state is read outside of a step property"
            return new[node.value]
        case GroundOp.NOT:
            return 1 - evaluate(args[0], state, new)
        case GroundOp.AND:
            return int(all(evaluate(a, state, new) for a in args))
        case GroundOp.OR:
            return int(any(evaluate(a, state, new) for a in args))
        case GroundOp.IF:
            return evaluate(args[1] if evaluate(args[0], state, new) else args[2], state, new)
        case GroundOp.TABLE:
            return node.table[evaluate(args[0], state, new)]
        case _:
            return int(_TWO[node.op](evaluate(args[0], state, new), evaluate(args[1], state, new)))


def enabled(step: GroundStep, state: Ints) -> bool:
    return bool(evaluate(step.guard, state))


def take(step: GroundStep, state: Ints) -> Ints:
    """The state after a step, whose guard must hold."""
    after = list(state)
    for index, value in step.updates.items():
        after[index] = evaluate(value, state)
    return tuple(after)


def successors(model: GroundModel, state: Ints) -> list[tuple[GroundStep, Ints]]:
    """Every enabled ground step with the state it leads to."""
    return [(s, take(s, state)) for s in model.steps if enabled(s, state)]


def conjuncts(node: GroundNode) -> Iterator[GroundNode]:
    """The parts of a conjunction."""
    if node.op is not GroundOp.AND:
        yield node
        return
    for part in node.args:
        yield from conjuncts(part)


def cells_of(*nodes: GroundNode) -> frozenset[int]:
    """The cells that expressions read."""
    return frozenset(n.value for n in _all(nodes) if n.op is GroundOp.CELL)


def _all(nodes: Iterable[GroundNode]) -> Iterator[GroundNode]:
    seen: set[int] = set()
    todo = list(nodes)
    while todo:
        one = todo.pop()
        if one.id not in seen:
            seen.add(one.id)
            yield one
            todo += one.args
