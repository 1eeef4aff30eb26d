"""Writes ground expressions as NumPy source over columns of states, each common part once.

A `Scope` is a set of rows for which values are computed: all states of a batch, or those in which one
step is enabled. An inner scope takes what the outer one has computed already, at its own rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import assert_never

from stagewright.checker.explicit.packing import Layout
from stagewright.spec.grounding.ground import Cell, GroundNode, GroundOp

_NAME = re.compile(r"\bv\d+\b")
_INFIX = {GroundOp.EQ: "==", GroundOp.LT: "<", GroundOp.LE: "<="}
_FUNCTIONS = {
    GroundOp.MUL: "multiply",
    GroundOp.DIV: "floor_divide",
    GroundOp.MOD: "remainder",
    GroundOp.MIN: "minimum",
    GroundOp.MAX: "maximum",
}
_WIDTHS = (("I8", 7), ("I16", 15), ("I32", 31), ("I64", 63))


def dtype_of(low: int, high: int) -> str:
    """The name, in generated code, of the narrowest signed type that holds `low .. high`."""
    for name, bits in _WIDTHS:
        if -(1 << bits) <= low and high < 1 << bits:
            return name
    raise AssertionError(f"{low} .. {high} does not fit 64 bits")


@dataclass
class Code:
    """Source text under construction, and the tables it refers to."""

    layout: Layout
    lines: list[str] = field(default_factory=list)
    tables: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    _names: int = 0
    _table_names: dict[tuple[tuple[int, ...], str], str] = field(default_factory=dict)

    def line(self, text: str, indent: int) -> None:
        """Add one statement."""
        self.lines.append("    " * indent + text)

    def name(self) -> str:
        """A variable name not used before."""
        self._names += 1
        return f"v{self._names}"

    def table(self, values: tuple[int, ...], dtype: str) -> str:
        """The name of a constant array."""
        key = (values, dtype)
        if key not in self._table_names:
            self._table_names[key] = f"T{len(self.tables)}"
            self.tables[self._table_names[key]] = key
        return self._table_names[key]

    def source(self) -> str:
        """The text, with every variable deleted after its last use: memory stays bounded."""
        last = {name: i for i, line in enumerate(self.lines) for name in _NAME.findall(line)}
        dying: dict[int, list[str]] = {}
        for name, i in last.items():
            dying.setdefault(i, []).append(name)
        out: list[str] = []
        for i, line in enumerate(self.lines):
            out.append(line)
            if i in dying and not line.lstrip().startswith(("return", "if ")):
                out.append(line[: len(line) - len(line.lstrip())] + f"del {', '.join(dying[i])}")
        return "\n".join(out) + "\n"


@dataclass
class Scope:
    """Values known so far for one set of rows: `words` (and `new_words`) are their packed states."""

    code: Code
    words: Sequence[str]
    new_words: Sequence[str] = ()
    outer: Scope | None = None
    rows: str = ""  # within the outer scope
    indent: int = 1
    _known: dict[int, str] = field(default_factory=dict)

    def value(self, node: GroundNode) -> str:
        """An array (for a constant: a literal) that holds the node's value."""
        if node.op is GroundOp.CONST:
            return str(bool(node.value)) if node.boolean else str(node.value)
        if node.id not in self._known:
            self._known[node.id] = self.set(self._computed(node))
        return self._known[node.id]

    def set(self, expression: str) -> str:
        """Assign an expression to a fresh variable."""
        name = self.code.name()
        self.code.line(f"{name} = {expression}", self.indent)
        return name

    def _computed(self, node: GroundNode) -> str:
        if self.outer is not None and node.id in self.outer._known:
            return f"{self.outer._known[node.id]}[{self.rows}]"
        if node.op is GroundOp.CELL:
            return self._cell(node, self.words)
        if node.op is GroundOp.NEXT:
            return self._cell(node, self.new_words)
        return self._operation(node, [self.value(arg) for arg in node.args])

    def _operation(self, node: GroundNode, args: list[str]) -> str:
        match node.op:
            case GroundOp.NOT:
                return f"~{args[0]}"
            case GroundOp.AND:
                return " & ".join(args)
            case GroundOp.OR:
                return " | ".join(args)
            case GroundOp.EQ | GroundOp.LT | GroundOp.LE:
                return f"{args[0]} {_INFIX[node.op]} {args[1]}"
            case GroundOp.ADD:
                return f"np.add({args[0]}, {args[1]}, dtype={_wide_enough(node)})"
            case GroundOp.SUB:
                return f"np.subtract({args[0]}, {args[1]}, dtype={_wide_enough(node)})"
            case (GroundOp.MUL | GroundOp.DIV | GroundOp.MOD | GroundOp.MIN | GroundOp.MAX) as op:
                dtype = _wide_enough(node)
                return f"np.{_FUNCTIONS[op]}({args[0]}, {args[1]}, dtype={dtype})"
            case GroundOp.IF:
                typed = [_typed(arg, a) for arg, a in zip(node.args[1:], args[1:], strict=True)]
                return f"np.where({args[0]}, {typed[0]}, {typed[1]})"
            case GroundOp.TABLE:
                name = self.code.table(node.table, "B" if node.boolean else _table_dtype(node))
                return f"{name}[{_index(node.args[0], args[0])}]"
            case GroundOp.CONST | GroundOp.CELL | GroundOp.NEXT:
                raise AssertionError(f"{node.op} is no operation")
            case _:
                assert_never(node.op)

    def _cell(self, node: GroundNode, words: Sequence[str]) -> str:
        cell: Cell = self.code.layout.cells[node.value]
        place = self.code.layout.places[node.value]
        word = words[place.word]
        if node.boolean and cell.size == 2:
            return f"({word} & U64({1 << place.shift})) != 0"
        # Wide enough for the packed value and for the value itself.
        dtype = dtype_of(min(cell.low, 0), max(cell.high, cell.size - 1))
        raw = f"({word} >> U64({place.shift}) & U64({place.mask})).astype({dtype})"
        raw = f"{raw} + {dtype}({cell.low})" if cell.low else raw
        return f"({raw}).astype(B)" if node.boolean else raw


def _wide_enough(node: GroundNode) -> str:
    """The narrowest type that holds the result and both operands."""
    ends = (node, *node.args)
    return dtype_of(min(n.low for n in ends), max(n.high for n in ends))


def _typed(node: GroundNode, value: str) -> str:
    """A literal with a type of its own: `np.where` would make two bare ones 64 bits wide."""
    if node.op is not GroundOp.CONST:
        return value
    return f"B({value})" if node.boolean else f"{dtype_of(node.low, node.high)}({value})"


def _table_dtype(node: GroundNode) -> str:
    return dtype_of(min(node.table), max(node.table))


def _index(node: GroundNode, value: str) -> str:
    """A boolean array as an index would select rows; make it a number."""
    return f"{value}.view(I8)" if node.boolean else value
