"""Writes ground expressions as LLVM values, each common part once.

Numbers are 64 bits wide, conditions one bit. A `Scope` is a stretch of code in which every value computed
is at hand: all of a state's code, or the code of one step, which also sees what was computed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from stagewright.checker.explicit.native.code.llvm_text import BIT, I64, Function, Value, bit
from stagewright.checker.explicit.packing import Layout
from stagewright.spec.grounding.ground import GroundNode, GroundOp

_COMPARISONS = {GroundOp.EQ: "eq", GroundOp.LT: "slt", GroundOp.LE: "sle"}
_WORD_BITS = 64


@dataclass
class Tables:
    """Constant arrays that the code of one module refers to."""

    _names: dict[tuple[int, ...], str] = field(default_factory=dict)

    def name(self, values: tuple[int, ...]) -> str:
        """The symbol of an array."""
        return self._names.setdefault(values, f"@table{len(self._names)}")

    def source(self) -> str:
        """The definitions of all arrays asked for."""
        return "".join(
            f"{name} = internal constant [{len(values)} x i64] "
            f"[{', '.join(f'i64 {value}' for value in values)}]\n"
            for values, name in self._names.items()
        )


@dataclass
class Scope:
    """Values of expressions over one state's words (and, for steps, the next state's)."""

    function: Function
    layout: Layout
    tables: Tables
    words: Sequence[Value]
    new_words: Sequence[Value] = ()
    outer: Scope | None = None
    _known: dict[int, Value] = field(default_factory=dict)

    def inner(self) -> Scope:
        """A scope for code that runs only sometimes."""
        return Scope(
            self.function, self.layout, self.tables, self.words, self.new_words, outer=self
        )

    def value(self, node: GroundNode) -> Value:
        """The node's value."""
        if node.op is GroundOp.CONST:
            return bit(bool(node.value)) if node.boolean else Value(str(node.value), I64)
        known = self._find(node.id)
        if known is None:
            known = self._known[node.id] = self._computed(node)
        return known

    def number(self, node: GroundNode) -> Value:
        """The node's value as a 64-bit number, also of a condition."""
        if node.op is GroundOp.CONST:
            return Value(str(node.value), I64)
        return self.function.zext(self.value(node))

    def _find(self, node_id: int) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if node_id in scope._known:
                return scope._known[node_id]
            scope = scope.outer
        return None

    def _computed(self, node: GroundNode) -> Value:
        f = self.function
        match node.op:
            case GroundOp.CELL:
                return self._cell(node, self.words)
            case GroundOp.NEXT:
                return self._cell(node, self.new_words)
            case GroundOp.NOT:
                return f.not_(self.value(node.args[0]))
            case GroundOp.AND:
                return self._all(node.args)
            case GroundOp.OR:
                # Not all false: so that masks serve here, too.
                return self._joined("or", [self.value(arg) for arg in node.args])
            case GroundOp.EQ | GroundOp.LT | GroundOp.LE:
                a, b = (self.number(arg) for arg in node.args)
                return f.compare(_COMPARISONS[node.op], a, b)
            case GroundOp.ADD:
                return f.add(*(self.number(arg) for arg in node.args))
            case GroundOp.SUB:
                return f.sub(*(self.number(arg) for arg in node.args))
            case GroundOp.MUL:
                return f.mul(*(self.number(arg) for arg in node.args))
            case GroundOp.DIV | GroundOp.MOD:
                return self._divided(node)
            case GroundOp.MIN | GroundOp.MAX:
                a, b = (self.number(arg) for arg in node.args)
                return f.select(f.compare("slt" if node.op is GroundOp.MIN else "sgt", a, b), a, b)
            case GroundOp.IF:
                then, otherwise = (self.number(arg) for arg in node.args[1:])
                return f.select(self.value(node.args[0]), then, otherwise)
            case GroundOp.TABLE:
                return self._table(node)
            case GroundOp.CONST:
                raise AssertionError("a constant is not computed")
            case _:
                assert_never(node.op)

    def _divided(self, node: GroundNode) -> Value:
        """Quotient or remainder; LLVM rounds towards zero, the language rounds down."""
        f, dividend = self.function, node.args[0]
        a, b = (self.number(arg) for arg in node.args)
        if node.op is GroundOp.DIV:
            quotient = f.op(f"sdiv {a}, {b.text}", I64)
            if dividend.low >= 0:
                return quotient
            below = f.compare("slt", a, f.mul(quotient, b))
            return f.sub(quotient, f.zext(below))
        remainder = f.op(f"srem {a}, {b.text}", I64)
        if dividend.low >= 0:
            return remainder
        return f.select(f.compare("slt", remainder, 0), f.add(remainder, b), remainder)

    def _cell(self, node: GroundNode, words: Sequence[Value]) -> Value:
        f, cell = self.function, self.layout.cells[node.value]
        place = self.layout.places[node.value]
        if not place.bits:
            return bit(bool(cell.low)) if node.boolean else Value(str(cell.low), I64)
        word = words[place.word]
        if node.boolean and cell.size == 2:
            return f.compare("ne", f.and_(word, 1 << place.shift), 0)
        raw = f.lshr(word, place.shift) if place.shift else word
        if place.shift + place.bits < _WORD_BITS:
            raw = f.and_(raw, place.mask)
        return f.add(raw, cell.low) if cell.low else raw

    def _all(self, parts: Iterable[GroundNode]) -> Value:
        """A conjunction; what asks for one value of one cell is asked of a whole word at once."""
        f = self.function
        masks: dict[tuple[int, bool], tuple[int, int]] = {}
        values: list[Value] = []
        for part in parts:
            known = self._find(part.id)
            wanted = None if known is not None else self._bits_of(part)
            if wanted is None:
                values.append(self.value(part))
                continue
            key, mask, wished = wanted
            before, so_far = masks.get(key, (0, 0))
            if so_far & mask != wished & before:  # two values of one cell
                return bit(False)
            masks[key] = (before | mask, so_far | wished)
        for (word, new), (mask, wished) in masks.items():
            source = (self.new_words if new else self.words)[word]
            values.append(f.compare("eq", f.and_(source, mask), wished))
        return self._joined("and", values)

    def _bits_of(self, node: GroundNode) -> tuple[tuple[int, bool], int, int] | None:
        """(word, of the new state?), mask, bits wanted: if the node asks for a value of a cell."""
        negated = node.op is GroundOp.NOT
        inner = node.args[0] if negated else node
        if inner.op is GroundOp.EQ and not negated:
            a, b = inner.args
            cell, constant = (a, b) if b.op is GroundOp.CONST else (b, a)
            if constant.op is not GroundOp.CONST:
                return None
            value = constant.value
        else:
            cell, value = inner, int(not negated)
            if not cell.boolean:
                return None
        if cell.op not in (GroundOp.CELL, GroundOp.NEXT):
            return None
        place, low = self.layout.places[cell.value], self.layout.cells[cell.value].low
        if not place.bits:
            return None
        key = (place.word, cell.op is GroundOp.NEXT)
        return key, place.mask << place.shift, (value - low) << place.shift

    def _joined(self, operation: str, values: Sequence[Value]) -> Value:
        """A balanced tree: short chains run side by side in the processor."""
        layer = list(values)
        while len(layer) > 1:
            pairs = zip(layer[::2], layer[1::2], strict=False)
            joined = [self.function.op(f"{operation} i1 {a.text}, {b.text}", BIT) for a, b in pairs]
            layer = joined + layer[len(joined) * 2 :]
        return layer[0]

    def _table(self, node: GroundNode) -> Value:
        f, index = self.function, self.number(node.args[0])
        low = min(node.table)
        bits = 1 if node.boolean else max(1, (max(node.table) - low).bit_length())
        if bits * len(node.table) <= _WORD_BITS:
            packed = sum((v - low) << i * bits for i, v in enumerate(node.table))
            if node.boolean:
                low = 0
                packed = sum(v << i for i, v in enumerate(node.table))
            shift = f.mul(index, bits) if bits > 1 else index
            raw = f.lshr(Value(str(packed - (packed >> 63 << 64)), I64), shift)
            if node.boolean:
                return f.trunc(raw, BIT)
            raw = f.and_(raw, (1 << bits) - 1)
            return f.add(raw, low) if low else raw
        loaded = f.load(Value(self.tables.name(node.table), "ptr"), index)
        return f.trunc(loaded, BIT) if node.boolean else loaded
