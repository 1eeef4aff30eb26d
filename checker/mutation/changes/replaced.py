"""Mutants in which a guard or an effect names something else: the wrong member, parameter or quantifier, or a number off by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from functools import partial

from stagewright.checker.mutation.changes.disabled import reasons_never, reasons_of_fault
from stagewright.checker.mutation.changes.expressions import with_child
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, with_action
from stagewright.checker.mutation.changes.reasons import (
    reasons_of_assignment,
    reasons_of_replacement,
)
from stagewright.spec.definition import Action, Assignment, Definition, Requirement
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    children,
)
from stagewright.spec.sorts import BoolSort, EntitySort, EnumSort, IntSort
from stagewright.spec.source import Source
from stagewright.spec.text.words import words

Site = tuple[str, Source | None]
"""What stands for what, in words, and in which line: where one line makes several expressions, all of them change."""

_OTHER_QUANTITY = {
    Quantity.EVERY: Quantity.SOME,
    Quantity.SOME: Quantity.EVERY,
    Quantity.LEAST: Quantity.GREATEST,
    Quantity.GREATEST: Quantity.LEAST,
}
_OTHER_OP = {
    Op.LEAST: Op.GREATEST,
    Op.GREATEST: Op.LEAST,
    Op.NEXT: Op.PREVIOUS,
    Op.PREVIOUS: Op.NEXT,
}


def replacements(definition: Definition, action: Action) -> Iterator[Mutant]:
    """Each guard and each effect of an action with one thing replaced."""
    for guard in action.requirements:
        if not guard.bound:
            for text, condition in _replaced(guard.condition, action):
                other = replace(guard, condition=condition)
                yield _mutant(definition, action, guard, other, f"{guard.name}: {text}")
    for effect in action.assignments:
        place = words(effect.place)
        for text, value in _replaced(effect.value, action):
            new = replace(effect, value=value)
            yield _mutant(definition, action, effect, new, f"{place} becomes: {text}")
        for text, elsewhere in _replaced(effect.place, action):
            new = replace(effect, place=elsewhere)
            yield _mutant(definition, action, effect, new, f"{place} is assigned: {text}")


def _replaced(node: Node, action: Action) -> Iterator[tuple[str, Node]]:
    """Each change in words, and the expression with it. In another line, the same change has a number."""
    seen = Counter[str]()
    for site in dict.fromkeys(_sites(node, action, None)):
        text, _ = site
        seen[text] += 1
        changed = _changed(node, action, None, site)
        yield (text if seen[text] == 1 else f"{text} ({seen[text]})"), changed


def _sites(node: Node, action: Action, where: Source | None) -> Iterator[Site]:
    where = node.where or where
    for text, _ in _here(node, action):
        yield text, where
    for _, child in _places(node):
        yield from _sites(child, action, where)


def _changed(node: Node, action: Action, where: Source | None, site: Site) -> Node:
    """The expression with what is said at a site replaced."""
    where = node.where or where
    for text, new in _here(node, action):
        if (text, where) == site:
            return new
    for number, child in [*_places(node)]:
        new = _changed(child, action, where, site)
        if new is not child:
            node = with_child(node, number, new)
    return node


def _here(node: Node, action: Action) -> Iterator[tuple[str, Node]]:
    """What else may stand in the place of an expression, or of its outermost operation."""
    match node:
        case Literal(Enum() as member, EnumSort(kind) as sort) if len(kind) > 1:
            members = [*kind]
            following = members[(members.index(member) + 1) % len(members)]
            yield _instead(node, Literal(following, sort))
        case Literal(bool() as value, BoolSort()):
            yield _instead(node, Literal(not value, BOOL))
        case Literal(int() as value, IntSort()):
            for number in (value - 1, value + 1):
                if number >= 0:
                    yield _instead(node, Literal(number, IntSort(number, number)))
        case Bound(_, EntitySort()):
            for param in action.params:
                if param.sort == node.sort and param != node:
                    yield _instead(node, param)
        case Quantified(quantity) if quantity in _OTHER_QUANTITY:
            quantified = replace(node, quantity=_OTHER_QUANTITY[quantity])
            yield words(quantified), quantified
        case Apply(op) if op in _OTHER_OP:
            yield _instead(node, replace(node, op=_OTHER_OP[op]))
        case _:
            pass


def _instead(old: Node, new: Node) -> tuple[str, Node]:
    return f"{words(new)} for {words(old)}", new


def _places(node: Node) -> Iterator[tuple[int, Node]]:
    """The numbers of the children in which something may be replaced, and these."""
    match node:
        case Apply(Op.IF, (condition, Literal(1), Literal(0))):
            yield 0, condition  # it counts
        case Apply(Op.DIV | Op.MOD, (dividend, _)):
            yield 0, dividend  # a divisor stays positive
        case _:
            yield from enumerate(children(node))


def _mutant(
    definition: Definition,
    action: Action,
    old: Requirement | Assignment,
    new: Requirement | Assignment,
    text: str,
) -> Mutant:
    changed = replace(
        action,
        requirements=tuple(new if r is old else r for r in action.requirements),  # type: ignore[misc]
        assignments=tuple(new if a is old else a for a in action.assignments),  # type: ignore[misc]
    )
    reasons = [*reasons_of_replacement(definition, old, text)]
    if isinstance(old, Requirement):
        reasons += reasons_never(definition, action)
    elif any(reasons_of_assignment(definition, old)):
        # What a fault may leave undone it may do otherwise.
        reasons += reasons_of_fault(definition, action)
    return Mutant(
        Kind.REPLACE,
        action.name,
        text,
        partial(with_action, definition, action, changed),
        old.where or action.where,
        tuple(reasons),
        old.part,
    )
