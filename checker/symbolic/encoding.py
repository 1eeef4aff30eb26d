"""Turns ground expressions into solver terms over the cells of an old and a new state.

A boolean cell is a Boolean, every other cell a bit-vector just wide enough for its values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stagewright.checker.symbolic.z3_terms import Shape, Solver, Term, Terms
from stagewright.spec.grounding.ground import Cell, GroundModel, GroundNode, GroundOp
from stagewright.spec.sorts import BoolSort


def shape_of_cell(cell: Cell) -> Shape | None:
    """The bit-vector a cell is held in; None for a boolean."""
    return None if isinstance(cell.sort, BoolSort) else Shape.of(cell.low, cell.high)


class Frame:
    """One state of a run as solver variables, named `learned[node0]@2`."""

    def __init__(self, terms: Terms, model: GroundModel, label: str) -> None:
        self.shapes = tuple(map(shape_of_cell, model.cells))
        self.cells: tuple[Term, ...] = tuple(
            terms.boolean(f"{cell.name}@{label}")
            if shape is None
            else terms.bits(f"{cell.name}@{label}", shape)
            for cell, shape in zip(model.cells, self.shapes, strict=True)
        )

    def read(self, solver: Solver) -> tuple[int, ...]:
        """The state that the solver's model gives."""
        return tuple(map(solver.value, self.cells, self.shapes))


class Encoding:
    """Terms of ground nodes, each node built once."""

    def __init__(self, terms: Terms, now: Frame, new: Frame) -> None:
        self._terms = terms
        self._now = now
        self._new = new
        self._known: dict[int, Term] = {}
        self._tests: dict[tuple[int, int], Term] = {}

    def condition(self, node: GroundNode) -> Term:
        """The Boolean term of a node whose values are 0 and 1."""
        self._build(node)
        term = self._known[node.id]
        if node.boolean:
            return term
        return self._terms.equal(term, self._terms.number(1, _shape(node)))

    def same(self, a: GroundNode, b: GroundNode) -> Term:
        """Whether two nodes have one value."""
        self._build(a)
        self._build(b)
        return self._equal(a, b)

    def _build(self, root: GroundNode) -> None:
        """Fill `_known` for a node and all below it, children first (recursion would be too deep)."""
        pending, wanted = [root], dict[int, GroundNode]()
        while pending:
            node = pending.pop()
            if node.id not in self._known and node.id not in wanted:
                wanted[node.id] = node
                pending.extend(node.args)
        for _, node in sorted(wanted.items()):
            self._known[node.id] = self._translate(node)

    def _translate(self, node: GroundNode) -> Term:
        terms, args = self._terms, node.args
        match node.op:
            case GroundOp.CONST:
                if node.boolean:
                    return terms.true if node.value else terms.false
                return terms.number(node.value, _shape(node))
            case GroundOp.CELL:
                return self._now.cells[node.value]
            case GroundOp.NEXT:
                return self._new.cells[node.value]
            case GroundOp.NOT:
                return terms.not_(self.condition(args[0]))
            case GroundOp.AND:
                return terms.and_([self.condition(a) for a in args])
            case GroundOp.OR:
                return terms.or_([self.condition(a) for a in args])
            case GroundOp.EQ:
                return self._equal(*args)
            case GroundOp.LT | GroundOp.LE:
                return self._comparison(node)
            case (
                GroundOp.ADD
                | GroundOp.SUB
                | GroundOp.MUL
                | GroundOp.DIV
                | GroundOp.MOD
                | GroundOp.MIN
                | GroundOp.MAX
            ):
                return self._arithmetic(node)
            case GroundOp.IF:
                return self._if(node)
            case GroundOp.TABLE:
                return self._table(node)

    def _comparison(self, node: GroundNode) -> Term:
        shape = _common(node.args)
        a, b = (self._bits(arg, shape) for arg in node.args)
        compare = self._terms.less if node.op is GroundOp.LT else self._terms.less_or_equal
        return compare(a, b, shape)

    def _arithmetic(self, node: GroundNode) -> Term:
        """Computed in a shape that holds both arguments and the result, so that nothing wraps around."""
        terms, shape = self._terms, _common((*node.args, node))
        a, b = (self._bits(arg, shape) for arg in node.args)
        match node.op:
            case GroundOp.ADD:
                result = terms.add(a, b)
            case GroundOp.SUB:
                result = terms.subtract(a, b)
            case GroundOp.MUL:
                result = terms.multiply(a, b)
            case GroundOp.DIV:
                result = self._quotient(node, a, b, shape)
            case GroundOp.MOD:
                result = terms.remainder(a, b, shape)
            case GroundOp.MIN:
                result = terms.choose(terms.less(a, b, shape), a, b)
            case _:
                result = terms.choose(terms.less(a, b, shape), b, a)
        return terms.resize(result, shape, _shape(node))

    def _quotient(self, node: GroundNode, a: Term, b: Term, shape: Shape) -> Term:
        """Rounded down, where the solver's own rounds towards zero."""
        terms = self._terms
        quotient = terms.divide(a, b, shape)
        if node.args[0].low >= 0:
            return quotient
        below = terms.less(a, terms.multiply(quotient, b), shape)
        return terms.choose(below, terms.subtract(quotient, terms.number(1, shape)), quotient)

    def _bits(self, node: GroundNode, shape: Shape) -> Term:
        """The node's number in a shape that holds it; a boolean becomes 0 or 1."""
        if node.op is GroundOp.CONST:
            return self._terms.number(node.value, shape)
        term = self._known[node.id]
        if node.boolean:
            return self._terms.choose(
                term, self._terms.number(1, shape), self._terms.number(0, shape)
            )
        return self._terms.resize(term, _shape(node), shape)

    def _equal(self, a: GroundNode, b: GroundNode) -> Term:
        if a.boolean and b.boolean:
            return self._terms.equal(self._known[a.id], self._known[b.id])
        shape = _common((a, b))
        return self._terms.equal(self._bits(a, shape), self._bits(b, shape))

    def _if(self, node: GroundNode) -> Term:
        condition, a, b = node.args
        test = self.condition(condition)
        if node.boolean:
            yes, no = self._known[a.id], self._known[b.id]
            both = [self._terms.implies(test, yes), self._terms.or_([test, no])]
            return self._terms.and_(both)
        shape = _shape(node)
        return self._terms.choose(test, self._bits(a, shape), self._bits(b, shape))

    def _table(self, node: GroundNode) -> Term:
        """The commonest entry is what remains when no other entry's index matches."""
        (index,) = node.args
        used = {i: node.table[i] for i in range(index.low, index.high + 1)}
        (rest, _), *others = Counter(used.values()).most_common()
        tests = {
            value: self._terms.or_([self._is(index, i) for i, v in used.items() if v == value])
            for value, _ in others
        }
        if node.boolean:
            (test,) = tests.values()  # a table of one value is a constant, never a node
            return self._terms.not_(test) if rest else test
        shape = _shape(node)
        result = self._terms.number(rest, shape)
        for value, test in tests.items():
            result = self._terms.choose(test, self._terms.number(value, shape), result)
        return result

    def _is(self, node: GroundNode, value: int) -> Term:
        key = (node.id, value)
        if key not in self._tests:
            term = self._known[node.id]
            if node.boolean:
                self._tests[key] = term if value else self._terms.not_(term)
            else:
                number = self._terms.number(value, _shape(node))
                self._tests[key] = self._terms.equal(term, number)
        return self._tests[key]


def _shape(node: GroundNode) -> Shape:
    return Shape.of(node.low, node.high)


def _common(nodes: Sequence[GroundNode]) -> Shape:
    """A shape in which all the nodes' values can be compared and computed."""
    return Shape.of(min(n.low for n in nodes), max(n.high for n in nodes))


def domain(terms: Terms, model: GroundModel, frame: Frame) -> Term:
    """Every cell within its bounds."""
    limits: list[Term] = []
    for cell, shape, term in zip(model.cells, frame.shapes, frame.cells, strict=True):
        if shape is None:
            continue
        least = -(1 << (shape.width - 1)) if shape.signed else 0
        most = least + (1 << shape.width) - 1
        if cell.low > least:
            limits.append(terms.less_or_equal(terms.number(cell.low, shape), term, shape))
        if cell.high < most:
            limits.append(terms.less_or_equal(term, terms.number(cell.high, shape), shape))
    return terms.and_(limits)
