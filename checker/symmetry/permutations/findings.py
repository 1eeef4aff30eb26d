"""Where a definition tells the members of a sort apart, read from its expression tree.

Every operation of the language treats the members of an entity sort alike: quantifiers, parameters,
equality, maps and sets of them commute with any permutation, and no operation compares or adds them
unless they are ordered. (Those of an ordered entity are never taken for interchangeable.)
So a definition without a finding is symmetric, by induction over its expressions; what is left are
members named one by one: in an expression, in a column's values, in an initial value, or as the index
of a column. A finding may still be harmless (each member may be named in its turn): the ground form decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from stagewright.checker.symmetry.groups import Kind
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Apply, Column, Literal, Node, Op, children
from stagewright.spec.sorts import EntitySort, EnumSort, RecordSort, Sort
from stagewright.spec.source import Source
from stagewright.spec.values import Value, show

_ORDERED = {
    Op.LT,
    Op.LE,
    Op.ADD,
    Op.SUB,
    Op.MUL,
    Op.DIV,
    Op.MOD,
    Op.LEAST,
    Op.GREATEST,
    Op.NEXT,
    Op.PREVIOUS,
}
# never decided on orbits
_UNDECIDED = {PropertyKind.REACHABLE, PropertyKind.LEADS_TO, PropertyKind.EVENTUALLY}


@dataclass(frozen=True)
class Finding:
    """What tells members apart, in words, and where it is written."""

    what: str
    where: Source | None

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where is not None else self.what


def findings(definition: Definition, kind: Kind, size: int) -> Iterator[Finding]:
    """Everything that tells members of the sort apart, in the order of the definition."""
    for variable in definition.variables:
        if (named := _named(variable.initial, kind, size)) is not None:
            what = f"the initial value of `{variable.name}` names {named}"
            yield Finding(what, variable.where)
    for place, node, where in _expressions(definition):
        yield from findings_in(node, kind, size, place, where)


def _expressions(definition: Definition) -> Iterator[tuple[str, Node, Source | None]]:
    """Every expression that counts: where it stands, in words; the expression; its place in the file."""
    for node in definition.initially:
        yield "a condition on the initial states", node, node.where
    for action in definition.actions:
        for requirement in action.requirements:
            where = requirement.where or action.where
            yield (
                f"requirement `{requirement.name}` of `{action.name}`",
                requirement.condition,
                where,
            )
        for assignment in action.assignments:
            where = assignment.where or action.where
            yield f"an effect of `{action.name}`", assignment.place, where
            yield f"an effect of `{action.name}`", assignment.value, where
    for prop in definition.properties:
        if prop.kind not in _UNDECIDED:
            yield f"{prop.kind.value} `{prop.name}`", prop.condition, prop.where
    yield "what is final", definition.final, definition.final.where


def findings_in(
    node: Node, kind: Kind, size: int, place: str, where: Source | None = None
) -> Iterator[Finding]:
    """Everything in one expression that tells members of the sort apart; `place` says where it stands."""
    where = node.where or where
    match node:
        case Literal(value):
            if (named := _named(value, kind, size)) is not None:
                yield Finding(f"{place} names {named}", where)
        case Column(values, index):
            if _is_of(index, kind) and any(value != values[0] for value in values):
                yield Finding(f"{place} reads a column of {kind.__name__}", where)
            for value in values:
                if (named := _named(value, kind, size)) is not None:
                    yield Finding(f"{place} reads a column with {named} in it", where)
                    break
        case Apply(op, args) if op in _ORDERED and any(_is_of(arg, kind) for arg in args):
            yield Finding(f"{place} puts members of {kind.__name__} in an order", where)
        case Apply(Op.ITEM, _, sort) if _mentions(sort, kind):
            yield Finding(f"{place} reads an element of a queue that may lack it", where)
        case _:
            pass
    for child in children(node):
        yield from findings_in(child, kind, size, place, where)


def _is_of(node: Node, kind: Kind) -> bool:
    return isinstance(node.sort, EntitySort | EnumSort) and node.sort.kind is kind


def _mentions(sort: Sort, kind: Kind) -> bool:
    """Whether a value of the sort may be a member, or have one as a field."""
    match sort:
        case EntitySort() | EnumSort():
            return sort.kind is kind
        case RecordSort(_, fields):
            return any(_mentions(field, kind) for _, field in fields)
        case _:
            return False


def _named(value: object, kind: Kind, size: int) -> str | None:
    """The first member that a value names; a set of all members names none.

    Members that have names are told apart anyway: the others may still be interchangeable.
    """
    if isinstance(value, kind):
        return None if _has_name(value) else f"`{_shown(value)}`"
    if isinstance(value, frozenset):
        members = [m for m in value if isinstance(m, kind) and not _has_name(m)]
        if members and len(members) < size:
            return f"`{_shown(min(members, key=_number))}`"
    if isinstance(value, Mapping):
        parts = (_named(part, kind, size) for part in value.values())
        return next((part for part in parts if part is not None), None)
    return None


def _has_name(member: object) -> bool:
    return isinstance(member, Entity) and member.index < len(member.member_names)


def _number(member: object) -> int:
    return list(type(member)).index(member) if isinstance(member, Enum) else member.index  # type: ignore[attr-defined]


def _shown(member: Value) -> str:
    if isinstance(member, Enum):
        return f"{type(member).__name__}.{member.name}"
    return show(member)
