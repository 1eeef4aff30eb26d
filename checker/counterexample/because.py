"""Why a condition is true or false in a state: the conjunct, witness and values that decide it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from stagewright.spec.interpreter import Interpreter
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
    children,
)
from stagewright.spec.sorts import MapSort, RecordSort
from stagewright.spec.text.words import Values, against_literal, alternatives, implication, words
from stagewright.spec.values import FrozenMap, State, Value, show

LISTED = 4  # of many alike reasons, so many are listed; of the others the number
LONGEST = 100  # characters of an expression quoted inside a sentence

_SIGNS = {Op.LT: ("<", "≥"), Op.LE: ("≤", ">")}
_MIRRORED = {"<": ">", ">": "<", "≤": "≥", "≥": "≤"}


@dataclass(frozen=True)
class Reason:
    """A sentence, and below it what makes it so."""

    text: str
    below: tuple[Reason, ...] = ()

    def lines(self, depth: int = 0) -> Iterator[tuple[int, str]]:
        """Every sentence with its depth, in reading order."""
        yield depth, self.text
        for reason in self.below:
            yield from reason.lines(depth + 1)


@dataclass(frozen=True)
class Because:
    """Explains conditions in one state, or (step properties) in one step.

    `state` and `new_state` are what reads of the old and the new state mean.
    """

    interpreter: Interpreter
    state: State
    new_state: State | None = None

    def value(self, node: Node, names: Values) -> Value:
        """What the expression is worth here."""
        return self.interpreter.evaluate(node, self.state, self.new_state, names)

    def reasons(self, node: Node, names: Values) -> tuple[Reason, ...]:
        """Why the condition is true or false: only the sentences that decide it."""
        truth = bool(self.value(node, names))
        match node:
            case Apply(Op.NOT, (inner,)):
                return self._leaf(node, names) if _is_leaf(inner) else self.reasons(inner, names)
            case Apply(Op.AND, args):
                return self._some_of(args, names) if not truth else self._each(args, names)
            case Apply(Op.OR, args) if alternatives(node) is None:
                return self._disjunction(node, args, names, truth)
            case Apply(Op.IF, (condition, then, otherwise)):
                chosen = then if self.value(condition, names) else otherwise
                return self.reasons(condition, names) + self.reasons(chosen, names)
            case Quantified(Quantity.EVERY | Quantity.SOME):
                return self._quantified(node, names, truth)
            case _:
                return self._leaf(node, names)

    def _some_of(self, args: Sequence[Node], names: Values) -> tuple[Reason, ...]:
        """The conjuncts that are false."""
        false = [a for a in args if not self.value(a, names)]
        return _capped([self.reasons(a, names) for a in false], "more conditions are false")

    def _each(self, args: Sequence[Node], names: Values) -> tuple[Reason, ...]:
        return tuple(r for a in args for r in self.reasons(a, names))

    def _disjunction(
        self, node: Node, args: Sequence[Node], names: Values, truth: bool
    ) -> tuple[Reason, ...]:
        if truth:
            return self.reasons(next(a for a in args if self.value(a, names)), names)
        if pair := implication(node):
            held: tuple[Reason, ...] = ()
            conclusion: Node = node
            while pair:  # a implies (b implies c): a and b hold, but c does not
                held += self.reasons(pair[0], names)
                conclusion = pair[1]
                pair = implication(conclusion)
            broken = self.reasons(conclusion, names)
            return held + tuple(Reason(f"but {r.text}", r.below) for r in broken[:1]) + broken[1:]
        return tuple(r for a in args for r in self.reasons(a, names))

    def _quantified(self, node: Quantified, names: Values, truth: bool) -> tuple[Reason, ...]:
        bounds, body = _prefix(node)
        wanted = node.quantity is Quantity.SOME  # the value of the body that decides
        text = words(node, names)
        if truth != wanted:
            # No witness: every choice says the same. Tell it once, and the choices one by one.
            if node.quantity is Quantity.EVERY:
                return (Reason(brief(text)),)
            single = [node.bound]
            lines = [
                (Reason(f"{_choice(single, more)}:", self.reasons(node.body, {**names, **more})),)
                for more in self._choices(single)
            ]
            quoted = brief(words(node.body, names))
            head = f"no {node.bound.name} in {node.bound.sort} has: {quoted}"
            return (Reason(head, _capped(lines, "more, none of which has it")),)
        for more in self._choices(bounds):
            if bool(self.value(body, {**names, **more})) == wanted:
                return (Reason(f"{_choice(bounds, more)}:", self.reasons(body, {**names, **more})),)
        raise AssertionError(f"no witness for {text}")

    def _choices(self, bounds: Sequence[Bound]) -> Iterator[dict[Bound, Value]]:
        for names in self.interpreter.instances(tuple(bounds)):
            yield dict(names)

    def _leaf(self, node: Node, names: Values) -> tuple[Reason, ...]:
        """A sentence with the values of what the condition compares."""
        truth = bool(self.value(node, names))
        positive, inner = _without_not(node)
        text = self._sentence(inner, names, holds=truth == positive)
        return (Reason(text, self._indices(inner, names) + self._counted(inner, names)),)

    def _sentence(self, node: Node, names: Values, *, holds: bool) -> str:
        if listed := alternatives(node):
            return self._against(listed[0], listed[1], names, holds)
        if pair := against_literal(node):
            return self._against(pair[0], (pair[1].value,), names, holds)
        match node:
            case Apply(Op.EQ, (left, right)):
                return self._equal(left, right, names, holds)
            case Apply(Op.LT | Op.LE as op, (left, right)):
                return self._compared(op, left, right, names, holds)
            case Apply(Op.MEMBER, (element, members)):
                verb = "is in" if holds else "is not in"
                element_words = self._in_words(element, names)
                return f"{element_words} {verb} {self._in_words(members, names)}"
            case _:
                return self._is(node, names)

    def _equal(self, left: Node, right: Node, names: Values, holds: bool) -> str:
        if isinstance(left, Bound) and isinstance(right, Bound):
            one, other = show(names[left]), show(names[right])
            if holds:
                return f"{left.name} and {right.name} are both {one}"
            return f"{left.name} ({one}) ≠ {right.name} ({other})"
        if isinstance(left, Bound):
            left, right = right, left
        if isinstance(right, Bound):
            return self._against(left, (names[right],), names, holds)
        if holds:
            both = show(self.value(left, names))
            return f"{words(left, names)} and {words(right, names)} are both {both}"
        if left.sort == BOOL:  # of two conditions, which may be long, each is said by itself
            return f"{self._is(left, names)}, but {self._is(right, names)}"
        return f"{self._in_words(left, names)} ≠ {self._in_words(right, names)}"

    def _against(self, subject: Node, wanted: tuple[Value, ...], names: Values, holds: bool) -> str:
        text = self._is(subject, names)
        if holds:
            return text
        listed = ", ".join(map(show, wanted))
        return f"{text}, not {listed}" if len(wanted) == 1 else f"{text}, none of {listed}"

    def _compared(self, op: Op, left: Node, right: Node, names: Values, holds: bool) -> str:
        sign = _SIGNS[op][0 if holds else 1]
        if isinstance(left, Literal) and not isinstance(right, Literal):
            left, right, sign = right, left, _MIRRORED[sign]
        return f"{self._in_words(left, names)} {sign} {self._in_words(right, names)}"

    def _is(self, node: Node, names: Values) -> str:
        """`learned[node1] is streaming`, `n is node1`; of a literal only the value."""
        value = show(self.value(node, names))
        if isinstance(node, Literal):
            return value
        name = node.name if isinstance(node, Bound) else words(node, names)
        return f"{name} is {value}"

    def _in_words(self, node: Node, names: Values) -> str:
        """`votes (3)`; of a literal or parameter only the value."""
        value = show(self.value(node, names))
        return value if isinstance(node, Literal | Bound) else f"{words(node, names)} ({value})"

    def _indices(self, node: Node, names: Values) -> tuple[Reason, ...]:
        """The values of the parts that a sentence about `node` only names."""
        data: dict[str, Reason] = {}
        for part in _silent_parts(node):
            if not isinstance(part.sort, MapSort | RecordSort):
                text = self._is(part, names)
                data.setdefault(text, Reason(text))
        return tuple(data.values())

    def _counted(self, node: Node, names: Values) -> tuple[Reason, ...]:
        """For each count in the condition, which members are counted."""
        reasons: list[Reason] = []
        for part in _walk(node):
            if isinstance(part, Quantified) and part.quantity is Quantity.COUNT:
                hits = [
                    c for c in self._choices([part.bound]) if self.value(part.body, {**names, **c})
                ]
                who = ", ".join(show(v) for c in hits for v in c.values()) or "none"
                reasons.append(Reason(f"counted: {who}"))
        return tuple(reasons)


def environment(params: Sequence[Bound], arguments: FrozenMap[str, Value]) -> dict[Bound, Value]:
    """The values of parameters by their names."""
    return {p: arguments[p.name] for p in params if p.name in arguments}


def brief(text: str) -> str:
    """The text, cut where it is too long to stand inside a sentence."""
    return text if len(text) <= LONGEST else text[: LONGEST - 2].rstrip() + " …"


def _capped(groups: Sequence[tuple[Reason, ...]], rest: str) -> tuple[Reason, ...]:
    kept = tuple(r for group in groups[:LISTED] for r in group)
    more = len(groups) - LISTED
    return (*kept, Reason(f"(and {more} {rest})")) if more > 0 else kept


def _choice(bounds: Sequence[Bound], names: Values) -> str:
    return ", ".join(f"{b.name} = {show(names[b])}" for b in bounds)


def _prefix(node: Quantified) -> tuple[list[Bound], Node]:
    """The bound variables of directly nested quantifiers of one kind, and the body below them."""
    bounds: list[Bound] = []
    body: Node = node
    while isinstance(body, Quantified) and body.quantity is node.quantity:
        bounds.append(body.bound)
        body = body.body
    return bounds, body


def _without_not(node: Node) -> tuple[bool, Node]:
    if isinstance(node, Apply) and node.op is Op.NOT:
        positive, inner = _without_not(node.args[0])
        return not positive, inner
    return True, node


def _is_leaf(node: Node) -> bool:
    """Whether the condition is explained in one sentence."""
    match node:
        case Apply(Op.NOT, (inner,)):
            return _is_leaf(inner)
        case Apply(Op.AND | Op.IF) | Quantified(Quantity.EVERY | Quantity.SOME):
            return False
        case Apply(Op.OR):
            return alternatives(node) is not None
        case _:
            return True


def _silent_parts(node: Node) -> Iterator[Node]:
    """State reads that choose a key, column or branch, or are summands: the sentence is silent."""
    match node:
        case Literal() | Bound() | Read():
            return
        case Field(base):
            yield from _silent_parts(base)
        case Select(base, key):
            yield from _silent_parts(base)
            yield from _places(key)
        case Column(_, index):
            if alternatives(node) is None:
                yield from _places(index)
            else:
                yield from _silent_parts(index)
        case Quantified():
            return
        case Apply(Op.EQ | Op.LT | Op.LE | Op.MEMBER | Op.NOT | Op.OR, args):
            for arg in args:
                yield from _silent_parts(arg)
        case Apply(_, args):
            for arg in args:
                yield from _places(arg)
        case _:
            assert_never(node)


def _places(node: Node) -> Iterator[Node]:
    if isinstance(node, Quantified):
        return
    if isinstance(node, Read | Select | Field):
        yield node
        yield from _silent_parts(node)
        return
    for child in children(node):
        yield from _places(child)


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _walk(child)
