"""The values of a sort at a scope, in their fixed order, and the starting values of variables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from stagewright.spec.definition import AnyValue, Assignment
from stagewright.spec.errors import AssignedTwiceError, ScopeError
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    ScalarSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, Value, path_name

MAX_RECORDS = (
    4_096  # values of a record of which there are sets or bags: each is a cell of the state
)
MAX_SETS = 4_096  # of a parameter: each is a choice of a step


@lru_cache(maxsize=1024)
def values_of(sort: ScalarSort | RecordSort | SetSort, scope: Scope) -> Sequence[Value]:
    """All values of a scalar sort: False before True, numbers upwards, members in order, none first.

    Of a record of scalars: all combinations, those of the last field next to each other. Of a set: the
    empty set first, those that differ in the last member next to each other. Numbers are a `range`: what it
    costs does not depend on how many there are.

    Raises:
        ScopeError: a record or a set has too many values at this scope to be listed.
    """
    match sort:
        case BoolSort():
            return (False, True)
        case IntSort(low, high):
            return range(low, high + 1)
        case EnumSort():
            return sort.members
        case EntitySort(kind):
            return tuple(kind(i) for i in range(scope.sizes[kind]))
        case OptionalSort(element):
            return (None, *values_of(element, scope))
        case RecordSort():
            return _records(sort, scope)
        case SetSort(element):
            return _sets(sort, values_of(element, scope))


def _sets(sort: SetSort, members: Sequence[Value]) -> Sequence[Value]:
    if 2 ** len(members) > MAX_SETS:
        raise ScopeError(
            f"a {sort} is one of 2^{len(members)} at this scope, and each is a choice of a step; at most "
            f"{MAX_SETS:,} can be",
            help="choose a smaller scope",
        )
    return tuple(subsets(members))


def subsets(members: Sequence[Value]) -> Iterator[frozenset[Value]]:
    """All sets of these: the empty one first, those that differ in the last member next to each other."""
    for bits in product((False, True), repeat=len(members)):
        yield frozenset(m for m, bit in zip(members, bits, strict=True) if bit)


def _records(sort: RecordSort, scope: Scope) -> Sequence[Value]:
    options: list[Sequence[Value]] = []
    for _, field in sort.fields:
        assert not isinstance(field, MapSort | SetSort | RecordSort | SeqSort)
        options.append(values_of(field, scope))
    number = math.prod(map(len, options))
    if number > MAX_RECORDS:
        text = ", ".join(
            f"{name} {len(values):,}"
            for (name, _), values in zip(sort.fields, options, strict=True)
        )
        raise ScopeError(
            f"{sort} has {number:,} values at this scope (of its fields: {text}), and each is a cell "
            f"of the state or a choice of a step; at most {MAX_RECORDS:,} can be",
            help="choose a smaller scope, give its numbers narrower bounds, or split it into a record "
            "for each kind of message, which has only the fields that this kind needs",
        )
    names = [name for name, _ in sort.fields]
    return tuple(record_of(names, parts) for parts in product(*options))


def record_of(names: Sequence[str], parts: Sequence[Value]) -> FrozenMap[Value, Value]:
    """A record's value."""
    return FrozenMap(dict(zip(names, parts, strict=True)))


def first_value(sort: Sort, scope: Scope) -> Value:
    """What stands for an element of a sequence that is not there."""
    assert not isinstance(sort, MapSort | SetSort | SeqSort)
    if isinstance(sort, RecordSort):
        return record_of(
            [n for n, _ in sort.fields], [first_value(s, scope) for _, s in sort.fields]
        )
    return values_of(sort, scope)[0]


def starts(sort: Sort, initial: Value | AnyValue, scope: Scope) -> Iterator[Value]:
    """Every value that a variable of `sort` may start with."""
    match sort:
        case MapSort(key, value):
            keys = values_of(key, scope)
            for chosen in product(list(starts(value, initial, scope)), repeat=len(keys)):
                yield FrozenMap(dict(zip(keys, chosen, strict=True)))
        case RecordSort(_, fields):
            inner: Any = initial
            if initial is AnyValue.ANY:
                inner = {name: AnyValue.ANY for name, _ in fields}
            options = [list(starts(s, inner[name], scope)) for name, s in fields]
            for chosen in product(*options):
                parts: dict[Value, Value] = {
                    name: part for (name, _), part in zip(fields, chosen, strict=True)
                }
                yield FrozenMap(parts)
        case SetSort(element):
            if initial is not AnyValue.ANY:
                yield _as_value(initial)
                return
            yield from subsets(values_of(element, scope))
        case SeqSort(element, capacity):
            if initial is not AnyValue.ANY:
                yield _as_value(initial)
                return
            for length in range(capacity + 1):
                yield from product(values_of(element, scope), repeat=length)
        case _:
            if initial is AnyValue.ANY:
                yield from values_of(sort, scope)
            else:
                yield _as_value(initial)


def _as_value(initial: Value | AnyValue) -> Value:
    assert not isinstance(initial, AnyValue)
    return initial


def assigned_twice(
    label: str, path: tuple[Value, ...], assignment: Assignment
) -> AssignedTwiceError:
    """The error for two assignments of one step to the same place."""
    return AssignedTwiceError(
        f"`{label}` assigns {path_name(path)} twice",
        where=assignment.where,
        help="take the two keys as parameters of the action, and require that they differ",
    )
