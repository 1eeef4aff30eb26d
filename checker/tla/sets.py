"""Sorts as the sets of their values, single values, and what a variable may start with."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, assert_never

from stagewright.checker.tla.names import words_in
from stagewright.checker.tla.vocabulary import Vocabulary, field_names, member_names
from stagewright.spec.definition import AnyValue
from stagewright.spec.entities import Entity
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import Value


def set_of_values(sort: Sort, names: Vocabulary) -> str:
    """All values of a sort."""
    match sort:
        case BoolSort():
            return "BOOLEAN"
        case IntSort(low, high):
            return f"{number(low)}..{number(high)}"
        case EnumSort(kind):
            return names.enums[kind]
        case EntitySort(kind):
            return names.entities[kind]
        case OptionalSort(element):
            return f"{set_of_values(element, names)} \\cup {{{names.own.none}}}"
        case SetSort(element):
            return f"SUBSET {set_of_values(element, names)}"
        case MapSort(key, value):
            return f"[{set_of_values(key, names)} -> {set_of_values(value, names)}]"
        case RecordSort(kind) if kind in names.records:
            return names.records[kind]
        case RecordSort():
            return set_of_records(sort, names)
        case SeqSort(element, capacity):
            return f"{names.own.sequences}({set_of_values(element, names)}, {capacity})"
        case _:
            assert_never(sort)


def set_of_records(sort: RecordSort, names: Vocabulary) -> str:
    """All records of a sort: `[kind : Kind, sender : Node]`."""
    named = field_names(sort)
    inner = ", ".join(f"{named[n]} : {set_of_values(s, names)}" for n, s in sort.fields)
    return f"[{inner}]"


def number(value: int) -> str:
    """An integer; a negative one in parentheses, for TLA+ knows no negative literals."""
    return str(value) if value >= 0 else f"({value})"


def literal(value: Value, names: Vocabulary) -> str:
    """A single value: of a boolean, number, enum member, none, or set of members."""
    match value:
        case None:
            return names.own.none
        case bool():
            return "TRUE" if value else "FALSE"
        case Enum():
            return f'"{_members(type(value))[value]}"'
        case int():
            return number(value)
        case Entity():
            return names.members[type(value)][value.index]
        case tuple():
            return f"<<{', '.join(literal(v, names) for v in value)}>>"
        case frozenset():
            return "{" + ", ".join(literal(v, names) for v in sorted(value, key=_order)) + "}"
        case _:
            raise AssertionError(f"no single value: {value!r}")


@lru_cache(maxsize=256)
def _members(kind: type[Enum]) -> dict[Enum, str]:
    return member_names(kind)


def _order(value: Value) -> int:
    match value:
        case Enum():
            return list(type(value)).index(value)
        case Entity():
            return value.index
        case _:
            raise AssertionError(f"no member of a finite sort: {value!r}")


def first_of(sort: Sort, names: Vocabulary) -> str:
    """The first value of a scalar sort or a record."""
    match sort:
        case RecordSort(_, fields):
            named = field_names(sort)
            return f"[{', '.join(f'{named[n]} |-> {first_of(s, names)}' for n, s in fields)}]"
        case BoolSort():
            return "FALSE"
        case IntSort(low):
            return number(low)
        case EnumSort():
            return literal(sort.members[0], names)
        case EntitySort(kind):
            return names.members[kind][0]
        case _:
            return names.own.none


def starts(place: str, sort: Sort, initial: Value | AnyValue, names: Vocabulary) -> str:
    """What a variable may be at first: `x = 0`, or `x \\in 0..3` if there is a choice."""  # noqa: D301
    if is_open(initial):
        return f"{place} \\in {_start_set(sort, initial, names)}"
    return f"{place} = {_start(sort, initial, names)}"


def is_open(initial: Any) -> bool:
    if isinstance(initial, AnyValue):
        return True
    parts = initial.values() if hasattr(initial, "values") else ()
    return any(is_open(part) for part in parts)


def _start(sort: Sort, initial: Any, names: Vocabulary) -> str:
    """The one value that a variable starts with."""
    match sort:
        case MapSort(key, value):
            inner = _start(value, initial, names)
            keys = set_of_values(key, names)
            one = names.local(keys[0].lower(), words_in(inner))
            return f"[{one} \\in {keys} |-> {inner}]"
        case RecordSort(_, fields):
            named = field_names(sort)
            inner = ", ".join(f"{named[n]} |-> {_start(s, initial[n], names)}" for n, s in fields)
            return f"[{inner}]"
        case _:
            return literal(initial, names)


def _start_set(sort: Sort, initial: Any, names: Vocabulary) -> str:
    """The set of the values that a variable may start with."""
    if initial is AnyValue.ANY:
        return set_of_values(sort, names)
    match sort:
        case MapSort(key, value):
            inner = _start_set(value, initial, names)
            return f"[{set_of_values(key, names)} -> {inner}]"
        case RecordSort(_, fields):
            named = field_names(sort)
            parts = (f"{named[n]} : {_start_set(s, initial[n], names)}" for n, s in fields)
            return f"[{', '.join(parts)}]"
        case _:
            return f"{{{_start(sort, initial, names)}}}"
