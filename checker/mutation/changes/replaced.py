"""Mutants in which a guard or an effect names something else: the wrong member, parameter or quantifier, or a number off by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from stagewright.checker.mutation.changes.disabled import reasons_never, reasons_of_fault
from stagewright.checker.mutation.changes.mutants import Kind, Mutant, with_action
from stagewright.checker.mutation.changes.reasons import reasons_of_replacement
from stagewright.spec.definition import (
    Action,
    Assignment,
    Definition,
    Requirement,
)
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
    Select,
)
from stagewright.spec.sorts import BoolSort, EntitySort, EnumSort, IntSort
from stagewright.spec.text.words import words

Replacement = tuple[str, Node]
"""What is there instead, in words, and the whole expression with it."""

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
            for text, condition in _numbered(_replaced(guard.condition, action)):
                other = replace(guard, condition=condition)
                yield _mutant(definition, action, guard, other, f"{guard.name}: {text}")
    for assignment in action.assignments:
        for text, value in _numbered(_replaced(assignment.value, action)):
            other = replace(assignment, value=value)
            text = f"{words(assignment.place)} becomes: {text}"
            yield _mutant(definition, action, assignment, other, text)
        for text, place in _numbered(_replaced(assignment.place, action)):
            other = replace(assignment, place=place)
            text = f"{words(assignment.place)} is assigned: {text}"
            yield _mutant(definition, action, assignment, other, text)


def _replaced(node: Node, action: Action) -> Iterator[Replacement]:
    """The expression with one thing in it replaced, everywhere in turn."""
    yield from _here(node, action)
    for old, rebuilt in _children(node):
        for text, new in _replaced(old, action):
            yield text, rebuilt(new)


def _here(node: Node, action: Action) -> Iterator[Replacement]:
    """What else may stand in the place of an expression, or of its outermost operation."""
    match node:
        case Literal(value, EnumSort() as sort):
            members = sort.members
            if len(members) > 1:
                at = [m.name for m in members].index(value.name)
                yield _instead(node, Literal(members[(at + 1) % len(members)], sort))
        case Literal(bool() as value, BoolSort()):
            yield _instead(node, Literal(not value, BOOL))
        case Literal(int() as value, IntSort()):
            for other in (value - 1, value + 1):
                if other >= 0:
                    yield _instead(node, Literal(other, IntSort(other, other)))
        case Bound(_, EntitySort()):
            for param in action.params:
                if param.sort == node.sort and param != node:
                    yield _instead(node, param)
        case Quantified(quantity) if quantity in _OTHER_QUANTITY:
            other = replace(node, quantity=_OTHER_QUANTITY[quantity])
            yield words(other), other
        case Apply(op) if op in _OTHER_OP:
            yield _instead(node, replace(node, op=_OTHER_OP[op]))
        case _:
            pass


def _instead(old: Node, new: Node) -> Replacement:
    return f"{words(new)} for {words(old)}", new


def _children(node: Node) -> Iterator[tuple[Node, Callable[[Node], Node]]]:
    """The direct sub-expressions that may be replaced, each with what puts another one in its place."""
    match node:
        case Apply(_, args):
            for i, arg in enumerate(args):
                yield (
                    arg,
                    lambda new, i=i, args=args: replace(
                        node, args=(*args[:i], new, *args[i + 1 :])
                    ),
                )
        case Select(base, key):
            yield base, lambda new: replace(node, base=new)
            yield key, lambda new: replace(node, key=new)
        case Field(base):
            yield base, lambda new: replace(node, base=new)
        case Column(_, index):
            yield index, lambda new: replace(node, index=new)
        case Quantified(_, _, body):
            yield body, lambda new: replace(node, body=new)
        case _:
            pass


def _numbered(found: Iterator[Replacement]) -> Iterator[Replacement]:
    """The same change in several places has a number from the second on."""
    seen = Counter[str]()
    for text, new in found:
        seen[text] += 1
        yield (text if seen[text] == 1 else f"{text} ({seen[text]})"), new


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
    # a guard may refuse what may never happen, but what happens then happens as it should; a fault may do anything
    never = reasons_never if isinstance(old, Requirement) else reasons_of_fault
    return Mutant(
        Kind.REPLACE,
        action.name,
        text,
        partial(with_action, definition, action, changed),
        old.where or action.where,
        (*reasons_of_replacement(definition, old, text), *never(definition, action)),
        old.part,
    )
