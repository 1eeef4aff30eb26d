"""Decision diagrams of ground expressions: two expressions are equal in all states iff their diagrams are one.

A diagram asks for cells in a fixed order and has a branch for every value; equal diagrams are one
object, known by its number. How large a diagram is depends on the order. An expression may be looked at through a permutation: its diagram is
then that of the expression on renamed states.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from stagewright.checker.symmetry.groups import Permutation, Symmetry
from stagewright.spec.grounding.ground import Cell, GroundNode, GroundOp

_BINARY: dict[GroundOp, Callable[[int, int], int]] = {
    GroundOp.AND: operator.and_,
    GroundOp.OR: operator.or_,
    GroundOp.EQ: lambda a, b: int(a == b),
    GroundOp.LT: lambda a, b: int(a < b),
    GroundOp.LE: lambda a, b: int(a <= b),
    GroundOp.ADD: operator.add,
    GroundOp.SUB: operator.sub,
    GroundOp.MUL: operator.mul,
    GroundOp.DIV: operator.floordiv,
    GroundOp.MOD: operator.mod,
    GroundOp.MIN: min,
    GroundOp.MAX: max,
}
_ABSORBING = {GroundOp.AND: 0, GroundOp.OR: 1}
_LEAF = 1 << 60  # as a variable: below all cells
_BRANCHES_A_SPEND = 4_096


class TooLargeError(Exception):
    """The work allowed for building diagrams is spent; what was asked is not decided."""


class Diagrams:
    """Diagrams over the cells of a model, built within a budget of branches."""

    def __init__(self, cells: Sequence[Cell], order: Sequence[int] = ()) -> None:
        """`order`: the cells to be asked for first; cells that are compared should be neighbours."""
        self.left = 0  # branches that may still be made
        first = dict.fromkeys(order)
        asked = [*first, *(c for c in range(len(cells)) if c not in first)]
        self._rank = {cell: rank for rank, cell in enumerate(asked)}
        self._sizes = [cells[cell].size for cell in asked]
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self._variable: list[int] = []  # by number; a leaf has none
        self._branches: list[tuple[int, ...]] = []  # by number; a leaf has its value
        self._applied: dict[tuple[GroundOp, int, int], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}

    def constant(self, value: int) -> int:
        """The diagram of a constant."""
        return self._node(_LEAF, (value,))

    def choice(self, cell: int, values: Sequence[int], *, new: bool = False) -> int:
        """The diagram that is `values[code]` where the cell has that code."""
        return self._node(2 * self._rank[cell] + new, tuple(self.constant(v) for v in values))

    def mapped(self, diagram: int, function: Callable[[int], int]) -> int:
        """The diagram with a function applied to its values."""
        done: dict[int, int] = {}

        def at(number: int) -> int:
            if number not in done:
                variable, branches = self._variable[number], self._branches[number]
                done[number] = (
                    self.constant(function(branches[0]))
                    if variable == _LEAF
                    else self._node(variable, tuple(at(b) for b in branches))
                )
            return done[number]

        return at(diagram)

    def apply(self, op: GroundOp, a: int, b: int) -> int:
        """The diagram of `a op b`."""
        if (known := self._applied.get((op, a, b))) is not None:
            return known
        variable = min(self._variable[a], self._variable[b])
        if op in _ABSORBING:
            for one, other in ((a, b), (b, a)):
                if self._variable[one] == _LEAF:
                    return one if self._branches[one][0] == _ABSORBING[op] else other
            if a == b:
                return a
        if variable == _LEAF:
            result = self.constant(_BINARY[op](self._branches[a][0], self._branches[b][0]))
        else:
            width = self._width(variable)
            pairs = zip(self._at(a, variable, width), self._at(b, variable, width), strict=True)
            result = self._node(variable, tuple(self.apply(op, x, y) for x, y in pairs))
        self._applied[op, a, b] = result
        return result

    def choose(self, condition: int, then: int, otherwise: int) -> int:
        """The diagram of an if-expression."""
        if self._variable[condition] == _LEAF:
            return then if self._branches[condition][0] else otherwise
        if then == otherwise:
            return then
        key = (condition, then, otherwise)
        if (known := self._chosen.get(key)) is not None:
            return known
        variable = min(self._variable[d] for d in key)
        width = self._width(variable)
        triples = zip(*(self._at(d, variable, width) for d in key), strict=True)
        result = self._node(variable, tuple(self.choose(c, t, o) for c, t, o in triples))
        self._chosen[key] = result
        return result

    def _at(self, diagram: int, variable: int, width: int) -> tuple[int, ...]:
        if self._variable[diagram] == variable:
            return self._branches[diagram]
        return (diagram,) * width

    def _width(self, variable: int) -> int:
        size = self._sizes[variable // 2]
        self._spend(size)
        return size

    def _node(self, variable: int, branches: tuple[int, ...]) -> int:
        if variable != _LEAF and branches.count(branches[0]) == len(branches):
            return branches[0]
        key = (variable, branches)
        if (known := self._numbers.get(key)) is not None:
            return known
        self._spend(len(branches))
        self._variable.append(variable)
        self._branches.append(branches)
        self._numbers[key] = len(self._variable) - 1
        return len(self._variable) - 1

    def _spend(self, branches: int) -> None:
        self.left -= branches
        if self.left < 0 or branches > _BRANCHES_A_SPEND:
            raise TooLargeError


class View:
    """The diagrams of expressions as they read on states renamed by a permutation (or not renamed)."""

    def __init__(
        self,
        diagrams: Diagrams,
        cells: Sequence[Cell],
        symmetry: Symmetry,
        permutation: Permutation,
    ) -> None:
        """An expression e becomes the one whose value in the renamed state is that of e in the state."""
        self._diagrams, self._cells = diagrams, cells
        self._symmetry, self._permutation = symmetry, permutation
        self._destinations = symmetry.destinations(permutation)
        self._known: dict[int, int] = {}

    def of(self, node: GroundNode) -> int:
        """The diagram of an expression."""
        if (known := self._known.get(node.id)) is None:
            known = self._known[node.id] = self._made(node)
        return known

    def renamed(self, cell: int, diagram: int) -> int:
        """A diagram of a cell's new value, with that value renamed."""
        if self._symmetry.actions[cell].value is None:
            return diagram
        return self._diagrams.mapped(
            diagram, lambda code: self._symmetry.renamed(cell, code, self._permutation)
        )

    def _made(self, node: GroundNode) -> int:
        diagrams = self._diagrams
        match node.op:
            case GroundOp.CONST:
                return diagrams.constant(node.value)
            case GroundOp.CELL | GroundOp.NEXT:
                return self._cell(node.value, new=node.op is GroundOp.NEXT)
            case GroundOp.NOT:
                return diagrams.mapped(self.of(node.args[0]), lambda v: 1 - v)
            case GroundOp.IF:
                return diagrams.choose(*(self.of(a) for a in node.args))
            case GroundOp.TABLE:
                return diagrams.mapped(self.of(node.args[0]), node.table.__getitem__)
            case _:
                result, *others = (self.of(a) for a in node.args)
                for other in others:
                    result = diagrams.apply(node.op, result, other)
                return result

    def _cell(self, cell: int, *, new: bool) -> int:
        low, size = self._cells[cell].low, self._cells[cell].size
        if size > _BRANCHES_A_SPEND:
            raise TooLargeError
        values = [0] * size
        for code in range(low, low + size):
            values[self._symmetry.renamed(cell, code, self._permutation) - low] = code
        return self._diagrams.choice(self._destinations[cell], values, new=new)


def order_of(nodes: Sequence[GroundNode]) -> tuple[int, ...]:
    """The cells that expressions read, as they come in the text: what is compared stands side by side."""
    found: dict[int, None] = {}
    seen: set[int] = set()
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if node.id not in seen:
            seen.add(node.id)
            waiting += reversed(node.args)
            if node.op in {GroundOp.CELL, GroundOp.NEXT}:
                found[node.value] = None
    return tuple(found)
