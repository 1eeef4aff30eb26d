"""Expressions in words, as a person says them: `stage[t] is streaming`, `every n in Node: …`.

For people only: two different expressions may read alike. Names of bound variables and parameters
are replaced by their values where these are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from enum import Enum, IntEnum
from typing import Any, assert_never, cast

from stagewright.spec.definition import Action, Assignment, Requirement
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
)
from stagewright.spec.scope import BUDGET_PREFIX
from stagewright.spec.sorts import BoolSort, EnumSort, RecordSort, SetSort
from stagewright.spec.values import FrozenMap, Value, show

Values = Mapping[Bound, Value]

_NO_VALUES: Values = FrozenMap({})


class _Binds(IntEnum):
    """How tightly a phrase binds: a looser one inside a tighter one gets parentheses."""

    SENTENCE = 0
    IMPLIES = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARE = 5
    ADD = 6
    MULTIPLY = 7
    ATOM = 8


_KEY = re.compile(r"\[[^\]]*\]")

_Phrase = tuple[str, _Binds]

_COMPARISONS = {Op.LT: "<", Op.LE: "≤"}
_MIRRORED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}
_OPPOSITE = {"<": "≥", "≤": ">", ">": "≤", "≥": "<"}
_ADDITIVE = {
    Op.ADD: "+",
    Op.SUB: "-",
    Op.UNION: "with",
    Op.INTERSECTION: "shared with",
    Op.DIFFERENCE: "without",
}

_MULTIPLICATIVE = {Op.MUL: "*", Op.DIV: "//", Op.MOD: "%"}


def words(node: Node, values: Values = _NO_VALUES) -> str:
    """The expression in words, with the given values in the place of bound names."""
    return _phrase(node, values)[0]


def effect(assignment: Assignment, values: Values = _NO_VALUES) -> str:
    """An assignment in words: `for every n in Node: learned[n] becomes stage`."""
    phrase = _assigned(assignment.place, assignment.value, values)
    if not assignment.binders:
        return phrase
    binders = ", ".join(f"{b.name} in {b.sort}" for b in assignment.binders)
    return f"for every {binders}: {phrase}"


def requirement(guard: Requirement, values: Values = _NO_VALUES) -> str:
    """A requirement's name and its condition, or only one of them when they say the same."""
    phrase = words(guard.condition, values)
    text = phrase if _KEY.sub("", phrase) == guard.name else f"{guard.name}: {phrase}"
    return f"{text} (a bound of the check)" if guard.bound else text


def _assigned(place: Node, value: Node, values: Values) -> str:
    match place, value:
        case _, Apply(Op.APPEND, (queue, element)) if queue == place:
            return f"{words(element, values)} is appended to {words(place, values)}"
        case _, Apply(Op.REMOVE, (queue, Literal(0))) if queue == place:
            return f"the head of {words(place, values)} is dropped"
        case _, Apply(Op.REMOVE, (queue, index)) if queue == place:
            return f"{_item(place, index, values)} is dropped"
        case _, Apply(Op.INSERT, (queue, index, Apply(Op.ITEM, (again, same)))) if (
            queue == again == place and _is_next(index, same)
        ):
            return f"{_item(place, same, values)} is duplicated"
        case Select(Read() | Field() | Select() as base, key), Literal(bool() as joins) if (
            isinstance(base.sort, SetSort)
        ):
            verb = "joins" if joins else "leaves"
            return f"{words(key, values)} {verb} {words(base, values)}"
        case _:
            return f"{words(place, values)} becomes {words(value, values)}"


def signature(action: Action) -> str:
    """`learn(n: Node)`: an action's name and parameters."""
    params = ", ".join(f"{p.name}: {p.sort}" for p in action.params)
    return f"{action.name}({params})" if params else action.name


def spoken(name: str) -> str:
    """A name in words: `start_migration` is `start migration`."""
    return name.replace("_", " ").strip() or name


def variable_name(name: str) -> str:
    """A variable as it is shown: the counter of the budget `crashes` is `crashes left`."""
    is_budget = name.startswith(BUDGET_PREFIX)
    return f"{name.removeprefix(BUDGET_PREFIX)} left" if is_budget else name


def members_where(column: Column) -> tuple[Value, ...] | None:
    """The enum members for which a boolean column is true; None if it is no such column."""
    index = column.index
    sort = index.sort
    if not isinstance(column.sort, BoolSort) or not isinstance(sort, EnumSort):
        return None
    return tuple(m for m, v in zip(sort.members, column.values, strict=False) if v)


def alternatives(node: Node) -> tuple[Node, tuple[Value, ...]] | None:
    """For `x is one of a, b` (written as a disjunction or as a column): x and the values."""
    if isinstance(node, Column):
        chosen = members_where(node)
        return None if chosen is None or column_name(node) else (node.index, chosen)
    if not (isinstance(node, Apply) and node.op is Op.OR and len(node.args) > 1):
        return None
    found: list[Value] = []
    subject: Node | None = None
    for arg in node.args:
        pair = against_literal(arg)
        if pair is None or subject not in (None, pair[0]):
            return None
        subject = pair[0]
        found.append(pair[1].value)
    assert subject is not None
    return subject, tuple(found)


def against_literal(node: Node) -> tuple[Node, Literal] | None:
    """For an equality with a literal: the other side and the literal."""
    if not (isinstance(node, Apply) and node.op is Op.EQ):
        return None
    left, right = node.args
    if isinstance(right, Literal) and not isinstance(left, Literal):
        return left, right
    if isinstance(left, Literal) and not isinstance(right, Literal):
        return right, left
    return None


def implication(node: Node) -> tuple[Node, Node] | None:
    """Premise and conclusion, when a disjunction has the form `not a or b`."""
    if isinstance(node, Apply) and node.op is Op.OR and len(node.args) == 2:
        first, second = node.args
        if isinstance(first, Apply) and first.op is Op.NOT:
            return first.args[0], second
    return None


def column_name(column: Column) -> str | None:
    """The attribute of the enum's members that holds exactly the column's values."""
    sort = column.index.sort
    if not isinstance(sort, EnumSort):
        return None
    members = sort.members
    for name in vars(members[0]) if members else ():
        if name.startswith("_"):
            continue
        held = tuple(_plain_column(getattr(m, name, None)) for m in members)
        if held == tuple(map(_plain_column, column.values)):
            return name
    return None


def _plain_column(value: Any) -> Any:
    return frozenset(cast("Set[object]", value)) if isinstance(value, Set) else value


def _inside(node: Node, values: Values, at_least: _Binds) -> str:
    text, binds = _phrase(node, values)
    return text if binds >= at_least else f"({text})"


def _phrase(node: Node, values: Values) -> _Phrase:
    match node:
        case Literal(value):
            return show(value), _Binds.ATOM
        case Bound(name):
            return (show(values[node]) if node in values else name), _Binds.ATOM
        case Read(variable, _, new):
            phrase = variable_name(variable)
            return (f"new {phrase}" if new else phrase), _Binds.ATOM
        case Select(base, key):
            return f"{_inside(base, values, _Binds.ATOM)}[{words(key, values)}]", _Binds.ATOM
        case Field(base, name):
            return f"{_inside(base, values, _Binds.ATOM)}.{name}", _Binds.ATOM
        case Column():
            return _column(node, values)
        case Quantified():
            return _quantified(node, values)
        case Apply():
            return _apply(node, values)
        case _:
            assert_never(node)


def _column(node: Column, values: Values) -> _Phrase:
    subject = _inside(node.index, values, _Binds.ATOM)
    if name := column_name(node):
        return f"{subject}.{name}", _Binds.ATOM
    chosen = members_where(node)
    if chosen is not None:
        return _one_of(subject, chosen, negated=False), _Binds.COMPARE
    sort = node.index.sort
    keys: tuple[object, ...] = sort.members if isinstance(sort, EnumSort) else ()
    rows = [
        f"{k.name if isinstance(k, Enum) else i}: {show(v)}"
        for i, (k, v) in enumerate(zip(keys or node.values, node.values, strict=False))
    ]
    return f"{{{', '.join(rows)}}}[{words(node.index, values)}]", _Binds.ATOM


def _folded(node: Quantified, values: Values) -> _Phrase:
    """`(total of coins[n] over n in Node)`; of a set only its members count."""
    over, body = str(node.bound.sort), node.body
    match body:
        case Apply(Op.IF, (condition, number, Literal())) if members := _set_of(
            condition, node.bound
        ):
            over, body = _inside(members, values, _Binds.ATOM), number
        case _:
            pass
    binder = f"{node.bound.name} in {over}"
    return f"({node.quantity.name.lower()} of {words(body, values)} over {binder})", _Binds.ATOM


def _quantified(node: Quantified, values: Values) -> _Phrase:
    if node.quantity in {Quantity.TOTAL, Quantity.LEAST, Quantity.GREATEST}:
        return _folded(node, values)
    # A quantified variable shadows nothing: each has its own serial.
    over, body = _restriction(node, values)
    if node.quantity is Quantity.COUNT and body is None:
        return f"size of {over}", _Binds.ADD
    binder = f"{node.bound.name} in {over}"
    text = "true" if body is None else words(body, values)
    match node.quantity:
        case Quantity.EVERY:
            return f"every {binder}: {text}", _Binds.SENTENCE
        case Quantity.SOME:
            return f"some {binder}: {text}", _Binds.SENTENCE
        case Quantity.COUNT:
            return f"(number of {binder} with {text})", _Binds.ATOM
        case _:
            raise AssertionError(f"{node.quantity} is put in words by `_folded`")


def _restriction(node: Quantified, values: Values) -> tuple[str, Node | None]:
    """What is quantified over, and the body: `t in done` says that only members of a set count.

    No body is left where membership is all that is asked.
    """
    whole = (str(node.bound.sort), node.body)
    if node.quantity is Quantity.EVERY:
        pair = implication(node.body)
        members = _set_of(pair[0], node.bound) if pair else None
        return (_inside(members, values, _Binds.ATOM), pair[1]) if pair and members else whole
    parts = list(dict.fromkeys(_conjuncts(node.body)))
    members = _set_of(parts[0], node.bound) if parts else None  # nothing is asked of it
    if members is None or (len(parts) == 1 and node.quantity is Quantity.SOME):
        return whole
    rest = Apply(Op.AND, tuple(parts[1:]), BOOL) if parts[1:] else None
    return _inside(members, values, _Binds.ATOM), rest


def _set_of(node: Node, bound: Bound) -> Node | None:
    """The set, when the condition says that the bound variable is one of its members."""
    if isinstance(node, Apply) and node.op is Op.MEMBER and node.args[0] == bound:
        return node.args[1]
    return None


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, Apply) and node.op is Op.AND:
        return [part for arg in node.args for part in _conjuncts(arg)]
    return [node]


def _apply(node: Apply, values: Values) -> _Phrase:
    args = node.args
    match node.op:
        case Op.NOT:
            return _negated(args[0], values)
        case Op.AND:
            return _junction(" and ", "true", args, values, _Binds.AND)
        case Op.OR:
            return _or(node, values)
        case Op.EQ if _is_condition(args[0]) and _is_condition(args[1]):
            left, right = (_inside(a, values, _Binds.IMPLIES) for a in args)
            return f"{left} exactly when {right}", _Binds.SENTENCE
        case Op.EQ | Op.LT | Op.LE | Op.MEMBER:
            return _comparison(node, values, negated=False), _Binds.COMPARE
        case Op.ADD | Op.SUB | Op.UNION | Op.INTERSECTION | Op.DIFFERENCE:
            left = _inside(args[0], values, _Binds.ADD)
            return (
                f"{left} {_ADDITIVE[node.op]} {_inside(args[1], values, _Binds.MULTIPLY)}",
                _Binds.ADD,
            )
        case Op.NEXT | Op.PREVIOUS:
            word = "one after" if node.op is Op.NEXT else "one before"
            return f"the {word} {_inside(args[0], values, _Binds.ATOM)}", _Binds.ADD
        case Op.LAST:
            return f"the last {node.sort}", _Binds.ATOM
        case Op.MUL | Op.DIV | Op.MOD:
            left = _inside(args[0], values, _Binds.MULTIPLY)
            right = _inside(args[1], values, _Binds.ATOM)
            return f"{left} {_MULTIPLICATIVE[node.op]} {right}", _Binds.MULTIPLY
        case Op.SET:
            return f"{{{', '.join(words(a, values) for a in args)}}}", _Binds.ATOM
        case Op.OR_ELSE:
            value, default = (_inside(a, values, _Binds.ADD) for a in args)
            return f"({value}, or {default} if none)", _Binds.ATOM
        case Op.LEAST | Op.GREATEST:
            listed = ", ".join(words(a, values) for a in args)
            return f"{node.op.name.lower()} of ({listed})", _Binds.ATOM
        case Op.RECORD | Op.LENGTH | Op.ITEM | Op.APPEND | Op.INSERT | Op.REMOVE:
            return _made(node, values)
        case Op.IF:
            condition, then, otherwise = (_inside(a, values, _Binds.OR) for a in args)
            return f"(if {condition} then {then} else {otherwise})", _Binds.ATOM
        case _:
            assert_never(node.op)


def _made(node: Apply, values: Values) -> _Phrase:
    """A record, or what is said of a sequence."""
    args = node.args
    match node.op, node.sort:
        case Op.RECORD, RecordSort(_, fields):
            pieces = (
                f"{name}: {words(a, values)}" for (name, _), a in zip(fields, args, strict=True)
            )
            return f"{node.sort}({', '.join(pieces)})", _Binds.ATOM
        case Op.LENGTH, _:
            return f"length of {_inside(args[0], values, _Binds.ATOM)}", _Binds.ADD
        case Op.ITEM, _:
            return _item(args[0], args[1], values), _Binds.ATOM
        case Op.APPEND, _:
            parts = _inside(args[0], values, _Binds.ADD), _inside(args[1], values, _Binds.ATOM)
            return f"{parts[0]} followed by {parts[1]}", _Binds.ADD
        case Op.INSERT, _:
            new = f"{words(args[2], values)} inserted at {words(args[1], values)}"
            return f"({_inside(args[0], values, _Binds.ADD)} with {new})", _Binds.ATOM
        case _:
            sequence = _inside(args[0], values, _Binds.ATOM)
            return f"{sequence} without {_item(args[0], args[1], values)}", _Binds.ADD


def _is_next(index: Node, other: Node) -> bool:
    """Whether an index is that of the element after another."""
    match index, other:
        case Literal(int() as number), Literal(int() as before):
            return number == before + 1
        case Apply(Op.ADD, (number, Literal(1))), before:
            return number == before
        case _:
            return False


def _item(sequence: Node, index: Node, values: Values) -> str:
    if isinstance(index, Literal) and index.value == 0:
        return f"the head of {_inside(sequence, values, _Binds.ATOM)}"
    return f"{_inside(sequence, values, _Binds.ATOM)}[{words(index, values)}]"


def _is_condition(node: Node) -> bool:
    return isinstance(node.sort, BoolSort) and isinstance(node, Apply | Quantified | Column)


def _or(node: Apply, values: Values) -> _Phrase:
    if listed := alternatives(node):
        subject, chosen = listed
        return _one_of(_inside(subject, values, _Binds.ADD), chosen, negated=False), _Binds.COMPARE
    if pair := implication(node):
        premise = _inside(pair[0], values, _Binds.OR)
        return f"{premise} implies {_inside(pair[1], values, _Binds.OR)}", _Binds.IMPLIES
    return _junction(" or ", "false", node.args, values, _Binds.OR)


def _junction(
    joiner: str, empty: str, args: tuple[Node, ...], values: Values, binds: _Binds
) -> _Phrase:
    if not args:
        return empty, _Binds.ATOM
    if len(args) == 1:
        return _phrase(args[0], values)
    # Phrases of the same joiner need no parentheses, for both are associative. An `and` inside of an
    # `or` gets them although it binds tighter: readers differ.
    parts = (_phrase(a, values) for a in dict.fromkeys(args))
    pieces = (t if b is binds or b >= _Binds.NOT else f"({t})" for t, b in parts)
    return joiner.join(pieces), binds


def _negated(node: Node, values: Values) -> _Phrase:
    match node:
        case Apply(Op.EQ | Op.LT | Op.LE | Op.MEMBER):
            return _comparison(node, values, negated=True), _Binds.COMPARE
        case Quantified(Quantity.SOME):
            return f"no{words(node, values).removeprefix('some')}", _Binds.SENTENCE
        case Quantified(Quantity.EVERY):
            return f"not {words(node, values)}", _Binds.SENTENCE
        case _:
            if listed := alternatives(node):
                subject = _inside(listed[0], values, _Binds.ADD)
                return _one_of(subject, listed[1], negated=True), _Binds.COMPARE
            return f"not {_inside(node, values, _Binds.ATOM)}", _Binds.NOT


def _one_of(subject: str, chosen: tuple[Value, ...], *, negated: bool) -> str:
    verb = "is not" if negated else "is"
    if len(chosen) == 1:
        return f"{subject} {verb} {show(chosen[0])}"
    if not chosen:
        return f"{subject} {verb} one of none"
    return f"{subject} {verb} one of {', '.join(map(show, chosen))}"


def _comparison(node: Apply, values: Values, *, negated: bool) -> str:
    left, right = node.args
    if node.op is Op.MEMBER:
        verb = "is not in" if negated else "is in"
        return f"{_inside(left, values, _Binds.ADD)} {verb} {_inside(right, values, _Binds.ADD)}"
    if node.op is Op.EQ:
        if pair := against_literal(node):
            subject, literal = pair
            verb = "is not" if negated else "is"
            text = "empty" if literal.value == frozenset() else show(literal.value)
            return f"{_inside(subject, values, _Binds.ADD)} {verb} {text}"
        sign = "≠" if negated else "="
    else:
        sign = _COMPARISONS[node.op]
        sign = _OPPOSITE[sign] if negated else sign
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right = right, left
            sign = _MIRRORED[sign]
    return f"{_inside(left, values, _Binds.ADD)} {sign} {_inside(right, values, _Binds.ADD)}"
