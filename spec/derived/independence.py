"""What actions do not wait for: `@independent(stream, clean_up, of=(request, written))`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stagewright.spec.definition import Action, Definition, Property
from stagewright.spec.nodes import (
    BOOL,
    TRUE,
    Apply,
    Node,
    Op,
    Quantified,
    Select,
    children,
    conjunction,
    for_all,
    variables_in,
)
from stagewright.spec.sorts import SetSort


def happens(prop: Property, actions: Sequence[Action]) -> bool:
    """Whether some of the actions that wait for nothing happen: another profile may have them."""
    return not {action.name for action in actions}.isdisjoint(prop.independent)


def waits_for_nothing(definition: Definition, prop: Property) -> Node:
    """The invariant: what the actions require of other variables implies what they require of these."""
    of = [a for a in definition.actions if a.name in prop.independent]
    return conjunction([for_all(a.params, _follows(a, prop.apart)) for a in of])


def _follows(action: Action, apart: Sequence[str]) -> Node:
    asked = [part for r in action.guards for part in _conjuncts(r.condition)]
    reads = [_reads(part, action, apart) for part in asked]
    others = [part for part, of_them in zip(asked, reads, strict=True) if not of_them]
    rest = [part for part, of_them in zip(asked, reads, strict=True) if of_them]
    if not rest:
        return TRUE
    free = Apply(Op.NOT, (conjunction(others),), BOOL)
    return Apply(Op.OR, (free, conjunction(rest)), BOOL, rest[0].where)


def _reads(condition: Node, action: Action, apart: Sequence[str]) -> bool:
    if any(_is_of(variable, apart) for variable in variables_in(condition)):
        return True
    return any(_is_of_others(node, action, apart) for node in _within(condition))


def _is_of_others(node: Node, action: Action, apart: Sequence[str]) -> bool:
    """Whether it speaks of members of a sort that are no parameters: of all, of some, or of a set as a whole."""
    match node:
        case Quantified(_, bound, _):
            return str(bound.sort) in apart
        case Select(_, key):
            return str(key.sort) in apart and key not in action.params
        case Apply(Op.MEMBER, _):
            return False
        case Apply(_, args):
            sets = [arg.sort for arg in args if isinstance(arg.sort, SetSort)]
            return any(str(sort.element) in apart for sort in sets)
        case _:
            return False


def _within(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _within(child)


def _conjuncts(node: Node) -> list[Node]:
    if isinstance(node, Apply) and node.op is Op.AND:
        return [part for arg in node.args for part in _conjuncts(arg)]
    return [node]


def _is_of(variable: str, apart: Sequence[str]) -> bool:
    """Whether it is one of these, or of a part that is."""
    return any(variable == name or variable.startswith(f"{name}.") for name in apart)
