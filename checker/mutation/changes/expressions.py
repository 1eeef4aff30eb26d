"""Changes of an expression in one place: one of what it joins is left out, a bound is off by one, a branch is always taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stagewright.checker.mutation.changes.requirements import all_but_one
from stagewright.spec.nodes import (
    BOOL,
    FALSE,
    TRUE,
    Apply,
    Column,
    Field,
    Literal,
    Node,
    Op,
    Quantified,
    Quantity,
    Select,
    children,
)
from stagewright.spec.sorts import BoolSort, EntitySort, EnumSort, IntSort
from stagewright.spec.text.words import words

Path = tuple[int, ...]
"""The numbers of the children on the way to a part of an expression."""

Change = tuple[Path, str]
"""Where, and the name of what is changed there."""


def changed(node: Node, path: Path, name: str) -> Node:
    """The expression with one change; as it is where it is of another form."""
    if not path:
        for change, _, new in _at_top(node) if name not in _WHOLE else _of_whole(node):
            if change == name:
                return new
        return node
    inner = children(node)
    if path[0] >= len(inner):
        return node
    return with_child(node, path[0], changed(inner[path[0]], path[1:], name))


def changes(
    node: Node, others: frozenset[int], path: Path = ()
) -> Iterator[tuple[Change, str, Node]]:
    """Where and what may be changed, in words; `others` are left as they are."""
    if not path:
        for name, text, new in _of_whole(node):
            yield (path, name), text, new
    if id(node) in others:
        return
    joined = {f"without {i}" for i, c in enumerate(children(node)) if _continues(node, c, others)}
    for name, text, new in _at_top(node):
        if name not in joined:  # of `a & b & c` one is left out at a time
            yield (path, name), text, new
    for i, child in enumerate(children(node)):
        yield from changes(child, others, (*path, i))


def _continues(node: Node, child: Node, others: frozenset[int]) -> bool:
    """Whether a conjunction goes on in one of its arguments, or a disjunction."""
    ops = {
        node.op if isinstance(node, Apply) else None,
        child.op if isinstance(child, Apply) else None,
    }
    return id(child) not in others and ops in ({Op.AND}, {Op.OR})


_WHOLE = {"always", "never", "more", "less"}
_ONE = IntSort(1, 1)


def _of_whole(node: Node) -> Iterator[tuple[str, str, Node]]:
    """Changes of all that a helper returns: a name, the same in words, and what it is then."""
    match node.sort:
        case BoolSort() if not isinstance(node, Literal):
            yield "always", "is always so", TRUE
            yield "never", "is never so", FALSE
        case IntSort(low, high):
            one = Literal(1, _ONE)
            more, less = IntSort(low + 1, high + 1), IntSort(low - 1, high - 1)
            yield "more", "is one more", Apply(Op.ADD, (node, one), more)
            yield "less", "is one less", Apply(Op.SUB, (node, one), less)
        case _:
            pass


def _at_top(node: Node) -> Iterator[tuple[str, str, Node]]:
    """Changes of an expression's outermost operation."""
    match node:
        case Apply(Op.AND | Op.OR, args) if not {TRUE, Apply(Op.AND, (), BOOL)} & {*args}:
            for i, arg in enumerate(args):
                rest = (*args[:i], *args[i + 1 :])
                new = rest[0] if len(rest) == 1 else replace(node, args=rest)
                if rest and arg not in rest:
                    yield f"without {i}", f"does not mention: {words(arg)}", new
        case Apply(Op.LT | Op.LE, _):
            new = replace(node, op=Op.LE if node.op is Op.LT else Op.LT)
            yield "bound", f"says {words(new)}, not {words(node)}", new
        case Apply(Op.IF, (_, Literal(1), Literal(0))):
            pass  # it counts, and what is counted is changed by itself
        case Apply(Op.IF, (condition, *branches)):
            for i, branch in enumerate(branches):
                negated = "not " if i else ""
                new = _as_wide(branch, node)
                yield (
                    f"branch {i}",
                    f"takes it that {negated}{words(condition)}: {words(branch)}",
                    new,
                )
        case Apply(Op.UNION | Op.INTERSECTION | Op.DIFFERENCE, args):
            for i, arg in enumerate(args[1:] if node.op is Op.DIFFERENCE else args):
                kept = args[0] if node.op is Op.DIFFERENCE else args[1 - i]
                yield f"without {i}", f"does not mention: {words(arg)}", kept
        case Quantified(Quantity.EVERY, bound, body) if isinstance(
            bound.sort, EntitySort | EnumSort
        ):
            yield "all but one", f"asks all but one of: {words(node)}", all_but_one(bound, body)
        case _:
            pass


def _as_wide(branch: Node, whole: Apply) -> Node:
    """A branch in the place of the whole; of optional values the sort stays that of the whole."""
    if branch.sort == whole.sort:
        return branch
    return replace(whole, args=(TRUE, branch, branch))


def with_child(node: Node, index: int, child: Node) -> Node:
    """The same with another child."""
    match node:
        case Apply(_, args):
            return replace(node, args=(*args[:index], child, *args[index + 1 :]))
        case Select():
            return replace(node, base=child) if index == 0 else replace(node, key=child)
        case Field():
            return replace(node, base=child)
        case Column():
            return replace(node, index=child)
        case Quantified():
            return replace(node, body=child)
        case _:
            return node
