"""Which values an expression can have while one cell has a known value.

An over-approximation: it never leaves out a value that the expression can have. The runtime takes the
sources and targets of its transitions from it; what decides in the end is always the expression itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from stagewright.spec.ground import GroundNode, GroundOp

LARGEST_SET = 64

Values = frozenset[int] | None  # None: any value of the node's range

_BOTH = frozenset((0, 1))
_NO = frozenset((0,))
_YES = frozenset((1,))


class Possible:
    """Possible values of the nodes of one model, given the value of one cell."""

    def __init__(self, nodes: Sequence[GroundNode], cell: int) -> None:
        self._cell = cell
        self._depends: list[bool] = []
        for node in nodes:  # children come before parents
            here = node.op is GroundOp.CELL and node.value == cell
            self._depends.append(here or any(self._depends[a.id] for a in node.args))
        self._known: dict[tuple[int, int | None], Values] = {}

    def can_hold(self, condition: GroundNode, value: int) -> bool:
        """Whether a condition can be true where the cell is `value`."""
        values = self.values(condition, value)
        return values is None or 1 in values

    def values(self, node: GroundNode, value: int) -> Values:
        """The values that `node` can have where the cell is `value`."""
        key = (node.id, value if self._depends[node.id] else None)
        if key not in self._known:
            self._known[key] = self._compute(node, value)
        return self._known[key]

    def _compute(self, node: GroundNode, value: int) -> Values:
        if node.op is GroundOp.CONST:
            return frozenset((node.value,))
        if node.op is GroundOp.CELL:
            if node.value == self._cell:
                return frozenset((value,))
            small = node.high - node.low < LARGEST_SET
            return frozenset(range(node.low, node.high + 1)) if small else None
        args = [self.values(a, value) for a in node.args]
        match node.op:
            case GroundOp.AND:
                return _junction(args, neutral=_YES, absorbing=_NO)
            case GroundOp.OR:
                return _junction(args, neutral=_NO, absorbing=_YES)
            case GroundOp.IF:
                return _choice(*args)
            case GroundOp.TABLE:
                return frozenset(
                    node.table if args[0] is None else map(node.table.__getitem__, args[0])
                )
            case _:
                return _combine(node.op, args)


def _junction(args: list[Values], *, neutral: Values, absorbing: Values) -> Values:
    if absorbing in args:
        return absorbing
    return neutral if all(a == neutral for a in args) else _BOTH


def _choice(condition: Values, then: Values, otherwise: Values) -> Values:
    if condition == _YES:
        return then
    if condition == _NO:
        return otherwise
    return None if then is None or otherwise is None else then | otherwise


def _combine(op: GroundOp, args: list[Values]) -> Values:
    compares = op in (GroundOp.NOT, GroundOp.EQ, GroundOp.LT, GroundOp.LE)
    sets = [a for a in args if a is not None]
    if len(sets) < len(args):
        return _BOTH if compares else None
    values = frozenset(_operate(op, *chosen) for chosen in product(*sets))
    return values if len(values) <= LARGEST_SET else None


def _operate(op: GroundOp, left: int, right: int = 0) -> int:
    match op:
        case GroundOp.NOT:
            return 1 - left
        case GroundOp.EQ:
            return int(left == right)
        case GroundOp.LT:
            return int(left < right)
        case GroundOp.LE:
            return int(left <= right)
        case GroundOp.ADD:
            return left + right
        case GroundOp.SUB:
            return left - right
        case _:
            raise AssertionError(f"{op} does not occur in the old state")
