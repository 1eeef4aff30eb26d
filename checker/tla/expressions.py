"""Expressions of a definition as formulas of TLA+."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import assert_never

from stagewright.checker.tla.blocks import Block, after, bullets, followed, indented, parenthesised
from stagewright.checker.tla.names import words_in
from stagewright.checker.tla.sets import first_of, literal, number, set_of_values
from stagewright.checker.tla.vocabulary import Vocabulary, column_key, field_names, is_choice
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Column,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Read,
    Select,
    bounds_in,
)
from stagewright.spec.sorts import EntitySort, OptionalSort, RecordSort, SeqSort, SetSort
from stagewright.spec.text.words import members_where


class Binds(IntEnum):
    """How tightly a formula binds: what binds no tighter than its surroundings gets parentheses."""

    OPEN = 0  # a quantifier or IF: reaches as far to the right as it can
    IMPLIES = 1
    JUNCTION = 2
    NOT = 3
    COMPARE = 4
    SETS = 5
    SUM = 6  # also a remainder, which must not stand in a sum without parentheses
    PRODUCT = 7
    ATOM = 8


Phrase = tuple[str, Binds]

_INFIX: Mapping[Op, tuple[str, Binds]] = {
    Op.EQ: ("=", Binds.COMPARE),
    Op.LT: ("<", Binds.COMPARE),
    Op.LE: ("<=", Binds.COMPARE),
    Op.MEMBER: (r"\in", Binds.COMPARE),
    Op.UNION: (r"\cup", Binds.SETS),
    Op.INTERSECTION: (r"\cap", Binds.SETS),
    Op.DIFFERENCE: ("\\", Binds.SETS),
    Op.ADD: ("+", Binds.SUM),
    Op.SUB: ("-", Binds.SUM),
    Op.MOD: ("%", Binds.SUM),
    Op.MUL: ("*", Binds.PRODUCT),
    Op.DIV: (r"\div", Binds.PRODUCT),
}
_DENIED = {Op.EQ: "#", Op.LT: ">=", Op.LE: ">", Op.MEMBER: r"\notin"}
_JUNCTIONS = {Op.AND: "/\\", Op.OR: "\\/"}
_QUANTIFIERS = {Quantity.EVERY: r"\A", Quantity.SOME: r"\E"}


@dataclass(frozen=True)
class Formulas:
    """Writes expressions. `bound`: what stands for each bound variable here, in parentheses if need be."""

    names: Vocabulary
    bound: Mapping[Bound, str] = field(default_factory=dict[Bound, str])
    filled: frozenset[Node] = frozenset()  # sequences that are known to have elements

    def within(self, *bounds: Bound) -> Formulas:
        """The same where these are bound, each under a name of its own."""
        here = self
        for bound in bounds:
            here = here.calling(bound, here.fresh(bound.name))
        return here

    def fresh(self, name: str) -> str:
        """A name like this that is free here, and that no text for a bound variable mentions."""
        return self.names.local(name, words_in(*self.bound.values()))

    def calling(self, bound: Bound, text: str) -> Formulas:
        """The same where a text stands for the bound variable."""
        return replace(self, bound={**self.bound, bound: text})

    def range_of(self, bound: Bound) -> str:
        r"""`n \in Node`."""
        return f"{self.bound[bound]} \\in {set_of_values(bound.sort, self.names)}"

    def ranges(self, bounds: tuple[Bound, ...]) -> str:
        r"""`n \in Node, t \in Task`."""
        return ", ".join(self.range_of(b) for b in bounds)

    # -- on one line -------------------------------------------------------------------------------

    def text(self, node: Node, least: Binds = Binds.OPEN) -> str:
        """The formula on one line, in parentheses if it binds less tightly than `least`."""
        formula, binds = self.phrase(node)
        return formula if binds >= least else f"({formula})"

    def phrase(self, node: Node) -> Phrase:
        """The formula on one line, and how tightly it binds."""
        match node:
            case Literal(value):
                return literal(value, self.names), Binds.ATOM
            case Bound():
                return self.bound[node], Binds.ATOM
            case Read(variable, _, new):
                return self.names.variables[variable] + ("'" if new else ""), Binds.ATOM
            case Select(base, key) if isinstance(base.sort, SetSort):
                return self._infix(r"\in", Binds.COMPARE, key, base)
            case Select(base, key):
                return f"{self.text(base, Binds.ATOM)}[{self.text(key)}]", Binds.ATOM
            case Field(base, name):
                assert isinstance(base.sort, RecordSort)
                return f"{self.text(base, Binds.ATOM)}.{field_names(base.sort)[name]}", Binds.ATOM
            case Column():
                return self._column(node)
            case Quantified(Quantity.COUNT):
                return f"Cardinality({self._counted(node)})", Binds.ATOM
            case Quantified(Quantity.TOTAL | Quantity.LEAST | Quantity.GREATEST):
                return self._over_all(node), Binds.ATOM
            case Quantified(quantity):
                if (members := _over_members(node)) is not None:
                    head, inner, body = self._members(node, *members)
                    return f"{head} {inner.text(body)}", Binds.OPEN
                bounds, body = _prefix(node)
                inner = self.within(*bounds)
                sign = _QUANTIFIERS[quantity]
                return f"{sign} {inner.ranges(bounds)} : {inner.text(body)}", Binds.OPEN
            case Apply():
                return self._apply(node)
        assert_never(node)

    def _members(self, node: Quantified, within: Node, body: Node) -> tuple[str, Formulas, Node]:
        r"""Of a quantifier over the members of a set: `\E m \in sent :`, and what follows."""
        inner = self.within(node.bound)
        members = self.collection(within)
        sign = _QUANTIFIERS[node.quantity]
        return f"{sign} {inner.bound[node.bound]} \\in {members} :", inner, body

    def collection(self, node: Node) -> str:
        """The set of what is in a set or a sequence."""
        formula = self.text(node, Binds.SETS)
        elements = self.names.own.elements
        return f"{elements}({self.text(node)})" if isinstance(node.sort, SeqSort) else formula

    def knowing(self, *facts: Node) -> Formulas:
        """The same where these conditions hold: sequences of which they say that they are not empty."""
        found = {sequence for fact in facts for sequence in _not_empty(fact)}
        return replace(self, filled=self.filled | found)

    def _counted(self, node: Quantified) -> str:
        """The set whose size a count is: `done`, or those of a sort that satisfy something."""
        match node.body:
            case Apply(Op.AND) as both if len(parts := junction_parts(both)) == 1:
                (body,) = parts
            case body:
                pass
        match body:
            case Apply(Op.MEMBER, (member, members)) if member == node.bound:
                if node.bound not in bounds_in(members):
                    return self.text(members)
            case _:
                pass
        inner = self.within(node.bound)
        return f"{{{inner.range_of(node.bound)} : {inner.text(body)}}}"

    def _over_all(self, node: Quantified) -> str:
        r"""`Total([n \in Node |-> x[n]])`, `Least({x[n] : n \in Node})`."""
        inner = self.within(node.bound)
        body, ranged = inner.text(node.body), inner.range_of(node.bound)
        if node.quantity is Quantity.TOTAL:
            return f"{self.names.own.total}([{ranged} |-> {body}])"
        name = self.names.own.least if node.quantity is Quantity.LEAST else self.names.own.greatest
        return f"{name}({{{body} : {ranged}}})"

    def _column(self, node: Column) -> Phrase:
        if is_choice(node):
            return self._choice(node, r"\in")
        table = self.names.columns[column_key(node)]
        return f"{table}[{self.text(node.index)}]", Binds.ATOM

    def _choice(self, node: Column, sign: str) -> Phrase:
        chosen = ", ".join(literal(m, self.names) for m in members_where(node) or ())
        return f"{self.text(node.index, Binds.SETS)} {sign} {{{chosen}}}", Binds.COMPARE

    def _apply(self, node: Apply) -> Phrase:
        match node.op:
            case Op.NOT:
                return self._denied(node.args[0])
            case Op.IF:
                test, then, otherwise = (self.text(a) for a in node.args)
                return f"IF {test} THEN {then} ELSE {otherwise}", Binds.OPEN
            case Op.AND | Op.OR:
                return self._junction(node)
            case Op.NEXT | Op.PREVIOUS | Op.LAST:
                return self._in_order(node)
            case Op.SET:
                return f"{{{', '.join(self.text(a) for a in node.args)}}}", Binds.ATOM
            case Op.OR_ELSE:
                value, default = (self.text(a) for a in node.args)
                absent = f"{self.text(node.args[0], Binds.SETS)} = {self.names.own.none}"
                return f"IF {absent} THEN {default} ELSE {value}", Binds.OPEN
            case Op.LEAST | Op.GREATEST:
                own = self.names.own
                name = own.least if node.op is Op.LEAST else own.greatest
                return f"{name}({{{', '.join(self.text(a) for a in node.args)}}})", Binds.ATOM
            case Op.MEMBER if isinstance(node.args[1].sort, SeqSort):
                member = self.text(node.args[0], Binds.SETS)
                return f"{member} \\in {self.collection(node.args[1])}", Binds.COMPARE
            case Op.RECORD | Op.LENGTH | Op.ITEM | Op.APPEND | Op.INSERT | Op.REMOVE:
                return self._made(node)
            case _:
                sign, binds = _INFIX[node.op]
                return self._infix(sign, binds, *node.args)

    def _made(self, node: Apply) -> Phrase:
        """A record, or what an operation makes of a sequence; indices count from 1 here."""
        own = self.names.own
        if isinstance(node.sort, RecordSort) and node.op is Op.RECORD:
            names = field_names(node.sort).values()
            parts = (f"{n} |-> {self.text(a)}" for n, a in zip(names, node.args, strict=True))
            return f"[{', '.join(parts)}]", Binds.ATOM
        sequence = self.text(node.args[0])
        if node.op is Op.LENGTH:
            return f"Len({sequence})", Binds.ATOM
        if node.op is Op.APPEND:
            return f"Append({sequence}, {self.text(node.args[1])})", Binds.ATOM
        index = node.args[1]
        first = isinstance(index, Literal) and index.value == 0 and node.args[0] in self.filled
        if isinstance(index, Literal) and isinstance(index.value, int):
            at = number(index.value + 1)
        else:
            at = f"{self.text(index, Binds.PRODUCT)} + 1"
        match node.op:
            case Op.ITEM if first:
                return f"Head({sequence})", Binds.ATOM
            case Op.ITEM:
                return (
                    f"{own.item}({sequence}, {at}, {first_of(node.sort, self.names)})",
                    Binds.ATOM,
                )
            case Op.REMOVE if first:
                return f"Tail({sequence})", Binds.ATOM
            case Op.REMOVE:
                return f"{own.without}({sequence}, {at})", Binds.ATOM
            case _:
                return f"{own.inserted}({sequence}, {at}, {self.text(node.args[2])})", Binds.ATOM

    def _in_order(self, node: Apply) -> Phrase:
        """A member of an ordered entity, which is a number from 0 on."""
        sort = node.sort.element if isinstance(node.sort, OptionalSort) else node.sort
        assert isinstance(sort, EntitySort)
        size = self.names.sizes[sort.kind]
        if node.op is Op.LAST:
            return f"{size} - 1", Binds.SUM
        member = self.text(node.args[0], Binds.ATOM)
        if sort.kind.is_ring:
            step = "+ 1" if node.op is Op.NEXT else f"+ {size} - 1"
            return f"({member} {step}) % {size}", Binds.SUM
        end, step = (f"{size} - 1", "+ 1") if node.op is Op.NEXT else ("0", "- 1")
        none = self.names.own.none
        return f"IF {member} = {end} THEN {none} ELSE {member} {step}", Binds.OPEN

    def _infix(self, sign: str, binds: Binds, left: Node, right: Node) -> Phrase:
        tighter = Binds(binds + 1)
        return f"{self.text(left, tighter)} {sign} {self.text(right, tighter)}", binds

    def _denied(self, node: Node) -> Phrase:
        match node:
            case Apply(Op.MEMBER, (member, within)) if isinstance(within.sort, SeqSort):
                wording = f"{self.text(member, Binds.SETS)} \\notin {self.collection(within)}"
                return wording, Binds.COMPARE
            case Apply(op, (left, right)) if op in _DENIED:
                return self._infix(_DENIED[op], Binds.COMPARE, left, right)
            case Select(base, key) if isinstance(base.sort, SetSort):
                return self._infix(r"\notin", Binds.COMPARE, key, base)
            case Column() if is_choice(node):
                return self._choice(node, r"\notin")
            case _:
                return f"~{self.text(node, Binds.ATOM)}", Binds.NOT

    def _junction(self, node: Apply) -> Phrase:
        if (implied := _implication(node)) is not None:
            premise, conclusion = implied
            least = Binds.JUNCTION
            return f"{self.text(premise, least)} => {self.text(conclusion, least)}", Binds.IMPLIES
        parts = junction_parts(node)
        if not parts:
            return "TRUE" if node.op is Op.AND else "FALSE", Binds.ATOM
        if len(parts) == 1:
            return self.phrase(parts[0])
        sign = _JUNCTIONS[node.op]
        return f" {sign} ".join(self.text(p, Binds.NOT) for p in parts), Binds.JUNCTION

    # -- on several lines --------------------------------------------------------------------------

    def block(self, node: Node, width: int) -> Block:
        """The formula on one line if it fits, else broken where it can be."""
        flat = self.text(node)
        if len(flat) <= width:
            return (flat,)
        match node:
            case Quantified(Quantity.EVERY | Quantity.SOME) if over := _over_members(node):
                head, inner, body = self._members(node, *over)
                return (head, *indented(inner.block(body, width - 2), 2))
            case Quantified(Quantity.EVERY | Quantity.SOME as quantity):
                bounds, body = _prefix(node)
                inner = self.within(*bounds)
                head = f"{_QUANTIFIERS[quantity]} {inner.ranges(bounds)} :"
                return (head, *indented(inner.block(body, width - 2), 2))
            case Apply(Op.IF, (test, then, otherwise)):
                parts = zip(("IF ", "THEN ", "ELSE "), (test, then, otherwise), strict=True)
                return tuple(
                    line for word, n in parts for line in after(word, self.block(n, width - 5))
                )
            case Apply(Op.AND | Op.OR):
                return self._broken_junction(node, width)
            case Apply(Op.NOT, (denied,)) if self.phrase(node)[1] is Binds.NOT:
                return after("~", parenthesised(self.block(denied, width - 3)))
            case Apply(Op.EQ, (left, right)) if left.sort == BOOL:
                return (
                    *parenthesised(self.block(left, width - 2)),
                    *followed(after("= (", self.block(right, width - 4)), ")"),
                )
            case _:
                return (flat,)

    def operand(self, node: Node, width: int) -> Block:
        """The formula as it may stand right of an equals sign, which binds tighter than most."""
        binds = self.phrase(node)[1]
        if binds is Binds.OPEN or binds > Binds.COMPARE:
            return self.block(node, width)
        return parenthesised(self.block(node, width - 2))

    def _side(self, node: Node, width: int) -> Block:
        """One side of an implication on two lines."""
        block = self.block(node, width - 2)
        plain = len(block) == 1 and self.phrase(node)[1] > Binds.IMPLIES
        return block if plain else parenthesised(block)

    def _broken_junction(self, node: Apply, width: int) -> Block:
        if (implied := _implication(node)) is not None:
            premise, conclusion = (self._side(n, width - 3) for n in implied)
            return (*premise, *after("=> ", conclusion))
        parts = junction_parts(node)
        if not parts:
            return (self.text(node),)
        if len(parts) == 1:
            return self.block(parts[0], width)
        return bullets(_JUNCTIONS[node.op], (self.block(p, width - 3) for p in parts))


def junction_parts(node: Node) -> tuple[Node, ...]:
    """The conjuncts of a conjunction, the disjuncts of a disjunction, with those of nested ones; each once."""
    assert isinstance(node, Apply)
    parts: list[Node] = []
    for arg in node.args:
        nested = isinstance(arg, Apply) and arg.op is node.op and _implication(arg) is None
        parts += junction_parts(arg) if nested else (arg,)
    return tuple(dict.fromkeys(parts))


def _implication(node: Apply) -> tuple[Node, Node] | None:
    """Of `not p or q`: p and q."""
    match node:
        case Apply(Op.OR, (Apply(Op.NOT, (premise,)), conclusion)):
            return premise, conclusion
        case _:
            return None


def _over_members(node: Quantified) -> tuple[Node, Node] | None:
    """Of a quantifier over what is in a set of records or a sequence: that, and what is said of it."""
    match node.quantity, node.body:
        case Quantity.SOME, Apply(Op.AND, (Apply(Op.MEMBER, (member, within)), body)):
            pass
        case Quantity.EVERY, Apply(
            Op.OR, (Apply(Op.NOT, (Apply(Op.MEMBER, (member, within)),)), body)
        ):
            pass
        case _:
            return None
    new = isinstance(within.sort, SeqSort) or isinstance(node.bound.sort, RecordSort)
    return (within, body) if new and member == node.bound else None


def _not_empty(fact: Node) -> Iterator[Node]:
    """The sequences of which a condition says that they have elements."""
    match fact:
        case Apply(Op.AND, parts):
            for part in parts:
                yield from _not_empty(part)
        case Apply(Op.NOT, (Apply(Op.EQ, (Apply(Op.LENGTH, (sequence,)), Literal(0))),)):
            yield sequence
        case Apply(Op.LT, (Literal(int() as least), Apply(Op.LENGTH, (sequence,)))) if least >= 0:
            yield sequence
        case Apply(Op.LE, (Literal(int() as least), Apply(Op.LENGTH, (sequence,)))) if least > 0:
            yield sequence
        case _:
            return


def _prefix(node: Quantified) -> tuple[tuple[Bound, ...], Node]:
    """The bound variables of directly nested quantifiers of one kind, and what they speak of."""
    bounds = [node.bound]
    body = node.body
    while (
        isinstance(body, Quantified)
        and body.quantity is node.quantity
        and _over_members(body) is None
    ):
        bounds.append(body.bound)
        body = body.body
    return tuple(bounds), body
