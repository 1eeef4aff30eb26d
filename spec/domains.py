"""The values of a sort at a scope, in their fixed order, and the starting values of variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from stagewright.spec.definition import AnyValue
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
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, Value


@lru_cache(maxsize=1024)
def values_of(sort: ScalarSort, scope: Scope) -> Sequence[Value]:
    """All values of a scalar sort: False before True, numbers upwards, members in order, none first.

    Numbers are a `range`: what it costs does not depend on how many there are.
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
            members = values_of(element, scope)
            for bits in product((False, True), repeat=len(members)):
                yield frozenset(m for m, bit in zip(members, bits, strict=True) if bit)
        case _:
            if initial is AnyValue.ANY:
                yield from values_of(sort, scope)
            else:
                yield _as_value(initial)


def _as_value(initial: Value | AnyValue) -> Value:
    assert not isinstance(initial, AnyValue)
    return initial
