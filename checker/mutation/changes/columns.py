"""Mutants of the tables: a member has another value in one column.

A column is read in many ways: by requirements, effects and promises, by lambdas, and as plain Python
while a body is traced. So the table itself is changed, and the machine traced once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import cast

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, owner_of
from stagewright.spec.definition import Definition, EquivalentValue, Reason
from stagewright.spec.nodes import Node, children
from stagewright.spec.sorts import (
    EnumSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.source import Source, of_class
from stagewright.spec.terms.tracing import part_at_work
from stagewright.spec.values import show


def swapped_columns(definition: Definition, afresh: Callable[[], Definition]) -> Iterator[Mutant]:
    """Each value of each column replaced by each other one that occurs in the column."""
    tables = _tables(definition)
    read = _read_columns(tables, afresh)
    for kind in tables:
        where = _rows(kind)
        for column in _columns(kind):
            if (kind, column) not in read:
                continue
            part = owner_of(read[kind, column], definition.checked_alone)
            held = [getattr(member, column) for member in kind]
            others = list(dict.fromkeys(v for v in held if _hashable(v)))
            for member, value in zip(kind, held, strict=True):
                for other in others:
                    if other != value:
                        yield _swap(definition, afresh, member, column, other, where, part)


def _read_columns(
    tables: Sequence[type[Enum]], afresh: Callable[[], Definition]
) -> dict[tuple[type[Enum], str], set[str]]:
    """The columns that are looked at while the machine is traced, with the parts whose members do so.

    To change another one changes nothing.
    """
    read: dict[tuple[type[Enum], str], set[str]] = {}

    def noting(member: Enum, name: str) -> object:
        read.setdefault((type(member), name), set()).add(part_at_work())
        return object.__getattribute__(member, name)

    try:
        for kind in tables:
            type.__setattr__(kind, "__getattribute__", noting)
        afresh()
    finally:
        for kind in tables:
            if "__getattribute__" in vars(kind):
                type.__delattr__(kind, "__getattribute__")
    return read


def unknown_values(definition: Definition) -> Iterator[EquivalentValue]:
    """What is said of values and no table has."""
    tables = _tables(definition)
    for said in definition.equivalents:
        if isinstance(said, EquivalentValue):
            wanted = {type(member) for member in said.members}
            known = {kind for kind in tables if said.column in _columns(kind)}
            if not wanted <= known:
                yield said


def _swap(
    definition: Definition,
    afresh: Callable[[], Definition],
    member: Enum,
    column: str,
    value: object,
    where: Mapping[str, Source],
    part: str,
) -> Mutant:
    old = getattr(member, column)

    def made() -> Definition:
        with _changed(member, column, value):
            return afresh()

    table = type(member).__name__
    return Mutant(
        Kind.SWAP,
        "",
        f"{table}.{member.name}.{column} is {_shown(value)}, not {_shown(old)}",
        made,
        where.get(member.name) or of_class(type(member)),
        tuple(_reasons(definition, member, column, value)),
        part,
    )


@contextmanager
def _changed(member: Enum, column: str, value: object) -> Iterator[None]:
    before = getattr(member, column)
    setattr(member, column, value)
    try:
        yield
    finally:
        setattr(member, column, before)


def _tables(definition: Definition) -> tuple[type[Enum], ...]:
    """The enums with columns that the definition speaks of."""
    found: dict[type[Enum], None] = {}
    for sort in _sorts(definition):
        for kind in _enums(sort):
            if _columns(kind):
                found[kind] = None
    return tuple(found)


def _sorts(definition: Definition) -> Iterator[Sort]:
    yield from (variable.sort for variable in definition.variables)
    for action in definition.actions:
        yield from (p.sort for p in action.params)
        for guard in action.requirements:
            yield from (node.sort for node in _nodes(guard.condition))
        for assignment in action.assignments:
            yield from (node.sort for node in _nodes(assignment.value))
    for prop in definition.properties:
        yield from (node.sort for node in _nodes(prop.condition))


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _enums(sort: Sort) -> Iterator[type[Enum]]:
    match sort:
        case EnumSort(kind):
            yield kind
        case OptionalSort(element) | SetSort(element) | SeqSort(element):
            yield from _enums(element)
        case MapSort(key, value):
            yield from _enums(key)
            yield from _enums(value)
        case RecordSort(_, fields):
            for _, inner in fields:
                yield from _enums(inner)
        case _:
            pass


def _columns(kind: type[Enum]) -> list[str]:
    members = list(kind)
    return [name for name in vars(members[0]) if not name.startswith("_")] if members else []


def _rows(kind: type[Enum]) -> Mapping[str, Source]:
    """Where each member's row stands."""
    start = of_class(kind)
    found: dict[str, Source] = {}
    names = {member.name for member in kind}
    for line in range(start.line + 1, start.line + 400):
        place = Source(start.file, line)
        name, equals, _ = place.text().partition("=")
        if equals and name.strip() in names and name.strip() not in found:
            found[name.strip()] = place
        if len(found) == len(names):
            break
    return found


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _shown(value: object) -> str:
    if isinstance(value, frozenset):  # sets have no order of their own
        members = sorted(_shown(member) for member in cast("frozenset[object]", value))
        return f"{{{', '.join(members)}}}"
    return show(value) if isinstance(value, bool | int | Enum) else repr(value)


def _reasons(definition: Definition, member: Enum, column: str, value: object) -> Iterator[Reason]:
    for said in definition.equivalents:
        if (
            isinstance(said, EquivalentValue)
            and member in said.members
            and said.column == column
            and (not said.values or value in said.values)
        ):
            yield said.reason
