"""The values that a sort has at present, where entities come and go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from stagewright.spec.entities import Entity
from stagewright.spec.grounding.domains import record_of, subsets
from stagewright.spec.sorts import (
    BoolSort,
    EntitySort,
    EnumSort,
    IntSort,
    OptionalSort,
    RecordSort,
    SetSort,
    Sort,
)

Live = Mapping[type[Entity], Iterable[Entity]]


def values_now(sort: Sort, live: Live) -> Iterable[Any]:
    """The values of a scalar, a record of scalars or a set, in the order in which a check has them."""
    match sort:
        case BoolSort():
            return (False, True)
        case IntSort(low, high):
            return range(low, high + 1)
        case EnumSort():
            return sort.members
        case EntitySort(kind):
            return live.get(kind, ())
        case OptionalSort(element):
            return (None, *values_now(element, live))
        case RecordSort(_, fields):
            names = [name for name, _ in fields]
            options = [tuple(values_now(field, live)) for _, field in fields]
            return (record_of(names, parts) for parts in product(*options))
        case SetSort(element):
            return subsets(tuple(values_now(element, live)))
        case _:
            raise AssertionError(f"{sort} is not made of scalars")


def item(sequence: tuple[Any, ...], index: int, sort: Sort, live: Live) -> Any:
    """The element of a sequence at an index; the first value of its sort outside of it."""
    if 0 <= index < len(sequence):
        return sequence[index]
    return next(iter(values_now(sort, live)), None)
