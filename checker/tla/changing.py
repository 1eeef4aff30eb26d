"""Which actions certainly change something whenever they happen, as far as their text shows it.

For TLA+ a step that changes nothing is no step, so what is said of such steps has to be said apart:
only of the actions for which it is not plain that they have none.
"""

from __future__ import annotations

from stagewright.spec.definition import Action
from stagewright.spec.nodes import Apply, Column, Literal, Node, Op, Select
from stagewright.spec.sorts import EnumSort, OptionalSort, SetSort


def always_changes(action: Action) -> bool:
    """Whether some assignment plainly differs from the old value where the requirements hold."""
    facts = [r.condition for r in action.requirements]
    return any(
        _moves(_old(a.place), a.value)
        or any(_excludes(fact, _old(a.place), a.value) for fact in facts)
        for a in action.assignments
        if not a.binders
    )


def _old(place: Node) -> Node:
    """The value that a place has now, as conditions write it."""
    if isinstance(place, Select) and isinstance(place.base.sort, SetSort):
        return Apply(Op.MEMBER, (place.key, place.base), place.sort)
    return place


def _moves(old: Node, value: Node) -> bool:
    """Whether a value is made from the old one so that it differs."""
    match value:
        case Apply(Op.ADD | Op.SUB, (first, Literal(by))):
            return first == old and by != 0
        case Apply(Op.NOT, (denied,)):
            return denied == old
        case Apply(Op.APPEND, (first, _)):
            return first == old
        case _:
            return False


def _excludes(fact: Node, old: Node, value: Node) -> bool:
    """Whether the fact implies that the old value is another one."""
    match fact:
        case Apply(Op.AND, parts):
            return any(_excludes(part, old, value) for part in parts)
        case Apply(Op.OR, parts):
            return bool(parts) and all(_excludes(part, old, value) for part in parts)
        case Apply(Op.EQ, (left, right)):
            return (left == old and _unequal(right, value)) or (
                right == old and _unequal(left, value)
            )
        case Column(held, index) if index == old:
            return _no_member(held, index, value)
        case Apply(Op.NOT, (Apply(Op.EQ, (left, right)),)) if old in (left, right):
            return value in (left, right)
        case Apply(Op.NOT, (denied,)) if denied == old:
            return isinstance(value, Literal) and value.value is True
        case _:
            return fact == old and isinstance(value, Literal) and value.value is False


def _unequal(one: Node, other: Node) -> bool:
    """Whether two expressions never have the same value."""
    if isinstance(one, Literal) and isinstance(other, Literal):
        return one.value != other.value
    return any(
        isinstance(a, Literal) and a.value is None and not isinstance(b.sort, OptionalSort)
        for a, b in ((one, other), (other, one))
    )


def _no_member(held: tuple[object, ...], index: Node, value: Node) -> bool:
    """Whether a boolean column is false for a literal member."""
    if not isinstance(value, Literal) or not isinstance(index.sort, EnumSort):
        return False
    places = {member: place for place, member in enumerate(index.sort.members)}
    return any(m is value.value and held[place] is False for m, place in places.items())
