"""Mutants that ask for less: a requirement is left out, or weakened in one place, or does not wait for one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, with_action
from stagewright.checker.mutation.changes.reasons import reasons_of_requirement
from stagewright.spec.definition import Action, Definition, Requirement
from stagewright.spec.nodes import (
    BOOL,
    TRUE,
    Apply,
    Bound,
    Column,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
)
from stagewright.spec.sorts import BoolSort, EntitySort, EnumSort, IntSort
from stagewright.spec.terms.binding import UNBOUNDED
from stagewright.spec.text.words import requirement as in_words, words

_ONE = Literal(1, IntSort(1, 1))
_MANY = IntSort(0, UNBOUNDED)  # the upper bound of a count is the scope's business


def changed_requirements(definition: Definition, action: Action) -> Iterator[Mutant]:
    """Each requirement of an action dropped, and weakened in each way."""
    for guard in action.requirements:
        if guard.bound:
            continue  # without it there would be more of the same, not another system
        others = tuple(r for r in action.requirements if r is not guard)
        dropped = replace(action, requirements=others)
        yield _mutant(Kind.DROP, definition, action, dropped, guard, in_words(guard))
        for less in _weaker_once(guard):
            requirements = tuple(
                replace(r, condition=less) if r is guard else r for r in action.requirements
            )
            changed = replace(action, requirements=requirements)
            text = f"{guard.name}: only {words(less)}"
            yield _mutant(Kind.WEAKEN, definition, action, changed, guard, text)

        for barrier, less in dict(_skipping(guard.condition)).items():
            requirements = tuple(
                replace(r, condition=less) if r is guard else r for r in action.requirements
            )
            changed = replace(action, requirements=requirements)
            text = f"{guard.name}: all but one of: {words(barrier)}"
            yield _mutant(Kind.SKIP, definition, action, changed, guard, text)


def _mutant(
    kind: Kind,
    definition: Definition,
    old: Action,
    new: Action,
    guard: Requirement,
    text: str,
) -> Mutant:
    return Mutant(
        kind,
        old.name,
        text,
        lambda: with_action(definition, old, new),
        guard.where or old.where,
        tuple(reasons_of_requirement(definition, guard, dropped=kind is Kind.DROP)),
        guard.part,
    )


def _weaker_once(guard: Requirement) -> Iterator[Node]:
    """Two ways to the same condition are one; asking for nothing is to drop it."""
    for less in dict.fromkeys(weaker(guard.condition)):
        if less not in (guard.condition, TRUE, Apply(Op.AND, (), BOOL)):
            yield less


def weaker(node: Node) -> Iterator[Node]:
    """Conditions that follow from `node` and differ from it in one place; true itself is none of them."""
    yield from _relaxed(node, down=True)


def _relaxed(node: Node, *, down: bool) -> Iterator[Node]:
    """Weaker conditions (`down`), or stronger ones for what is negated."""
    match node:
        case Apply(Op.NOT, (inner,)):
            for other in _relaxed(inner, down=not down):
                yield replace(node, args=(other,))
        case Apply(Op.AND | Op.OR as op, args):
            loosens = (op is Op.AND) is down  # leaving out an argument goes the right way
            if loosens and len(args) > 1:
                for i in range(len(args)):
                    rest = (*args[:i], *args[i + 1 :])
                    yield rest[0] if len(rest) == 1 else replace(node, args=rest)
            for i, arg in enumerate(args):
                for other in _relaxed(arg, down=down):
                    yield replace(node, args=(*args[:i], other, *args[i + 1 :]))
        case Apply(Op.IF, (condition, then, otherwise)) if isinstance(node.sort, BoolSort):
            for other in _relaxed(then, down=down):
                yield replace(node, args=(condition, other, otherwise))
            for other in _relaxed(otherwise, down=down):
                yield replace(node, args=(condition, then, other))
        case Apply(Op.LT | Op.LE, (left, right)):
            yield from _by_one(node, left, right, down=down)
        case Quantified(quantity, _, body) if quantity in {Quantity.EVERY, Quantity.SOME}:
            for other in _relaxed(body, down=down):
                yield replace(node, body=other)
        case Column():
            pass  # swapping its values is a change of the table
        case _:
            pass


def _skipping(node: Node) -> Iterator[tuple[Node, Node]]:
    """Each barrier in a condition, and the condition that does not wait for one of those it waits for.

    A barrier waits until something is so of all members of a sort, or of a set.
    """
    match node:
        case Apply(Op.AND | Op.OR, args):
            for i, arg in enumerate(args):
                for barrier, other in _skipping(arg):
                    yield barrier, replace(node, args=(*args[:i], other, *args[i + 1 :]))
        case Quantified(Quantity.EVERY, bound, body):
            if isinstance(bound.sort, EntitySort | EnumSort):
                yield node, all_but_one(bound, body)
            for barrier, other in _skipping(body):
                yield barrier, replace(node, body=other)
        case Apply(Op.NOT, (Quantified(Quantity.SOME, bound, late),)):
            if isinstance(bound.sort, EntitySort | EnumSort):
                yield node, _at_most_one(bound, late)
        case _:
            pass


def all_but_one(bound: Bound, body: Node) -> Node:
    """That a condition holds for all of a sort but one at most."""
    return _at_most_one(bound, Apply(Op.NOT, (body,), BOOL))


def _at_most_one(bound: Bound, late: Node) -> Node:
    return Apply(Op.LE, (Quantified(Quantity.COUNT, bound, late, _MANY), _ONE), BOOL)


def _by_one(node: Apply, left: Node, right: Node, *, down: bool) -> Iterator[Node]:
    """`a <= b + 1` and `a <= b` for `a <= b` and `a < b`; `a < b` and `a + 1 < b` the other way.

    Of ordered members there is none that is one more.
    """
    more, stays = (right, left) if down else (left, right)
    if node.op is (Op.LT if down else Op.LE):
        yield replace(node, op=Op.LE if down else Op.LT)
    elif isinstance(more.sort, IntSort):
        added = Apply(Op.ADD, (more, _ONE), IntSort(more.sort.low + 1, more.sort.high + 1))
        yield replace(node, args=(stays, added) if down else (added, stays))
